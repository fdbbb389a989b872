/**
 * Losses between numbers: how far `input` is from `target`, element by element.
 *
 * @module
 */
import { isSame, plus } from "../../base/sizes.ts";
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenResults, atenWith, refuse, sameShape, shapeIs, valueOf } from "./aten.ts";
import { define, recordNamed } from "./define.ts";
import {
  codeOf,
  type LegacyLossOptions,
  type LossOptions,
  reduced,
  type Reduction,
  reductionCode,
  reductionOf,
} from "./reduction.ts";

/** Options of losses whose elements can have weights. */
export interface WeightedLossOptions extends LegacyLossOptions {
  /** What the loss of each element is multiplied by, of the shape of `input`. */
  readonly weight?: Tensor | null;
}

type WeightedLoss = [
  input: Tensor,
  target: Tensor,
  sizeAverage?: boolean | null,
  reduce?: boolean | null,
  reduction?: Reduction,
  weight?: Tensor | null,
];

const WEIGHTED = "(input, target, size_average=None, reduce=None, reduction='mean', weight=None)";

/**
 * `|input - target|`.
 *
 * @example
 * ```ts
 * F.l1Loss(prediction, target, { reduction: "sum" });
 * ```
 */
export const l1Loss = define<WeightedLoss, WeightedLossOptions>(
  "l1_loss",
  WEIGHTED,
  (input, target, sizeAverage, reduce, reduction, weight) => {
    const [left, right] = broadcast(input, target);
    const kind = reductionOf(reduction, sizeAverage, reduce);
    if (weight === null) return aten("l1_loss", left, right, reductionCode(kind));
    return weighted(aten("abs", aten("sub", left, right)), weight, input, kind);
  },
  // PyTorch forgets the weight, also where there is one; without one its record is kept.
  (recorder, bound, signature) => {
    const count = bound[5] === null ? 5 : 6;
    return recordNamed(() => "l1_loss")(recorder, bound.slice(0, count), signature.slice(0, count));
  },
);

/**
 * `(input - target) ** 2`.
 *
 * @example
 * ```ts
 * F.mseLoss(prediction, target);
 * ```
 */
export const mseLoss = define<WeightedLoss, WeightedLossOptions>(
  "mse_loss",
  WEIGHTED,
  (input, target, sizeAverage, reduce, reduction, weight) => {
    const [left, right] = broadcast(input, target);
    const kind = reductionOf(reduction, sizeAverage, reduce);
    if (weight === null) return aten("mse_loss", left, right, reductionCode(kind));
    return weighted(aten("pow", aten("sub", left, right), 2), weight, input, kind);
  },
);

/** Options of {@link smoothL1Loss}. */
export interface SmoothL1LossOptions extends LegacyLossOptions {
  /** Below which distance the loss is a square; default 1. */
  readonly beta?: Real;
}

/**
 * `0.5 * d ** 2 / beta` where the distance `d` is below `beta`, else `d - 0.5 * beta`.
 *
 * @example
 * ```ts
 * F.smoothL1Loss(prediction, target, { beta: 0.5 });
 * ```
 */
export const smoothL1Loss = define<
  [
    input: Tensor,
    target: Tensor,
    sizeAverage?: boolean | null,
    reduce?: boolean | null,
    reduction?: Reduction,
    beta?: Real,
  ],
  SmoothL1LossOptions
>(
  "smooth_l1_loss",
  "(input, target, size_average=None, reduce=None, reduction='mean', beta=1.0)",
  (input, target, sizeAverage, reduce, reduction, beta) => {
    const [left, right] = broadcast(input, target);
    const code = codeOf(reduction, sizeAverage, reduce);
    return valueOf(beta) === 0 ? aten("l1_loss", left, right, code) : aten("smooth_l1_loss", left, right, code, beta);
  },
);

/** Options of {@link huberLoss}. */
export interface HuberLossOptions extends LossOptions {
  /** Below which distance the loss is a square; default 1. */
  readonly delta?: Real;
  /** What the loss of each element is multiplied by, of the shape of `input`. */
  readonly weight?: Tensor | null;
}

/**
 * `0.5 * d ** 2` where the distance `d` is below `delta`, else `delta * (d - 0.5 * delta)`.
 *
 * @example
 * ```ts
 * F.huberLoss(prediction, target, { delta: 2 });
 * ```
 */
export const huberLoss = define<
  [input: Tensor, target: Tensor, reduction?: Reduction, delta?: Real, weight?: Tensor | null],
  HuberLossOptions
>(
  "huber_loss",
  "(input, target, reduction='mean', delta=1.0, weight=None)",
  (input, target, reduction, delta, weight) => {
    const [left, right] = broadcast(input, target);
    const kind = reductionOf(reduction);
    if (weight === null) return aten("huber_loss", left, right, reductionCode(kind), delta);
    requireWeights(weight, input);
    return reduced(aten("mul", aten("huber_loss", left, right, 0, delta), weight), kind);
  },
);

/** Options of {@link poissonNllLoss}. */
export interface PoissonNllLossOptions extends LegacyLossOptions {
  /** Whether `input` is the logarithm of the rate; default `true`. */
  readonly logInput?: boolean;
  /** Whether Stirling's approximation of the logarithm of the factorial of `target` is added; default `false`. */
  readonly full?: boolean;
  /** What is added to a rate, so that its logarithm is finite; default 1e-8. */
  readonly eps?: Real;
}

/**
 * The negative logarithm of the likelihood of `target` under a Poisson distribution: `exp(input) - target * input`, or
 * `input - target * log(input + eps)`.
 *
 * @example
 * ```ts
 * F.poissonNllLoss(logRate, counts);
 * ```
 */
export const poissonNllLoss = define<
  [
    input: Tensor,
    target: Tensor,
    logInput?: boolean,
    full?: boolean,
    sizeAverage?: boolean | null,
    eps?: Real,
    reduce?: boolean | null,
    reduction?: Reduction,
  ],
  PoissonNllLossOptions
>(
  "poisson_nll_loss",
  "(input, target, log_input=True, full=False, size_average=None, eps=1e-08, reduce=None, reduction='mean')",
  (input, target, logInput, full, sizeAverage, eps, reduce, reduction) =>
    aten("poisson_nll_loss", input, target, logInput, full, eps, codeOf(reduction, sizeAverage, reduce)),
);

/** Options of {@link gaussianNllLoss}. */
export interface GaussianNllLossOptions extends LossOptions {
  /** Whether the constant `0.5 * log(2 * pi)` is added; default `false`. */
  readonly full?: boolean;
  /** The least variance; default 1e-6. */
  readonly eps?: Real;
}

/**
 * The negative logarithm of the likelihood of `target` under a normal distribution of mean `input` and variance `variance`:
 * `0.5 * (log(variance) + (input - target) ** 2 / variance)`.
 *
 * @example
 * ```ts
 * F.gaussianNllLoss(mean, target, variance);
 * ```
 */
export const gaussianNllLoss = define<
  [input: Tensor, target: Tensor, variance: Tensor | Real, full?: boolean, eps?: Real, reduction?: Reduction],
  GaussianNllLossOptions
>(
  "gaussian_nll_loss",
  "(input, target, var, full=False, eps=1e-06, reduction='mean')",
  (input, target, variance, full, eps, reduction) => {
    const given = varianceOf(variance, input);
    const kind = reductionOf(reduction);
    const least = atenWith({ min: eps }, "clamp", given);
    const squares = aten("div", aten("pow", aten("sub", input, target), 2), least);
    const losses = aten("mul", aten("add", aten("log", least), squares), 0.5);
    return reduced(full ? aten("add", losses, 0.5 * Math.log(2 * Math.PI)) : losses, kind);
  },
);

/** Options of {@link klDiv}. */
export interface KlDivOptions extends Omit<LegacyLossOptions, "reduction"> {
  /** What is made of the losses of all elements; `"batchmean"`, the definition, divides the sum by the size of the batch. */
  readonly reduction?: Reduction | "batchmean";
  /** Whether `target` is the logarithm of a probability; default `false`. */
  readonly logTarget?: boolean;
}

/**
 * The divergence of Kullback and Leibler: `target * (log(target) - input)`, where `input` is the logarithm of a probability.
 *
 * @example
 * ```ts
 * F.klDiv(F.logSoftmax(x, 1), probabilities, { reduction: "batchmean" });
 * ```
 */
export const klDiv = define<
  [
    input: Tensor,
    target: Tensor,
    sizeAverage?: boolean | null,
    reduce?: boolean | null,
    reduction?: Reduction | "batchmean",
    logTarget?: boolean,
  ],
  KlDivOptions
>(
  "kl_div",
  "(input, target, size_average=None, reduce=None, reduction='mean', log_target=False)",
  (input, target, sizeAverage, reduce, reduction, logTarget) => {
    const isLegacy = sizeAverage !== null || reduce !== null;
    const isBatchMean = reduction === "batchmean";
    const code = codeOf(isBatchMean && !isLegacy ? "sum" : reduction, sizeAverage, reduce);
    const loss = atenWith({ log_target: logTarget }, "kl_div", input, target, code);
    const [batch] = input.shape;
    return isBatchMean && batch !== undefined ? aten("div", loss, batch) : loss;
  },
);

function broadcast(input: Tensor, target: Tensor): readonly [Tensor, Tensor] {
  return atenResults("broadcast_tensors", [input, target]) as readonly [Tensor, Tensor];
}

function requireWeights(weight: Tensor, input: Tensor): void {
  if (!sameShape(weight, input)) throw refuse("ShapeMismatch", "Weights and input must have the same size.");
}

/** The weighted losses, or their sum, or their weighted mean. */
function weighted(losses: Tensor, weight: Tensor, input: Tensor, reduction: Reduction): Tensor {
  requireWeights(weight, input);
  const products = aten("mul", losses, weight);
  if (reduction === "none") return products;
  const sum = aten("sum", products);
  return reduction === "sum" ? sum : aten("div", sum, aten("sum", weight));
}

/** The variance of each element, or of each row. */
function varianceOf(variance: Tensor | Real, input: Tensor): Tensor {
  const negative = refuse("InvalidArgument", "var has negative entry/entries");
  if (typeof variance === "number" || !("shape" in variance)) {
    if (valueOf(variance) < 0) throw negative;
    return aten("mul", aten("ones_like", input), variance);
  }
  if (aten("any", aten("lt", variance, 0)).item() === true) throw negative;
  if (sameShape(variance, input)) return variance;
  if (shapeIs(variance, input.shape.slice(0, -1))) return aten("unsqueeze", variance, -1);
  const differing = variance.shape.filter((size, dim) => !isSame(size, input.shape[dim]));
  const isHomogeneous = variance.shape.length === input.shape.length && isSame(plus(0, ...differing), 1);
  if (isHomogeneous) return variance;
  throw refuse(
    "ShapeMismatch",
    "var is of incorrect size",
    "give one variance for each element of the input, or for each of its rows",
  );
}
