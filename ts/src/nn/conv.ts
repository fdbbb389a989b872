/**
 * Convolutions.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, type Bound, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { initialise } from "./deferred.ts";
import { resetWeightAndBias } from "./linear.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";
import { numbers, perDimension, type Size, str } from "./sizes.ts";
import { badInput, newParameter } from "./state.ts";

/** What a convolution reads beyond the edges of its input. */
export type PaddingMode = "zeros" | "reflect" | "replicate" | "circular";

const PADDING_MODES: readonly PaddingMode[] = ["zeros", "reflect", "replicate", "circular"];

/** How a convolution is made. */
export interface ConvOptions extends FactoryOptions {
  /** The number of channels of the input. */
  readonly inChannels?: number;
  /** The number of channels of the output. */
  readonly outChannels?: number;
  /** The size of the kernel. */
  readonly kernelSize?: Size;
  /** The step of the kernel; 1 by default. */
  readonly stride?: Size;
  /** What is added to each side of the input, `"same"` for an output of the size of the input, or `"valid"`; 0 by default. */
  readonly padding?: Size | "same" | "valid";
  /** The distance between entries of the kernel; 1 by default. */
  readonly dilation?: Size;
  /** The number of groups of channels that are kept apart; 1 by default. */
  readonly groups?: number;
  /** Whether a bias is added; `true` by default. */
  readonly bias?: boolean;
  /** What is read beyond the edges; `zeros` by default. */
  readonly paddingMode?: PaddingMode;
}

type ConvArguments = Arguments<
  [inChannels: number, outChannels: number, kernelSize: Size],
  [
    stride: Size,
    padding: Size | "same" | "valid",
    dilation: Size,
    groups: number,
    bias: boolean,
    paddingMode: PaddingMode,
  ],
  ConvOptions
>;

/** The parts that all convolutions have in common. */
export interface ConvParts extends Bound<ConvOptions> {
  readonly outputPadding: Size;
}

/** What all convolutions and transposed convolutions are. */
export abstract class ConvNd extends Module {
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernelSize: readonly number[];
  readonly stride: readonly number[];
  readonly padding: readonly number[] | "same" | "valid";
  readonly dilation: readonly number[];
  readonly transposed: boolean;
  readonly outputPadding: readonly number[];
  readonly groups: number;
  readonly paddingMode: PaddingMode;
  declare weight: Parameter;
  declare bias: Parameter | null;

  protected constructor(dims: number, transposed: boolean, it: ConvParts) {
    super();
    if (it.groups <= 0) throw badInput("groups must be a positive integer");
    if (it.inChannels % it.groups !== 0) throw badInput("in_channels must be divisible by groups");
    if (it.outChannels % it.groups !== 0) throw badInput("out_channels must be divisible by groups");
    this.inChannels = it.inChannels;
    this.outChannels = it.outChannels;
    this.kernelSize = perDimension(it.kernelSize, dims, "kernelSize");
    this.stride = perDimension(it.stride, dims, "stride");
    this.padding = typeof it.padding === "string" ? it.padding : perDimension(it.padding, dims, "padding");
    this.dilation = perDimension(it.dilation, dims, "dilation");
    this.transposed = transposed;
    this.outputPadding = perDimension(it.outputPadding, dims, "outputPadding");
    this.groups = it.groups;
    this.paddingMode = it.paddingMode;
    if (typeof this.padding === "string") {
      if (this.padding !== "same" && this.padding !== "valid") {
        throw badInput(`Invalid padding string '${String(this.padding)}', should be one of {'same', 'valid'}`);
      }
      if (this.padding === "same" && this.stride.some((step) => step !== 1)) {
        throw badInput("padding='same' is not supported for strided convolutions");
      }
    }
    if (!PADDING_MODES.includes(this.paddingMode)) {
      const known = PADDING_MODES.map((mode) => `'${mode}'`)
        .toSorted()
        .join(", ");
      throw badInput(`padding_mode must be one of {${known}}, but got padding_mode='${String(this.paddingMode)}'`);
    }
    const channels = transposed
      ? [it.inChannels, it.outChannels / it.groups]
      : [it.outChannels, it.inChannels / it.groups];
    this.weight = newParameter([...channels, ...this.kernelSize], it);
    this.bias = it.bias ? newParameter([it.outChannels], it) : null;
    initialise(this);
  }

  /** Draws the parameters anew. */
  resetParameters(): void {
    resetWeightAndBias(this.weight, this.bias);
  }

  override extraRepr(): string {
    const { kernelSize, stride, padding, dilation, outputPadding, groups, paddingMode } = this;
    const shown = [`${this.inChannels}, ${this.outChannels}, kernel_size=${str(kernelSize)}, stride=${str(stride)}`];
    if (typeof padding === "string" || padding.some((it) => it !== 0)) shown.push(`padding=${str(padding)}`);
    if (dilation.some((it) => it !== 1)) shown.push(`dilation=${str(dilation)}`);
    if (outputPadding.some((it) => it !== 0)) shown.push(`output_padding=${str(outputPadding)}`);
    if (groups !== 1) shown.push(`groups=${groups}`);
    if (this.bias === null) shown.push("bias=False");
    if (paddingMode !== "zeros") shown.push(`padding_mode=${paddingMode}`);
    return shown.join(", ");
  }

  /** What {@link F.pad} adds where the padding is not of zeros: before and after, the last dimension first. */
  protected get edges(): readonly number[] {
    const { padding, dilation, kernelSize } = this;
    const pairs = kernelSize.map((size, dim) => {
      if (padding === "valid") return [0, 0];
      if (padding !== "same") return [padding[dim] as number, padding[dim] as number];
      const total = (dilation[dim] as number) * (size - 1);
      return [Math.floor(total / 2), total - Math.floor(total / 2)];
    });
    const flat = pairs.toReversed().flat();
    // PyTorch keeps a list where the padding has a name, and a tuple where it has sizes.
    return typeof padding === "string" ? flat : numbers(flat);
  }
}

type Convolve = (
  input: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  stride: readonly number[],
  padding: readonly number[] | "same" | "valid",
  dilation: readonly number[],
  groups: number,
) => Tensor;

/** What convolutions that are not transposed are. */
abstract class PlainConv extends ConvNd {
  protected constructor(name: string, dims: number, given: ConvArguments) {
    const it = bind<ConvOptions>(name, given, ["inChannels", "outChannels", "kernelSize"], {
      stride: 1,
      padding: 0,
      dilation: 1,
      groups: 1,
      bias: true,
      paddingMode: "zeros",
      ...FACTORY,
    });
    super(dims, false, { ...it, outputPadding: 0 });
  }

  protected convolve(convolve: Convolve, input: Tensor): Tensor {
    const { weight, bias, stride, padding, dilation, groups, paddingMode } = this;
    if (paddingMode === "zeros") return convolve(input, weight, bias, stride, padding, dilation, groups);
    const padded = F.pad(input, this.edges, { mode: paddingMode });
    const none = perDimension(0, this.kernelSize.length, "padding");
    return convolve(padded, weight, bias, stride, none, dilation, groups);
  }
}

/** A convolution over one dimension: `(N, inChannels, L)` to `(N, outChannels, …)`, or without `N`. */
export class Conv1d extends PlainConv {
  constructor(...given: ConvArguments) {
    super("Conv1d", 1, given);
  }

  override forward(input: Tensor): Tensor {
    return this.convolve(F.conv1d, input);
  }
}

/**
 * A convolution over two dimensions: `(N, inChannels, H, W)` to `(N, outChannels, …)`, or without `N`.
 *
 * @example
 * ```ts
 * new Conv2d(3, 8, 3, { padding: 1 });
 * new Conv2d(3, 8, { kernelSize: [3, 5], stride: 2, bias: false });
 * ```
 */
export class Conv2d extends PlainConv {
  constructor(...given: ConvArguments) {
    super("Conv2d", 2, given);
  }

  override forward(input: Tensor): Tensor {
    return this.convolve(F.conv2d, input);
  }
}

/** A convolution over three dimensions: `(N, inChannels, D, H, W)` to `(N, outChannels, …)`, or without `N`. */
export class Conv3d extends PlainConv {
  constructor(...given: ConvArguments) {
    super("Conv3d", 3, given);
  }

  override forward(input: Tensor): Tensor {
    return this.convolve(F.conv3d, input);
  }
}

markBuiltin({ Conv1d, Conv2d, Conv3d });
