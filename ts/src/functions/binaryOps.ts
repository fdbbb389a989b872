/**
 * What an operator of Python does with its operands: tensors go to the engine, numbers, texts and sequences follow Python.
 *
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";
import { compare, equal } from "./richCompare.ts";
import { kindOf } from "../base/members.ts";
import { arithmetic, type BinaryName, numberOf, valueOf } from "./numbers.ts";
import { indexOf, isDict, isTuple, sequenceLike, setItemOf, entriesOf } from "./sequences.ts";
import { SymbolicNumber } from "../base/symbolic.ts";
import { formatted } from "./text.ts";

/** How an operator is written and what it calls for tensors. */
export interface BinarySpec {
  readonly symbol: string;
  /** The operator of `tensor op other`. */
  readonly operator: string;
  /** The operator of `tensor op= other`, where there is one. */
  readonly inPlace: string | undefined;
  /** What `number op tensor` is. */
  readonly reflected: (number: unknown, tensor: Tensor) => unknown;
}

function aten(name: string, ...args: readonly unknown[]): unknown {
  return callOperator(`aten.${name}`, args);
}

const COMMUTATIVE = (operator: string) => (number: unknown, tensor: Tensor) => aten(operator, tensor, number);
const IN_ORDER = (operator: string) => (number: unknown, tensor: Tensor) => aten(operator, number, tensor);

/** The operators of two operands, as PyTorch's tensors define them. */
export const BINARY: Readonly<Record<BinaryName, BinarySpec>> = {
  add: { symbol: "+", operator: "add", inPlace: "add_", reflected: COMMUTATIVE("add") },
  sub: { symbol: "-", operator: "sub", inPlace: "sub_", reflected: (number, it) => aten("rsub", it, number) },
  mul: { symbol: "*", operator: "mul", inPlace: "mul_", reflected: COMMUTATIVE("mul") },
  truediv: {
    symbol: "/",
    operator: "div",
    inPlace: "div_",
    reflected: (number, it) => tidy(() => aten("mul", aten("reciprocal", it), number)),
  },
  floordiv: {
    symbol: "//",
    operator: "floor_divide",
    inPlace: "floor_divide_",
    reflected: IN_ORDER("floor_divide"),
  },
  mod: { symbol: "%", operator: "remainder", inPlace: "remainder_", reflected: IN_ORDER("remainder") },
  pow: { symbol: "**", operator: "pow", inPlace: "pow_", reflected: IN_ORDER("pow") },
  lshift: {
    symbol: "<<",
    operator: "__lshift__",
    inPlace: "__ilshift__",
    reflected: IN_ORDER("bitwise_left_shift"),
  },
  rshift: {
    symbol: ">>",
    operator: "__rshift__",
    inPlace: "__irshift__",
    reflected: IN_ORDER("bitwise_right_shift"),
  },
  and_: { symbol: "&", operator: "__and__", inPlace: "__iand__", reflected: COMMUTATIVE("bitwise_and") },
  or_: { symbol: "|", operator: "__or__", inPlace: "__ior__", reflected: COMMUTATIVE("bitwise_or") },
  xor: { symbol: "^", operator: "__xor__", inPlace: "__ixor__", reflected: COMMUTATIVE("bitwise_xor") },
};

/** Python's `left op right`. */
export function combine(name: BinaryName, left: unknown, right: unknown): unknown {
  const spec = BINARY[name];
  if (left instanceof Tensor) return aten(spec.operator, left, right);
  if (right instanceof Tensor && (numberOf(left) !== undefined || left instanceof SymbolicNumber)) {
    return spec.reflected(left, right);
  }
  const res = combined(name, left, right);
  if (res === undefined) throw unsupported(spec.symbol, left, right);
  return res;
}

/** Python's `left op= right`: tensors, lists and dicts are changed themselves. */
export function combineInPlace(name: BinaryName, left: unknown, right: unknown): unknown {
  const { inPlace } = BINARY[name];
  if (left instanceof Tensor && inPlace !== undefined) return aten(inPlace, left, right);
  if (Array.isArray(left) && !isTuple(left)) {
    if (name === "add" && Array.isArray(right)) {
      left.push(...(right as readonly unknown[]));
      return left;
    }
    const times = name === "mul" ? indexOf(right) : undefined;
    if (times !== undefined) {
      left.splice(0, left.length, ...repeated(left, times));
      return left;
    }
  }
  if (name === "or_" && isDict(left) && isDict(right)) {
    for (const [key, value] of entriesOf(right)) setItemOf(left, key, value);
    return left;
  }
  return combine(name, left, right);
}

function combined(name: BinaryName, left: unknown, right: unknown): unknown {
  if (name === "mod" && typeof left === "string") return formatted(left, right);
  const [a, b] = [numberOf(left), numberOf(right)];
  if (a !== undefined && b !== undefined) {
    const res = arithmetic(name, a, b);
    if (res === undefined) return undefined;
    const isLogical = name === "and_" || name === "or_" || name === "xor";
    return isLogical && typeof left === "boolean" && typeof right === "boolean" ? res !== 0n : valueOf(res);
  }
  if (name === "add") return concatenated(left, right);
  if (name === "mul") {
    const [sequence, times] = a === undefined ? [left, indexOf(right)] : [right, indexOf(left)];
    if (times === undefined) return undefined;
    if (typeof sequence === "string") return sequence.repeat(checkedTimes(sequence.length, times));
    return Array.isArray(sequence) ? sequenceLike(sequence, repeated(sequence, times)) : undefined;
  }
  if (name === "or_" && isDict(left) && isDict(right)) {
    const entries = [...entriesOf(left), ...entriesOf(right)];
    return left instanceof Map || right instanceof Map ? new Map(entries) : Object.fromEntries(entries);
  }
  return undefined;
}

/** The concatenation of two texts, two lists or two tuples; undefined of anything else. */
export function concatenated(left: unknown, right: unknown): unknown {
  if (typeof left === "string" && typeof right === "string") return left + right;
  if (!Array.isArray(left) || !Array.isArray(right) || isTuple(left) !== isTuple(right)) return undefined;
  return sequenceLike(left, [...(left as readonly unknown[]), ...(right as readonly unknown[])]);
}

function repeated(items: readonly unknown[], times: number): unknown[] {
  const res: unknown[] = [];
  for (let count = checkedTimes(items.length, times); count > 0; count--) res.push(...items);
  return res;
}

function checkedTimes(length: number, times: number): number {
  if (length * times > 2 ** 24) throw fxError("LimitExceeded", `a sequence of ${length * times} items`);
  return Math.max(0, times);
}

/** The names of comparisons, and how they are written. */
export const COMPARISONS = { lt: "<", le: "<=", gt: ">", ge: ">=" } as const;

const MIRRORED = { lt: "gt", le: "ge", gt: "lt", ge: "le" } as const;

/** Python's `left < right` and the like. */
export function ordered(name: keyof typeof COMPARISONS, left: unknown, right: unknown): unknown {
  if (left instanceof Tensor) return aten(name, left, right);
  if (right instanceof Tensor) return aten(MIRRORED[name], right, left);
  const order = compare(left, right);
  if (order === undefined) {
    const kinds = `instances of ${kindOf(left)} and ${kindOf(right)}`;
    throw fxError("InvalidArgument", `'${COMPARISONS[name]}' not supported between ${kinds}`);
  }
  switch (name) {
    case "lt":
      return order < 0;
    case "le":
      return order <= 0;
    case "gt":
      return order > 0;
    case "ge":
      return order >= 0;
  }
}

/** Python's `left == right`, or `left != right`. Tensors are compared with tensors and numbers element by element. */
export function equated(name: "eq" | "ne", left: unknown, right: unknown): unknown {
  const [tensor, other] = left instanceof Tensor ? [left, right] : [right, left];
  if (tensor instanceof Tensor && (other instanceof Tensor || numberOf(other) !== undefined)) {
    return aten(name, tensor, other);
  }
  return equal(left, right) === (name === "eq");
}

/** That Python has no such operation of these operands. */
export function unsupported(symbol: string, left: unknown, right: unknown): FxError {
  const kinds = `${kindOf(left)} and ${kindOf(right)}`;
  return fxError("InvalidArgument", `unsupported operand type(s) for ${symbol}: ${kinds}`);
}
