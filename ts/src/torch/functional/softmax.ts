/**
 * Softmax and its relatives.
 *
 * @module
 */
import type { DTypeLike, Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenResults } from "./aten.ts";
import { define } from "./define.ts";

/** Options of {@link softmax}, {@link softmin} and {@link logSoftmax}. */
export interface SoftmaxOptions {
  /** Along which dimension the results sum to 1. Without it, 0 for inputs of 0, 1 or 3 dimensions and 1 for others. */
  readonly dim?: number | null;
  /** What PyTorch's warnings use; without effect. */
  readonly _stacklevel?: number;
  /** The dtype that the input is converted to first, and that the result has. */
  readonly dtype?: DTypeLike | null;
}

type Softmax = [input: Tensor, dim?: number | null, _stacklevel?: number, dtype?: DTypeLike | null];

const SIGNATURE = "(input, dim=None, _stacklevel=3, dtype=None)";

/**
 * `exp(x) / sum(exp(x))` along a dimension.
 *
 * @example
 * ```ts
 * F.softmax(logits, -1);
 * ```
 */
export const softmax = define<Softmax, SoftmaxOptions>("softmax", SIGNATURE, (input, dim, _, dtype) =>
  aten("softmax.int", input, dim ?? usualDim(input), dtype),
);

/**
 * {@link softmax} of `-x`.
 *
 * @example
 * ```ts
 * F.softmin(distances, -1);
 * ```
 */
export const softmin = define<Softmax, SoftmaxOptions>("softmin", SIGNATURE, (input, dim, _, dtype) =>
  aten("softmax.int", aten("neg", input), dim ?? usualDim(input), dtype),
);

/**
 * `log(softmax(x))`, computed so that nothing overflows.
 *
 * @example
 * ```ts
 * F.logSoftmax(logits, -1);
 * ```
 */
export const logSoftmax = define<Softmax, SoftmaxOptions>("log_softmax", SIGNATURE, (input, dim, _, dtype) =>
  aten("log_softmax.int", input, dim ?? usualDim(input), dtype),
);

/** Options of {@link gumbelSoftmax}. */
export interface GumbelSoftmaxOptions {
  /** The temperature; default 1. */
  readonly tau?: Real;
  /** Whether the result is one-hot; default `false`. */
  readonly hard?: boolean;
  /** Without effect. */
  readonly eps?: Real;
  /** Along which dimension; default the last one. */
  readonly dim?: number;
}

/**
 * A random sample of the Gumbel-softmax distribution: `softmax((logits + noise) / tau)`.
 *
 * @example
 * ```ts
 * F.gumbelSoftmax(logits, { tau: 0.5, hard: true });
 * ```
 */
export const gumbelSoftmax = define<
  [logits: Tensor, tau?: Real, hard?: boolean, eps?: Real, dim?: number],
  GumbelSoftmaxOptions
>("gumbel_softmax", "(logits, tau=1, hard=False, eps=1e-10, dim=-1)", (logits, tau, hard, _eps, dim) => {
  const noise = aten("neg", aten("log", aten("exponential_", aten("empty_like", logits))));
  const soft = aten("softmax.int", aten("div", aten("add", logits, noise), tau), dim);
  if (!hard) return soft;
  const [, index] = atenResults("max.dim", soft, dim, true);
  const oneHot = aten("scatter_", aten("zeros_like", logits), dim, index, 1);
  // The value is the one-hot tensor; with gradients it has those of the soft one.
  return aten("add", aten("sub", oneHot, soft), soft);
});

/** The dimension that PyTorch takes where none is given. */
function usualDim({ shape }: Tensor): number {
  return shape.length === 0 || shape.length === 1 || shape.length === 3 ? 0 : 1;
}
