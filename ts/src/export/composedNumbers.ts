/**
 * Functions of numbers that the engine's expressions lack, in terms of those that they have.
 *
 * @module
 */

/** Calls a function of numbers, by its qualified name. */
type Compute = (target: string, args: readonly unknown[]) => unknown;

/** What a call is in terms of others; undefined where it is none of them. */
type Composition = (compute: Compute, ...args: readonly unknown[]) => unknown;

/** Of floats, too, of which the engine has no difference. */
const negative = (compute: Compute, a: unknown): unknown => compute("operator.mul", [a, -1]);

const abs: Composition = (compute, a) => compute("torch.sym_max", [a, negative(compute, a)]);

/** Halves go to the even number, as Python's do. What is left of the floor is exact, other than `a + 0.5` would be. */
const round: Composition = (compute, a, digits = null) => {
  if (digits !== null) return undefined;
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

const sum: Composition = (compute, items) =>
  Array.isArray(items) ? items.reduce((res: unknown, it) => compute("operator.add", [res, it]), 0) : undefined;

const powerOfTwo = (compute: Compute, exponent: unknown): unknown => compute("operator.pow", [2, exponent]);

/** The compositions by qualified name. */
export const COMPOSED_NUMBERS: ReadonlyMap<string, Composition> = new Map<string, Composition>([
  ["operator.abs", abs],
  ["builtins.abs", abs],
  ["builtins.round", round],
  ["operator.lshift", (compute, a, b) => compute("operator.mul", [a, powerOfTwo(compute, b)])],
  ["operator.rshift", (compute, a, b) => compute("operator.floordiv", [a, powerOfTwo(compute, b)])],
  ["torch.sym_sum", sum],
]);
