/**
 * Python's module `operator`: its operators as functions, which a trace records.
 *
 * JavaScript has no operators of tensors and no way to see its own, so these are the way to write `x + y` or `x[0]` where the
 * values are traced. With plain values they are Python's operators and not JavaScript's: `floordiv(-7, 2)` is -4,
 * `add([1], [2])` is `[1, 2]`, and `truediv(4, 2)` the float 2.0.
 *
 * @example
 * ```ts
 * import { operator } from "tracefx";
 * symbolicTrace((x: Tensor) => operator.add(operator.getitem(x, 0), 1));
 * ```
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../errors.ts";
import type { NamedTarget } from "../graph/target.ts";
import type { Complex, Float } from "../graph/values.ts";
import { type IndexedValue, getItem, setItem } from "../tensor/indexing.ts";
import { Tensor } from "../tensor/tensor.ts";
import { equal, truthOf } from "./compare.ts";
import { kindOf } from "./methods.ts";
import { absolute, type BinaryName, negative, numberOf, type PythonNumber, scalarOf, valueOf } from "./numbers.ts";
import { combine, combineInPlace, type COMPARISONS, concatenated, equated, ordered, unsupported } from "./operands.ts";
import { deleteItemOf, entriesOf, isDict, isTuple, itemOf, setItemOf } from "./sequences.ts";
import { addResolver, callFunction, defineFunction, isDefined } from "./table.ts";

/** A number of Python: a whole `number` is an int and any other a float, `float(1)` is the float 1.0. */
export type Scalar = number | bigint | boolean | Float | Complex;

/** An operator of two operands. */
export interface BinaryOperator extends NamedTarget {
  (left: Tensor, right: Tensor | Scalar): Tensor;
  (left: Scalar, right: Tensor): Tensor;
  (left: Scalar, right: Scalar): Scalar;
  (left: unknown, right: unknown): unknown;
}

/** A comparison. */
export interface Comparison extends NamedTarget {
  (left: Tensor, right: Tensor | Scalar): Tensor;
  (left: Scalar, right: Tensor): Tensor;
  (left: Scalar, right: Scalar): boolean;
  (left: unknown, right: unknown): unknown;
}

/** An operator of one operand. */
export interface UnaryOperator extends NamedTarget {
  (operand: Tensor): Tensor;
  (operand: Scalar): Scalar;
  (operand: unknown): unknown;
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

function inPlace(name: BinaryName): BinaryOperator {
  return defineFunction(
    `operator.i${name.replace("_", "")}`,
    (left: unknown, right: unknown) => combineInPlace(name, left, right),
    TWO,
  ) as BinaryOperator;
}

function comparison(name: keyof typeof COMPARISONS): Comparison {
  return defineFunction(
    `operator.${name}`,
    (left: unknown, right: unknown) => ordered(name, left, right),
    TWO,
  ) as Comparison;
}

function equality(name: "eq" | "ne"): Comparison {
  return defineFunction(
    `operator.${name}`,
    (left: unknown, right: unknown) => equated(name, left, right),
    TWO,
  ) as Comparison;
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

/** `left + right`: of tensors and numbers the sum, of texts, lists and tuples one after the other. */
export const add = binary("add");
/** `left - right`. */
export const sub = binary("sub");
/** `left * right`: of a sequence and an int the sequence so many times. */
export const mul = binary("mul");
/** `left / right`, which is a float of ints too. */
export const truediv = binary("truediv");
/** `left // right`, rounded down. */
export const floordiv = binary("floordiv");
/** `left % right`, with the sign of `right`; of a text, the text with values in its places. */
export const mod = binary("mod");
/** `left ** right`. */
export const pow = binary("pow");
/** `left << right`. */
export const lshift = binary("lshift");
/** `left >> right`. */
export const rshift = binary("rshift");
/** `left & right`, bit by bit. */
export const and_ = binary("and_");
/** `left | right`, bit by bit; of dicts, both. */
export const or_ = binary("or_");
/** `left ^ right`, bit by bit. */
export const xor = binary("xor");

/** `left += right`: changes a tensor or a list itself, and gives it back. */
export const iadd = inPlace("add");
/** `left -= right`: changes a tensor itself, and gives it back. */
export const isub = inPlace("sub");
/** `left *= right`: changes a tensor or a list itself, and gives it back. */
export const imul = inPlace("mul");
/** `left /= right`: changes a tensor itself, and gives it back. */
export const itruediv = inPlace("truediv");
/** `left //= right`: changes a tensor itself, and gives it back. */
export const ifloordiv = inPlace("floordiv");
/** `left %= right`: changes a tensor itself, and gives it back. */
export const imod = inPlace("mod");
/** `left **= right`: changes a tensor itself, and gives it back. */
export const ipow = inPlace("pow");
/** `left <<= right`: changes a tensor itself, and gives it back. */
export const ilshift = inPlace("lshift");
/** `left >>= right`: changes a tensor itself, and gives it back. */
export const irshift = inPlace("rshift");
/** `left &= right`: changes a tensor itself, and gives it back. */
export const iand = inPlace("and_");
/** `left |= right`: changes a tensor or a dict itself, and gives it back. */
export const ior = inPlace("or_");
/** `left ^= right`: changes a tensor itself, and gives it back. */
export const ixor = inPlace("xor");

/** `left == right`: of tensors element by element, of anything else whether they are equal. */
export const eq = equality("eq");
/** `left != right`: of tensors element by element, of anything else whether they differ. */
export const ne = equality("ne");
/** `left < right`. */
export const lt = comparison("lt");
/** `left <= right`. */
export const le = comparison("le");
/** `left > right`. */
export const gt = comparison("gt");
/** `left >= right`. */
export const ge = comparison("ge");

/** `-operand`. */
export const neg = unary("neg", "-", "neg", negative);
/** `+operand`. */
export const pos = unary("pos", "+", "positive", (it) => it);
/** `abs(operand)`. */
export const abs = unary("abs", "abs()", "abs", absolute);
/** `~operand`, bit by bit. */
export const invert = unary("invert", "~", "bitwise_not", inverted);
/** {@link invert} by its other name. */
export const inv = unary("inv", "~", "bitwise_not", inverted);

/** A matrix product. */
export interface Matmul extends NamedTarget {
  (left: Tensor, right: Tensor): Tensor;
}

function matrixProduct(left: unknown, right: unknown): unknown {
  if (left instanceof Tensor && right instanceof Tensor) return callOperator("aten.matmul", [left, right]);
  throw unsupported("@", left, right);
}

/** `left @ right`: the product of matrices, vectors or batches of them. */
export const matmul = defineFunction("operator.matmul", matrixProduct, TWO) as Matmul;
/** `left @= right`, which makes a new tensor all the same. */
export const imatmul = defineFunction("operator.imatmul", matrixProduct, TWO) as Matmul;

/** `container[key]`. */
export interface GetItem extends NamedTarget {
  (tensor: Tensor, index: unknown): Tensor;
  <T>(items: readonly T[], index: number): T;
  (container: unknown, key: unknown): unknown;
}

/**
 * `container[key]`: a part of a tensor, an item of a list, a tuple or a text by its position, which is negative from the end,
 * several of them by `slice(1, 5)`, or a value of a dict by its key.
 */
export const getitem = defineFunction(
  "operator.getitem",
  (container: unknown, key: unknown): unknown => {
    if (container instanceof Tensor) return getItem(container, key);
    const found = itemOf(container, key);
    if (found !== undefined) return found.item;
    throw fxError("InvalidArgument", `${kindOf(container)} has no items to take`);
  },
  TWO,
) as GetItem;

/** `container[key] = value`: writes to a part of a tensor, or to an item of a list or a dict. */
export const setitem = defineFunction(
  "operator.setitem",
  (container: unknown, key: unknown, value: unknown): null => {
    if (container instanceof Tensor) setItem(container, key, value as IndexedValue);
    else if (!setItemOf(container, key, value)) {
      throw fxError("InvalidArgument", `${kindOf(container)} does not support item assignment`);
    }
    return null;
  },
  { signature: "(a, b, c, /)" },
);

/** `del container[key]`. */
export const delitem = defineFunction(
  "operator.delitem",
  (container: unknown, key: unknown): null => {
    if (deleteItemOf(container, key)) return null;
    throw fxError("InvalidArgument", `${kindOf(container)} does not support item deletion`);
  },
  TWO,
);

/** `item in container`: among the items of a list or a tuple, the keys of a dict, the parts of a text, or the elements of a tensor. */
export const contains = defineFunction(
  "operator.contains",
  (container: unknown, item: unknown): boolean => {
    if (container instanceof Tensor) {
      return truthOf(callOperator("aten.any", [callOperator("aten.eq", [container, item])]));
    }
    if (typeof container === "string" && typeof item === "string") return container.includes(item);
    if (Array.isArray(container)) return container.some((it) => truthOf(equated("eq", it, item)));
    if (isDict(container)) {
      if (isDict(item) || (Array.isArray(item) && !isTuple(item))) {
        throw fxError("InvalidArgument", `${kindOf(item)} cannot be a key of a dict`);
      }
      return entriesOf(container).some(([key]) => equal(key, item));
    }
    throw fxError("InvalidArgument", `${kindOf(container)} is no container`);
  },
  TWO,
);

/** One text, list or tuple after the other. */
export const concat = defineFunction(
  "operator.concat",
  (left: unknown, right: unknown): unknown => {
    const res = concatenated(left, right);
    if (res !== undefined) return res;
    throw fxError("InvalidArgument", `${kindOf(left)} and ${kindOf(right)} cannot be concatenated`);
  },
  TWO,
);

/** Whether the value counts as true: no zero, nothing empty and not null. */
export const truth = defineFunction("operator.truth", (value: unknown): boolean => truthOf(value), ONE);
/** Whether the value counts as false. */
export const not_ = defineFunction("operator.not_", (value: unknown): boolean => !truthOf(value), ONE);
/** Whether both are the very same value. */
export const is_ = defineFunction("operator.is_", identical, TWO);
/** Whether they are not the very same value. */
export const isNot = defineFunction("operator.is_not", (left: unknown, right: unknown) => !identical(left, right), TWO);

/** The value as an int: a tensor of one int, an int or a boolean. */
export const index = defineFunction(
  "operator.index",
  (value: unknown): number | bigint => {
    const number = scalarOf(value);
    if (typeof number === "bigint") return valueOf(number) as number | bigint;
    throw fxError("InvalidArgument", `${kindOf(value)} cannot be interpreted as an int`);
  },
  ONE,
);

// Python's own name of the module, which some graphs have.
addResolver((target) => {
  const [, name] = /^_operator\.(\w+)$/.exec(target) ?? [];
  if (name === undefined || !isDefined(`operator.${name}`)) return undefined;
  return (...args) => callFunction(`operator.${name}`, { args, kwargs: {} });
});

function inverted(number: PythonNumber): PythonNumber | undefined {
  return typeof number === "bigint" ? ~number : undefined;
}

/** Python's `is`: constants that are equal are the same. */
function identical(left: unknown, right: unknown): boolean {
  if (typeof left === "object" && left !== null && !Object.isFrozen(left)) return left === right;
  return typeof left === typeof right && equal(left, right);
}
