/**
 * Functions of numbers that the engine's expressions lack, in terms of those that they have.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { SymbolicNumber } from "../base/symbolic.ts";
import { summands } from "../functions/sequences.ts";

/** Calls a function of numbers, by its qualified name. */
type Compute = (target: string, args: readonly unknown[]) => unknown;

/** What a call is in terms of others; undefined where it is none of them. */
type Composition = (compute: Compute, ...args: readonly unknown[]) => unknown;

/** Of floats, too, of which the engine has no difference. */
const negative = (compute: Compute, a: unknown): unknown => compute("operator.mul", [a, -1]);

const abs: Composition = (compute, a) => compute("torch.sym_max", [a, negative(compute, a)]);

/** Halves go to the even number, as Python's do. What is left of the floor is exact, other than `a + 0.5` would be. */
const round: Composition = (compute, a, digits = null) => {
  if (digits !== null) {
    throw fxError("NotImplemented", "round of a number that is not known takes no digits", {
      help: "scale it: operator.truediv(builtins.round(x.mul(100)), 100)",
    });
  }
  const below = compute("math.floor", [a]);
  const rest = compute("operator.add", [a, negative(compute, below)]);
  const isOdd = compute("operator.eq", [compute("operator.mod", [below, 2]), 1]);
  const isHalf = compute("operator.eq", [rest, 0.5]);
  const isUp = compute("operator.or_", [
    compute("operator.gt", [rest, 0.5]),
    compute("operator.and_", [isHalf, isOdd]),
  ]);
  return compute("operator.add", [below, compute("torch.sym_ite", [isUp, 1, 0])]);
};

const sum: Composition = (compute, ...args) =>
  summands(args).reduce((res: unknown, it) => compute("operator.add", [res, it]), 0);

/** `value & mask` of a mask that is not negative: each run of ones is a quotient and a remainder. */
function masked(compute: Compute, value: unknown, mask: bigint): unknown {
  let res: unknown = 0;
  for (let from = 0n, rest = mask; rest !== 0n; ) {
    while ((rest & 1n) === 0n) [rest, from] = [rest >> 1n, from + 1n];
    let end = from;
    while ((rest & 1n) === 1n) [rest, end] = [rest >> 1n, end + 1n];
    const above = compute("operator.floordiv", [value, Number(1n << from)]);
    const bits = compute("operator.mod", [above, Number(1n << (end - from))]);
    res = compute("operator.add", [res, compute("operator.mul", [bits, Number(1n << from)])]);
    from = end;
  }
  return res;
}

/** An operation on bits, by `value & mask` and the mask: of an int that is not known and one that is. */
function ofBits(combine: (compute: Compute, value: unknown, both: unknown, mask: number) => unknown): Composition {
  return (compute, a, b) => {
    const [value, mask] = typeof a === "number" ? [b, a] : [a, b];
    if (!(value instanceof SymbolicNumber) || value.kind !== "int") return undefined;
    if (mask instanceof SymbolicNumber && mask.kind === "int") {
      throw fxError("NotImplemented", "bits of two ints that are not known are not implemented", {
        help: "one of them has to be a number",
      });
    }
    if (typeof mask !== "number" || !Number.isSafeInteger(mask)) return undefined;
    const bits = BigInt(mask);
    const both =
      bits >= 0n ? masked(compute, value, bits) : compute("operator.sub", [value, masked(compute, value, -1n - bits)]);
    return combine(compute, value, both, mask);
  };
}

/** `value + mask - count * (value & mask)`. */
function without(compute: Compute, value: unknown, both: unknown, mask: number, count: number): unknown {
  const total = compute("operator.add", [value, mask]);
  return compute("operator.sub", [total, compute("operator.mul", [both, count])]);
}

/** `2 ** count`, of a count that is not negative: Python refuses others, and so does the program. */
function powerOfTwo(compute: Compute, count: unknown): unknown {
  const isCount = compute("operator.ge", [count, 0]);
  if (isCount instanceof SymbolicNumber) isCount.check("negative shift count");
  else if (isCount === false) throw fxError("InvalidArgument", "negative shift count");
  return compute("operator.pow", [2, count]);
}

/** The compositions by qualified name. */
export const COMPOSED_NUMBERS: ReadonlyMap<string, Composition> = new Map<string, Composition>([
  ["operator.abs", abs],
  ["builtins.abs", abs],
  ["builtins.round", round],
  ["operator.lshift", (compute, a, b) => compute("operator.mul", [a, powerOfTwo(compute, b)])],
  ["operator.rshift", (compute, a, b) => compute("operator.floordiv", [a, powerOfTwo(compute, b)])],
  ["operator.and_", ofBits((_, _value, both) => both)],
  ["operator.or_", ofBits((compute, value, both, mask) => without(compute, value, both, mask, 1))],
  ["operator.xor", ofBits((compute, value, both, mask) => without(compute, value, both, mask, 2))],
  ["torch.sym_sum", sum],
]);
