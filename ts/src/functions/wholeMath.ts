/**
 * The functions of Python's module `math` that give ints, or products.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { Float } from "../base/values.ts";
import { kindOf } from "../base/members.ts";
import { arithmetic, valueOf } from "./numbers.ts";
import { type Real, type RealFunction, realOf, wholeOf } from "./realNumbers.ts";
import { defineFunction } from "./table.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

function intOf(value: unknown): bigint {
  const number = realOf(value);
  if (typeof number === "bigint") return number;
  throw fxError("InvalidArgument", `${kindOf(value)} cannot be interpreted as an int`, { help: "it is a float" });
}

function toInt(name: string, round: (x: number) => number): RealFunction<number | bigint> {
  const call = (x: unknown): number | bigint => {
    const given = realOf(x);
    return valueOf(typeof given === "bigint" ? given : wholeOf(round(given))) as number | bigint;
  };
  return defineFunction(`math.${name}`, call, { signature: "(x, /)" });
}

/**
 * The greatest int that is not above `x`.
 *
 * @example
 * ```ts
 * math.floor(-1.5); // -2
 * ```
 */
export const floor = toInt("floor", Math.floor);

/**
 * The least int that is not below `x`.
 *
 * @example
 * ```ts
 * math.ceil(-1.5); // -1
 * ```
 */
export const ceil = toInt("ceil", Math.ceil);

/**
 * `x` without its fraction.
 *
 * @example
 * ```ts
 * math.trunc(-1.5); // -1
 * ```
 */
export const trunc = toInt("trunc", Math.trunc);

/**
 * The greatest common divisor of ints.
 *
 * @example
 * ```ts
 * math.gcd(12, 18); // 6
 * ```
 */
export const gcd = defineFunction("math.gcd", (...ints: readonly Real[]): number | bigint => {
  return valueOf(ints.map(intOf).reduce(commonDivisor, 0n)) as number | bigint;
});

/**
 * The least common multiple of ints.
 *
 * @example
 * ```ts
 * math.lcm(4, 6); // 12
 * ```
 */
export const lcm = defineFunction("math.lcm", (...ints: readonly Real[]): number | bigint => {
  const res = ints.map(intOf).reduce(commonMultiple, 1n);
  return valueOf(res < 0n ? -res : res) as number | bigint;
});

/**
 * The greatest int whose square is not above `n`.
 *
 * @example
 * ```ts
 * math.isqrt(17); // 4
 * ```
 */
export const isqrt = defineFunction(
  "math.isqrt",
  (n: Real): number | bigint => {
    const value = intOf(n);
    if (value < 0n) throw fxError("InvalidArgument", "isqrt() argument must be nonnegative");
    // Newton's method, from above.
    let root = 1n << BigInt(Math.ceil(value.toString(2).length / 2));
    while (root * root > value) root = (root + value / root) / 2n;
    return valueOf(root) as number | bigint;
  },
  { signature: "(n, /)" },
);

/**
 * The product of all items.
 *
 * @example
 * ```ts
 * math.prod([2, 3, 4]); // 24
 * ```
 */
export const prod = defineFunction("math.prod", (items: readonly Real[], options: { start?: Real } = {}) => {
  checkOptions("prod", options, ["start"]);
  checkGiven(
    "prod",
    typeof (items as Partial<typeof items> | null)?.[Symbol.iterator] === "function",
    "a list of numbers",
  );
  const { start = 1 } = options;
  const all: (bigint | number)[] = [realOf(start), ...Array.from(items, realOf)];
  const res = all.reduce((a, b) => arithmetic("mul", a, b) as bigint | number);
  return valueOf(res) as number | bigint | Float;
});

function commonDivisor(a: bigint, b: bigint): bigint {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

function commonMultiple(a: bigint, b: bigint): bigint {
  return a === 0n || b === 0n ? 0n : (a / commonDivisor(a, b)) * b;
}
