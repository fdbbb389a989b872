/**
 * How functions of real numbers take their arguments and give their results.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { NamedTarget } from "../graph/target.ts";
import { Complex, type Float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { kindOf } from "../base/members.ts";
import { scalarOf, valueOf } from "./numbers.ts";

/** What a function of numbers takes. */
export type Real = number | bigint | boolean | Float | Tensor;

/** A function of one number. */
export type RealFunction<R> = ((x: Real) => R) & NamedTarget;

/** A function of two numbers. */
export type RealFunction2<R> = ((x: Real, y: Real) => R) & NamedTarget;

export function realOf(value: unknown): bigint | number {
  const number = scalarOf(value);
  if (number !== undefined && !(number instanceof Complex)) return number;
  throw fxError("InvalidArgument", `must be real number, not ${kindOf(value)}`);
}

/** The float result, unless it has none: not a number of numbers, or infinite of finite ones. */
export function checked(res: number, ...given: readonly number[]): number | Float {
  if (Number.isNaN(res) && !given.some(Number.isNaN)) throw fxError("InvalidArgument", "math domain error");
  if (!Number.isFinite(res) && given.every(Number.isFinite)) {
    throw fxError("InvalidArgument", given.includes(0) ? "math domain error" : "math range error");
  }
  return valueOf(res) as number | Float;
}

/** A float without fraction as an int. */
export function wholeOf(value: number): bigint {
  if (Number.isFinite(value)) return BigInt(value);
  const what = Number.isNaN(value) ? "float NaN" : "float infinity";
  throw fxError("InvalidArgument", `cannot convert ${what} to an int`);
}
