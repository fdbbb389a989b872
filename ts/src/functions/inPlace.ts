/**
 * The operators that change their left operand, of Python's module `operator`.
 *
 * @module
 */
import type { BinaryOperator } from "./arithmetic.ts";
import type { BinaryName } from "./numbers.ts";
import { combineInPlace } from "./binaryOps.ts";
import { defineFunction } from "./table.ts";

function inPlace(name: BinaryName): BinaryOperator {
  return defineFunction(
    `operator.i${name.replace("_", "")}`,
    (left: unknown, right: unknown) => combineInPlace(name, left, right),
    { signature: "(a, b, /)" },
  ) as BinaryOperator;
}

/**
 * `left += right`: changes a tensor or a list itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.iadd(x, 1) === x;
 * ```
 */
export const iadd = inPlace("add");

/**
 * `left -= right`: changes a tensor itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.isub(x, 1) === x;
 * ```
 */
export const isub = inPlace("sub");

/**
 * `left *= right`: changes a tensor or a list itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.imul(x, 2) === x;
 * ```
 */
export const imul = inPlace("mul");

/**
 * `left /= right`: changes a tensor itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.itruediv(x, 2) === x;
 * ```
 */
export const itruediv = inPlace("truediv");

/**
 * `left //= right`: changes a tensor itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.ifloordiv(x, 2) === x;
 * ```
 */
export const ifloordiv = inPlace("floordiv");

/**
 * `left %= right`: changes a tensor itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.imod(x, 2) === x;
 * ```
 */
export const imod = inPlace("mod");

/**
 * `left **= right`: changes a tensor itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.ipow(x, 2) === x;
 * ```
 */
export const ipow = inPlace("pow");

/**
 * `left <<= right`: changes a tensor itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.ilshift(bits, 1) === bits;
 * ```
 */
export const ilshift = inPlace("lshift");

/**
 * `left >>= right`: changes a tensor itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.irshift(bits, 1) === bits;
 * ```
 */
export const irshift = inPlace("rshift");

/**
 * `left &= right`: changes a tensor itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.iand(mask, other) === mask;
 * ```
 */
export const iand = inPlace("and_");

/**
 * `left |= right`: changes a tensor or a dict itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.ior(mask, other) === mask;
 * ```
 */
export const ior = inPlace("or_");

/**
 * `left ^= right`: changes a tensor itself, and gives it back.
 *
 * @example
 * ```ts
 * operator.ixor(mask, other) === mask;
 * ```
 */
export const ixor = inPlace("xor");
