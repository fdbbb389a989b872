/**
 * Distances between pairs of vectors.
 *
 * @module
 */
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { Module } from "./module.ts";
import type { Scalar } from "./sizes.ts";

/** How a {@link PairwiseDistance} is made. */
export interface PairwiseDistanceOptions {
  /** The degree of the norm; 2.0 by default. */
  readonly p?: Scalar;
  /** What is added to the difference; 1e-6 by default. */
  readonly eps?: Scalar;
  /** Whether the dimension stays; `false` by default. */
  readonly keepdim?: boolean;
}

/** The norm of the difference of vectors, `(N, D)` to `(N)`. */
export class PairwiseDistance extends Module {
  static override readonly forwardSignature: string = "(x1, x2)";
  readonly norm: Scalar;
  readonly eps: Scalar;
  readonly keepdim: boolean;

  constructor(...given: Arguments<[], [p: Scalar, eps: Scalar, keepdim: boolean], PairwiseDistanceOptions>) {
    super();
    const defaults = { p: float(2), eps: 1e-6, keepdim: false };
    const it = bind<PairwiseDistanceOptions>("PairwiseDistance", given, [], defaults);
    this.norm = it.p;
    this.eps = it.eps;
    this.keepdim = it.keepdim;
  }

  override forward(x1: Tensor, x2: Tensor): Tensor {
    return F.pairwiseDistance(x1, x2, this.norm, this.eps, this.keepdim);
  }
}

/** How a {@link CosineSimilarity} is made. */
export interface CosineSimilarityOptions {
  /** The dimension of the vectors; 1 by default. */
  readonly dim?: number;
  /** The least product of lengths; 1e-8 by default. */
  readonly eps?: Scalar;
}

/** The cosine of the angle between vectors, which lie along `dim`: `(N, D)` to `(N)`. */
export class CosineSimilarity extends Module {
  static override readonly forwardSignature: string = "(x1, x2)";
  readonly dim: number;
  readonly eps: Scalar;

  constructor(...given: Arguments<[], [dim: number, eps: Scalar], CosineSimilarityOptions>) {
    super();
    const it = bind<CosineSimilarityOptions>("CosineSimilarity", given, [], { dim: 1, eps: 1e-8 });
    this.dim = it.dim;
    this.eps = it.eps;
  }

  override forward(x1: Tensor, x2: Tensor): Tensor {
    return F.cosineSimilarity(x1, x2, this.dim, this.eps);
  }
}

markBuiltin({ PairwiseDistance, CosineSimilarity });
