/**
 * Padding.
 *
 * @module
 */
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten } from "./aten.ts";
import { define } from "./define.ts";

/** Where the elements beside a tensor come from. */
export type PadMode = "constant" | "reflect" | "replicate" | "circular";

/** Options of {@link pad}. */
export interface PadOptions {
  /** Where the elements come from; default `"constant"`. */
  readonly mode?: PadMode;
  /** The constant; default 0. */
  readonly value?: Real | null;
}

/**
 * Adds elements at the ends of the last dimensions: `amounts` has how many before and after the last one, then before and
 * after the one before it, and so on. Negative amounts cut elements off.
 *
 * @example
 * ```ts
 * F.pad(image, [1, 1, 2, 2], { mode: "reflect" });
 * ```
 */
export const pad = define<[input: Tensor, amounts: readonly number[], mode?: PadMode, value?: Real | null], PadOptions>(
  "pad",
  "(input, pad, mode='constant', value=None)",
  (input, amounts, mode, value) => aten("pad", input, amounts, mode, value),
);
