/**
 * Pooling to a given size: adaptive and fractional.
 *
 * Inputs are `(N, C, …)` or, without the batch, `(C, …)`.
 *
 * @module
 */
import { checkList } from "../../base/given.ts";
import { scaled } from "../../base/sizes.ts";
import type { Real } from "../../base/types.ts";
import type { BoundFunction } from "../../functions/bound.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenResults, each, refuse, type Sizes, valueOf } from "./aten.ts";
import { define, defineBuiltin, type NoOptions } from "./define.ts";
import { defineIndexed, type IndexFunctions } from "./indices.ts";

/** The size of a result, where `null` keeps the size of the input. */
export type AdaptiveSizes = number | null | readonly (number | null)[];

/**
 * The means over one dimension, so many that the result has the given size: `(N, C, L)` gives `(N, C, outputSize)`.
 *
 * @example
 * ```ts
 * F.adaptiveAvgPool1d(x, 5);
 * ```
 */
export const adaptiveAvgPool1d = defineBuiltin<[input: Tensor, outputSize: Sizes]>(
  "adaptive_avg_pool1d",
  "torch.adaptive_avg_pool1d",
  "(input, output_size)",
  (input, outputSize) => aten("adaptive_avg_pool1d", input, outputSize),
);

type AdaptivePool = [input: Tensor, outputSize: AdaptiveSizes];

function adaptiveAvgPool(dims: 2 | 3): BoundFunction<AdaptivePool, NoOptions, Tensor> {
  const name = `adaptive_avg_pool${dims}d`;
  return define<AdaptivePool>(name, "(input, output_size)", (input, outputSize) =>
    aten(name, input, filled(outputSize, input, dims)),
  );
}

/**
 * The means over two dimensions, so many that the result has the given size, where `null` keeps the size of the input:
 * `(N, C, H, W)` gives `(N, C, ...outputSize)`.
 *
 * @example
 * ```ts
 * F.adaptiveAvgPool2d(x, [7, null]);
 * ```
 */
export const adaptiveAvgPool2d = adaptiveAvgPool(2);

/**
 * The means over three dimensions, so many that the result has the given size.
 *
 * @example
 * ```ts
 * F.adaptiveAvgPool3d(x, 1);
 * ```
 */
export const adaptiveAvgPool3d = adaptiveAvgPool(3);

function adaptiveMaxPool(dims: 1 | 2 | 3): IndexFunctions<AdaptivePool, object, []> {
  const name = `adaptive_max_pool${dims}d`;
  return defineIndexed<AdaptivePool, object>(name, "(input, output_size, return_indices=False)", (input, outputSize) =>
    atenResults(name, input, filled(outputSize, input, dims)),
  );
}

const [maxOne, maxTwo, maxThree] = [adaptiveMaxPool(1), adaptiveMaxPool(2), adaptiveMaxPool(3)];

/**
 * The maxima over one dimension, so many that the result has the given size. With `returnIndices`, their places too.
 *
 * @example
 * ```ts
 * F.adaptiveMaxPool1d(x, 5);
 * ```
 */
export const adaptiveMaxPool1d = maxOne.dispatched;
/**
 * {@link adaptiveMaxPool1d} with the places of the maxima.
 *
 * @example
 * ```ts
 * const [output, indices] = F.adaptiveMaxPool1dWithIndices(x, 5);
 * ```
 */
export const adaptiveMaxPool1dWithIndices = maxOne.withIndices;

/**
 * The maxima over two dimensions, so many that the result has the given size, where `null` keeps the size of the input.
 * With `returnIndices`, their places too.
 *
 * @example
 * ```ts
 * F.adaptiveMaxPool2d(x, [5, null]);
 * ```
 */
export const adaptiveMaxPool2d = maxTwo.dispatched;
/**
 * {@link adaptiveMaxPool2d} with the places of the maxima.
 *
 * @example
 * ```ts
 * const [output, indices] = F.adaptiveMaxPool2dWithIndices(x, 5);
 * ```
 */
export const adaptiveMaxPool2dWithIndices = maxTwo.withIndices;

/**
 * The maxima over three dimensions, so many that the result has the given size. With `returnIndices`, their places too.
 *
 * @example
 * ```ts
 * F.adaptiveMaxPool3d(x, 2);
 * ```
 */
export const adaptiveMaxPool3d = maxThree.dispatched;
/**
 * {@link adaptiveMaxPool3d} with the places of the maxima.
 *
 * @example
 * ```ts
 * const [output, indices] = F.adaptiveMaxPool3dWithIndices(x, 2);
 * ```
 */
export const adaptiveMaxPool3dWithIndices = maxThree.withIndices;

/** Options of fractional max pooling; one of `outputSize` and `outputRatio` must be given. */
export interface FractionalMaxPoolOptions {
  /** The size of the result. */
  readonly outputSize?: Sizes | null;
  /** The size of the result as parts of the size of the input. */
  readonly outputRatio?: Real | readonly Real[] | null;
  /** Where the windows stand, `(N, C, dims)` numbers from 0 to 1; by default random ones. */
  readonly _randomSamples?: Tensor | null;
}

type FractionalPool = [
  input: Tensor,
  kernelSize: Sizes,
  outputSize?: Sizes | null,
  outputRatio?: Real | readonly Real[] | null,
];
type Samples = [randomSamples?: Tensor | null];

function fractionalMaxPool(dims: 2 | 3): IndexFunctions<FractionalPool, FractionalMaxPoolOptions, Samples> {
  const name = `fractional_max_pool${dims}d`;
  return defineIndexed<FractionalPool, FractionalMaxPoolOptions, Samples>(
    name,
    "(input, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None)",
    (input, kernelSize, outputSize, outputRatio, _, randomSamples) => {
      const size = outputSize ?? ratioOf(name, input, outputRatio, dims);
      const [batch, channels] = [input.shape.at(-dims - 2) ?? 1, input.shape.at(-dims - 1) ?? 1];
      const samples = randomSamples ?? aten("rand_like", aten("new_empty", input, [batch, channels, dims]));
      return atenResults(name, input, kernelSize, size, samples);
    },
  );
}

const [fractionalTwo, fractionalThree] = [fractionalMaxPool(2), fractionalMaxPool(3)];

/**
 * The maxima of windows that stand at random places over two dimensions, so many that the result has the given size or
 * ratio. With `returnIndices`, their places too.
 *
 * @example
 * ```ts
 * F.fractionalMaxPool2d(x, 3, { outputRatio: 0.5 });
 * ```
 */
export const fractionalMaxPool2d = fractionalTwo.dispatched;
/**
 * {@link fractionalMaxPool2d} with the places of the maxima.
 *
 * @example
 * ```ts
 * const [output, indices] = F.fractionalMaxPool2dWithIndices(x, 3, [13, 12]);
 * ```
 */
export const fractionalMaxPool2dWithIndices = fractionalTwo.withIndices;

/**
 * The maxima of windows that stand at random places over three dimensions, so many that the result has the given size or
 * ratio. With `returnIndices`, their places too.
 *
 * @example
 * ```ts
 * F.fractionalMaxPool3d(x, 3, { outputSize: [5, 5, 5] });
 * ```
 */
export const fractionalMaxPool3d = fractionalThree.dispatched;
/**
 * {@link fractionalMaxPool3d} with the places of the maxima.
 *
 * @example
 * ```ts
 * const [output, indices] = F.fractionalMaxPool3dWithIndices(x, 3, 5);
 * ```
 */
export const fractionalMaxPool3dWithIndices = fractionalThree.withIndices;

/** The size with that of the input where it is `null`. */
function filled(size: AdaptiveSizes, { shape }: Tensor, dims: number): readonly number[] {
  const sizes = typeof size === "number" || size === null ? Array.from({ length: dims }, () => size) : size;
  if (shape.length <= sizes.length) {
    throw refuse("ShapeMismatch", `Input dimension should be at least ${sizes.length + 1}`);
  }
  checkList("adaptive pooling", "outputSize", sizes);
  return sizes.map((it, dim) => it ?? (shape[shape.length - sizes.length + dim] as number));
}

function ratioOf(
  name: string,
  { shape }: Tensor,
  ratio: Real | readonly Real[] | null,
  dims: number,
): readonly number[] {
  if (ratio === null) {
    throw refuse("InvalidArgument", `${name} requires specifying either an output_size or an output_ratio`);
  }
  const ratios = Array.isArray(ratio) ? (ratio as readonly Real[]).map(valueOf) : each(valueOf(ratio as Real), dims);
  if (ratios.length !== dims) {
    throw refuse("InvalidArgument", `${name} requires output_ratio to either be a single Int or tuple of Ints.`);
  }
  return ratios.map((it, dim) => scaled(shape[shape.length - dims + dim] as number, it));
}
