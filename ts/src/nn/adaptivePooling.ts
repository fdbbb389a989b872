/**
 * Pooling to an output of a given size: adaptive and fractional.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { Module } from "./module.ts";
import { fields, numberOf, perDimension, type Scalar, type Size, str } from "./sizes.ts";
import { badInput } from "./state.ts";

/** A size of the output; `null` keeps the size of the input. */
export type OutputSize = number | null | readonly (number | null)[];

/** How an adaptive average pooling is made. */
export interface AdaptiveAvgPoolOptions {
  /** The size of the output. */
  readonly outputSize?: OutputSize;
}

type AdaptiveAvgPoolArguments = Arguments<[outputSize: OutputSize], [], AdaptiveAvgPoolOptions>;

/** What adaptive average poolings are. */
abstract class AdaptiveAvgPoolNd extends Module {
  readonly outputSize: OutputSize;

  protected constructor(name: string, given: AdaptiveAvgPoolArguments) {
    super();
    this.outputSize = bind<AdaptiveAvgPoolOptions>(name, given, ["outputSize"], {}).outputSize;
  }

  override extraRepr(): string {
    return fields({ output_size: this.outputSize });
  }
}

/** Averages of a sequence, so many as the output has elements: `(N, C, L)` to `(N, C, outputSize)`. */
export class AdaptiveAvgPool1d extends AdaptiveAvgPoolNd {
  constructor(...given: AdaptiveAvgPoolArguments) {
    super("AdaptiveAvgPool1d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.adaptiveAvgPool1d(input, this.outputSize as Size);
  }
}

/**
 * Averages of an image, so many as the output has elements: `(N, C, H, W)` to `(N, C, ...outputSize)`.
 *
 * @example
 * ```ts
 * new AdaptiveAvgPool2d([1, 1]);
 * ```
 */
export class AdaptiveAvgPool2d extends AdaptiveAvgPoolNd {
  constructor(...given: AdaptiveAvgPoolArguments) {
    super("AdaptiveAvgPool2d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.adaptiveAvgPool2d(input, this.outputSize);
  }
}

/** Averages of a volume, so many as the output has elements: `(N, C, D, H, W)` to `(N, C, ...outputSize)`. */
export class AdaptiveAvgPool3d extends AdaptiveAvgPoolNd {
  constructor(...given: AdaptiveAvgPoolArguments) {
    super("AdaptiveAvgPool3d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.adaptiveAvgPool3d(input, this.outputSize);
  }
}

/** How an adaptive maximum pooling is made. */
export interface AdaptiveMaxPoolOptions extends AdaptiveAvgPoolOptions {
  /** Whether the places of the maxima are given too; `false` by default. */
  readonly returnIndices?: boolean;
}

type AdaptiveMaxPoolArguments = Arguments<[outputSize: OutputSize], [returnIndices: boolean], AdaptiveMaxPoolOptions>;

/** What adaptive maximum poolings are. */
abstract class AdaptiveMaxPoolNd extends Module {
  readonly outputSize: OutputSize;
  readonly returnIndices: boolean;

  protected constructor(name: string, given: AdaptiveMaxPoolArguments) {
    super();
    const it = bind<AdaptiveMaxPoolOptions>(name, given, ["outputSize"], { returnIndices: false });
    this.outputSize = it.outputSize;
    this.returnIndices = it.returnIndices;
  }

  override extraRepr(): string {
    return fields({ output_size: this.outputSize });
  }
}

/** Maxima of a sequence, so many as the output has elements: `(N, C, L)` to `(N, C, outputSize)`. */
export class AdaptiveMaxPool1d extends AdaptiveMaxPoolNd {
  constructor(...given: AdaptiveMaxPoolArguments) {
    super("AdaptiveMaxPool1d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.adaptiveMaxPool1d(input, this.outputSize as Size, this.returnIndices) as Tensor;
  }
}

/** Maxima of an image, so many as the output has elements: `(N, C, H, W)` to `(N, C, ...outputSize)`. */
export class AdaptiveMaxPool2d extends AdaptiveMaxPoolNd {
  constructor(...given: AdaptiveMaxPoolArguments) {
    super("AdaptiveMaxPool2d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.adaptiveMaxPool2d(input, this.outputSize, this.returnIndices) as Tensor;
  }
}

/** Maxima of a volume, so many as the output has elements: `(N, C, D, H, W)` to `(N, C, ...outputSize)`. */
export class AdaptiveMaxPool3d extends AdaptiveMaxPoolNd {
  constructor(...given: AdaptiveMaxPoolArguments) {
    super("AdaptiveMaxPool3d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.adaptiveMaxPool3d(input, this.outputSize, this.returnIndices) as Tensor;
  }
}

/** How a fractional maximum pooling is made; of `outputSize` and `outputRatio` one is given. */
export interface FractionalMaxPoolOptions {
  /** The size of the window. */
  readonly kernelSize?: Size;
  /** The size of the output. */
  readonly outputSize?: Size | null;
  /** The size of the output as a part of the input's. */
  readonly outputRatio?: Scalar | readonly Scalar[] | null;
  /** Whether the places of the maxima are given too; `false` by default. */
  readonly returnIndices?: boolean;
  /** What is drawn otherwise, for each sample and channel. */
  readonly _randomSamples?: Tensor | null;
}

type FractionalMaxPoolArguments = Arguments<
  [kernelSize: Size],
  [
    outputSize: Size | null,
    outputRatio: Scalar | readonly Scalar[] | null,
    returnIndices: boolean,
    _randomSamples: Tensor | null,
  ],
  FractionalMaxPoolOptions
>;

/** What fractional maximum poolings are. */
abstract class FractionalMaxPoolNd extends Module {
  readonly kernelSize: readonly number[];
  readonly outputSize: readonly number[] | null;
  readonly outputRatio: readonly number[] | null;
  readonly returnIndices: boolean;
  declare _random_samples: Tensor | null;

  protected constructor(dims: 2 | 3, given: FractionalMaxPoolArguments) {
    super();
    const name = `FractionalMaxPool${dims}d`;
    const it = bind<FractionalMaxPoolOptions>(name, given, ["kernelSize"], {
      outputSize: null,
      outputRatio: null,
      returnIndices: false,
      _randomSamples: null,
    });
    this.kernelSize = perDimension(it.kernelSize, dims, "kernelSize");
    if (dims === 3 && this.kernelSize.some((size) => size <= 0)) {
      throw badInput(`kernel_size must be greater than 0, but got ${str(it.kernelSize)}`);
    }
    this.returnIndices = it.returnIndices;
    this.registerBuffer("_random_samples", it._randomSamples);
    this.outputSize = it.outputSize === null ? null : perDimension(it.outputSize, dims, "outputSize");
    const ratio = it.outputRatio as Size | null;
    this.outputRatio = ratio === null ? null : perDimension(ratio, dims, "outputRatio");
    if (this.outputSize === null && this.outputRatio === null) {
      throw badInput(`${name} requires specifying either an output size, or a pooling ratio`);
    }
    if (this.outputSize !== null && this.outputRatio !== null) {
      throw badInput("only one of output_size and output_ratio may be specified");
    }
    if (this.outputRatio?.some((part) => !(numberOf(part) > 0 && numberOf(part) < 1))) {
      throw badInput(`output_ratio must be between 0 and 1 (got ${str(it.outputRatio)})`);
    }
  }
}

/** The maximum over windows of an image, `(N, C, H, W)` or `(C, H, W)`, whose places are drawn. */
export class FractionalMaxPool2d extends FractionalMaxPoolNd {
  constructor(...given: FractionalMaxPoolArguments) {
    super(2, given);
  }

  override forward(input: Tensor): Tensor {
    const { kernelSize, outputSize, outputRatio, returnIndices, _random_samples } = this;
    const samples = { _randomSamples: _random_samples };
    return F.fractionalMaxPool2d(input, kernelSize, outputSize, outputRatio, returnIndices, samples) as Tensor;
  }
}

/** The maximum over windows of a volume, `(N, C, D, H, W)` or `(C, D, H, W)`, whose places are drawn. */
export class FractionalMaxPool3d extends FractionalMaxPoolNd {
  constructor(...given: FractionalMaxPoolArguments) {
    super(3, given);
  }

  override forward(input: Tensor): Tensor {
    const { kernelSize, outputSize, outputRatio, returnIndices, _random_samples } = this;
    const samples = { _randomSamples: _random_samples };
    return F.fractionalMaxPool3d(input, kernelSize, outputSize, outputRatio, returnIndices, samples) as Tensor;
  }
}

markBuiltin({ AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d });
markBuiltin({ AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d, FractionalMaxPool2d, FractionalMaxPool3d });
