/**
 * Decisions on sizes while a module is exported, and what is known of them: functions of
 * `torch.fx.experimental.symbolic_shapes`. They take numbers and booleans that are known as well, so that modules run as they are.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import { checkGiven, checkOptions } from "../base/given.ts";
import { Float } from "../base/values.ts";
import { and_, eq, or_ } from "../functions/operator.ts";
import { Tensor } from "../tensor/tensor.ts";
import { withoutData } from "./shapes.ts";
import { type Condition, type Size, TracedNumber } from "./traced.ts";

/**
 * Decides a condition by the example inputs, which guards the program; where only data can tell, it is taken not to hold:
 * `guard_or_false`.
 *
 * @example
 * ```ts
 * if (guardOrFalse(operator.eq(n, 1))) return x.squeeze(0); // a way that is shorter where n is known to be 1
 * ```
 */
export function guardOrFalse(condition: Condition): boolean {
  return guardOr("guardOrFalse", condition, false);
}

/**
 * As {@link guardOrFalse}, and taken to hold where only data can tell: `guard_or_true`.
 *
 * @example
 * ```ts
 * if (guardOrTrue(operator.ne(n, 0))) return x.mean();
 * ```
 */
export function guardOrTrue(condition: Condition): boolean {
  return guardOr("guardOrTrue", condition, true);
}

function guardOr(what: string, condition: Condition, otherwise: boolean): boolean {
  if (typeof asked(what, condition) === "boolean") return condition as boolean;
  try {
    return withoutData(() => (condition as TracedNumber).decide());
  } catch (error) {
    if (isDataDependent(error)) return otherwise;
    throw error;
  }
}

/**
 * Whether a condition is known to hold of all runs, without guarding anything: `statically_known_true`. Of sizes of inputs, this
 * is known of what they are equal to alone.
 *
 * @example
 * ```ts
 * const isEmpty = staticallyKnownTrue(operator.eq(n, 0));
 * ```
 */
export function staticallyKnownTrue(condition: Condition): boolean {
  return known("staticallyKnownTrue", condition) === true;
}

/**
 * Whether a condition is known not to hold of any run, without guarding anything: `statically_known_false`.
 *
 * @example
 * ```ts
 * if (!staticallyKnownFalse(operator.eq(n, 1))) return x.squeeze(0);
 * ```
 */
export function staticallyKnownFalse(condition: Condition): boolean {
  return known("staticallyKnownFalse", condition) === false;
}

function known(what: string, condition: Condition): boolean | undefined {
  const given = asked(what, condition);
  if (typeof given === "boolean") return given;
  const simplified = given.simplified;
  if (typeof simplified === "boolean") return simplified;
  // What the examples tell would be guarded.
  if (withoutData(() => given.hint) !== undefined) return undefined;
  try {
    return withoutData(() => given.decide());
  } catch (error) {
    if (isDataDependent(error)) return undefined;
    throw error;
  }
}

/**
 * All of the conditions, without deciding any: `sym_and`.
 *
 * @example
 * ```ts
 * torch._check(symAnd(operator.ge(n, 2), operator.le(n, 8)));
 * ```
 */
export function symAnd(first: Condition, ...others: readonly Condition[]): Condition {
  return others.reduce((all, it) => (all === true ? it : it === true ? all : (and_(all, it) as Condition)), first);
}

/**
 * Any of the conditions, without deciding any: `sym_or`.
 *
 * @example
 * ```ts
 * torch._check(symOr(operator.eq(n, 3), operator.eq(n, 5)));
 * ```
 */
export function symOr(first: Condition, ...others: readonly Condition[]): Condition {
  return others.reduce((any, it) => (any === false ? it : it === false ? any : (or_(any, it) as Condition)), first);
}

/** What may be compared by {@link symEq}: a size, or a list of them. */
export type Sizes = Size | readonly Sizes[];

/**
 * Whether sizes, or lists of them, are equal, without deciding it: `sym_eq`.
 *
 * @example
 * ```ts
 * torch._check(symEq(x.shape, y.shape));
 * ```
 */
export function symEq(a: Sizes, b: Sizes): Condition {
  if (Array.isArray(a) && Array.isArray(b)) {
    if (a.length !== b.length) return false;
    const items = (a as readonly Sizes[]).map((it, at) => symEq(it, (b as readonly Sizes[])[at] as Sizes));
    return symAnd(true, ...items);
  }
  checkGiven("symEq", !Array.isArray(a) && !Array.isArray(b), "two sizes, or two lists of them");
  return eq(a as Size, b as Size) as Condition;
}

/**
 * The condition, decided by the example inputs: `guard_bool`.
 *
 * @example
 * ```ts
 * if (guardBool(operator.gt(x.size(0), 3))) return x.sin();
 * ```
 */
export function guardBool(condition: Condition): boolean {
  const given = asked("guardBool", condition);
  return typeof given === "boolean" ? given : given.decide();
}

/**
 * The size that the example inputs have, which the program then asks of all inputs: `guard_int`.
 *
 * @example
 * ```ts
 * for (let at = 0; at < guardInt(x.size(0)); at++) …
 * ```
 */
export function guardInt(size: Size): number {
  return specialized("guardInt", size, "integer");
}

/**
 * As {@link guardInt} for numbers that are no integers: `guard_float`.
 *
 * @example
 * ```ts
 * const scale = guardFloat(operator.truediv(x.size(0), 2));
 * ```
 */
export function guardFloat(value: Size): number {
  return specialized("guardFloat", value, "float");
}

/**
 * A number or a condition as it is for the example inputs, and for all others from here on: `guard_scalar`.
 *
 * @example
 * ```ts
 * const count = guardScalar(x.size(0)); // 4, and an input of 5 is refused
 * ```
 */
export function guardScalar(value: Size | Condition): number | boolean {
  if (typeof value === "boolean" || (value instanceof TracedNumber && value.kind === "bool")) return guardBool(value);
  return value instanceof TracedNumber && value.kind === "float" ? guardFloat(value) : guardInt(value);
}

function specialized(what: string, value: Size, kind: "integer" | "float"): number {
  if (!(value instanceof TracedNumber)) {
    checkGiven(what, typeof value === "number", "a size");
    return value;
  }
  const hint = guardingHint(value, kind);
  guardBool(eq(value, hint) as Condition);
  return hint;
}

/**
 * Takes a condition to hold, as `torch._check` does, and gives `true`: `expect_true`.
 *
 * @example
 * ```ts
 * expectTrue(operator.ge(n, 2));
 * ```
 */
export function expectTrue(condition: Condition): boolean {
  const given = asked("expectTrue", condition);
  if (typeof given === "boolean") return given;
  given.check("");
  return true;
}

/** What a size is taken to be between; no bound where none is said. */
export interface RangeBounds {
  readonly min?: number;
  readonly max?: number;
}

/**
 * Takes a size to be within bounds, which belong to it: `constrain_range`.
 *
 * @example
 * ```ts
 * constrainRange(n, { min: 2, max: 7 });
 * ```
 */
export function constrainRange(size: Size, bounds: RangeBounds): void {
  checkOptions("constrainRange", bounds, ["min", "max"]);
  const { min, max } = bounds;
  if (size instanceof TracedNumber) {
    if (min !== undefined) expectTrue(size.ge(min));
    if (max !== undefined) expectTrue(size.le(max));
    return;
  }
  if (size >= (min ?? size) && size <= (max ?? size)) return;
  throw fxError("AssertionFailed", `Invalid value ${size} for range [${min ?? "-oo"}:${max ?? "oo"}]`);
}

/**
 * Takes two sizes to be equal: `constrain_unify`.
 *
 * @example
 * ```ts
 * constrainUnify(x.size(0), y.size(0));
 * ```
 */
export function constrainUnify(a: Size, b: Size): void {
  const isEqual = eq(a, b) as Condition;
  if (isEqual === false) throw fxError("AssertionFailed", `Expected ${String(a)} == ${String(b)}`);
  expectTrue(isEqual);
}

/**
 * Takes a value to have the sizes of another one, or to be the same number: `check_consistent`. Nothing is known of other values.
 *
 * @example
 * ```ts
 * checkConsistent(fused(x), x); // the fused function keeps the sizes
 * ```
 */
export function checkConsistent(now: unknown, before: unknown): void {
  if (now instanceof Tensor) {
    if (!(before instanceof Tensor)) throw inconsistent("a tensor");
    const [sizes, others] = [before.shape, now.shape];
    const isSame = sizes.length === others.length;
    const differ = `${sizesText(sizes)} != ${sizesText(others)} (old != new)`;
    if (!isSame) throw fxError("AssertionFailed", differ);
    for (const [at, it] of sizes.entries()) same(it, others[at] as Size, differ);
  } else if (isNumber(now)) {
    if (!isNumber(before)) throw inconsistent("a number");
    same(before, now, `${sizesText([before])} != ${sizesText([now])} (old != new)`);
  }
}

function isNumber(value: unknown): value is Size {
  return value instanceof TracedNumber ? value.kind !== "bool" : typeof value === "number";
}

function inconsistent(what: string): FxError {
  return fxError("InvalidArgument", `checkConsistent takes ${what} behind ${what}`);
}

function same(a: Size, b: Size, message: string): void {
  const isSame = eq(a, b) as Condition;
  if (isSame === false) throw fxError("AssertionFailed", message);
  if (isSame instanceof TracedNumber) isSame.check(message);
}

function sizesText(sizes: readonly Size[]): string {
  return `[${sizes.map((it) => (it instanceof TracedNumber ? it.text : String(it))).join(", ")}]`;
}

/**
 * Whether a number or a condition is the same in all runs: `has_static_value`.
 *
 * @example
 * ```ts
 * hasStaticValue(x.size(1)); // true where the dimension is not dynamic
 * ```
 */
export function hasStaticValue(value: Size | Condition): boolean {
  checkNumber("hasStaticValue", value);
  return !(value instanceof TracedNumber) || typeof value.simplified !== "object";
}

/**
 * Whether a condition is a boolean, and no expression: `is_concrete_bool`.
 *
 * @example
 * ```ts
 * isConcreteBool(operator.gt(x.size(0), 3)); // false of a dynamic size
 * ```
 */
export function isConcreteBool(value: Condition): boolean {
  asked("isConcreteBool", value);
  return hasStaticValue(value);
}

/**
 * Whether a number is no expression: `is_concrete_float`.
 *
 * @example
 * ```ts
 * isConcreteFloat(float(2)); // true
 * ```
 */
export function isConcreteFloat(value: Size | Float): boolean {
  checkNumber("isConcreteFloat", value);
  return value instanceof Float || hasStaticValue(value);
}

/**
 * Whether the example inputs tell what a number or a condition is: `has_guarding_hint`.
 *
 * @example
 * ```ts
 * hasGuardingHint(x.sum().item()); // false: only a run can tell
 * ```
 */
export function hasGuardingHint(value: Size | Condition): boolean {
  checkNumber("hasGuardingHint", value);
  return !(value instanceof TracedNumber) || value.hint !== undefined;
}

/**
 * What a number is for the example inputs; no guard is made: `guarding_hint_or_throw`.
 *
 * @example
 * ```ts
 * guardingHintOrThrow(x.size(0)); // 4, for an example of four rows
 * ```
 */
export function guardingHintOrThrow(value: Size): number {
  checkNumber("guardingHintOrThrow", value);
  return value instanceof TracedNumber ? guardingHint(value, "integer") : value;
}

/**
 * What a number is for the example inputs, or else `fallback`: `optimization_hint`.
 *
 * @example
 * ```ts
 * const rows = optimizationHint(n, 64);
 * ```
 */
export function optimizationHint(value: Size, fallback?: number): number {
  checkNumber("optimizationHint", value);
  if (!(value instanceof TracedNumber)) return value;
  return (value.hint as number | undefined) ?? fallback ?? guardingHint(value, "integer");
}

function guardingHint(value: TracedNumber, kind: "integer" | "float"): number {
  const { hint } = value;
  if (hint !== undefined) return Number(hint);
  const text = value.text;
  throw fxError(
    "DataDependent",
    `Could not extract specialized ${kind} from data-dependent expression ${text} (unhinted: ${text})`,
    { help: "say what holds of it with torch._check, or compute with it as it is" },
  );
}

function asked(what: string, condition: Condition): boolean | TracedNumber {
  checkGiven(what, typeof condition === "boolean" || condition instanceof TracedNumber, "a condition on sizes");
  return condition;
}

/** Refuses what no export gives: a symbolic trace knows no sizes, and a decision on one would be lost. */
function checkNumber(what: string, value: unknown): void {
  const isKnown = ["number", "bigint", "boolean"].includes(typeof value);
  const isGiven = isKnown || value instanceof TracedNumber || value instanceof Float;
  checkGiven(what, isGiven, "a number or a condition on sizes", "only an export knows sizes: exportProgram");
}

function isDataDependent(error: unknown): boolean {
  return error instanceof FxError && error.kind === "DataDependent";
}
