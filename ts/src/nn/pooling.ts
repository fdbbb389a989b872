/**
 * Pooling over windows: maximum, average and power average, and undoing the maximum.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { Module } from "./module.ts";
import { fields, floatOf, numberOf, perDimension, type Scalar, type Size, str } from "./sizes.ts";
import { badInput } from "./state.ts";

/** How a maximum pooling is made. */
export interface MaxPoolOptions {
  /** The size of the window. */
  readonly kernelSize?: Size;
  /** The step of the window; by default its size. */
  readonly stride?: Size | null;
  /** What is added to each side; 0 by default. */
  readonly padding?: Size;
  /** The distance between elements of the window; 1 by default. */
  readonly dilation?: Size;
  /** Whether the places of the maxima are given too, as {@link MaxUnpool2d} needs them; `false` by default. */
  readonly returnIndices?: boolean;
  /** Whether the size of the output is rounded up; `false` by default. */
  readonly ceilMode?: boolean;
}

type MaxPoolArguments = Arguments<
  [kernelSize: Size],
  [stride: Size | null, padding: Size, dilation: Size, returnIndices: boolean, ceilMode: boolean],
  MaxPoolOptions
>;

type MaxPool = (
  input: Tensor,
  kernelSize: Size,
  stride: Size,
  padding: Size,
  dilation: Size,
  options: { ceilMode: boolean; returnIndices: boolean },
) => Tensor | readonly [Tensor, Tensor];

/** What maximum poolings are. */
abstract class MaxPoolNd extends Module {
  readonly kernelSize: Size;
  readonly stride: Size;
  readonly padding: Size;
  readonly dilation: Size;
  readonly returnIndices: boolean;
  readonly ceilMode: boolean;

  protected constructor(name: string, given: MaxPoolArguments) {
    super();
    const it = bind<MaxPoolOptions>(name, given, ["kernelSize"], {
      stride: null,
      padding: 0,
      dilation: 1,
      returnIndices: false,
      ceilMode: false,
    });
    this.kernelSize = it.kernelSize;
    this.stride = it.stride ?? it.kernelSize;
    this.padding = it.padding;
    this.dilation = it.dilation;
    this.returnIndices = it.returnIndices;
    this.ceilMode = it.ceilMode;
  }

  protected pool(pool: MaxPool, input: Tensor): Tensor {
    const { kernelSize, stride, padding, dilation, ceilMode, returnIndices } = this;
    // With indices it gives two tensors; the type is of the way that it is called without.
    return pool(input, kernelSize, stride, padding, dilation, { ceilMode, returnIndices }) as Tensor;
  }

  override extraRepr(): string {
    return fields({
      kernel_size: this.kernelSize,
      stride: this.stride,
      padding: this.padding,
      dilation: this.dilation,
      ceil_mode: this.ceilMode,
    });
  }
}

/** The maximum over windows of a sequence, `(N, C, L)` or `(C, L)`. */
export class MaxPool1d extends MaxPoolNd {
  constructor(...given: MaxPoolArguments) {
    super("MaxPool1d", given);
  }

  override forward(input: Tensor): Tensor {
    return this.pool(F.maxPool1d, input);
  }
}

/**
 * The maximum over windows of an image, `(N, C, H, W)` or `(C, H, W)`. With `returnIndices` it gives the maxima and their places.
 *
 * @example
 * ```ts
 * new MaxPool2d(3, { stride: 2, padding: 1 });
 * ```
 */
export class MaxPool2d extends MaxPoolNd {
  constructor(...given: MaxPoolArguments) {
    super("MaxPool2d", given);
  }

  override forward(input: Tensor): Tensor {
    return this.pool(F.maxPool2d, input);
  }
}

/** The maximum over windows of a volume, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class MaxPool3d extends MaxPoolNd {
  constructor(...given: MaxPoolArguments) {
    super("MaxPool3d", given);
  }

  override forward(input: Tensor): Tensor {
    return this.pool(F.maxPool3d, input);
  }
}

/** How the undoing of a maximum pooling is made. */
export interface MaxUnpoolOptions {
  /** The size of the window. */
  readonly kernelSize?: Size;
  /** The step of the window; by default its size. */
  readonly stride?: Size | null;
  /** What the pooling added to each side; 0 by default. */
  readonly padding?: Size;
}

type MaxUnpoolArguments = Arguments<[kernelSize: Size], [stride: Size | null, padding: Size], MaxUnpoolOptions>;

/** Of what size the output is to be, where several are possible. */
export interface UnpoolSizeOptions {
  /** The size of the output. */
  readonly outputSize?: readonly number[] | null;
}

/** What a maximum unpooling is told of the size of its output. */
type UnpoolSize = readonly number[] | UnpoolSizeOptions | null;

/** What the undoings of maximum poolings are. */
abstract class MaxUnpoolNd extends Module {
  static override readonly forwardSignature: string = "(input, indices, output_size=None)";
  readonly kernelSize: readonly number[];
  readonly stride: readonly number[];
  readonly padding: readonly number[];

  protected constructor(name: string, dims: number, given: MaxUnpoolArguments) {
    super();
    const it = bind<MaxUnpoolOptions>(name, given, ["kernelSize"], { stride: null, padding: 0 });
    this.kernelSize = perDimension(it.kernelSize, dims, "kernelSize");
    this.stride = perDimension(it.stride ?? it.kernelSize, dims, "stride");
    this.padding = perDimension(it.padding, dims, "padding");
  }

  override extraRepr(): string {
    return fields({ kernel_size: this.kernelSize, stride: this.stride, padding: this.padding });
  }
}

/** Puts maxima back to their places in a sequence, `(N, C, L)` or `(C, L)`. */
export class MaxUnpool1d extends MaxUnpoolNd {
  constructor(...given: MaxUnpoolArguments) {
    super("MaxUnpool1d", 1, given);
  }

  override forward(input: Tensor, indices: Tensor, outputSize: UnpoolSize = null): Tensor {
    const size = outputSize as readonly number[] | null;
    return F.maxUnpool1d(input, indices, this.kernelSize, this.stride, this.padding, size);
  }
}

/** Puts maxima back to their places in an image, `(N, C, H, W)` or `(C, H, W)`. */
export class MaxUnpool2d extends MaxUnpoolNd {
  constructor(...given: MaxUnpoolArguments) {
    super("MaxUnpool2d", 2, given);
  }

  override forward(input: Tensor, indices: Tensor, outputSize: UnpoolSize = null): Tensor {
    const size = outputSize as readonly number[] | null;
    return F.maxUnpool2d(input, indices, this.kernelSize, this.stride, this.padding, size);
  }
}

/** Puts maxima back to their places in a volume, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class MaxUnpool3d extends MaxUnpoolNd {
  constructor(...given: MaxUnpoolArguments) {
    super("MaxUnpool3d", 3, given);
  }

  override forward(input: Tensor, indices: Tensor, outputSize: UnpoolSize = null): Tensor {
    const size = outputSize as readonly number[] | null;
    return F.maxUnpool3d(input, indices, this.kernelSize, this.stride, this.padding, size);
  }
}

/** How an average pooling is made. */
export interface AvgPool1dOptions {
  /** The size of the window. */
  readonly kernelSize?: Size;
  /** The step of the window; by default its size. */
  readonly stride?: Size | null;
  /** What is added to each side; 0 by default. */
  readonly padding?: Size;
  /** Whether the size of the output is rounded up; `false` by default. */
  readonly ceilMode?: boolean;
  /** Whether what is added counts in the average; `true` by default. */
  readonly countIncludePad?: boolean;
}

/** How an average pooling over two or three dimensions is made. */
export interface AvgPoolOptions extends AvgPool1dOptions {
  /** What the sums are divided by, in place of the number of elements. */
  readonly divisorOverride?: number | null;
}

type AvgPool1dArguments = Arguments<
  [kernelSize: Size],
  [stride: Size | null, padding: Size, ceilMode: boolean, countIncludePad: boolean],
  AvgPool1dOptions
>;

type AvgPoolArguments = Arguments<
  [kernelSize: Size],
  [stride: Size | null, padding: Size, ceilMode: boolean, countIncludePad: boolean, divisorOverride: number | null],
  AvgPoolOptions
>;

const AVG_DEFAULTS = { stride: null, padding: 0, ceilMode: false, countIncludePad: true };

/** What average poolings are. */
abstract class AvgPoolNd extends Module {
  abstract readonly kernelSize: Size;
  abstract readonly stride: Size;
  abstract readonly padding: Size;

  override extraRepr(): string {
    return fields({ kernel_size: this.kernelSize, stride: this.stride, padding: this.padding });
  }
}

/** The average over windows of a sequence, `(N, C, L)` or `(C, L)`. */
export class AvgPool1d extends AvgPoolNd {
  readonly kernelSize: Size;
  readonly stride: Size;
  readonly padding: Size;
  readonly ceilMode: boolean;
  readonly countIncludePad: boolean;

  constructor(...given: AvgPool1dArguments) {
    super();
    const it = bind<AvgPool1dOptions>("AvgPool1d", given, ["kernelSize"], AVG_DEFAULTS);
    this.kernelSize = perDimension(it.kernelSize, 1, "kernelSize");
    this.stride = perDimension(it.stride ?? it.kernelSize, 1, "stride");
    this.padding = perDimension(it.padding, 1, "padding");
    this.ceilMode = it.ceilMode;
    this.countIncludePad = it.countIncludePad;
  }

  override forward(input: Tensor): Tensor {
    const { kernelSize, stride, padding, ceilMode, countIncludePad } = this;
    return F.avgPool1d(input, kernelSize, stride, padding, ceilMode, countIncludePad);
  }
}

/** What average poolings over two and three dimensions are. */
abstract class WideAvgPool extends AvgPoolNd {
  readonly kernelSize: Size;
  readonly stride: Size;
  readonly padding: Size;
  readonly ceilMode: boolean;
  readonly countIncludePad: boolean;
  readonly divisorOverride: number | null;

  protected constructor(name: string, given: AvgPoolArguments) {
    super();
    const it = bind<AvgPoolOptions>(name, given, ["kernelSize"], { ...AVG_DEFAULTS, divisorOverride: null });
    this.kernelSize = it.kernelSize;
    this.stride = it.stride ?? it.kernelSize;
    this.padding = it.padding;
    this.ceilMode = it.ceilMode;
    this.countIncludePad = it.countIncludePad;
    this.divisorOverride = it.divisorOverride;
  }
}

/** The average over windows of an image, `(N, C, H, W)` or `(C, H, W)`. */
export class AvgPool2d extends WideAvgPool {
  constructor(...given: AvgPoolArguments) {
    super("AvgPool2d", given);
  }

  override forward(input: Tensor): Tensor {
    const { kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride } = this;
    return F.avgPool2d(input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride);
  }
}

/** The average over windows of a volume, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class AvgPool3d extends WideAvgPool {
  constructor(...given: AvgPoolArguments) {
    super("AvgPool3d", given);
  }

  override forward(input: Tensor): Tensor {
    const { kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride } = this;
    return F.avgPool3d(input, kernelSize, stride, padding, ceilMode, countIncludePad, divisorOverride);
  }
}

/** How a power-average pooling is made. */
export interface LPPoolOptions {
  /** The exponent. */
  readonly normType?: Scalar;
  /** The size of the window. */
  readonly kernelSize?: Size;
  /** The step of the window; by default its size. */
  readonly stride?: Size | null;
  /** Whether the size of the output is rounded up; `false` by default. */
  readonly ceilMode?: boolean;
}

type LPPoolArguments = Arguments<
  [normType: Scalar, kernelSize: Size],
  [stride: Size | null, ceilMode: boolean],
  LPPoolOptions
>;

/** What power-average poolings are. */
abstract class LPPoolNd extends Module {
  readonly normType: Scalar;
  readonly kernelSize: Size;
  readonly stride: Size | null;
  readonly ceilMode: boolean;

  protected constructor(name: string, given: LPPoolArguments) {
    super();
    const it = bind<LPPoolOptions>(name, given, ["normType", "kernelSize"], { stride: null, ceilMode: false });
    if (numberOf(it.normType) === 0) {
      throw badInput(`norm_type must be a non-zero value, but got ${str(it.normType)}`);
    }
    this.normType = it.normType;
    this.kernelSize = it.kernelSize;
    this.stride = it.stride;
    this.ceilMode = it.ceilMode;
  }

  override extraRepr(): string {
    const { normType, kernelSize, stride, ceilMode } = this;
    return fields({ norm_type: normType, kernel_size: kernelSize, stride, ceil_mode: ceilMode });
  }
}

/** The power average over windows of a sequence, `(N, C, L)` or `(C, L)`. */
export class LPPool1d extends LPPoolNd {
  constructor(...given: LPPoolArguments) {
    super("LPPool1d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.lpPool1d(input, floatOf(this.normType), this.kernelSize, this.stride, this.ceilMode);
  }
}

/** The power average over windows of an image, `(N, C, H, W)` or `(C, H, W)`. */
export class LPPool2d extends LPPoolNd {
  constructor(...given: LPPoolArguments) {
    super("LPPool2d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.lpPool2d(input, floatOf(this.normType), this.kernelSize, this.stride, this.ceilMode);
  }
}

/** The power average over windows of a volume, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class LPPool3d extends LPPoolNd {
  constructor(...given: LPPoolArguments) {
    super("LPPool3d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.lpPool3d(input, floatOf(this.normType), this.kernelSize, this.stride, this.ceilMode);
  }
}

markBuiltin({ MaxPool1d, MaxPool2d, MaxPool3d, MaxUnpool1d, MaxUnpool2d, MaxUnpool3d });
markBuiltin({ AvgPool1d, AvgPool2d, AvgPool3d, LPPool1d, LPPool2d, LPPool3d });
