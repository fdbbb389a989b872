/**
 * What stands in a place of a signature, of what is known of it.
 *
 * @module
 */
import { type Arg, isInt } from "../graph/args.ts";
import { SymExpr, TensorMeta, type Val } from "../graph/val.ts";
import { Float } from "../base/values.ts";
import type { Argument, ConstantValue } from "./signature.ts";

/** A value of which this is known. */
export function argumentOf(name: string, val: Val): Argument {
  if (val instanceof TensorMeta) return { type: "tensor", name };
  if (val instanceof SymExpr) return { type: "symInt", name };
  return constantOf(name, val as Arg);
}

/** A value that is fixed. */
export function constantOf(name: string, value: Arg): Argument {
  return { type: "constant", name, value: constantValue(value) };
}

function constantValue(value: Arg): ConstantValue {
  if (typeof value === "boolean") return { type: "bool", value };
  if (typeof value === "string") return { type: "str", value };
  if (value instanceof Float) return { type: "float", value: value.value };
  if (typeof value === "bigint") return { type: "int", value };
  if (typeof value === "number") return { type: isInt(value) ? "int" : "float", value };
  return { type: "None" };
}
