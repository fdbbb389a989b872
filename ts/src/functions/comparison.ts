/**
 * Comparisons and tests of truth, of Python's module `operator`.
 *
 * @module
 */
import type { NamedTarget } from "../graph/target.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { equal, truthOf } from "./richCompare.ts";
import { type COMPARISONS, equated, ordered } from "./binaryOps.ts";
import { defineFunction } from "./table.ts";
import type { Scalar } from "../base/types.ts";

/** A comparison. */
export interface Comparison extends NamedTarget {
  (left: Tensor, right: Tensor | Scalar): Tensor;
  (left: Scalar, right: Tensor): Tensor;
  (left: Scalar, right: Scalar): boolean;
  (left: unknown, right: unknown): unknown;
}

const TWO = { signature: "(a, b, /)" };

const ONE = { signature: "(a, /)" };

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

/**
 * `left == right`: of tensors element by element, of anything else whether they are equal.
 *
 * @example
 * ```ts
 * operator.eq([1, 2], [1, float(2)]); // true
 * operator.eq(x, 1); // a tensor of booleans
 * ```
 */
export const eq = equality("eq");

/**
 * `left != right`: of tensors element by element, of anything else whether they differ.
 *
 * @example
 * ```ts
 * operator.ne(x, 0); // a tensor of booleans
 * ```
 */
export const ne = equality("ne");

/**
 * `left < right`.
 *
 * @example
 * ```ts
 * operator.lt("a", "b"); // true
 * ```
 */
export const lt = comparison("lt");

/**
 * `left <= right`.
 *
 * @example
 * ```ts
 * operator.le(2, 2.5); // true
 * ```
 */
export const le = comparison("le");

/**
 * `left > right`.
 *
 * @example
 * ```ts
 * operator.gt(x, 0); // a tensor of booleans
 * ```
 */
export const gt = comparison("gt");

/**
 * `left >= right`.
 *
 * @example
 * ```ts
 * operator.ge([2], [1, 5]); // true
 * ```
 */
export const ge = comparison("ge");

/**
 * Whether the value counts as true: no zero, nothing empty and not null.
 *
 * @example
 * ```ts
 * operator.truth([]); // false
 * ```
 */
export const truth = defineFunction("operator.truth", (value: unknown): boolean => truthOf(value), ONE);

/**
 * Whether the value counts as false.
 *
 * @example
 * ```ts
 * operator.not_(0); // true
 * ```
 */
export const not_ = defineFunction("operator.not_", (value: unknown): boolean => !truthOf(value), ONE);

/**
 * Whether both are the very same value.
 *
 * @example
 * ```ts
 * operator.is_(null, null); // true
 * ```
 */
export const is_ = defineFunction("operator.is_", identical, TWO);

/**
 * Whether they are not the very same value.
 *
 * @example
 * ```ts
 * operator.isNot(null, x); // true
 * ```
 */
export const isNot = defineFunction("operator.is_not", (left: unknown, right: unknown) => !identical(left, right), TWO);

/** Python's `is`: constants that are equal are the same. */
function identical(left: unknown, right: unknown): boolean {
  if (typeof left === "object" && left !== null && !Object.isFrozen(left)) return left === right;
  return typeof left === typeof right && equal(left, right);
}
