/**
 * Look-ups in tables of vectors.
 *
 * @module
 */
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenResults, atenWith, isFloat, refuse, sameShape, sizeText } from "./aten.ts";
import { define, defineBuiltin } from "./define.ts";

/** Options of {@link embedding}. */
export interface EmbeddingOptions {
  /** The row that is not learnt; without effect on the result. */
  readonly paddingIdx?: number | null;
  /** The greatest norm of a row: longer ones that are looked up are shortened in the table itself. */
  readonly maxNorm?: Real | null;
  /** Which norm `maxNorm` is of; default 2. */
  readonly normType?: Real;
  /** Of gradients alone. */
  readonly scaleGradByFreq?: boolean;
  /** Of gradients alone. */
  readonly sparse?: boolean;
}

/**
 * The rows of `weight` at the indices: `(*)` and a table of `(rows, size)` give `(*, size)`.
 *
 * @example
 * ```ts
 * F.embedding(tokens, table);
 * ```
 */
export const embedding = define<
  [
    input: Tensor,
    weight: Tensor,
    paddingIdx?: number | null,
    maxNorm?: Real | null,
    normType?: Real,
    scaleGradByFreq?: boolean,
    sparse?: boolean,
  ],
  EmbeddingOptions
>(
  "embedding",
  "(input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False)",
  (input, weight, paddingIdx, maxNorm, normType, scaleGradByFreq, sparse) => {
    const rows = weight.shape[0] ?? 0;
    if (paddingIdx !== null && (paddingIdx < -rows || (paddingIdx > 0 && paddingIdx >= rows))) {
      throw refuse(
        "IndexOutOfRange",
        "Padding_idx must be within num_embeddings",
        `the table has ${rows} rows and padding_idx is ${paddingIdx}`,
      );
    }
    const padding = paddingIdx === null ? -1 : paddingIdx < 0 ? rows + paddingIdx : paddingIdx;
    if (maxNorm !== null) aten("embedding_renorm_", weight, aten("contiguous", input), maxNorm, normType);
    return aten("embedding", weight, input, padding, scaleGradByFreq, sparse);
  },
);

/** Options of {@link embeddingBag}. */
export interface EmbeddingBagOptions {
  /** Where each bag begins in an input of one dimension. */
  readonly offsets?: Tensor | null;
  /** The greatest norm of a row: longer ones that are looked up are shortened in the table itself. */
  readonly maxNorm?: Real | null;
  /** Which norm `maxNorm` is of; default 2. */
  readonly normType?: Real;
  /** Of gradients alone. */
  readonly scaleGradByFreq?: boolean;
  /** What is made of the rows of a bag; default `"mean"`. */
  readonly mode?: "sum" | "mean" | "max";
  /** Of gradients alone. */
  readonly sparse?: boolean;
  /** What each row is multiplied by, where the mode is `"sum"`. */
  readonly perSampleWeights?: Tensor | null;
  /** Whether the last offset is the end of the last bag; default `false`. */
  readonly includeLastOffset?: boolean;
  /** The row that does not count. */
  readonly paddingIdx?: number | null;
}

const BAG_MODES = ["sum", "mean", "max"] as const;

/**
 * The sums, means or maxima of the rows of `weight` in each bag of indices: `(bags, length)`, or `(*)` with `offsets`, and a
 * table of `(rows, size)` give `(bags, size)`.
 *
 * @example
 * ```ts
 * F.embeddingBag(tokens, table, { offsets: tensor([0, 4]), mode: "sum" });
 * ```
 */
export const embeddingBag = define<
  [
    input: Tensor,
    weight: Tensor,
    offsets?: Tensor | null,
    maxNorm?: Real | null,
    normType?: Real,
    scaleGradByFreq?: boolean,
    mode?: "sum" | "mean" | "max",
    sparse?: boolean,
    perSampleWeights?: Tensor | null,
    includeLastOffset?: boolean,
    paddingIdx?: number | null,
  ],
  EmbeddingBagOptions
>(
  "embedding_bag",
  "(input, weight, offsets=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, mode='mean', sparse=False, per_sample_weights=None, include_last_offset=False, padding_idx=None)",
  (
    first,
    second,
    offsets,
    maxNorm,
    normType,
    scaleGradByFreq,
    mode,
    sparse,
    weights,
    includeLastOffset,
    paddingIdx,
  ) => {
    // Early versions of PyTorch had the table first, and it still takes it so.
    const [input, weight] = second.dtype === "int64" && isFloat(first) ? [second, first] : [first, second];
    if (weights !== null && !sameShape(input, weights)) {
      throw refuse(
        "ShapeMismatch",
        `embedding_bag: If per_sample_weights (${sizeText(weights.shape)}) is not None, then it must have the same shape as the input (${sizeText(input.shape)})`,
      );
    }
    if (weight.shape.length !== 2) {
      const reason = `weight has to be a 2D Tensor, but got Tensor of dimension ${weight.shape.length}`;
      throw refuse("ShapeMismatch", reason);
    }
    const bags = bagsOf(input, offsets, includeLastOffset);
    if (!BAG_MODES.includes(mode)) throw refuse("InvalidArgument", "mode has to be one of sum, mean or max");
    if (mode === "max" && scaleGradByFreq) {
      throw refuse("InvalidArgument", "max mode does not support scaling the gradient by the frequency");
    }
    if (mode === "max" && sparse) throw refuse("InvalidArgument", "max mode does not support sparse weights");
    if (maxNorm !== null) aten("embedding_renorm_", weight, bags.input, maxNorm, normType);
    if (weights !== null && mode !== "sum") {
      throw refuse(
        "InvalidArgument",
        `embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got mode='${mode}').`,
      );
    }
    const [output] = atenResults(
      "embedding_bag.padding_idx",
      weight,
      bags.input,
      bags.offsets,
      scaleGradByFreq,
      BAG_MODES.indexOf(mode),
      sparse,
      weights === null ? null : aten("reshape", weights, [-1]),
      bags.includesLast,
      paddingIdx,
    );
    return output as Tensor;
  },
);

/** The indices in one dimension and where each bag begins in them. */
function bagsOf(
  input: Tensor,
  offsets: Tensor | null,
  includesLast: boolean,
): { input: Tensor; offsets: Tensor; includesLast: boolean } {
  const [, length] = input.shape;
  switch (input.shape.length) {
    case 2: {
      if (offsets !== null) {
        throw refuse(
          "InvalidArgument",
          "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length sequences",
          "leave the offsets out, or give the indices in one dimension",
        );
      }
      const starts = atenWith({ dtype: input.dtype }, "arange", 0, input.numel(), length);
      return { input: aten("reshape", input, [-1]), offsets: starts, includesLast: false };
    }
    case 1:
      if (offsets === null) throw refuse("InvalidArgument", "offsets has to be a 1D Tensor but got None");
      if (offsets.shape.length !== 1) throw refuse("ShapeMismatch", "offsets has to be a 1D Tensor");
      return { input, offsets, includesLast };
    default: {
      const reason = `input has to be 1D or 2D Tensor, but got Tensor of dimension ${input.shape.length}`;
      throw refuse("ShapeMismatch", reason);
    }
  }
}

/** Options of {@link oneHot}. */
export interface OneHotOptions {
  /** The number of classes; by default one more than the greatest index. */
  readonly numClasses?: number;
}

/**
 * A one at each index and zeros elsewhere: `(*)` gives `(*, numClasses)`.
 *
 * @example
 * ```ts
 * F.oneHot(tensor([0, 2]), 3); // [[1, 0, 0], [0, 0, 1]]
 * ```
 */
export const oneHot = defineBuiltin<[tensor: Tensor, numClasses?: number], OneHotOptions>(
  "one_hot",
  "torch._C._nn.one_hot",
  "(tensor, num_classes=-1)",
  (input, numClasses) => aten("one_hot", input, numClasses),
);
