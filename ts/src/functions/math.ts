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
import { fxError } from "../base/errors.ts";
import type { Float } from "../base/values.ts";
import { tensor } from "../tensor/construct.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { toFloat, valueOf } from "./numbers.ts";
import { checked, type Real, type RealFunction, type RealFunction2, realOf } from "./realNumbers.ts";
import { defineFunction } from "./table.ts";

export type { Real, RealFunction, RealFunction2 } from "./realNumbers.ts";
export * from "./wholeMath.ts";

/**
 * The ratio of the circumference of a circle to its diameter.
 *
 * @example
 * ```ts
 * math.pi; // 3.141592653589793
 * ```
 */
export const pi = Math.PI;

/**
 * Euler's number.
 *
 * @example
 * ```ts
 * math.e; // 2.718281828459045
 * ```
 */
export const e = Math.E;

/**
 * Two times {@link pi}.
 *
 * @example
 * ```ts
 * math.tau; // 6.283185307179586
 * ```
 */
export const tau = 2 * Math.PI;

/**
 * Infinity.
 *
 * @example
 * ```ts
 * math.inf; // Infinity
 * ```
 */
export const inf = Number.POSITIVE_INFINITY;

/**
 * Not a number.
 *
 * @example
 * ```ts
 * Number.isNaN(math.nan); // true
 * ```
 */
export const nan = Number.NaN;

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

function isReal(name: string, test: (x: number) => boolean): RealFunction<boolean> {
  return defineFunction(`math.${name}`, (x: unknown) => test(toFloat(realOf(x))), { signature: "(x, /)" });
}

/**
 * The square root.
 *
 * @example
 * ```ts
 * math.sqrt(4); // float(2)
 * ```
 */
export const sqrt = ofReal("sqrt", Math.sqrt);

/**
 * The cube root.
 *
 * @example
 * ```ts
 * math.cbrt(27); // float(3)
 * ```
 */
export const cbrt = ofReal("cbrt", Math.cbrt);

/**
 * `e ** x`.
 *
 * @example
 * ```ts
 * math.exp(0); // float(1)
 * ```
 */
export const exp = ofReal("exp", Math.exp);

/**
 * `2 ** x`.
 *
 * @example
 * ```ts
 * math.exp2(3); // float(8)
 * ```
 */
export const exp2 = ofReal("exp2", (x) => 2 ** x);

/**
 * `e ** x - 1`, exact near zero.
 *
 * @example
 * ```ts
 * math.expm1(0); // float(0)
 * ```
 */
export const expm1 = ofReal("expm1", Math.expm1);

/**
 * `log(1 + x)`, exact near zero.
 *
 * @example
 * ```ts
 * math.log1p(0); // float(0)
 * ```
 */
export const log1p = ofReal("log1p", Math.log1p);

/**
 * The sine.
 *
 * @example
 * ```ts
 * math.sin(0); // float(0)
 * ```
 */
export const sin = ofReal("sin", Math.sin);

/**
 * The cosine.
 *
 * @example
 * ```ts
 * math.cos(0); // float(1)
 * ```
 */
export const cos = ofReal("cos", Math.cos);

/**
 * The tangent.
 *
 * @example
 * ```ts
 * math.tan(0); // float(0)
 * ```
 */
export const tan = ofReal("tan", Math.tan);

/**
 * The inverse of the sine.
 *
 * @example
 * ```ts
 * math.asin(0); // float(0)
 * ```
 */
export const asin = ofReal("asin", Math.asin);

/**
 * The inverse of the cosine.
 *
 * @example
 * ```ts
 * math.acos(1); // float(0)
 * ```
 */
export const acos = ofReal("acos", Math.acos);

/**
 * The inverse of the tangent.
 *
 * @example
 * ```ts
 * math.atan(0); // float(0)
 * ```
 */
export const atan = ofReal("atan", Math.atan);

/**
 * The hyperbolic sine.
 *
 * @example
 * ```ts
 * math.sinh(0); // float(0)
 * ```
 */
export const sinh = ofReal("sinh", Math.sinh);

/**
 * The hyperbolic cosine.
 *
 * @example
 * ```ts
 * math.cosh(0); // float(1)
 * ```
 */
export const cosh = ofReal("cosh", Math.cosh);

/**
 * The hyperbolic tangent.
 *
 * @example
 * ```ts
 * math.tanh(0); // float(0)
 * ```
 */
export const tanh = ofReal("tanh", Math.tanh);

/**
 * The inverse of the hyperbolic sine.
 *
 * @example
 * ```ts
 * math.asinh(0); // float(0)
 * ```
 */
export const asinh = ofReal("asinh", Math.asinh);

/**
 * The inverse of the hyperbolic cosine.
 *
 * @example
 * ```ts
 * math.acosh(1); // float(0)
 * ```
 */
export const acosh = ofReal("acosh", Math.acosh);

/**
 * The inverse of the hyperbolic tangent.
 *
 * @example
 * ```ts
 * math.atanh(0); // float(0)
 * ```
 */
export const atanh = ofReal("atanh", Math.atanh);

/**
 * The absolute value, as a float.
 *
 * @example
 * ```ts
 * math.fabs(-3); // float(3)
 * ```
 */
export const fabs = ofReal("fabs", Math.abs);

/**
 * Radians as degrees.
 *
 * @example
 * ```ts
 * math.degrees(math.pi); // float(180)
 * ```
 */
export const degrees = ofReal("degrees", (x) => x * (180 / Math.PI));

/**
 * Degrees as radians.
 *
 * @example
 * ```ts
 * math.radians(180); // 3.141592653589793
 * ```
 */
export const radians = ofReal("radians", (x) => x * (Math.PI / 180));

/**
 * The error function.
 *
 * @example
 * ```ts
 * math.erf(0); // float(0)
 * ```
 */
export const erf = ofReal("erf", (x) => byEngine("erf", x));

/**
 * 1 minus the error function, exact far from zero.
 *
 * @example
 * ```ts
 * math.erfc(0); // float(1)
 * ```
 */
export const erfc = ofReal("erfc", (x) => byEngine("erfc", x));

/**
 * The logarithm of the absolute value of the gamma function.
 *
 * @example
 * ```ts
 * math.lgamma(1); // float(0)
 * ```
 */
export const lgamma = ofReal("lgamma", (x) => byEngine("lgamma", x));

/**
 * Whether `x` is not a number.
 *
 * @example
 * ```ts
 * math.isnan(math.nan); // true
 * ```
 */
export const isnan = isReal("isnan", Number.isNaN);

/**
 * Whether `x` is infinite.
 *
 * @example
 * ```ts
 * math.isinf(-math.inf); // true
 * ```
 */
export const isinf = isReal("isinf", (x) => !Number.isFinite(x) && !Number.isNaN(x));

/**
 * Whether `x` is neither infinite nor not a number.
 *
 * @example
 * ```ts
 * math.isfinite(1); // true
 * ```
 */
export const isfinite = isReal("isfinite", Number.isFinite);

/**
 * `x ** y` of floats.
 *
 * @example
 * ```ts
 * math.pow(2, 3); // float(8)
 * ```
 */
export const pow = ofReals("pow", (x, y) => (x === 1 || (x === -1 && Math.abs(y) === inf) ? 1 : x ** y));

/**
 * The angle of the point `(y, x)`; the first argument is `y`.
 *
 * @example
 * ```ts
 * math.atan2(0, 1); // float(0)
 * ```
 */
export const atan2 = ofReals("atan2", Math.atan2);

/**
 * The remainder with the sign of `x`.
 *
 * @example
 * ```ts
 * math.fmod(-7, 3); // float(-1)
 * ```
 */
export const fmod = ofReals("fmod", (x, y) => x % y);

/**
 * `x` with the sign of `y`.
 *
 * @example
 * ```ts
 * math.copysign(1, -2); // float(-1)
 * ```
 */
export const copysign = ofReals("copysign", (x, y) => (y < 0 || Object.is(y, -0) ? -Math.abs(x) : Math.abs(x)));

/**
 * The logarithm of `x`, natural or to a base.
 *
 * @example
 * ```ts
 * math.log(8, 2); // float(3)
 * ```
 */
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

/**
 * The logarithm of `x` to base 2.
 *
 * @example
 * ```ts
 * math.log2(8); // float(3)
 * ```
 */
export const log2 = defineFunction(
  "math.log2",
  (x: Real) => valueOf(logarithm(realOf(x), Math.log2, 1)) as number | Float,
  { signature: "(x, /)" },
);

/**
 * The logarithm of `x` to base 10.
 *
 * @example
 * ```ts
 * math.log10(1000); // float(3)
 * ```
 */
export const log10 = defineFunction(
  "math.log10",
  (x: Real) => valueOf(logarithm(realOf(x), Math.log10, Math.log10(2))) as number | Float,
  { signature: "(x, /)" },
);

/**
 * The length of a vector.
 *
 * @example
 * ```ts
 * math.hypot(3, 4); // float(5)
 * ```
 */
export const hypot = defineFunction("math.hypot", (...sides: readonly Real[]): number | Float => {
  return valueOf(Math.hypot(...sides.map((it) => toFloat(realOf(it))))) as number | Float;
});

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
