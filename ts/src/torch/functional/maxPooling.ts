/**
 * Max pooling, with and without the places of the maxima, and its inverse.
 *
 * Inputs are `(N, C, …)` or, without the batch, `(C, …)`; the window moves over the last dimensions.
 *
 * @module
 */
import { checkList } from "../../base/given.ts";
import { isLess, minus, plus, product, textOf } from "../../base/sizes.ts";
import type { BoundFunction } from "../../functions/bound.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenResults, each, refuse, type Sizes, tupleText } from "./aten.ts";
import { define } from "./define.ts";
import { defineIndexed, type IndexFunctions } from "./indices.ts";

/** Options of max pooling. */
export interface MaxPoolOptions {
  /** How far the window moves; default the size of the window. */
  readonly stride?: Sizes | null;
  /** How much of the window may stand beside the input; default 0. */
  readonly padding?: Sizes;
  /** How far the elements of the window are apart; default 1. */
  readonly dilation?: Sizes;
  /** Whether a window that is cut off at the end counts; default `false`. */
  readonly ceilMode?: boolean;
}

type MaxPool = [
  input: Tensor,
  kernelSize: Sizes,
  stride?: Sizes | null,
  padding?: Sizes,
  dilation?: Sizes,
  ceilMode?: boolean,
];

function maxPool(dims: 1 | 2 | 3): IndexFunctions<MaxPool, MaxPoolOptions, []> {
  const name = `max_pool${dims}d`;
  return defineIndexed<MaxPool, MaxPoolOptions>(
    name,
    "(input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode=False, return_indices=False)",
    (input, kernelSize, stride, padding, dilation, ceilMode) =>
      atenResults(`${name}_with_indices`, input, kernelSize, stride ?? [], padding, dilation, ceilMode),
    (input, kernelSize, stride, padding, dilation, ceilMode) =>
      aten(name, input, kernelSize, stride ?? [], padding, dilation, ceilMode),
  );
}

const [one, two, three] = [maxPool(1), maxPool(2), maxPool(3)];

/**
 * The maximum of each window over one dimension: `(N, C, L)` gives `(N, C, L')`. With `returnIndices`, the places too.
 *
 * @example
 * ```ts
 * F.maxPool1d(x, 2);
 * ```
 */
export const maxPool1d = one.dispatched;
/**
 * {@link maxPool1d} with the places of the maxima.
 *
 * @example
 * ```ts
 * const [output, indices] = F.maxPool1dWithIndices(x, 2);
 * ```
 */
export const maxPool1dWithIndices = one.withIndices;

/**
 * The maximum of each window over two dimensions: `(N, C, H, W)` gives `(N, C, H', W')`, where
 * `H' = floor((H + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1)`. With `returnIndices`, the places too.
 *
 * @example
 * ```ts
 * F.maxPool2d(x, 3, { stride: 2, padding: 1 });
 * const [output, indices] = F.maxPool2d(x, 2, { returnIndices: true });
 * ```
 */
export const maxPool2d = two.dispatched;
/**
 * {@link maxPool2d} with the places of the maxima.
 *
 * @example
 * ```ts
 * const [output, indices] = F.maxPool2dWithIndices(x, 2);
 * ```
 */
export const maxPool2dWithIndices = two.withIndices;

/**
 * The maximum of each window over three dimensions: `(N, C, D, H, W)` gives `(N, C, D', H', W')`. With `returnIndices`, the
 * places too.
 *
 * @example
 * ```ts
 * F.maxPool3d(x, 2);
 * ```
 */
export const maxPool3d = three.dispatched;
/**
 * {@link maxPool3d} with the places of the maxima.
 *
 * @example
 * ```ts
 * const [output, indices] = F.maxPool3dWithIndices(x, 2);
 * ```
 */
export const maxPool3dWithIndices = three.withIndices;

/** Options of the inverse of max pooling. */
export interface MaxUnpoolOptions {
  /** How far the window moved; default the size of the window. */
  readonly stride?: Sizes | null;
  /** How much of the window stood beside the input; default 0. */
  readonly padding?: Sizes;
  /** The size of the result, which several inputs of pooling share; default the smallest. */
  readonly outputSize?: readonly number[] | null;
}

type MaxUnpool = [
  input: Tensor,
  indices: Tensor,
  kernelSize: Sizes,
  stride?: Sizes | null,
  padding?: Sizes,
  outputSize?: readonly number[] | null,
];

function maxUnpool(
  dims: 1 | 2 | 3,
  unpool: (
    input: Tensor,
    indices: Tensor,
    size: readonly number[],
    stride: readonly number[],
    padding: readonly number[],
  ) => Tensor,
): BoundFunction<MaxUnpool, MaxUnpoolOptions, Tensor> {
  return define<MaxUnpool, MaxUnpoolOptions>(
    `max_unpool${dims}d`,
    "(input, indices, kernel_size, stride=None, padding=0, output_size=None)",
    (input, indices, kernelSize, stride, padding, outputSize) => {
      const kernel = each(kernelSize, dims);
      const steps = each(stride ?? kernelSize, dims);
      const margins = each(padding, dims);
      const size = unpooledSize(input.shape, kernel, steps, margins, outputSize);
      return unpool(input, indices, size, steps, margins);
    },
  );
}

/**
 * The inverse of {@link maxPool1d}: the maxima at their places, zeros elsewhere.
 *
 * @example
 * ```ts
 * F.maxUnpool1d(output, indices, 2);
 * ```
 */
export const maxUnpool1d = maxUnpool(1, (input, indices, size) => {
  const flat = aten("max_unpool2d", aten("unsqueeze", input, -1), aten("unsqueeze", indices, -1), [...size, 1]);
  return aten("squeeze", flat, -1);
});

/**
 * The inverse of {@link maxPool2d}: the maxima at their places, zeros elsewhere.
 *
 * @example
 * ```ts
 * F.maxUnpool2d(output, indices, 2, { outputSize: [5, 5] });
 * ```
 */
export const maxUnpool2d = maxUnpool(2, (input, indices, size) => aten("max_unpool2d", input, indices, size));

/**
 * The inverse of {@link maxPool3d}: the maxima at their places, zeros elsewhere.
 *
 * @example
 * ```ts
 * F.maxUnpool3d(output, indices, 2);
 * ```
 */
export const maxUnpool3d = maxUnpool(3, (input, indices, size, stride, padding) =>
  aten("max_unpool3d", input, indices, size, stride, padding),
);

/** The size of what was pooled: the smallest that it can have been, or the one that was given. */
function unpooledSize(
  shape: readonly number[],
  kernel: readonly number[],
  stride: readonly number[],
  padding: readonly number[],
  given: readonly number[] | null,
): readonly number[] {
  checkList("max unpooling", "kernelSize", kernel);
  const dims = kernel.length;
  const smallest = kernel.map((size, dim) => {
    const length = shape[shape.length - dims + dim] as number;
    return plus(product(minus(length, 1), stride[dim] as number), size - 2 * (padding[dim] as number));
  });
  const size = given === null ? smallest : given.length === dims + 2 ? given.slice(2) : given;
  if (size.length !== dims) {
    throw refuse(
      "InvalidArgument",
      `output_size should be a sequence containing ${dims} or ${dims + 2} elements, but it has a length of '${size.length}'`,
    );
  }
  for (const [dim, length] of smallest.entries()) {
    const [least, most] = [minus(length, stride[dim] as number), plus(length, stride[dim] as number)];
    const wanted = size[dim] as number;
    if (given !== null && !(isLess(least, wanted) && isLess(wanted, most))) {
      throw refuse(
        "InvalidArgument",
        `invalid output_size "${tupleText(size)}" (dim ${dim} must be between ${textOf(least)} and ${textOf(most)})`,
        "give the size of the tensor that was pooled",
      );
    }
    if (wanted < 0) {
      throw refuse(
        "InvalidArgument",
        `max_unpooling: output_size must contain non-negative spatial dimensions, but got output_size[${dim}]=${wanted}`,
      );
    }
  }
  return size;
}
