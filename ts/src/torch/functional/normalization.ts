/**
 * Normalisation.
 *
 * All of these compute `(x - mean) / sqrt(variance + eps) * weight + bias`, but {@link rmsNorm}, {@link localResponseNorm}
 * and {@link normalize}; they differ in what they take the mean over. The result has the shape of `input`.
 *
 * @module
 */
import { floorDivided, isSame, product } from "../../base/sizes.ts";
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenWith, numberText, refuse, sizeText, valueOf } from "./aten.ts";
import { define } from "./define.ts";

/** Options of normalisations with weights. */
export interface AffineOptions {
  /** What the normalised values are multiplied by; by default by nothing. */
  readonly weight?: Tensor | null;
  /** What is added afterwards; by default nothing. */
  readonly bias?: Tensor | null;
  /** What is added to the variance, so that it is never zero; default 1e-5. */
  readonly eps?: Real;
}

/** Options of {@link batchNorm}. */
export interface BatchNormOptions extends AffineOptions {
  /** Whether mean and variance are those of the batch, of which the running ones learn; default `false`. */
  readonly training?: boolean;
  /** How much the running mean and variance move towards those of the batch; default 0.1. */
  readonly momentum?: Real;
}

/**
 * Normalises each channel of `(N, C, …)`: in training with the mean and variance of the batch, which move the running ones,
 * else with the running ones.
 *
 * @example
 * ```ts
 * F.batchNorm(x, mean, variance, weight, bias);
 * ```
 */
export const batchNorm = define<
  [
    input: Tensor,
    runningMean: Tensor | null,
    runningVar: Tensor | null,
    weight?: Tensor | null,
    bias?: Tensor | null,
    training?: boolean,
    momentum?: Real,
    eps?: Real,
  ],
  BatchNormOptions
>(
  "batch_norm",
  "(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05)",
  (input, runningMean, runningVar, weight, bias, training, momentum, eps) => {
    if (training) requireSeveralValues(input.shape);
    if (training && valueOf(eps) <= 0) {
      throw refuse("InvalidArgument", `batch_norm eps must be positive during training, but got ${numberText(eps)}`);
    }
    if (valueOf(eps) < 0) {
      throw refuse("InvalidArgument", `batch_norm eps must be non-negative, but got ${numberText(eps)}`);
    }
    return aten("batch_norm", input, weight, bias, runningMean, runningVar, training, momentum, eps, false);
  },
);

/** Options of {@link instanceNorm}. */
export interface InstanceNormOptions extends AffineOptions {
  /** The mean of each channel, `(C)`, that moves towards those of the inputs. */
  readonly runningMean?: Tensor | null;
  /** The variance of each channel, `(C)`, that moves towards those of the inputs. */
  readonly runningVar?: Tensor | null;
  /** Whether mean and variance are those of the input; default `true`. */
  readonly useInputStats?: boolean;
  /** How much the running mean and variance move towards those of the input; default 0.1. */
  readonly momentum?: Real;
}

/**
 * Normalises each channel of each element of a batch: `(N, C, …)`.
 *
 * @example
 * ```ts
 * F.instanceNorm(x, { weight, bias });
 * ```
 */
export const instanceNorm = define<
  [
    input: Tensor,
    runningMean?: Tensor | null,
    runningVar?: Tensor | null,
    weight?: Tensor | null,
    bias?: Tensor | null,
    useInputStats?: boolean,
    momentum?: Real,
    eps?: Real,
  ],
  InstanceNormOptions
>(
  "instance_norm",
  "(input, running_mean=None, running_var=None, weight=None, bias=None, use_input_stats=True, momentum=0.1, eps=1e-05)",
  (input, runningMean, runningVar, weight, bias, useInputStats, momentum, eps) => {
    if (useInputStats && isSame(product(...input.shape.slice(2)), 1)) {
      throw refuse(
        "ShapeMismatch",
        `Expected more than 1 spatial element when training, got input size ${sizeText(input.shape)}`,
        "one element is its own mean: give a larger input, or running statistics and useInputStats: false",
      );
    }
    return aten("instance_norm", input, weight, bias, runningMean, runningVar, useInputStats, momentum, eps, false);
  },
);

/**
 * Normalises over the last dimensions, which `normalizedShape` lists.
 *
 * @example
 * ```ts
 * F.layerNorm(x, [512], weight, bias);
 * ```
 */
export const layerNorm = define<
  [input: Tensor, normalizedShape: readonly number[], weight?: Tensor | null, bias?: Tensor | null, eps?: Real],
  AffineOptions
>("layer_norm", "(input, normalized_shape, weight=None, bias=None, eps=1e-05)", (input, shape, weight, bias, eps) =>
  aten("layer_norm", input, shape, weight, bias, eps, false),
);

/** Options of {@link rmsNorm}. */
export interface RmsNormOptions {
  /** What the result is multiplied by; by default by nothing. */
  readonly weight?: Tensor | null;
  /** What is added to the mean square; by default the smallest step of the dtype at 1. */
  readonly eps?: Real | null;
}

/**
 * `x / sqrt(mean(x ** 2) + eps) * weight` over the last dimensions, which `normalizedShape` lists.
 *
 * @example
 * ```ts
 * F.rmsNorm(x, [512], weight);
 * ```
 */
export const rmsNorm = define<
  [input: Tensor, normalizedShape: readonly number[], weight?: Tensor | null, eps?: Real | null],
  RmsNormOptions
>("rms_norm", "(input, normalized_shape, weight=None, eps=None)", (input, shape, weight, eps) =>
  aten("rms_norm", input, shape, weight, eps),
);

/**
 * Normalises over groups of channels of each element of a batch: `(N, C, …)` with `C` a multiple of `numGroups`.
 *
 * @example
 * ```ts
 * F.groupNorm(x, 4, weight, bias);
 * ```
 */
export const groupNorm = define<
  [input: Tensor, numGroups: number, weight?: Tensor | null, bias?: Tensor | null, eps?: Real],
  AffineOptions
>("group_norm", "(input, num_groups, weight=None, bias=None, eps=1e-05)", (input, numGroups, weight, bias, eps) => {
  const [batch, channels, ...rest] = input.shape;
  if (batch === undefined || channels === undefined) {
    throw refuse("ShapeMismatch", `Expected at least 2 dimensions for input tensor but received ${input.shape.length}`);
  }
  requireSeveralValues([floorDivided(product(batch, channels), numGroups), numGroups, ...rest]);
  return aten("group_norm", input, numGroups, weight, bias, eps, false);
});

/** Options of {@link localResponseNorm}. */
export interface LocalResponseNormOptions {
  /** What the mean is multiplied by; default 1e-4. */
  readonly alpha?: Real;
  /** The power; default 0.75. */
  readonly beta?: Real;
  /** What is added to the mean; default 1. */
  readonly k?: Real;
}

/**
 * `x / (k + alpha * mean of x ** 2 over size channels around it) ** beta`, for `(N, C, …)`.
 *
 * @example
 * ```ts
 * F.localResponseNorm(x, 5);
 * ```
 */
export const localResponseNorm = define<
  [input: Tensor, size: number, alpha?: Real, beta?: Real, k?: Real],
  LocalResponseNormOptions
>("local_response_norm", "(input, size, alpha=0.0001, beta=0.75, k=1.0)", (input, size, alpha, beta, k) => {
  const { shape } = input;
  const dims = shape.length;
  if (dims < 3) {
    throw refuse("ShapeMismatch", `Expected 3D or higher dimensionality input (got ${dims} dimensions)`);
  }
  if (shape.includes(0)) return input;
  const [before, after] = [Math.floor(size / 2), Math.floor((size - 1) / 2)];
  const squares = aten("mul", input, input);
  const mean = (): Tensor => {
    if (dims === 3) {
      const padded = aten("pad", aten("unsqueeze", squares, 1), [0, 0, before, after]);
      return aten("squeeze", aten("avg_pool2d", padded, [size, 1], 1), 1);
    }
    const [batch, channels, height] = shape as [number, number, number];
    const padded = aten("pad", aten("view", squares, [batch, 1, channels, height, -1]), [0, 0, 0, 0, before, after]);
    return aten("view", aten("squeeze", aten("avg_pool3d", padded, [size, 1, 1], 1), 1), shape);
  };
  return aten("div", input, aten("pow", aten("add", aten("mul", mean(), alpha), k), beta));
});

/** Options of {@link normalize}. */
export interface NormalizeOptions {
  /** Which norm; default 2. */
  readonly p?: Real;
  /** Over which dimension or dimensions; default 1. */
  readonly dim?: number | readonly number[];
  /** The least norm, so that it is never zero; default 1e-12. */
  readonly eps?: Real;
  /** A tensor to write the result into. */
  readonly out?: Tensor | null;
}

/**
 * `x / max(norm(x), eps)` along `dim`.
 *
 * @example
 * ```ts
 * F.normalize(vectors, { dim: -1 });
 * ```
 */
export const normalize = define<
  [input: Tensor, p?: Real, dim?: number | readonly number[], eps?: Real, out?: Tensor | null],
  NormalizeOptions
>("normalize", "(input, p=2.0, dim=1, eps=1e-12, out=None)", (input, p, dim, eps, out) => {
  const norm = aten("linalg_vector_norm", input, p, typeof dim === "number" ? [dim] : dim, true);
  const denominator = aten("expand_as", aten("clamp_min", norm, eps), input);
  return out === null ? aten("div", input, denominator) : atenWith({ out }, "div", input, denominator);
});

/** Refuses `(N, C, …)` with one value per channel, which is its own mean. */
function requireSeveralValues(shape: readonly number[]): void {
  if (!isSame(product(...shape.filter((_, dim) => dim !== 1)), 1)) return;
  throw refuse(
    "ShapeMismatch",
    `Expected more than 1 value per channel when training, got input size ${sizeText(shape)}`,
    "one value is its own mean: give a larger batch, or call eval() on the module",
  );
}
