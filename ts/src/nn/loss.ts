/**
 * Losses: how far an output is from a target, of the same shape where nothing else is said. The result is a number, and with
 * `reduction: "none"` one for each element or sample.
 *
 * @module
 */
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { Module } from "./module.ts";
import { numberOf, type Scalar, str } from "./sizes.ts";
import { badInput } from "./state.ts";

/** What becomes of the losses of the elements. */
export type Reduction = "none" | "mean" | "sum";

/** How a loss is made. */
export interface LossOptions {
  /** PyTorch's old spelling of `reduction`; not to be used. */
  readonly sizeAverage?: boolean | null;
  /** PyTorch's old spelling of `reduction`; not to be used. */
  readonly reduce?: boolean | null;
  /** What becomes of the losses of the elements; their `mean` by default. */
  readonly reduction?: Reduction;
}

/** How a loss with weights is made. */
export interface WeightedLossOptions extends LossOptions {
  /** A weight for each class or each element of the batch. */
  readonly weight?: Tensor | null;
}

type LossArguments = Arguments<
  [],
  [sizeAverage: boolean | null, reduce: boolean | null, reduction: Reduction],
  LossOptions
>;

/** The defaults of the options that losses have in common. */
export const LOSS: { sizeAverage: boolean | null; reduce: boolean | null; reduction: Reduction } = {
  sizeAverage: null,
  reduce: null,
  reduction: "mean",
};

/** What all losses are. */
export abstract class Loss extends Module {
  static override readonly forwardSignature: string = "(input, target)";
  readonly reduction: Reduction;

  protected constructor({ sizeAverage, reduce, reduction }: typeof LOSS) {
    super();
    const isOld = sizeAverage !== null || reduce !== null;
    this.reduction = isOld ? oldReduction(sizeAverage ?? true, reduce ?? true) : reduction;
  }
}

function oldReduction(sizeAverage: boolean, reduce: boolean): Reduction {
  if (!reduce) return "none";
  return sizeAverage ? "mean" : "sum";
}

/** What losses with weights are. */
export abstract class WeightedLoss extends Loss {
  declare weight: Tensor | null;

  protected constructor(it: typeof LOSS & { readonly weight: Tensor | null }) {
    super(it);
    this.registerBuffer("weight", it.weight);
  }
}

function bindLoss(name: string, given: LossArguments) {
  return bind<LossOptions>(name, given, [], LOSS);
}

/** The absolute error. */
export class L1Loss extends Loss {
  constructor(...given: LossArguments) {
    super(bindLoss("L1Loss", given));
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.l1Loss(input, target, { reduction: this.reduction });
  }
}

/** The squared error. */
export class MSELoss extends Loss {
  constructor(...given: LossArguments) {
    super(bindLoss("MSELoss", given));
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.mseLoss(input, target, { reduction: this.reduction });
  }
}

/** The logistic loss of two classes, -1 and 1. */
export class SoftMarginLoss extends Loss {
  constructor(...given: LossArguments) {
    super(bindLoss("SoftMarginLoss", given));
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.softMarginLoss(input, target, { reduction: this.reduction });
  }
}

/** The hinge loss of several labels for each sample, `(N, C)`. */
export class MultiLabelMarginLoss extends Loss {
  constructor(...given: LossArguments) {
    super(bindLoss("MultiLabelMarginLoss", given));
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.multilabelMarginLoss(input, target, { reduction: this.reduction });
  }
}

/** How a {@link SmoothL1Loss} is made. */
export interface SmoothL1LossOptions extends LossOptions {
  /** Where the squared error becomes the absolute one; 1.0 by default. */
  readonly beta?: Scalar;
}

/** The squared error where it is small, the absolute error elsewhere. */
export class SmoothL1Loss extends Loss {
  readonly beta: Scalar;

  constructor(
    ...given: Arguments<
      [],
      [sizeAverage: boolean | null, reduce: boolean | null, reduction: Reduction, beta: Scalar],
      SmoothL1LossOptions
    >
  ) {
    const it = bind<SmoothL1LossOptions>("SmoothL1Loss", given, [], { ...LOSS, beta: float(1) });
    super(it);
    this.beta = it.beta;
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.smoothL1Loss(input, target, { reduction: this.reduction, beta: this.beta });
  }
}

/** How a {@link HuberLoss} is made. */
export interface HuberLossOptions {
  /** What becomes of the losses of the elements; their `mean` by default. */
  readonly reduction?: Reduction;
  /** Where the squared error becomes the absolute one; 1.0 by default. */
  readonly delta?: Scalar;
}

/** The squared error where it is small, `delta` times the absolute error elsewhere. */
export class HuberLoss extends Loss {
  readonly delta: Scalar;

  constructor(...given: Arguments<[], [reduction: Reduction, delta: Scalar], HuberLossOptions>) {
    const it = bind<HuberLossOptions>("HuberLoss", given, [], { reduction: "mean", delta: float(1) });
    super({ ...LOSS, reduction: it.reduction });
    this.delta = it.delta;
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.huberLoss(input, target, { reduction: this.reduction, delta: this.delta });
  }
}

/** How a {@link KLDivLoss} is made. */
export interface KLDivLossOptions extends Omit<LossOptions, "reduction"> {
  /** What becomes of the losses of the elements; their `mean` by default, which is not the divergence: `batchmean` is. */
  readonly reduction?: Reduction | "batchmean";
  /** Whether the target is the logarithm of probabilities; `false` by default. */
  readonly logTarget?: boolean;
}

/** The Kullback-Leibler divergence of an output that is the logarithm of probabilities. */
export class KLDivLoss extends Loss {
  readonly logTarget: boolean;

  constructor(
    ...given: Arguments<
      [],
      [sizeAverage: boolean | null, reduce: boolean | null, reduction: Reduction | "batchmean", logTarget: boolean],
      KLDivLossOptions
    >
  ) {
    const it = bind<KLDivLossOptions>("KLDivLoss", given, [], { ...LOSS, logTarget: false });
    super(it as typeof LOSS);
    this.logTarget = it.logTarget;
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.klDiv(input, target, { reduction: this.reduction, logTarget: this.logTarget });
  }
}

/** How a {@link PoissonNLLLoss} is made. */
export interface PoissonNLLLossOptions extends LossOptions {
  /** Whether the output is the logarithm of the rate; `true` by default. */
  readonly logInput?: boolean;
  /** Whether Stirling's term is added; `false` by default. */
  readonly full?: boolean;
  /** What is added to a rate before its logarithm; 1e-8 by default. */
  readonly eps?: Scalar;
}

/** The negative log likelihood of a Poisson distribution. */
export class PoissonNLLLoss extends Loss {
  static override readonly forwardSignature: string = "(log_input, target)";
  readonly logInput: boolean;
  readonly full: boolean;
  readonly eps: Scalar;

  constructor(
    ...given: Arguments<
      [],
      [
        logInput: boolean,
        full: boolean,
        sizeAverage: boolean | null,
        eps: Scalar,
        reduce: boolean | null,
        reduction: Reduction,
      ],
      PoissonNLLLossOptions
    >
  ) {
    const it = bind<PoissonNLLLossOptions>("PoissonNLLLoss", given, [], {
      logInput: true,
      full: false,
      sizeAverage: null,
      eps: 1e-8,
      reduce: null,
      reduction: "mean",
    });
    super(it);
    this.logInput = it.logInput;
    this.full = it.full;
    this.eps = it.eps;
  }

  override forward(logInput: Tensor, target: Tensor): Tensor {
    const { full, eps, reduction } = this;
    return F.poissonNllLoss(logInput, target, { logInput: this.logInput, full, eps, reduction });
  }
}

/** How a {@link GaussianNLLLoss} is made. */
export interface GaussianNLLLossOptions {
  /** Whether the constant term is added; `false` by default. */
  readonly full?: boolean;
  /** The least variance; 1e-6 by default. */
  readonly eps?: Scalar;
  /** What becomes of the losses of the elements; their `mean` by default. */
  readonly reduction?: Reduction;
}

/** The negative log likelihood of a normal distribution. */
export class GaussianNLLLoss extends Loss {
  static override readonly forwardSignature: string = "(input, target, var)";
  readonly full: boolean;
  readonly eps: Scalar;

  constructor(options: GaussianNLLLossOptions = {}) {
    const defaults = { full: false, eps: 1e-6, reduction: "mean" as const };
    const it = bind<GaussianNLLLossOptions>("GaussianNLLLoss", [options], [], {}, defaults);
    super({ ...LOSS, reduction: it.reduction });
    this.full = it.full;
    this.eps = it.eps;
  }

  override forward(input: Tensor, target: Tensor, variance: Tensor | number): Tensor {
    const { full, eps, reduction } = this;
    return F.gaussianNllLoss(input, target, variance, { full, eps, reduction });
  }
}

/** How a {@link HingeEmbeddingLoss}, a {@link CosineEmbeddingLoss} or a {@link MarginRankingLoss} is made. */
export interface MarginLossOptions extends LossOptions {
  /** By how much the classes are to be apart. */
  readonly margin?: Scalar;
}

type MarginLossArguments = Arguments<
  [],
  [margin: Scalar, sizeAverage: boolean | null, reduce: boolean | null, reduction: Reduction],
  MarginLossOptions
>;

/** The loss of a distance between samples that are alike (1) or not (-1). */
export class HingeEmbeddingLoss extends Loss {
  readonly margin: Scalar;

  constructor(...given: MarginLossArguments) {
    const it = bind<MarginLossOptions>("HingeEmbeddingLoss", given, [], { margin: float(1), ...LOSS });
    super(it);
    this.margin = it.margin;
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.hingeEmbeddingLoss(input, target, { margin: this.margin, reduction: this.reduction });
  }
}

/** The loss of the angle between samples `(N, D)` that are alike (1) or not (-1), `(N)`. */
export class CosineEmbeddingLoss extends Loss {
  static override readonly forwardSignature: string = "(input1, input2, target)";
  readonly margin: Scalar;

  constructor(...given: MarginLossArguments) {
    const it = bind<MarginLossOptions>("CosineEmbeddingLoss", given, [], { margin: float(0), ...LOSS });
    super(it);
    this.margin = it.margin;
  }

  override forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor {
    return F.cosineEmbeddingLoss(input1, input2, target, { margin: this.margin, reduction: this.reduction });
  }
}

/** The loss of two scores, of which the first is to be the greater (1) or the less (-1). */
export class MarginRankingLoss extends Loss {
  static override readonly forwardSignature: string = "(input1, input2, target)";
  readonly margin: Scalar;

  constructor(...given: MarginLossArguments) {
    const it = bind<MarginLossOptions>("MarginRankingLoss", given, [], { margin: float(0), ...LOSS });
    super(it);
    this.margin = it.margin;
  }

  override forward(input1: Tensor, input2: Tensor, target: Tensor): Tensor {
    return F.marginRankingLoss(input1, input2, target, { margin: this.margin, reduction: this.reduction });
  }
}

/** How a {@link TripletMarginLoss} is made. */
export interface TripletMarginLossOptions extends LossOptions {
  /** By how much the negative is to be farther; 1.0 by default. */
  readonly margin?: Scalar;
  /** The degree of the norm; 2.0 by default. */
  readonly p?: Scalar;
  /** What is added to the differences; 1e-6 by default. */
  readonly eps?: Scalar;
  /** Whether the distance from the positive counts where it is the less; `false` by default. */
  readonly swap?: boolean;
}

/** The loss of samples `(N, D)` that are to be nearer to a positive than to a negative. */
export class TripletMarginLoss extends Loss {
  static override readonly forwardSignature: string = "(anchor, positive, negative)";
  readonly margin: Scalar;
  readonly p: Scalar;
  readonly eps: Scalar;
  readonly swap: boolean;

  constructor(
    ...given: Arguments<
      [],
      [
        margin: Scalar,
        p: Scalar,
        eps: Scalar,
        swap: boolean,
        sizeAverage: boolean | null,
        reduce: boolean | null,
        reduction: Reduction,
      ],
      TripletMarginLossOptions
    >
  ) {
    const defaults = { margin: float(1), p: float(2), eps: 1e-6, swap: false, ...LOSS };
    const it = bind<TripletMarginLossOptions>("TripletMarginLoss", given, [], defaults);
    super(it);
    this.margin = positiveMargin("TripletMarginLoss", it.margin);
    this.p = it.p;
    this.eps = it.eps;
    this.swap = it.swap;
  }

  override forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor {
    const { margin, p, eps, swap, reduction } = this;
    return F.tripletMarginLoss(anchor, positive, negative, { margin, p, eps, swap, reduction });
  }
}

/** A margin, which must be positive. */
export function positiveMargin(name: string, margin: Scalar): Scalar {
  if (numberOf(margin) > 0) return margin;
  throw badInput(`${name}: expected margin to be greater than 0, got ${str(margin)} instead`);
}

markBuiltin({ L1Loss, MSELoss, SoftMarginLoss, MultiLabelMarginLoss, SmoothL1Loss, HuberLoss, KLDivLoss });
markBuiltin({ PoissonNLLLoss, GaussianNLLLoss, HingeEmbeddingLoss, CosineEmbeddingLoss, MarginRankingLoss });
markBuiltin({ TripletMarginLoss });
