/**
 * Distances and similarities of vectors.
 *
 * @module
 */
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten } from "./aten.ts";
import { defineBuiltin } from "./define.ts";

/** Options of {@link cosineSimilarity}. */
export interface CosineSimilarityOptions {
  /** The dimension of the vectors, which the result does not have; default 1. */
  readonly dim?: number;
  /** The least product of norms, so that it is never zero; default 1e-8. */
  readonly eps?: Real;
}

/**
 * `x1 . x2 / max(|x1| * |x2|, eps)` along a dimension.
 *
 * @example
 * ```ts
 * F.cosineSimilarity(a, b, { dim: -1 });
 * ```
 */
export const cosineSimilarity = defineBuiltin<
  [x1: Tensor, x2: Tensor, dim?: number, eps?: Real],
  CosineSimilarityOptions
>("cosine_similarity", "torch.cosine_similarity", "(x1, x2, dim=1, eps=1e-08)", (x1, x2, dim, eps) =>
  aten("cosine_similarity", x1, x2, dim, eps),
);

/** Options of {@link pairwiseDistance}. */
export interface PairwiseDistanceOptions {
  /** Which norm; default 2. */
  readonly p?: Real;
  /** What is added to each difference; default 1e-6. */
  readonly eps?: Real;
  /** Whether the last dimension is kept, with size 1; default `false`. */
  readonly keepdim?: boolean;
}

/**
 * The norm of `x1 - x2 + eps` along the last dimension: `(N, D)` gives `(N)`.
 *
 * @example
 * ```ts
 * F.pairwiseDistance(a, b, { p: 1 });
 * ```
 */
export const pairwiseDistance = defineBuiltin<
  [x1: Tensor, x2: Tensor, p?: Real, eps?: Real, keepdim?: boolean],
  PairwiseDistanceOptions
>(
  "pairwise_distance",
  "torch.pairwise_distance",
  "(x1, x2, p=2.0, eps=1e-06, keepdim=False)",
  (x1, x2, p, eps, keepdim) => aten("pairwise_distance", x1, x2, p, eps, keepdim),
);

/** Options of {@link pdist}. */
export interface PdistOptions {
  /** Which norm; default 2. */
  readonly p?: Real;
}

/**
 * The distances between all pairs of rows: `(N, M)` gives `(N * (N - 1) / 2)`.
 *
 * @example
 * ```ts
 * F.pdist(points);
 * ```
 */
export const pdist = defineBuiltin<[input: Tensor, p?: Real], PdistOptions>(
  "pdist",
  "torch.pdist",
  "(input, p=2)",
  (input, p) => aten("pdist", input, p),
);
