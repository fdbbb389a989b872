/**
 * Losses of classes and labels.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { PairwiseDistance } from "./distance.ts";
import { Linear } from "./linear.ts";
import { Loss, LOSS, positiveMargin, type Reduction, WeightedLoss, type WeightedLossOptions } from "./loss.ts";
import { fields, numberOf, numbers, type Scalar, str } from "./sizes.ts";
import { badInput } from "./state.ts";

/** How a loss of classes by number is made. */
export interface NLLLossOptions extends WeightedLossOptions {
  /** The class of targets that do not count; -100 by default. */
  readonly ignoreIndex?: number;
}

/**
 * The negative log likelihood of an output `(N, C, *)` that is the logarithm of probabilities, and a target `(N, *)` of class
 * numbers.
 */
export class NLLLoss extends WeightedLoss {
  readonly ignoreIndex: number;

  constructor(
    ...given: Arguments<
      [],
      [
        weight: Tensor | null,
        sizeAverage: boolean | null,
        ignoreIndex: number,
        reduce: boolean | null,
        reduction: Reduction,
      ],
      NLLLossOptions
    >
  ) {
    const it = bind<NLLLossOptions>("NLLLoss", given, [], {
      weight: null,
      sizeAverage: null,
      ignoreIndex: -100,
      reduce: null,
      reduction: "mean",
    });
    super(it);
    this.ignoreIndex = it.ignoreIndex;
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    const { weight, ignoreIndex, reduction } = this;
    return F.nllLoss(input, target, { weight, ignoreIndex, reduction });
  }
}

/** How a {@link CrossEntropyLoss} is made. */
export interface CrossEntropyLossOptions extends NLLLossOptions {
  /** The part of the target that is spread over all classes; 0.0 by default. */
  readonly labelSmoothing?: Scalar;
}

/**
 * The cross entropy of an output of scores `(N, C, *)`, and a target of class numbers `(N, *)` or of probabilities `(N, C, *)`.
 *
 * @example
 * ```ts
 * const loss = new CrossEntropyLoss({ labelSmoothing: 0.1 });
 * loss.forward(torch.zeros([2, 3]), tensor([0, 2])).item();
 * ```
 */
export class CrossEntropyLoss extends WeightedLoss {
  readonly ignoreIndex: number;
  readonly labelSmoothing: Scalar;

  constructor(
    ...given: Arguments<
      [],
      [
        weight: Tensor | null,
        sizeAverage: boolean | null,
        ignoreIndex: number,
        reduce: boolean | null,
        reduction: Reduction,
        labelSmoothing: Scalar,
      ],
      CrossEntropyLossOptions
    >
  ) {
    const it = bind<CrossEntropyLossOptions>("CrossEntropyLoss", given, [], {
      weight: null,
      sizeAverage: null,
      ignoreIndex: -100,
      reduce: null,
      reduction: "mean",
      labelSmoothing: float(0),
    });
    super(it);
    this.ignoreIndex = it.ignoreIndex;
    this.labelSmoothing = it.labelSmoothing;
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    const { weight, ignoreIndex, reduction, labelSmoothing } = this;
    return F.crossEntropy(input, target, { weight, ignoreIndex, reduction, labelSmoothing });
  }
}

/** How a {@link LinearCrossEntropyLoss} is made. */
export interface LinearCrossEntropyLossOptions extends FactoryOptions {
  /** The size of each input sample. */
  readonly inFeatures?: number;
  /** The number of classes. */
  readonly numClasses?: number;
  /** Further dimensions of the scores; none by default. */
  readonly outFeatures?: readonly number[];
  /** Whether the linear layer has a bias; `false` by default. */
  readonly bias?: boolean;
  /** What becomes of the losses of the elements; their `mean` by default. */
  readonly reduction?: Reduction;
  /** A weight for each class. */
  readonly weight?: Tensor | null;
  /** The class of targets that do not count. */
  readonly ignoreIndex?: number | null;
  /** The part of the target that is spread over all classes; 0.0 by default. */
  readonly labelSmoothing?: Scalar;
  /** How PyTorch cuts the computation into chunks; there is only `null`. */
  readonly options?: null;
}

/** A linear layer and the cross entropy of its output. */
export class LinearCrossEntropyLoss extends WeightedLoss {
  readonly numClasses: number;
  readonly outFeatures: readonly number[];
  readonly ignoreIndex: number | null;
  readonly labelSmoothing: Scalar;
  readonly options: null;
  declare linear: Linear;

  constructor(...given: Arguments<[inFeatures: number, numClasses: number], [], LinearCrossEntropyLossOptions>) {
    const names = ["inFeatures", "numClasses"] as const;
    const it = bind<LinearCrossEntropyLossOptions>(
      "LinearCrossEntropyLoss",
      given,
      names,
      {},
      {
        outFeatures: numbers([]),
        bias: false,
        ...FACTORY,
        reduction: "mean",
        weight: null,
        ignoreIndex: null,
        labelSmoothing: float(0),
        options: null,
      },
    );
    if (it.weight !== null && (it.weight.shape.length !== 1 || it.weight.shape[0] !== it.numClasses)) {
      const got = str(numbers(it.weight.shape));
      throw fxError("ShapeMismatch", `expected weight shape to be (${it.numClasses},), got ${got}`);
    }
    const smoothing = numberOf(it.labelSmoothing);
    if (!(smoothing >= 0 && smoothing <= 1)) {
      throw badInput(`expected label_smoothing to be in range [0, 1], got ${str(it.labelSmoothing)}`);
    }
    if (it.options !== null) {
      throw badInput(
        "the option `options` of LinearCrossEntropyLoss is not supported",
        "leave it out: it only saves memory",
      );
    }
    super({ ...LOSS, reduction: it.reduction, weight: it.weight });
    this.numClasses = it.numClasses;
    this.outFeatures = it.outFeatures;
    this.ignoreIndex = it.ignoreIndex;
    this.labelSmoothing = it.labelSmoothing;
    const scores = it.outFeatures.reduce((product, size) => product * size, it.numClasses);
    this.linear = new Linear(it.inFeatures, scores, { bias: it.bias, dtype: it.dtype });
    this.options = null;
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    const { linear, numClasses, outFeatures, weight, reduction, ignoreIndex, labelSmoothing } = this;
    const linearWeight = linear.weight.reshape(numbers([numClasses, ...outFeatures, linear.inFeatures]));
    const linearBias = linear.bias === null ? null : linear.bias.reshape(numbers([numClasses, ...outFeatures]));
    return F.linearCrossEntropy(input, linearWeight, target, {
      linearBias,
      weight,
      reduction,
      ignoreIndex,
      labelSmoothing,
      options: null,
    });
  }

  override extraRepr(): string {
    return fields({
      in_features: this.linear.inFeatures,
      num_classes: this.numClasses,
      out_features: this.outFeatures,
      bias: this.linear.bias !== null,
      reduction: this.reduction,
      ignore_index: this.ignoreIndex,
      label_smoothing: this.labelSmoothing,
      options: this.options,
    });
  }
}

type WeightedLossArguments = Arguments<
  [],
  [weight: Tensor | null, sizeAverage: boolean | null, reduce: boolean | null, reduction: Reduction],
  WeightedLossOptions
>;

const WEIGHTED: typeof LOSS & { readonly weight: Tensor | null } = { weight: null, ...LOSS };

/** The cross entropy of probabilities of two classes. */
export class BCELoss extends WeightedLoss {
  constructor(...given: WeightedLossArguments) {
    super(bind<WeightedLossOptions>("BCELoss", given, [], WEIGHTED));
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.binaryCrossEntropy(input, target, { weight: this.weight, reduction: this.reduction });
  }
}

/** How a {@link BCEWithLogitsLoss} is made. */
export interface BCEWithLogitsLossOptions extends WeightedLossOptions {
  /** A weight of the positive samples. */
  readonly posWeight?: Tensor | null;
}

/** The cross entropy of scores of two classes. */
export class BCEWithLogitsLoss extends WeightedLoss {
  declare pos_weight: Tensor | null;

  constructor(
    ...given: Arguments<
      [],
      [
        weight: Tensor | null,
        sizeAverage: boolean | null,
        reduce: boolean | null,
        reduction: Reduction,
        posWeight: Tensor | null,
      ],
      BCEWithLogitsLossOptions
    >
  ) {
    const it = bind<BCEWithLogitsLossOptions>("BCEWithLogitsLoss", given, [], { ...WEIGHTED, posWeight: null });
    super(it);
    this.registerBuffer("pos_weight", it.posWeight);
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    const { weight, pos_weight: posWeight, reduction } = this;
    return F.binaryCrossEntropyWithLogits(input, target, weight, { posWeight, reduction });
  }
}

/** The cross entropy of scores of several labels for each sample, `(N, C)`. */
export class MultiLabelSoftMarginLoss extends WeightedLoss {
  constructor(...given: WeightedLossArguments) {
    super(bind<WeightedLossOptions>("MultiLabelSoftMarginLoss", given, [], WEIGHTED));
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    return F.multilabelSoftMarginLoss(input, target, { weight: this.weight, reduction: this.reduction });
  }
}

/** How a {@link MultiMarginLoss} is made. */
export interface MultiMarginLossOptions extends WeightedLossOptions {
  /** The exponent; 1 by default, or 2. */
  readonly p?: number;
  /** By how much the right class is to be ahead; 1.0 by default. */
  readonly margin?: Scalar;
}

/** The hinge loss of one class of many: scores `(N, C)` and class numbers `(N)`. */
export class MultiMarginLoss extends WeightedLoss {
  readonly p: number;
  readonly margin: Scalar;

  constructor(
    ...given: Arguments<
      [],
      [
        p: number,
        margin: Scalar,
        weight: Tensor | null,
        sizeAverage: boolean | null,
        reduce: boolean | null,
        reduction: Reduction,
      ],
      MultiMarginLossOptions
    >
  ) {
    const it = bind<MultiMarginLossOptions>("MultiMarginLoss", given, [], { p: 1, margin: float(1), ...WEIGHTED });
    super(it);
    if (it.p !== 1 && it.p !== 2) throw badInput("only p == 1 and p == 2 supported");
    if (it.weight !== null && it.weight.shape.length !== 1) {
      const rank = it.weight.shape.length;
      throw badInput(`MultiMarginLoss: expected weight to be None or 1D tensor, got ${rank}D instead`);
    }
    this.p = it.p;
    this.margin = it.margin;
  }

  override forward(input: Tensor, target: Tensor): Tensor {
    const { p, margin, weight, reduction } = this;
    return F.multiMarginLoss(input, target, { p, margin, weight, reduction });
  }
}

/** A function of two tensors, or a module that is one. */
export type DistanceFunction = (x1: Tensor, x2: Tensor) => Tensor;

/** How a {@link TripletMarginWithDistanceLoss} is made. */
export interface TripletMarginWithDistanceLossOptions {
  /** The distance; by default a {@link PairwiseDistance}. */
  readonly distanceFunction?: DistanceFunction | null;
  /** By how much the negative is to be farther; 1.0 by default. */
  readonly margin?: Scalar;
  /** Whether the distance from the positive counts where it is the less; `false` by default. */
  readonly swap?: boolean;
  /** What becomes of the losses of the elements; their `mean` by default. */
  readonly reduction?: Reduction;
}

/** The loss of samples that are to be nearer to a positive than to a negative, by a distance of your own. */
export class TripletMarginWithDistanceLoss extends Loss {
  static override readonly forwardSignature: string = "(anchor, positive, negative)";
  readonly margin: Scalar;
  readonly swap: boolean;
  declare distance_function: DistanceFunction;

  constructor(options: TripletMarginWithDistanceLossOptions = {}) {
    const name = "TripletMarginWithDistanceLoss";
    const it = bind<TripletMarginWithDistanceLossOptions>(
      name,
      [options],
      [],
      {},
      {
        distanceFunction: null,
        margin: float(1),
        swap: false,
        reduction: "mean",
      },
    );
    super({ ...LOSS, reduction: it.reduction });
    this.distance_function = it.distanceFunction ?? new PairwiseDistance();
    this.margin = positiveMargin(name, it.margin);
    this.swap = it.swap;
  }

  override forward(anchor: Tensor, positive: Tensor, negative: Tensor): Tensor {
    const { distance_function: distanceFunction, margin, swap, reduction } = this;
    return F.tripletMarginWithDistanceLoss(anchor, positive, negative, { distanceFunction, margin, swap, reduction });
  }
}

/** How a {@link CTCLoss} is made. */
export interface CTCLossOptions {
  /** The number of the blank label; 0 by default. */
  readonly blank?: number;
  /** What becomes of the losses of the samples; their `mean` by default. */
  readonly reduction?: Reduction;
  /** Whether infinite losses are made zero; `false` by default. */
  readonly zeroInfinity?: boolean;
}

/** The connectionist temporal classification: the loss of a sequence of labels whose places are not known. */
export class CTCLoss extends Loss {
  static override readonly forwardSignature: string = "(log_probs, targets, input_lengths, target_lengths)";
  readonly blank: number;
  readonly zeroInfinity: boolean;

  constructor(...given: Arguments<[], [blank: number, reduction: Reduction, zeroInfinity: boolean], CTCLossOptions>) {
    const it = bind<CTCLossOptions>("CTCLoss", given, [], { blank: 0, reduction: "mean", zeroInfinity: false });
    super({ ...LOSS, reduction: it.reduction });
    this.blank = it.blank;
    this.zeroInfinity = it.zeroInfinity;
  }

  override forward(
    logProbs: Tensor,
    targets: Tensor,
    inputLengths: Tensor | readonly number[],
    targetLengths: Tensor | readonly number[],
  ): Tensor {
    const { blank, reduction, zeroInfinity } = this;
    return F.ctcLoss(logProbs, targets, inputLengths, targetLengths, blank, reduction, zeroInfinity);
  }
}

markBuiltin({ NLLLoss, CrossEntropyLoss, LinearCrossEntropyLoss, BCELoss, BCEWithLogitsLoss });
markBuiltin({ MultiLabelSoftMarginLoss, MultiMarginLoss, TripletMarginWithDistanceLoss, CTCLoss });
