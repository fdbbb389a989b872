/**
 * Cross entropy of a linear layer, as one function.
 *
 * @module
 */
import { isSame, textOf } from "../../base/sizes.ts";
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, refuse, shapeIs, tupleText } from "./aten.ts";
import { crossEntropy } from "./classLoss.ts";
import { define } from "./define.ts";
import type { LossOptions, Reduction } from "./reduction.ts";

/** How PyTorch computes {@link linearCrossEntropy} in pieces to save memory in training; the result is the same. */
export interface LinearCrossEntropyChunks {
  /** Whether gradients can be computed twice. */
  readonly allowRetainGraph?: boolean;
  /** How many rows a piece has. */
  readonly batchChunkSize?: number | null;
  /** How that is found, such as `"aspect_ratio:2"`. */
  readonly chunkingMethod?: string | null;
  /** Which sums are kept exactly. */
  readonly accPolicy?: "auto" | "accurate" | "compact";
  /** The dtype of sums. */
  readonly accDtype?: string | null;
}

/** Options of {@link linearCrossEntropy}. */
export interface LinearCrossEntropyOptions extends LossOptions {
  /** What the linear layer adds, `(C, …)`. */
  readonly linearBias?: Tensor | null;
  /** What the loss of each class is multiplied by, `(C)`. */
  readonly weight?: Tensor | null;
  /** The class that does not count; default -100. */
  readonly ignoreIndex?: number | null;
  /** How much of the target is spread over all classes, from 0 to 1; default 0. */
  readonly labelSmoothing?: Real;
  /** How PyTorch computes it in pieces; without effect here. */
  readonly options?: LinearCrossEntropyChunks | null;
}

/**
 * `crossEntropy(linear(input, linearWeight, linearBias), target)`: `(N, in)` or `(in)`, a weight of `(C, …, in)` and classes
 * `(N, …)` or probabilities `(N, C, …)`.
 *
 * @example
 * ```ts
 * F.linearCrossEntropy(hidden, vocabulary, tokens, { reduction: "sum" });
 * ```
 */
export const linearCrossEntropy = define<
  [input: Tensor, linearWeight: Tensor, target: Tensor],
  LinearCrossEntropyOptions,
  Tensor,
  [
    linearBias: Tensor | null,
    weight: Tensor | null,
    reduction: Reduction,
    ignoreIndex: number | null,
    labelSmoothing: Real,
  ]
>(
  "linear_cross_entropy",
  "(input, linear_weight, target, *, linear_bias=None, weight=None, reduction='mean', ignore_index=None, label_smoothing=0.0, options=None)",
  (input, linearWeight, target, linearBias, weight, reduction, ignoreIndex, labelSmoothing) => {
    const rank = input.shape.length;
    if (rank < 1 || rank > 2) {
      throw refuse("ShapeMismatch", `expected input with dimensionality 1 or 2, got ${rank}`);
    }
    if (linearWeight.shape.length < 2) {
      const got = linearWeight.shape.length;
      throw refuse("ShapeMismatch", `expected linear_weight with dimensionality at least 2, got ${got}`);
    }
    const batches = input.shape.slice(0, -1);
    const features = input.shape.at(-1) as number;
    if (!isSame(features, linearWeight.shape.at(-1))) {
      throw refuse(
        "ShapeMismatch",
        `expected equal input and linear_weight last dimensions (in_features), got ${textOf(features)} and ${textOf(linearWeight.shape.at(-1))}, respectively`,
      );
    }
    const outputs = linearWeight.shape.slice(0, -1);
    if (linearBias !== null && !shapeIs(linearBias, outputs)) {
      const reason = `expected linear_bias shape ${tupleText(outputs)}, got ${tupleText(linearBias.shape)}`;
      throw refuse("ShapeMismatch", reason);
    }
    if (outputs.length > 1 && batches.length === 0) {
      throw refuse(
        "ShapeMismatch",
        `K-dimensional loss defined by linear_weight shape ${tupleText(linearWeight.shape)} requires batched input, (N, ${textOf(features)}), got unbatched input with shape ${tupleText(input.shape)}`,
      );
    }
    const logitsShape = [...batches, ...outputs];
    if (ignoreIndex !== null && shapeIs(target, logitsShape)) {
      throw refuse("InvalidArgument", "ignore_index cannot be specified when target contains probabilities");
    }
    const flatWeight = outputs.length > 1 ? aten("reshape", linearWeight, [-1, features]) : linearWeight;
    const flatBias = linearBias !== null && outputs.length > 1 ? aten("reshape", linearBias, [-1]) : linearBias;
    const logits = aten("reshape", aten("linear", input, flatWeight, flatBias), logitsShape);
    return crossEntropy(logits, target, { weight, reduction, ignoreIndex: ignoreIndex ?? -100, labelSmoothing });
  },
);
