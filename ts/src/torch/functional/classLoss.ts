/**
 * Losses of classes: how much probability the input gives to the right ones.
 *
 * @module
 */
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenResults, refuse, sameShape, sizeText } from "./aten.ts";
import { define } from "./define.ts";
import { codeOf, type LegacyLossOptions, type LossOptions, reduced, type Reduction, reductionOf } from "./reduction.ts";

/** Options of losses of one class of several. */
export interface ClassLossOptions extends LegacyLossOptions {
  /** What the loss of each class is multiplied by, `(C)`. */
  readonly weight?: Tensor | null;
  /** The class that does not count; default -100. */
  readonly ignoreIndex?: number;
}

/** Options of {@link crossEntropy}. */
export interface CrossEntropyOptions extends ClassLossOptions {
  /** How much of the target is spread over all classes, from 0 to 1; default 0. */
  readonly labelSmoothing?: Real;
}

/**
 * `-log(softmax(input))` at the class of the target. `(N, C, …)` and classes `(N, …)` give one number, or `(N, …)` without
 * reduction; a target of the shape of `input` holds probabilities.
 *
 * @example
 * ```ts
 * F.crossEntropy(logits, tensor([1, 0, 4]), { labelSmoothing: 0.1 });
 * ```
 */
export const crossEntropy = define<
  [
    input: Tensor,
    target: Tensor,
    weight?: Tensor | null,
    sizeAverage?: boolean | null,
    ignoreIndex?: number,
    reduce?: boolean | null,
    reduction?: Reduction,
    labelSmoothing?: Real,
  ],
  CrossEntropyOptions
>(
  "cross_entropy",
  "(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean', label_smoothing=0.0)",
  (input, target, weight, sizeAverage, ignoreIndex, reduce, reduction, labelSmoothing) => {
    const code = codeOf(reduction, sizeAverage, reduce);
    return aten("cross_entropy_loss", input, target, weight, code, ignoreIndex, labelSmoothing);
  },
);

/**
 * `-input` at the class of the target, where `input` holds logarithms of probabilities: `(N, C, …)` and `(N, …)`.
 *
 * @example
 * ```ts
 * F.nllLoss(F.logSoftmax(logits, 1), classes);
 * ```
 */
export const nllLoss = define<
  [
    input: Tensor,
    target: Tensor,
    weight?: Tensor | null,
    sizeAverage?: boolean | null,
    ignoreIndex?: number,
    reduce?: boolean | null,
    reduction?: Reduction,
  ],
  ClassLossOptions
>(
  "nll_loss",
  "(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction='mean')",
  (input, target, weight, sizeAverage, ignoreIndex, reduce, reduction) =>
    aten("nll_loss_nd", input, target, weight, codeOf(reduction, sizeAverage, reduce), ignoreIndex),
);

/** Options of {@link binaryCrossEntropy}. */
export interface BinaryCrossEntropyOptions extends LegacyLossOptions {
  /** What the loss of each element is multiplied by. */
  readonly weight?: Tensor | null;
}

/** Options of {@link binaryCrossEntropyWithLogits}. */
export interface BinaryCrossEntropyWithLogitsOptions extends BinaryCrossEntropyOptions {
  /** How much more the positive examples of each class count. */
  readonly posWeight?: Tensor | null;
}

/**
 * `-(target * log(input) + (1 - target) * log(1 - input))`, where `input` holds probabilities.
 *
 * @example
 * ```ts
 * F.binaryCrossEntropy(F.sigmoid(x), target);
 * ```
 */
export const binaryCrossEntropy = define<
  [
    input: Tensor,
    target: Tensor,
    weight?: Tensor | null,
    sizeAverage?: boolean | null,
    reduce?: boolean | null,
    reduction?: Reduction,
  ],
  BinaryCrossEntropyOptions
>(
  "binary_cross_entropy",
  "(input, target, weight=None, size_average=None, reduce=None, reduction='mean')",
  (input, target, weight, sizeAverage, reduce, reduction) => {
    const code = codeOf(reduction, sizeAverage, reduce);
    if (!sameShape(target, input)) {
      throw refuse(
        "ShapeMismatch",
        `Using a target size (${sizeText(target.shape)}) that is different to the input size (${sizeText(input.shape)}) is deprecated. Please ensure they have the same size.`,
      );
    }
    requireProbabilities("input", input);
    requireProbabilities("target", target);
    // Weights may be broadcast, which the operator does not do.
    const weights = weight === null ? null : atenResults("broadcast_tensors", [weight, target])[0];
    return aten("binary_cross_entropy", input, target, weights, code);
  },
);

function requireProbabilities(name: string, values: Tensor): void {
  const areProbabilities = aten("logical_and", aten("ge", values, 0), aten("le", values, 1));
  if (aten("all", areProbabilities).item() === true) return;
  throw refuse(
    "InvalidArgument",
    `all elements of ${name} should be between 0 and 1`,
    "they are probabilities: take the sigmoid of scores, or binaryCrossEntropyWithLogits",
  );
}

/**
 * {@link binaryCrossEntropy} of `sigmoid(input)`, computed so that nothing overflows.
 *
 * @example
 * ```ts
 * F.binaryCrossEntropyWithLogits(logits, target);
 * ```
 */
export const binaryCrossEntropyWithLogits = define<
  [
    input: Tensor,
    target: Tensor,
    weight?: Tensor | null,
    sizeAverage?: boolean | null,
    reduce?: boolean | null,
    reduction?: Reduction,
    posWeight?: Tensor | null,
  ],
  BinaryCrossEntropyWithLogitsOptions
>(
  "binary_cross_entropy_with_logits",
  "(input, target, weight=None, size_average=None, reduce=None, reduction='mean', pos_weight=None)",
  (input, target, weight, sizeAverage, reduce, reduction, posWeight) => {
    const code = codeOf(reduction, sizeAverage, reduce);
    if (!sameShape(target, input)) {
      const sizes = `Target size (${sizeText(target.shape)}) must be the same as input size (${sizeText(input.shape)})`;
      throw refuse("ShapeMismatch", sizes);
    }
    return aten("binary_cross_entropy_with_logits", input, target, weight, posWeight, code);
  },
);

/** Options of {@link multiMarginLoss}. */
export interface MultiMarginLossOptions extends LegacyLossOptions {
  /** The power, 1 or 2; default 1. */
  readonly p?: Real;
  /** How much greater the score of the right class should be; default 1. */
  readonly margin?: Real;
  /** What the loss of each class is multiplied by, `(C)`. */
  readonly weight?: Tensor | null;
}

/**
 * The mean over all other classes `i` of `max(0, margin - input[class] + input[i]) ** p`: `(N, C)` and `(N)`.
 *
 * @example
 * ```ts
 * F.multiMarginLoss(scores, classes);
 * ```
 */
export const multiMarginLoss = define<
  [
    input: Tensor,
    target: Tensor,
    p?: Real,
    margin?: Real,
    weight?: Tensor | null,
    sizeAverage?: boolean | null,
    reduce?: boolean | null,
    reduction?: Reduction,
  ],
  MultiMarginLossOptions
>(
  "multi_margin_loss",
  "(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction='mean')",
  (input, target, p, margin, weight, sizeAverage, reduce, reduction) => {
    const code = codeOf(reduction, sizeAverage, reduce);
    const power = typeof p === "number" ? p : p.value;
    if (power !== 1 && power !== 2) throw refuse("InvalidArgument", "only p == 1 and p == 2 supported");
    if (weight !== null && weight.shape.length !== 1) {
      throw refuse("ShapeMismatch", "weight must be one-dimensional");
    }
    return aten("multi_margin_loss", input, target, p, margin, weight, code);
  },
);

/**
 * The margin loss of several classes at once: `(N, C)`, and `(N, C)` of classes that end with the first negative one.
 *
 * @example
 * ```ts
 * F.multilabelMarginLoss(scores, tensor([[3, 0, -1, 1]]));
 * ```
 */
export const multilabelMarginLoss = define<
  [input: Tensor, target: Tensor, sizeAverage?: boolean | null, reduce?: boolean | null, reduction?: Reduction],
  LegacyLossOptions
>(
  "multilabel_margin_loss",
  "(input, target, size_average=None, reduce=None, reduction='mean')",
  (input, target, sizeAverage, reduce, reduction) =>
    aten("multilabel_margin_loss", input, target, codeOf(reduction, sizeAverage, reduce)),
);

/** Options of {@link multilabelSoftMarginLoss}. */
export interface MultilabelSoftMarginLossOptions extends LegacyLossOptions {
  /** What the loss of each class is multiplied by, `(C)`. */
  readonly weight?: Tensor | null;
}

/**
 * The mean over the classes of {@link binaryCrossEntropyWithLogits}: `(N, C)` of both.
 *
 * @example
 * ```ts
 * F.multilabelSoftMarginLoss(logits, labels);
 * ```
 */
export const multilabelSoftMarginLoss = define<
  [
    input: Tensor,
    target: Tensor,
    weight?: Tensor | null,
    sizeAverage?: boolean | null,
    reduce?: boolean | null,
    reduction?: Reduction,
  ],
  MultilabelSoftMarginLossOptions
>(
  "multilabel_soft_margin_loss",
  "(input, target, weight=None, size_average=None, reduce=None, reduction='mean')",
  (input, target, weight, sizeAverage, reduce, reduction) => {
    const kind = reductionOf(reduction, sizeAverage, reduce);
    const right = aten("mul", target, aten("log_sigmoid", input));
    const wrong = aten("mul", aten("rsub", target, 1), aten("log_sigmoid", aten("neg", input)));
    const all = aten("neg", aten("add", right, wrong));
    const losses = weight === null ? all : aten("mul", all, weight);
    const dim = input.shape.length - 1;
    const classes = input.shape[dim] ?? 1;
    return reduced(aten("div", aten("sum", losses, [dim]), classes), kind);
  },
);

/** Options of {@link ctcLoss}. */
export interface CtcLossOptions extends LossOptions {
  /** The class of the blank; default 0. */
  readonly blank?: number;
  /** Whether infinite losses, of targets that are too long, become zero; default `false`. */
  readonly zeroInfinity?: boolean;
}

/**
 * The connectionist temporal classification loss: logarithms of probabilities `(T, N, C)`, classes `(N, S)` or all of them in
 * one dimension, and the lengths of both.
 *
 * @example
 * ```ts
 * F.ctcLoss(logProbs, targets, tensor([50, 48]), tensor([10, 12]));
 * ```
 */
export const ctcLoss = define<
  [
    logProbs: Tensor,
    targets: Tensor,
    inputLengths: Tensor | readonly number[],
    targetLengths: Tensor | readonly number[],
    blank?: number,
    reduction?: Reduction,
    zeroInfinity?: boolean,
  ],
  CtcLossOptions
>(
  "ctc_loss",
  "(log_probs, targets, input_lengths, target_lengths, blank=0, reduction='mean', zero_infinity=False)",
  (logProbs, targets, inputLengths, targetLengths, blank, reduction, zeroInfinity) =>
    aten("ctc_loss", logProbs, targets, inputLengths, targetLengths, blank, codeOf(reduction), zeroInfinity),
);
