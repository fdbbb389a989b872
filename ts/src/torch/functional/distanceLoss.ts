/**
 * Losses of distances: between pairs and triplets of vectors, and between scores and signs.
 *
 * @module
 */
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, numberText, refuse, sizeText, valueOf } from "./aten.ts";
import { define } from "./define.ts";
import { pairwiseDistance } from "./distance.ts";
import { codeOf, type LegacyLossOptions, type LossOptions, reduced, type Reduction, reductionOf } from "./reduction.ts";

/** Options of losses with a margin. */
export interface MarginLossOptions extends LegacyLossOptions {
  /** How far apart is far enough. */
  readonly margin?: Real;
}

type PairLoss = [
  input1: Tensor,
  input2: Tensor,
  target: Tensor,
  margin?: Real,
  sizeAverage?: boolean | null,
  reduce?: boolean | null,
  reduction?: Reduction,
];

const PAIR = "(input1, input2, target, margin=0, size_average=None, reduce=None, reduction='mean')";

/**
 * `max(0, -target * (input1 - input2) + margin)`, where `target` is 1 if `input1` should be the greater one, else -1.
 *
 * @example
 * ```ts
 * F.marginRankingLoss(a, b, signs);
 * ```
 */
export const marginRankingLoss = define<PairLoss, MarginLossOptions>(
  "margin_ranking_loss",
  PAIR,
  (input1, input2, target, margin, sizeAverage, reduce, reduction) => {
    const code = codeOf(reduction, sizeAverage, reduce);
    if (input1.shape.length !== input2.shape.length || input1.shape.length !== target.shape.length) {
      const sizes = `input1: ${sizeText(input1.shape)}, input2: ${sizeText(input2.shape)}, target: ${sizeText(target.shape)}`;
      throw refuse(
        "ShapeMismatch",
        `margin_ranking_loss : All input tensors should have same dimension but got sizes: ${sizes} `,
      );
    }
    return aten("margin_ranking_loss", input1, input2, target, margin, code);
  },
);

/**
 * `1 - cos(input1, input2)` where `target` is 1, and `max(0, cos(input1, input2) - margin)` where it is -1: `(N, D)`, `(N, D)`
 * and `(N)`.
 *
 * @example
 * ```ts
 * F.cosineEmbeddingLoss(a, b, signs, { margin: 0.2 });
 * ```
 */
export const cosineEmbeddingLoss = define<PairLoss, MarginLossOptions>(
  "cosine_embedding_loss",
  PAIR,
  (input1, input2, target, margin, sizeAverage, reduce, reduction) =>
    aten("cosine_embedding_loss", input1, input2, target, margin, codeOf(reduction, sizeAverage, reduce)),
);

/**
 * `input` where `target` is 1, and `max(0, margin - input)` where it is -1.
 *
 * @example
 * ```ts
 * F.hingeEmbeddingLoss(distances, signs);
 * ```
 */
export const hingeEmbeddingLoss = define<
  [
    input: Tensor,
    target: Tensor,
    margin?: Real,
    sizeAverage?: boolean | null,
    reduce?: boolean | null,
    reduction?: Reduction,
  ],
  MarginLossOptions
>(
  "hinge_embedding_loss",
  "(input, target, margin=1.0, size_average=None, reduce=None, reduction='mean')",
  (input, target, margin, sizeAverage, reduce, reduction) =>
    aten("hinge_embedding_loss", input, target, margin, codeOf(reduction, sizeAverage, reduce)),
);

/**
 * `log(1 + exp(-target * input))`, where `target` is 1 or -1.
 *
 * @example
 * ```ts
 * F.softMarginLoss(scores, signs);
 * ```
 */
export const softMarginLoss = define<
  [input: Tensor, target: Tensor, sizeAverage?: boolean | null, reduce?: boolean | null, reduction?: Reduction],
  LegacyLossOptions
>(
  "soft_margin_loss",
  "(input, target, size_average=None, reduce=None, reduction='mean')",
  (input, target, sizeAverage, reduce, reduction) =>
    aten("soft_margin_loss", input, target, codeOf(reduction, sizeAverage, reduce)),
);

/** Options of {@link tripletMarginLoss}. */
export interface TripletMarginLossOptions extends MarginLossOptions {
  /** Which norm; default 2. */
  readonly p?: Real;
  /** What is added to each difference; default 1e-6. */
  readonly eps?: Real;
  /** Whether the distance of `positive` and `negative` counts where it is the smaller one; default `false`. */
  readonly swap?: boolean;
}

/**
 * `max(0, d(anchor, positive) - d(anchor, negative) + margin)`, where `d` is the `p`-norm of the difference: `(N, D)` each.
 *
 * @example
 * ```ts
 * F.tripletMarginLoss(anchor, same, other, { margin: 0.5 });
 * ```
 */
export const tripletMarginLoss = define<
  [
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin?: Real,
    p?: Real,
    eps?: Real,
    swap?: boolean,
    sizeAverage?: boolean | null,
    reduce?: boolean | null,
    reduction?: Reduction,
  ],
  TripletMarginLossOptions
>(
  "triplet_margin_loss",
  "(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, size_average=None, reduce=None, reduction='mean')",
  (anchor, positive, negative, margin, p, eps, swap, sizeAverage, reduce, reduction) => {
    const code = codeOf(reduction, sizeAverage, reduce);
    requireMargin(margin);
    return aten("triplet_margin_loss", anchor, positive, negative, margin, p, eps, swap, code);
  },
);

/** How far two batches of vectors are apart, row by row. */
export type DistanceFunction = (a: Tensor, b: Tensor) => Tensor;

/** Options of {@link tripletMarginWithDistanceLoss}. */
export interface TripletMarginWithDistanceLossOptions extends LossOptions {
  /** The distance; default {@link pairwiseDistance}. */
  readonly distanceFunction?: DistanceFunction | null;
  /** How far apart is far enough; default 1. */
  readonly margin?: Real;
  /** Whether the distance of `positive` and `negative` counts where it is the smaller one; default `false`. */
  readonly swap?: boolean;
}

/**
 * {@link tripletMarginLoss} with any distance.
 *
 * @example
 * ```ts
 * F.tripletMarginWithDistanceLoss(anchor, same, other, {
 *   distanceFunction: (a, b) => torch.sub(1, F.cosineSimilarity(a, b)),
 * });
 * ```
 */
export const tripletMarginWithDistanceLoss = define<
  [anchor: Tensor, positive: Tensor, negative: Tensor],
  TripletMarginWithDistanceLossOptions,
  Tensor,
  [distanceFunction: DistanceFunction | null, margin: Real, swap: boolean, reduction: Reduction]
>(
  "triplet_margin_with_distance_loss",
  "(anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction='mean')",
  (anchor, positive, negative, distanceFunction, margin, swap, reduction) => {
    const kind = reductionOf(reduction);
    requireMargin(margin);
    const [a, p, n] = [anchor.shape.length, positive.shape.length, negative.shape.length];
    if (a !== p || p !== n) {
      throw refuse(
        "ShapeMismatch",
        `The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor ${a}D, positive ${p}D, and negative ${n}D inputs`,
      );
    }
    const distance: DistanceFunction = distanceFunction ?? ((x1, x2) => pairwiseDistance(x1, x2));
    const near = distance(anchor, positive);
    const direct = distance(anchor, negative);
    const far = swap ? aten("minimum", direct, distance(positive, negative)) : direct;
    return reduced(aten("clamp_min", aten("sub", aten("add", near, margin), far), 0), kind);
  },
);

function requireMargin(margin: Real): void {
  if (valueOf(margin) > 0) return;
  throw refuse("InvalidArgument", `margin must be greater than 0, got ${numberText(margin)}`);
}
