/**
 * The operators of arithmetic and of bits, of Python's module `operator`.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../base/errors.ts";
import type { NamedTarget } from "../graph/target.ts";
import { Tensor } from "../tensor/tensor.ts";
import { kindOf } from "../base/members.ts";
import { absolute, type BinaryName, negative, numberOf, type PythonNumber, valueOf } from "./numbers.ts";
import { combine, unsupported } from "./binaryOps.ts";
import { defineFunction } from "./table.ts";
import type { Scalar } from "../base/types.ts";

/** An operator of two operands. */
export interface BinaryOperator extends NamedTarget {
  (left: Tensor, right: Tensor | Scalar): Tensor;
  (left: Scalar, right: Tensor): Tensor;
  (left: Scalar, right: Scalar): Scalar;
  (left: unknown, right: unknown): unknown;
}

/** An operator of one operand. */
export interface UnaryOperator extends NamedTarget {
  (operand: Tensor): Tensor;
  (operand: Scalar): Scalar;
  (operand: unknown): unknown;
}

/** A matrix product. */
export interface Matmul extends NamedTarget {
  (left: Tensor, right: Tensor): Tensor;
}

const TWO = { signature: "(a, b, /)" };

const ONE = { signature: "(a, /)" };

function binary(name: BinaryName): BinaryOperator {
  return defineFunction(
    `operator.${name}`,
    (left: unknown, right: unknown) => combine(name, left, right),
    TWO,
  ) as BinaryOperator;
}

function unary(
  name: string,
  symbol: string,
  tensorOperator: string,
  ofNumber: (number: PythonNumber) => PythonNumber | undefined,
): UnaryOperator {
  const run = (operand: unknown): unknown => {
    if (operand instanceof Tensor) return callOperator(`aten.${tensorOperator}`, [operand]);
    const number = numberOf(operand);
    const res = number === undefined ? undefined : ofNumber(number);
    if (res !== undefined) return valueOf(res);
    throw fxError("InvalidArgument", `bad operand type for unary ${symbol}: ${kindOf(operand)}`);
  };
  return defineFunction(`operator.${name}`, run, ONE) as UnaryOperator;
}

/**
 * `left + right`: of tensors and numbers the sum, of texts, lists and tuples one after the other.
 *
 * @example
 * ```ts
 * operator.add(2, 3); // 5
 * operator.add(x, 1); // x + 1
 * ```
 */
export const add = binary("add");

/**
 * `left - right`.
 *
 * @example
 * ```ts
 * operator.sub(1, x); // 1 - x
 * ```
 */
export const sub = binary("sub");

/**
 * `left * right`: of a sequence and an int the sequence so many times.
 *
 * @example
 * ```ts
 * operator.mul("ab", 2); // "abab"
 * ```
 */
export const mul = binary("mul");

/**
 * `left / right`, which is a float of ints too.
 *
 * @example
 * ```ts
 * operator.truediv(4, 2); // float(2)
 * ```
 */
export const truediv = binary("truediv");

/**
 * `left // right`, rounded down.
 *
 * @example
 * ```ts
 * operator.floordiv(-7, 2); // -4
 * ```
 */
export const floordiv = binary("floordiv");

/**
 * `left % right`, with the sign of `right`; of a text, the text with values in its places.
 *
 * @example
 * ```ts
 * operator.mod(-7, 2); // 1
 * ```
 */
export const mod = binary("mod");

/**
 * `left ** right`.
 *
 * @example
 * ```ts
 * operator.pow(2, 100); // 1267650600228229401496703205376n
 * ```
 */
export const pow = binary("pow");

/**
 * `left << right`.
 *
 * @example
 * ```ts
 * operator.lshift(1, 4); // 16
 * ```
 */
export const lshift = binary("lshift");

/**
 * `left >> right`.
 *
 * @example
 * ```ts
 * operator.rshift(-5, 1); // -3
 * ```
 */
export const rshift = binary("rshift");

/**
 * `left & right`, bit by bit.
 *
 * @example
 * ```ts
 * operator.and_(mask, other); // mask & other
 * ```
 */
export const and_ = binary("and_");

/**
 * `left | right`, bit by bit; of dicts, both.
 *
 * @example
 * ```ts
 * operator.or_(6, 1); // 7
 * ```
 */
export const or_ = binary("or_");

/**
 * `left ^ right`, bit by bit.
 *
 * @example
 * ```ts
 * operator.xor(true, true); // false
 * ```
 */
export const xor = binary("xor");

/**
 * `-operand`.
 *
 * @example
 * ```ts
 * operator.neg(x); // -x
 * ```
 */
export const neg = unary("neg", "-", "neg", negative);

/**
 * `+operand`.
 *
 * @example
 * ```ts
 * operator.pos(true); // 1
 * ```
 */
export const pos = unary("pos", "+", "positive", (it) => it);

/**
 * `abs(operand)`.
 *
 * @example
 * ```ts
 * operator.abs(-3); // 3
 * ```
 */
export const abs = unary("abs", "abs()", "abs", absolute);

/**
 * `~operand`, bit by bit.
 *
 * @example
 * ```ts
 * operator.invert(5); // -6
 * ```
 */
export const invert = unary("invert", "~", "bitwise_not", inverted);

/**
 * {@link invert} by its other name.
 *
 * @example
 * ```ts
 * operator.inv(mask); // ~mask
 * ```
 */
export const inv = unary("inv", "~", "bitwise_not", inverted);

function matrixProduct(left: unknown, right: unknown): unknown {
  if (left instanceof Tensor && right instanceof Tensor) return callOperator("aten.matmul", [left, right]);
  throw unsupported("@", left, right);
}

/**
 * `left @ right`: the product of matrices, vectors or batches of them.
 *
 * @example
 * ```ts
 * operator.matmul(a, b); // a @ b
 * ```
 */
export const matmul = defineFunction("operator.matmul", matrixProduct, TWO) as Matmul;

/**
 * `left @= right`, which makes a new tensor all the same.
 *
 * @example
 * ```ts
 * operator.imatmul(a, b); // a @ b
 * ```
 */
export const imatmul = defineFunction("operator.imatmul", matrixProduct, TWO) as Matmul;

function inverted(number: PythonNumber): PythonNumber | undefined {
  return typeof number === "bigint" ? ~number : undefined;
}
