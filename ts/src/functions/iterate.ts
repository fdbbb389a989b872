/**
 * What Python's built-in functions go through, and what they say of what is no number.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { kindOf } from "../base/members.ts";
import { entriesOf, isDict } from "./sequences.ts";

/** The items of a sequence, the keys of a dict, or the parts of a tensor along its first dimension. */
export function itemsOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value as readonly unknown[];
  if (typeof value === "string") return [...value];
  if (isDict(value)) return entriesOf(value).map(([key]) => key);
  if (value instanceof Tensor && value.shape.length > 0) {
    const parts: unknown = callOperator("aten.unbind", [value]);
    return Array.isArray(parts) ? (parts as readonly unknown[]) : [parts];
  }
  throw fxError("InvalidArgument", `${kindOf(value)} has no items to go through`);
}

export function noNumber(what: string, value: unknown): FxError {
  return fxError("InvalidArgument", `${what} argument must be a number, not ${kindOf(value)}`);
}
