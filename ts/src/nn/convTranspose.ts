/**
 * Transposed convolutions.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, FACTORY } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { ConvNd, type ConvOptions, type PaddingMode } from "./conv.ts";
import { numbers, type Size, str } from "./sizes.ts";
import { badInput, rankOf } from "./state.ts";

/** How a transposed convolution is made. */
export interface ConvTransposeOptions extends Omit<ConvOptions, "padding"> {
  /** What the output loses on each side; 0 by default. */
  readonly padding?: Size;
  /** What the output gains on one side; 0 by default. */
  readonly outputPadding?: Size;
}

type ConvTransposeArguments = Arguments<
  [inChannels: number, outChannels: number, kernelSize: Size],
  [
    stride: Size,
    padding: Size,
    outputPadding: Size,
    groups: number,
    bias: boolean,
    dilation: Size,
    paddingMode: PaddingMode,
  ],
  ConvTransposeOptions
>;

type Convolve = (
  input: Tensor,
  weight: Tensor,
  bias: Tensor | null,
  stride: readonly number[],
  padding: readonly number[],
  outputPadding: readonly number[],
  groups: number,
  dilation: readonly number[],
) => Tensor;

/** Of what size the output is to be, where several are possible. */
export interface OutputSizeOptions {
  /** The size of the output, with or without its batch and channels. */
  readonly outputSize?: readonly number[] | null;
}

/** What all transposed convolutions are. */
abstract class ConvTransposeNd extends ConvNd {
  static override readonly forwardSignature: string = "(input, output_size=None)";

  protected constructor(name: string, dims: number, given: ConvTransposeArguments) {
    const it = bind<ConvTransposeOptions>(name, given, ["inChannels", "outChannels", "kernelSize"], {
      stride: 1,
      padding: 0,
      outputPadding: 0,
      groups: 1,
      bias: true,
      dilation: 1,
      paddingMode: "zeros",
      ...FACTORY,
    });
    super(dims, true, it);
  }

  protected convolve(
    convolve: Convolve,
    input: Tensor,
    outputSize: readonly number[] | OutputSizeOptions | null | undefined,
  ): Tensor {
    if (this.paddingMode !== "zeros") {
      throw badInput(`Only \`zeros\` padding mode is supported for ${this.className}`);
    }
    const wanted = (outputSize ?? null) as readonly number[] | null;
    const added = wanted === null ? this.outputPadding : addedFor(this, input, wanted);
    const { weight, bias, stride, groups, dilation } = this;
    return convolve(input, weight, bias, stride, this.padding as readonly number[], added, groups, dilation);
  }
}

/** A transposed convolution over one dimension: `(N, inChannels, L)` to `(N, outChannels, …)`, or without `N`. */
export class ConvTranspose1d extends ConvTransposeNd {
  constructor(...given: ConvTransposeArguments) {
    super("ConvTranspose1d", 1, given);
  }

  override forward(input: Tensor, outputSize?: readonly number[] | OutputSizeOptions | null): Tensor {
    return this.convolve(F.convTranspose1d, input, outputSize);
  }
}

/** A transposed convolution over two dimensions: `(N, inChannels, H, W)` to `(N, outChannels, …)`, or without `N`. */
export class ConvTranspose2d extends ConvTransposeNd {
  constructor(...given: ConvTransposeArguments) {
    super("ConvTranspose2d", 2, given);
  }

  override forward(input: Tensor, outputSize?: readonly number[] | OutputSizeOptions | null): Tensor {
    return this.convolve(F.convTranspose2d, input, outputSize);
  }
}

/** A transposed convolution over three dimensions: `(N, inChannels, D, H, W)` to `(N, outChannels, …)`, or without `N`. */
export class ConvTranspose3d extends ConvTransposeNd {
  constructor(...given: ConvTransposeArguments) {
    super("ConvTranspose3d", 3, given);
  }

  override forward(input: Tensor, outputSize?: readonly number[] | OutputSizeOptions | null): Tensor {
    return this.convolve(F.convTranspose3d, input, outputSize);
  }
}

/** The output padding that makes the output of this size. */
function addedFor(module: ConvTransposeNd, input: Tensor, outputSize: readonly number[]): readonly number[] {
  const { kernelSize, stride, dilation, padding } = module;
  const dims = kernelSize.length;
  const rank = rankOf(module, input);
  const leading = rank === dims + 2 ? 2 : 1;
  const wanted = outputSize.length === leading + dims ? outputSize.slice(leading) : outputSize;
  if (wanted.length !== dims) {
    throw badInput(
      `ConvTranspose${dims}D: for ${rank}D input, output_size must have ${dims} or ${leading + dims} elements (got ${wanted.length})`,
    );
  }
  const least = kernelSize.map((kernel, dim) => {
    const inner = ((input.shape[dim + leading] as number) - 1) * (stride[dim] as number) - 2 * Number(padding[dim]);
    return inner + (dilation[dim] as number) * (kernel - 1) + 1;
  });
  const most = least.map((size, dim) => size + (stride[dim] as number) - 1);
  if (wanted.some((size, dim) => size < (least[dim] as number) || size > (most[dim] as number))) {
    const sizes = `torch.Size(${str(input.shape.slice(2))})`;
    throw badInput(
      `requested an output size of ${str(wanted)}, but valid sizes range from ${str(least)} to ${str(most)} (for an input of ${sizes})`,
    );
  }
  return numbers(wanted.map((size, dim) => size - (least[dim] as number)));
}

markBuiltin({ ConvTranspose1d, ConvTranspose2d, ConvTranspose3d });
