/**
 * Dropout: zeros at random places in training, nothing otherwise. The result has the shape of `input`.
 *
 * What is kept is multiplied by `1 / (1 - p)`, so that the mean stays.
 *
 * @module
 */
import type { Real } from "../../base/types.ts";
import type { BoundFunction } from "../../functions/bound.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, numberText, refuse, valueOf } from "./aten.ts";
import { define, type InplaceOptions } from "./define.ts";

/** Options of dropout. */
export interface DropoutOptions extends InplaceOptions {
  /** How likely an element, or a channel, becomes zero; default 0.5. */
  readonly p?: Real;
  /** Whether anything becomes zero at all; the default is that of the function. */
  readonly training?: boolean;
}

type Dropout = [input: Tensor, p?: Real, training?: boolean, inplace?: boolean];

/**
 * Defines a function that drops out by `operator`. With `dims`, the input is `(N, C, …)` with so many dimensions after the
 * channels, or has no batch; PyTorch lets other inputs pass where there are three.
 */
function dropoutOf(
  name: string,
  operator: string,
  { training, dims }: { readonly training: boolean; readonly dims?: 1 | 3 },
): BoundFunction<Dropout, DropoutOptions, Tensor> {
  const signature = `(input, p=0.5, training=${training ? "True" : "False"}, inplace=False)`;
  return define<Dropout, DropoutOptions>(name, signature, (input, p, isTraining, inplace) => {
    const probability = valueOf(p);
    if (!(probability >= 0 && probability <= 1)) {
      throw refuse(
        "InvalidArgument",
        `dropout probability has to be between 0 and 1, but got ${numberText(p)}`,
        "p is how likely an element becomes zero",
      );
    }
    const rank = input.shape.length;
    if (dims === 1 && rank !== 2 && rank !== 3) {
      throw refuse(
        "ShapeMismatch",
        `dropout1d: Expected 2D or 3D input, but received a ${rank}D input`,
        "dropout1d drops channels of (N, C, L) or (C, L); dropout drops single elements of any input",
      );
    }
    // Without the batch, the channels would be taken for it.
    const isUnbatched = dims === 1 ? rank === 2 : dims === 3 && rank !== 5;
    const batched = isUnbatched ? aten("unsqueeze", input, 0) : input;
    const dropped = aten(inplace ? `${operator}_` : operator, batched, p, isTraining);
    if (inplace) return input;
    return isUnbatched ? aten("squeeze", dropped, 0) : dropped;
  });
}

/**
 * Zeros single elements.
 *
 * @example
 * ```ts
 * F.dropout(x, 0.2, { training: this.training });
 * ```
 */
export const dropout = dropoutOf("dropout", "dropout", { training: true });

/**
 * Sets single elements to the value that `selu` approaches far below zero, and scales so that mean and variance stay.
 *
 * @example
 * ```ts
 * F.alphaDropout(x, { p: 0.1, training: true });
 * ```
 */
export const alphaDropout = dropoutOf("alpha_dropout", "alpha_dropout", { training: false });

/**
 * {@link alphaDropout} of whole channels of `(N, C, …)`.
 *
 * @example
 * ```ts
 * F.featureAlphaDropout(x, { p: 0.1, training: true });
 * ```
 */
export const featureAlphaDropout = dropoutOf("feature_alpha_dropout", "feature_alpha_dropout", { training: false });

/**
 * Zeros whole channels of `(N, C, L)` or `(C, L)`.
 *
 * @example
 * ```ts
 * F.dropout1d(x, 0.2);
 * ```
 */
export const dropout1d = dropoutOf("dropout1d", "feature_dropout", { training: true, dims: 1 });

/**
 * Zeros whole channels of `(N, C, H, W)`. An input of three dimensions is taken for `(N, C, L)`, as in PyTorch.
 *
 * @example
 * ```ts
 * F.dropout2d(x, 0.2);
 * ```
 */
export const dropout2d = dropoutOf("dropout2d", "feature_dropout", { training: true });

/**
 * Zeros whole channels of `(N, C, D, H, W)` or `(C, D, H, W)`.
 *
 * @example
 * ```ts
 * F.dropout3d(x, 0.2);
 * ```
 */
export const dropout3d = dropoutOf("dropout3d", "feature_dropout", { training: true, dims: 3 });
