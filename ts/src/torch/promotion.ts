/**
 * Which dtype operators compute in.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import { callOperator } from "../engine/dispatch.ts";
import { defineFunction } from "../functions/table.ts";
import type { DTypeLike, Scalar } from "../base/types.ts";
import type { DTypeArg } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";

/**
 * The smallest dtype that holds the numbers of both.
 *
 * @example
 * ```ts
 * torch.promoteTypes(torch.int32, torch.float16); // "float16"
 * ```
 */
export const promoteTypes = defineFunction(
  "torch.promote_types",
  (type1: DTypeLike, type2: DTypeLike): DType => named(callOperator("aten.promote_types", [type1, type2])),
);

/**
 * The dtype of the result of an operator on these tensors and numbers. Numbers, and tensors without dimensions beside
 * tensors with some, count only by their kind.
 *
 * @example
 * ```ts
 * torch.resultType(tensor([1, 2], { dtype: "int32" }), 1.5); // "float32"
 * ```
 */
export const resultType = defineFunction(
  "torch.result_type",
  (a: Tensor | Scalar, b: Tensor | Scalar): DType => named(callOperator("aten.result_type", [a, b])),
);

/** Whether a result of the dtype `from` may be written to a tensor of the dtype `to`: not where a kind of number is lost. */
export const canCast = defineFunction(
  "torch.can_cast",
  (from: DTypeLike, to: DTypeLike): boolean => callOperator("aten.can_cast", [from, to]) as boolean,
);

function named(answer: unknown): DType {
  return (answer as DTypeArg).name;
}
