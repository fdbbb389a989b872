/**
 * Small floats as bits: half precision, bfloat16 and the 8-bit floats.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";

/** The dtypes whose elements JavaScript has no array for. */
export type SmallFloat =
  | "float16"
  | "bfloat16"
  | "float8_e4m3fn"
  | "float8_e5m2"
  | "float8_e4m3fnuz"
  | "float8_e5m2fnuz"
  | "float8_e8m0fnu";

/**
 * How bits stand for numbers. `ieee` has infinities and NaNs in the highest exponent; `fn` is finite, with one NaN of
 * all ones; `fnuz` is finite without a negative zero, whose bits are the NaN; `scale` is an exponent alone.
 */
interface Format {
  readonly exponent: number;
  readonly mantissa: number;
  readonly bias: number;
  readonly special: "ieee" | "fn" | "fnuz" | "scale";
}

const FORMATS: { readonly [D in SmallFloat]: Format } = {
  float16: { exponent: 5, mantissa: 10, bias: 15, special: "ieee" },
  bfloat16: { exponent: 8, mantissa: 7, bias: 127, special: "ieee" },
  float8_e4m3fn: { exponent: 4, mantissa: 3, bias: 7, special: "fn" },
  float8_e5m2: { exponent: 5, mantissa: 2, bias: 15, special: "ieee" },
  float8_e4m3fnuz: { exponent: 4, mantissa: 3, bias: 8, special: "fnuz" },
  float8_e5m2fnuz: { exponent: 5, mantissa: 2, bias: 16, special: "fnuz" },
  float8_e8m0fnu: { exponent: 8, mantissa: 0, bias: 127, special: "scale" },
};

/** The number that these bits stand for. */
export function decodeFloat(dtype: SmallFloat, bits: number): number {
  const { exponent, mantissa, bias, special } = FORMATS[dtype];
  if (special === "scale") return bits === 0xff ? Number.NaN : 2 ** (bits - bias);
  const signBit = 2 ** (exponent + mantissa);
  const magnitude = bits % signBit;
  const sign = bits >= signBit ? -1 : 1;
  const power = Math.floor(magnitude / 2 ** mantissa);
  const fraction = magnitude % 2 ** mantissa;
  if (special === "ieee" && power === 2 ** exponent - 1) return fraction === 0 ? sign * Infinity : Number.NaN;
  if (special === "fn" && magnitude === signBit - 1) return Number.NaN;
  if (special === "fnuz" && bits === signBit) return Number.NaN;
  const scale = 2 ** (Math.max(power, 1) - bias - mantissa);
  return sign * (power === 0 ? fraction : fraction + 2 ** mantissa) * scale;
}

/**
 * The bits of the nearest number, ties to even, as PyTorch converts: through float32. What is too large becomes infinity;
 * without one, the largest number of `fn` and the NaN of `fnuz`.
 */
export function encodeFloat(dtype: SmallFloat, number: number): number {
  const { exponent, mantissa, bias, special } = FORMATS[dtype];
  if (special === "scale") {
    throw fxError("NotImplemented", `conversion to ${dtype} is not implemented`, {
      help: "give the bits as Uint8Array",
    });
  }
  const value = Math.fround(number);
  const signBit = 2 ** (exponent + mantissa);
  const infinity = (2 ** exponent - 1) * 2 ** mantissa;
  const sign = value < 0 || Object.is(value, -0) ? signBit : 0;
  const magnitude = magnitudeBits(Math.abs(value), mantissa, bias);
  switch (special) {
    case "ieee":
      return Number.isNaN(value) ? infinity + 2 ** (mantissa - 1) : sign + Math.min(magnitude, infinity);
    case "fn":
      return Number.isNaN(value) ? signBit - 1 : sign + Math.min(magnitude, signBit - 2);
    case "fnuz":
      if (Number.isNaN(value) || magnitude >= signBit) return signBit;
      return magnitude === 0 ? 0 : sign + magnitude;
  }
}

/** Exponent and mantissa of a number that is not negative, as if the exponent had no limit. */
function magnitudeBits(value: number, mantissa: number, bias: number): number {
  if (value === 0) return 0;
  if (value === Infinity) return Infinity;
  const power = Math.max(exponentOf(value), 1 - bias);
  const steps = roundHalfEven(value / 2 ** (power - mantissa));
  // Steps of a subnormal number are its bits. Otherwise the leading one is left out, and a carry raises the exponent.
  return steps < 2 ** mantissa ? steps : (power + bias - 1) * 2 ** mantissa + steps;
}

/** The exponent of the highest bit of a positive float32. */
function exponentOf(value: number): number {
  const power = Math.floor(Math.log2(value));
  // The logarithm is rounded, so just below a power of two it may be one too large.
  return 2 ** power > value ? power - 1 : power;
}

function roundHalfEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  return rest > 0.5 || (rest === 0.5 && floor % 2 === 1) ? floor + 1 : floor;
}
