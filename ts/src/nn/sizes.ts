/**
 * Sizes and numbers as layers take them and print them.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { fxError } from "../base/errors.ts";
import { type ArgInput, freezeArg, isInt, tuple } from "../graph/args.ts";
import { repr } from "../graph/print.ts";
import { Float } from "../base/values.ts";

/** One size for all dimensions, or one for each. */
export type Size = number | readonly number[];

/** A number; `float(1)` is a float that is whole, as Python tells it from `1`. */
export type Scalar = number | Float;

/** The value of a number. */
export function numberOf(scalar: Scalar): number {
  return scalar instanceof Float ? scalar.value : scalar;
}

/** A number as a float, as Python's `float` makes it. */
export function floatOf(scalar: Scalar): Scalar {
  return typeof scalar === "number" && isInt(scalar) ? new Float(scalar) : scalar;
}

/** A size for each of `n` dimensions, as a tuple. */
export function perDimension(size: Size, n: number, what: string): readonly number[] {
  if (!Array.isArray(size)) return numbers(Array.from({ length: n }, () => size as number));
  if (size.length === n) return numbers(size as readonly number[]);
  throw fxError("InvalidArgument", `${what} has ${size.length} entries`, { help: `give one number, or ${n}` });
}

/** A tuple of numbers. */
export function numbers(items: readonly number[]): readonly number[] {
  checkGiven("a layer", Array.isArray(items), "its sizes as numbers in a list");
  return tuple(...items) as readonly unknown[] as readonly number[];
}

/** A value as Python's `str` writes it. */
export function str(value: unknown): string {
  return typeof value === "string" ? value : repr(freezeArg(value as ArgInput));
}

/** Names and values as modules print them: `in_features=4, bias=True`. */
export function fields(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${str(value)}`)
    .join(", ");
}
