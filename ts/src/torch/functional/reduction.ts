/**
 * What a loss makes of the losses of all elements.
 *
 * @module
 */
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, refuse } from "./aten.ts";

/** `"none"` gives the losses as they are, `"mean"` and `"sum"` one number. */
export type Reduction = "none" | "mean" | "sum";

/** Options of all losses. */
export interface LossOptions {
  /** What is made of the losses of all elements; default `"mean"`. */
  readonly reduction?: Reduction;
}

/** Options of losses that are as old as PyTorch. */
export interface LegacyLossOptions extends LossOptions {
  /** PyTorch's older spelling of `reduction`: `false` for the sum. */
  readonly sizeAverage?: boolean | null;
  /** PyTorch's older spelling of `reduction`: `false` for none. */
  readonly reduce?: boolean | null;
}

/** The reduction that was asked for in either spelling. */
export function reductionOf(
  reduction: string,
  sizeAverage: boolean | null = null,
  reduce: boolean | null = null,
): Reduction {
  if (sizeAverage !== null || reduce !== null) {
    if (reduce === false) return "none";
    return sizeAverage === false ? "sum" : "mean";
  }
  if (reduction === "elementwise_mean") return "mean";
  if (reduction === "none" || reduction === "mean" || reduction === "sum") return reduction;
  throw refuse("InvalidArgument", `${reduction} is not a valid value for reduction`, "use none, mean or sum");
}

/** The number by which operators know a reduction. */
export function reductionCode(reduction: Reduction): number {
  return { none: 0, mean: 1, sum: 2 }[reduction];
}

/** The number by which operators know the reduction that was asked for in either spelling. */
export function codeOf(reduction: string, sizeAverage?: boolean | null, reduce?: boolean | null): number {
  return reductionCode(reductionOf(reduction, sizeAverage, reduce));
}

/** The losses of all elements, reduced. */
export function reduced(losses: Tensor, reduction: Reduction): Tensor {
  return reduction === "none" ? losses : aten(reduction, losses);
}
