/**
 * Sizes as modules and functions of this package compute and compare them. While a module is exported, one that its type calls
 * a number may be a {@link SymbolicNumber}: JavaScript's operators refuse it, and an answer about it holds for all inputs of
 * the program.
 *
 * @module
 */
import { Float } from "./values.ts";
import { SymbolicNumber, symbolicAmong } from "./symbolic.ts";

function computed(target: string, sizes: readonly number[], plain: (a: number, b: number) => number): number {
  return sizes.reduce((a, b) => (symbolicAmong([a, b])?.compute(target, [a, b]) as number | undefined) ?? plain(a, b));
}

/** The product of sizes; 1 where there are none. */
export function product(...sizes: readonly number[]): number {
  return sizes.length === 0 ? 1 : computed("operator.mul", sizes, (a, b) => a * b);
}

/** One size and others added to it. */
export function plus(...sizes: readonly number[]): number {
  return computed("operator.add", sizes, (a, b) => a + b);
}

/** `a - b`. */
export function minus(a: number, b: number): number {
  return computed("operator.sub", [a, b], (x, y) => x - y);
}

/** `a // b`, rounded down. */
export function floorDivided(a: number, b: number): number {
  return computed("operator.floordiv", [a, b], (x, y) => Math.floor(x / y));
}

/** `int(size * factor)`. */
export function scaled(size: number, factor: number): number {
  const symbolic = symbolicAmong([size]);
  if (symbolic === undefined) return Math.trunc(size * factor);
  const times = symbolic.compute("operator.mul", [symbolic.compute("torch.sym_float", [size]), new Float(factor)]);
  return symbolic.compute("math.trunc", [times]) as number;
}

/** Whether two sizes are the same. */
export function isSame(a: number | undefined, b: number | undefined): boolean {
  return a === b || decided("operator.eq", a, b);
}

/** Whether a size is less than another. */
export function isLess(a: number, b: number): boolean {
  return symbolicAmong([a, b]) === undefined ? a < b : decided("operator.lt", a, b);
}

/** Whether two shapes are the same. */
export function areSame(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, at) => isSame(size, b[at]));
}

/** Whether this is a whole number, or will be one. */
export function isSize(value: unknown): boolean {
  return Number.isInteger(value) || value instanceof SymbolicNumber;
}

/** Sizes with commas between them, dynamic ones by their expressions. */
export function listText(sizes: readonly number[]): string {
  return sizes.map(textOf).join(", ");
}

/** A size as a message tells it. */
export function textOf(size: number | undefined): string {
  const value: unknown = size;
  return value instanceof SymbolicNumber ? value.text : String(size);
}

function decided(target: string, a: number | undefined, b: number | undefined): boolean {
  const answer = symbolicAmong([a, b])?.compute(target, [a, b]);
  return answer instanceof SymbolicNumber ? answer.decide() : answer === true;
}
