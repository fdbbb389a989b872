/**
 * Average and power-average pooling.
 *
 * Inputs are `(N, C, …)` or, without the batch, `(C, …)`; the window moves over the last dimensions.
 *
 * @module
 */
import type { Real } from "../../base/types.ts";
import type { BoundFunction } from "../../functions/bound.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, each, numberText, refuse, type Sizes, valueOf } from "./aten.ts";
import { define, defineBuiltin } from "./define.ts";

/** Options of windows that average. */
export interface AvgPoolOptions {
  /** How far the window moves; default the size of the window. */
  readonly stride?: Sizes | null;
  /** How many zeros stand around the input; default 0. */
  readonly padding?: Sizes;
  /** Whether a window that is cut off at the end counts; default `false`. */
  readonly ceilMode?: boolean;
  /** Whether the zeros around the input count; default `true`. */
  readonly countIncludePad?: boolean;
}

/** Options of {@link avgPool2d} and {@link avgPool3d}. */
export interface AvgPoolNdOptions extends AvgPoolOptions {
  /** What to divide the sum by instead of the size of the window. */
  readonly divisorOverride?: number | null;
}

/**
 * The mean of each window over one dimension: `(N, C, L)` gives `(N, C, L')`.
 *
 * @example
 * ```ts
 * F.avgPool1d(x, 3, { stride: 2 });
 * ```
 */
export const avgPool1d = defineBuiltin<
  [
    input: Tensor,
    kernelSize: Sizes,
    stride?: Sizes | null,
    padding?: Sizes,
    ceilMode?: boolean,
    countIncludePad?: boolean,
  ],
  AvgPoolOptions
>(
  "avg_pool1d",
  "torch.avg_pool1d",
  "(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True)",
  (input, kernelSize, stride, padding, ceilMode, countIncludePad) =>
    aten("avg_pool1d", input, kernelSize, stride ?? [], padding, ceilMode, countIncludePad),
);

type AvgPoolNd = [
  input: Tensor,
  kernelSize: Sizes,
  stride?: Sizes | null,
  padding?: Sizes,
  ceilMode?: boolean,
  countIncludePad?: boolean,
  divisorOverride?: number | null,
];

function avgPool(name: string): BoundFunction<AvgPoolNd, AvgPoolNdOptions, Tensor> {
  return defineBuiltin<AvgPoolNd, AvgPoolNdOptions>(
    name,
    `torch._C._nn.${name}`,
    "(input, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None)",
    (input, kernelSize, stride, ...rest) => aten(name, input, kernelSize, stride ?? [], ...rest),
  );
}

/**
 * The mean of each window over two dimensions: `(N, C, H, W)` gives `(N, C, H', W')`.
 *
 * @example
 * ```ts
 * F.avgPool2d(x, [2, 2], { countIncludePad: false });
 * ```
 */
export const avgPool2d = avgPool("avg_pool2d");

/**
 * The mean of each window over three dimensions: `(N, C, D, H, W)` gives `(N, C, D', H', W')`.
 *
 * @example
 * ```ts
 * F.avgPool3d(x, 2);
 * ```
 */
export const avgPool3d = avgPool("avg_pool3d");

/** Options of power-average pooling. */
export interface LpPoolOptions {
  /** How far the window moves; default the size of the window. */
  readonly stride?: Sizes | null;
  /** Whether a window that is cut off at the end counts; default `false`. */
  readonly ceilMode?: boolean;
}

type LpPool = [input: Tensor, normType: Real, kernelSize: Sizes, stride?: Sizes | null, ceilMode?: boolean];

function lpPool(dims: 1 | 2 | 3): BoundFunction<LpPool, LpPoolOptions, Tensor> {
  const signature = "(input, norm_type, kernel_size, stride=None, ceil_mode=False)";
  return define<LpPool, LpPoolOptions>(
    `lp_pool${dims}d`,
    signature,
    (input, normType, kernelSize, stride, ceilMode) => {
      const norm = valueOf(normType);
      if (norm === 0)
        throw refuse("InvalidArgument", `norm_type must be a non-zero value, but got ${numberText(normType)}`);
      const maximum = (it: Tensor): Tensor => aten(`max_pool${dims}d`, it, kernelSize, stride ?? [], 0, 1, ceilMode);
      if (norm === Number.POSITIVE_INFINITY) return maximum(aten("abs", input));
      if (norm === Number.NEGATIVE_INFINITY) return aten("neg", maximum(aten("neg", aten("abs", input))));
      const mean = aten(`avg_pool${dims}d`, aten("pow", input, normType), kernelSize, stride ?? [], 0, ceilMode);
      const positive = aten("mul", aten("sign", mean), aten("relu", aten("abs", mean)));
      const count = each(kernelSize, dims).reduce((product, size) => product * size, 1);
      return aten("pow", aten("mul", positive, count), 1 / norm);
    },
  );
}

/**
 * `(sum of x ** normType) ** (1 / normType)` of each window over one dimension: `(N, C, L)` gives `(N, C, L')`.
 *
 * @example
 * ```ts
 * F.lpPool1d(x, 2, 3);
 * ```
 */
export const lpPool1d = lpPool(1);

/**
 * `(sum of x ** normType) ** (1 / normType)` of each window over two dimensions: `(N, C, H, W)` gives `(N, C, H', W')`.
 *
 * @example
 * ```ts
 * F.lpPool2d(x, 2, [3, 3], { stride: 1 });
 * ```
 */
export const lpPool2d = lpPool(2);

/**
 * `(sum of x ** normType) ** (1 / normType)` of each window over three dimensions.
 *
 * @example
 * ```ts
 * F.lpPool3d(x, 2, 2);
 * ```
 */
export const lpPool3d = lpPool(3);
