/**
 * Rounding to decimal digits by exact values, and numbers read from texts, as Python does both.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";

/** Python reads ints of this many digits at most, since it takes the square of that in time. */
const MAX_DIGITS = 4300;

/** An int rounded to so many digits after the point, which are fewer than none; half goes to even. */
export function roundInt(value: bigint, places: number): bigint {
  if (places >= 0) return value;
  const unit = powerOfTen(-places);
  return halfEven(value, unit) * unit;
}

/** A float rounded to so many digits after the point, by its exact decimal value; half goes to even. */
export function roundFloat(value: number, places: number): number {
  // A float has no digits beyond these.
  if (!Number.isFinite(value) || places > 1100) return value;
  let [mantissa, shift] = [Math.abs(value), 0];
  while (!Number.isInteger(mantissa)) [mantissa, shift] = [mantissa * 2, shift + 1];
  const unit = powerOfTen(Math.abs(places));
  const [top, bottom] = [BigInt(mantissa), 1n << BigInt(shift)];
  const digits = places < 0 ? halfEven(top, bottom * unit) * unit : halfEven(top * unit, bottom);
  const text = digits.toString().padStart(places + 1, "0");
  const res = places > 0 ? Number(`${text.slice(0, -places)}.${text.slice(-places)}`) : Number(digits);
  return value < 0 || Object.is(value, -0) ? -res : res;
}

function powerOfTen(exponent: number): bigint {
  return 10n ** BigInt(Math.min(exponent, 2000));
}

/** `top / bottom`, rounded to an int. */
function halfEven(top: bigint, bottom: bigint): bigint {
  const rest = ((top % bottom) + bottom) % bottom;
  const floor = (top - rest) / bottom;
  const isUp = rest * 2n > bottom || (rest * 2n === bottom && floor % 2n !== 0n);
  return isUp ? floor + 1n : floor;
}

/** The int that a text writes in digits of a base; undefined where it writes none. */
export function readInt(text: string, base: number): bigint | undefined {
  const [, sign, digits = ""] = /^([+-]?)([0-9a-z]+)$/i.exec(text.trim().replace(/(?<=\w)_(?=\w)/g, "")) ?? [];
  if (base < 2 || base > 36) throw fxError("InvalidArgument", "int() base must be >= 2 and <= 36");
  const values = [...digits].map((it) => Number.parseInt(it, 36));
  if (values.length > MAX_DIGITS) throw fxError("LimitExceeded", `an int of more than ${MAX_DIGITS} digits`);
  if (values.length === 0 || values.some((it) => it >= base)) return undefined;
  const res = values.reduce((total, it) => total * BigInt(base) + BigInt(it), 0n);
  return sign === "-" ? -res : res;
}

/** The float that a text writes; undefined where it writes none. */
export function readFloat(text: string): number | undefined {
  const trimmed = text
    .trim()
    .replace(/(?<=\d)_(?=\d)/g, "")
    .toLowerCase();
  const [, sign, special] = /^([+-]?)(inf(?:inity)?|nan)$/.exec(trimmed) ?? [];
  if (special === "nan") return Number.NaN;
  if (special !== undefined) return sign === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/.test(trimmed) ? Number(trimmed) : undefined;
}
