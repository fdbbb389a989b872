/**
 * Whether two values agree, and where they first do not.
 *
 * @module
 */
import { Tensor } from "tracefx";

/** @typedef {{ rtol: number, atol: number }} Tolerance */

/** Bit for bit, but for the sign of zero and the payload of NaN. */
export const EXACT = { rtol: 0, atol: 0 };

/**
 * The first difference of `got` from `want`, in words; undefined where there is none. Floats agree where
 * `|got - want| <= atol + rtol * |want|`, or both are NaN or the same infinity.
 *
 * @param {unknown} got
 * @param {unknown} want
 * @param {Tolerance} tolerance
 * @returns {string | undefined}
 */
export function difference(got, want, tolerance) {
  if (want instanceof Tensor) {
    return got instanceof Tensor ? tensorDifference(got, want, tolerance) : `${describe(got)} instead of a tensor`;
  }
  if (isNumber(got) && isNumber(want)) {
    const wanted = Number(want);
    return isClose(Number(got), wanted, tolerance) ? undefined : `${got} instead of ${want}`;
  }
  if (typeof want === "string" && isNumber(got)) {
    return isClose(Number(got), Number(want.replace("inf", "Infinity")), tolerance)
      ? undefined
      : `${got} instead of ${want}`;
  }
  return Object.is(got, want) ? undefined : `${describe(got)} instead of ${describe(want)}`;
}

/** @type {(got: Tensor, want: Tensor, tolerance: Tolerance) => string | undefined} */
function tensorDifference(got, want, tolerance) {
  if (describe(got) !== describe(want)) return `${describe(got)} instead of ${describe(want)}`;
  const [a, b] = [elementsOf(got), elementsOf(want)];
  for (let at = 0; at < b.length; at++) {
    const [x, y] = [a[at], b[at]];
    const agrees = typeof x === "bigint" ? x === y : isClose(Number(x), Number(y), tolerance);
    if (!agrees) return `element ${at} is ${x} instead of ${y}`;
  }
  return undefined;
}

/** The elements as numbers: half-precision floats are bits otherwise. */
function elementsOf(/** @type {Tensor} */ tensor) {
  const isBits = /^(float16|bfloat16|float8)/.test(tensor.dtype);
  return isBits ? tensor.toFloat32Array() : tensor.data;
}

function isClose(/** @type {number} */ got, /** @type {number} */ want, /** @type {Tolerance} */ { rtol, atol }) {
  if (Number.isNaN(want)) return Number.isNaN(got);
  return got === want || (Number.isFinite(got) && Math.abs(got - want) <= atol + rtol * Math.abs(want));
}

function isNumber(/** @type {unknown} */ value) {
  return typeof value === "number" || typeof value === "bigint";
}

function describe(/** @type {unknown} */ value) {
  return value instanceof Tensor ? `${value.dtype}[${value.shape.join(", ")}]` : String(value);
}

/** How far apart two tensors of floats lie at most. @type {(a: Tensor, b: Tensor) => number} */
export function largestDifference(a, b) {
  const [x, y] = [a.toFloat32Array(), b.toFloat32Array()];
  return x.reduce((most, it, at) => (it === y[at] ? most : Math.max(most, Math.abs(it - Number(y[at])))), 0);
}
