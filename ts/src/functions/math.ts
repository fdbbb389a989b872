/**
 * Python's module `math`: functions of numbers, which a trace records.
 *
 * They take ints, floats and tensors of one element, and give what Python gives: a float where a float is meant, so that
 * `math.sqrt(4)` is the float 2.0, an int where an int is, and a refusal where there is no result.
 *
 * @example
 * ```ts
 * import { math } from "tracefx";
 * math.floor(-1.5); // -2
 * symbolicTrace((x: Tensor) => x.div(math.sqrt(x.size(-1))));
 * ```
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../errors.ts";
import type { NamedTarget } from "../graph/target.ts";
import { Complex, type Float } from "../graph/values.ts";
import { tensor } from "../tensor/construct.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { kindOf } from "./methods.ts";
import { scalarOf, toFloat, valueOf } from "./numbers.ts";
import { defineFunction } from "./table.ts";

/** What a function of numbers takes. */
export type Real = number | bigint | boolean | Float | Tensor;

/** A function of one number. */
export type RealFunction<R> = ((x: Real) => R) & NamedTarget;

/** A function of two numbers. */
export type RealFunction2<R> = ((x: Real, y: Real) => R) & NamedTarget;

/** The ratio of the circumference of a circle to its diameter. */
export const pi = Math.PI;
/** Euler's number. */
export const e = Math.E;
/** Two times {@link pi}. */
export const tau = 2 * Math.PI;
/** Infinity. */
export const inf = Number.POSITIVE_INFINITY;
/** Not a number. */
export const nan = Number.NaN;

function realOf(value: unknown): bigint | number {
  const number = scalarOf(value);
  if (number !== undefined && !(number instanceof Complex)) return number;
  throw fxError("InvalidArgument", `must be real number, not ${kindOf(value)}`);
}

function intOf(value: unknown): bigint {
  const number = realOf(value);
  if (typeof number === "bigint") return number;
  throw fxError("InvalidArgument", `${kindOf(value)} cannot be interpreted as an int`, { help: "it is a float" });
}

/** The float result, unless it has none: not a number of numbers, or infinite of finite ones. */
function checked(res: number, ...given: readonly number[]): number | Float {
  if (Number.isNaN(res) && !given.some(Number.isNaN)) throw fxError("InvalidArgument", "math domain error");
  if (!Number.isFinite(res) && given.every(Number.isFinite)) {
    throw fxError("InvalidArgument", given.includes(0) ? "math domain error" : "math range error");
  }
  return valueOf(res) as number | Float;
}

function ofReal(name: string, run: (x: number) => number): RealFunction<number | Float> {
  const call = (x: unknown): number | Float => {
    const given = toFloat(realOf(x));
    return checked(run(given), given);
  };
  return defineFunction(`math.${name}`, call, { signature: "(x, /)" });
}

function ofReals(name: string, run: (x: number, y: number) => number): RealFunction2<number | Float> {
  const call = (x: unknown, y: unknown): number | Float => {
    const given = [toFloat(realOf(x)), toFloat(realOf(y))] as const;
    return checked(run(...given), ...given);
  };
  return defineFunction(`math.${name}`, call, { signature: "(x, y, /)" });
}

function toInt(name: string, round: (x: number) => number): RealFunction<number | bigint> {
  const call = (x: unknown): number | bigint => {
    const given = realOf(x);
    return valueOf(typeof given === "bigint" ? given : wholeOf(round(given))) as number | bigint;
  };
  return defineFunction(`math.${name}`, call, { signature: "(x, /)" });
}

/** A float without fraction as an int. */
export function wholeOf(value: number): bigint {
  if (Number.isFinite(value)) return BigInt(value);
  const what = Number.isNaN(value) ? "float NaN" : "float infinity";
  throw fxError("InvalidArgument", `cannot convert ${what} to an int`);
}

function isReal(name: string, test: (x: number) => boolean): RealFunction<boolean> {
  return defineFunction(`math.${name}`, (x: unknown) => test(toFloat(realOf(x))), { signature: "(x, /)" });
}

/** The square root. */
export const sqrt = ofReal("sqrt", Math.sqrt);
/** The cube root. */
export const cbrt = ofReal("cbrt", Math.cbrt);
/** `e ** x`. */
export const exp = ofReal("exp", Math.exp);
/** `2 ** x`. */
export const exp2 = ofReal("exp2", (x) => 2 ** x);
/** `e ** x - 1`, exact near zero. */
export const expm1 = ofReal("expm1", Math.expm1);
/** `log(1 + x)`, exact near zero. */
export const log1p = ofReal("log1p", Math.log1p);
/** The sine. */
export const sin = ofReal("sin", Math.sin);
/** The cosine. */
export const cos = ofReal("cos", Math.cos);
/** The tangent. */
export const tan = ofReal("tan", Math.tan);
/** The inverse of the sine. */
export const asin = ofReal("asin", Math.asin);
/** The inverse of the cosine. */
export const acos = ofReal("acos", Math.acos);
/** The inverse of the tangent. */
export const atan = ofReal("atan", Math.atan);
/** The hyperbolic sine. */
export const sinh = ofReal("sinh", Math.sinh);
/** The hyperbolic cosine. */
export const cosh = ofReal("cosh", Math.cosh);
/** The hyperbolic tangent. */
export const tanh = ofReal("tanh", Math.tanh);
/** The inverse of the hyperbolic sine. */
export const asinh = ofReal("asinh", Math.asinh);
/** The inverse of the hyperbolic cosine. */
export const acosh = ofReal("acosh", Math.acosh);
/** The inverse of the hyperbolic tangent. */
export const atanh = ofReal("atanh", Math.atanh);
/** The absolute value, as a float. */
export const fabs = ofReal("fabs", Math.abs);
/** Radians as degrees. */
export const degrees = ofReal("degrees", (x) => x * (180 / Math.PI));
/** Degrees as radians. */
export const radians = ofReal("radians", (x) => x * (Math.PI / 180));
/** The error function. */
export const erf = ofReal("erf", (x) => byEngine("erf", x));
/** 1 minus the error function, exact far from zero. */
export const erfc = ofReal("erfc", (x) => byEngine("erfc", x));
/** The logarithm of the absolute value of the gamma function. */
export const lgamma = ofReal("lgamma", (x) => byEngine("lgamma", x));

/** The greatest int that is not above `x`. */
export const floor = toInt("floor", Math.floor);
/** The least int that is not below `x`. */
export const ceil = toInt("ceil", Math.ceil);
/** `x` without its fraction. */
export const trunc = toInt("trunc", Math.trunc);

/** Whether `x` is not a number. */
export const isnan = isReal("isnan", Number.isNaN);
/** Whether `x` is infinite. */
export const isinf = isReal("isinf", (x) => !Number.isFinite(x) && !Number.isNaN(x));
/** Whether `x` is neither infinite nor not a number. */
export const isfinite = isReal("isfinite", Number.isFinite);

/** `x ** y` of floats. */
export const pow = ofReals("pow", (x, y) => (x === 1 || (x === -1 && Math.abs(y) === inf) ? 1 : x ** y));
/** The angle of the point `(y, x)`; the first argument is `y`. */
export const atan2 = ofReals("atan2", Math.atan2);
/** The remainder with the sign of `x`. */
export const fmod = ofReals("fmod", (x, y) => x % y);
/** `x` with the sign of `y`. */
export const copysign = ofReals("copysign", (x, y) => (y < 0 || Object.is(y, -0) ? -Math.abs(x) : Math.abs(x)));

/** The logarithm of `x`, natural or to a base. */
export const log = defineFunction(
  "math.log",
  (x: Real, base?: Real): number | Float => {
    const top = logarithm(realOf(x), Math.log, Math.LN2);
    if (base === undefined) return valueOf(top) as number | Float;
    const bottom = logarithm(realOf(base), Math.log, Math.LN2);
    if (bottom === 0) throw fxError("InvalidArgument", "float division by zero");
    return valueOf(top / bottom) as number | Float;
  },
  { signature: "(x, base=None, /)" },
);
/** The logarithm of `x` to base 2. */
export const log2 = defineFunction(
  "math.log2",
  (x: Real) => valueOf(logarithm(realOf(x), Math.log2, 1)) as number | Float,
  { signature: "(x, /)" },
);
/** The logarithm of `x` to base 10. */
export const log10 = defineFunction(
  "math.log10",
  (x: Real) => valueOf(logarithm(realOf(x), Math.log10, Math.log10(2))) as number | Float,
  { signature: "(x, /)" },
);

/** The greatest common divisor of ints. */
export const gcd = defineFunction("math.gcd", (...ints: readonly Real[]): number | bigint => {
  return valueOf(ints.map(intOf).reduce(commonDivisor, 0n)) as number | bigint;
});
/** The least common multiple of ints. */
export const lcm = defineFunction("math.lcm", (...ints: readonly Real[]): number | bigint => {
  const res = ints.map(intOf).reduce(commonMultiple, 1n);
  return valueOf(res < 0n ? -res : res) as number | bigint;
});
/** The greatest int whose square is not above `n`. */
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
/** The length of a vector. */
export const hypot = defineFunction("math.hypot", (...sides: readonly Real[]): number | Float => {
  return valueOf(Math.hypot(...sides.map((it) => toFloat(realOf(it))))) as number | Float;
});
/** The product of all items. */
export const prod = defineFunction("math.prod", (items: readonly Real[], { start = 1 }: { start?: Real } = {}) => {
  const all: (bigint | number)[] = [realOf(start), ...Array.from(items, realOf)];
  const isInt = all.every((it) => typeof it === "bigint");
  const res = all.reduce((a, b) => (isInt ? (a as bigint) * (b as bigint) : toFloat(a) * toFloat(b)));
  return valueOf(isInt ? res : toFloat(res)) as number | bigint | Float;
});

function commonDivisor(a: bigint, b: bigint): bigint {
  let [x, y] = [a < 0n ? -a : a, b < 0n ? -b : b];
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}

function commonMultiple(a: bigint, b: bigint): bigint {
  return a === 0n || b === 0n ? 0n : (a / commonDivisor(a, b)) * b;
}

/** A logarithm, also of an int that is no float; `ofTwo` is that of two. */
function logarithm(x: bigint | number, ofFloat: (x: number) => number, ofTwo: number): number {
  if (x <= 0) throw fxError("InvalidArgument", "math domain error", { help: "the logarithm is of positive numbers" });
  if (typeof x === "number" || x < 2n ** 1000n) return ofFloat(Number(x));
  const shift = x.toString(2).length - 64;
  return ofFloat(Number(x >> BigInt(shift))) + shift * ofTwo;
}

/** A function that JavaScript does not have, by the engine. */
function byEngine(operator: string, x: number): number {
  const res = callOperator(`aten.${operator}`, [tensor([x], { dtype: "float64" })]) as Tensor;
  return res.item() as number;
}
