/**
 * The limits of dtypes: `torch.finfo` and `torch.iinfo`.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import type { DTypeLike } from "../base/types.ts";
import { DTypeArg } from "../base/values.ts";

/** The limits of a dtype of floats. */
export interface FloatInfo {
  /** The dtype; that of the parts, for complex numbers. */
  readonly dtype: DType;
  /** The bits of a number. */
  readonly bits: number;
  /** The distance from 1 to the next number. */
  readonly eps: number;
  /** The greatest number. */
  readonly max: number;
  /** The least number. */
  readonly min: number;
  /** The smallest number above zero that keeps all its digits. */
  readonly smallestNormal: number;
  /** As `smallestNormal`. */
  readonly tiny: number;
  /** The decimal precision: the power of ten at or above `eps`. */
  readonly resolution: number;
}

/** The limits of a dtype of integers. */
export interface IntInfo {
  /** The dtype. */
  readonly dtype: DType;
  /** The bits of a number. */
  readonly bits: number;
  /** The greatest number; a bigint for dtypes of 64 bits. */
  readonly max: number | bigint;
  /** The least number; a bigint for dtypes of 64 bits. */
  readonly min: number | bigint;
}

/** The digits behind the point, the least exponent of a normal number, and the greatest number. */
type Format = readonly [digits: number, exponent: number, max: number];

const FORMATS: Readonly<Partial<Record<DType, Format>>> = {
  float16: [10, -14, 65504],
  bfloat16: [7, -126, (2 - 2 ** -7) * 2 ** 127],
  float32: [23, -126, (2 - 2 ** -23) * 2 ** 127],
  float64: [52, -1022, Number.MAX_VALUE],
  float8_e4m3fn: [3, -6, 448],
  float8_e5m2: [2, -14, 57344],
  float8_e4m3fnuz: [3, -7, 240],
  float8_e5m2fnuz: [2, -15, 57344],
  float8_e8m0fnu: [0, -127, 2 ** 127],
};

/** The dtypes of the parts of complex numbers. */
export const PARTS: Readonly<Partial<Record<DType, DType>>> = {
  complex32: "float16",
  complex64: "float32",
  complex128: "float64",
};

/**
 * The limits of a dtype of floats or complex numbers; of float32 where none is given.
 *
 * @throws FxError `DTypeMismatch` for other dtypes.
 * @example
 * ```ts
 * torch.finfo(torch.float16).max; // 65504
 * ```
 */
export function finfo(dtype: DTypeLike = "float32"): FloatInfo {
  const given = nameOf(dtype, "finfo");
  const name = PARTS[given] ?? given;
  const format = FORMATS[name];
  if (format === undefined) {
    const what = "torch.finfo() requires a floating point input type. Use torch.iinfo to handle integers";
    throw fxError("DTypeMismatch", `${what}, such as ${given}`);
  }
  const [digits, exponent, max] = format;
  const eps = 2 ** -digits;
  const tiny = 2 ** exponent;
  // Powers of ten with a negative exponent are exact only where they are read as text.
  const resolution = Number(`1e-${Math.floor(digits * Math.log10(2))}`);
  // The format of exponents alone has no negative numbers.
  const min = name === "float8_e8m0fnu" ? tiny : -max;
  return Object.freeze({
    dtype: name,
    bits: 8 * DTYPES[name].size,
    eps,
    max,
    min,
    smallestNormal: tiny,
    tiny,
    resolution,
  });
}

/**
 * The limits of a dtype of integers.
 *
 * @throws FxError `DTypeMismatch` for other dtypes.
 * @example
 * ```ts
 * torch.iinfo(torch.int8).max; // 127
 * ```
 */
export function iinfo(dtype: DTypeLike): IntInfo {
  const name = nameOf(dtype, "iinfo");
  const { kind, size } = DTYPES[name];
  if (kind !== "int") {
    const help = kind === "bool" ? undefined : "torch.finfo has the limits of floats";
    throw fxError("DTypeMismatch", `torch.${name} is not supported by torch.iinfo`, { help });
  }
  const bits = 8 * size;
  const isSigned = name.startsWith("int");
  const span = 2n ** BigInt(isSigned ? bits - 1 : bits);
  const limit = (value: bigint): number | bigint => (bits === 64 ? value : Number(value));
  return Object.freeze({ dtype: name, bits, max: limit(span - 1n), min: limit(isSigned ? -span : 0n) });
}

function nameOf(dtype: unknown, asked: string): DType {
  const name = dtype instanceof DTypeArg ? dtype.name : dtype;
  if (typeof name === "string" && Object.hasOwn(DTYPES, name)) return name as DType;
  throw fxError("InvalidArgument", `torch.${asked}() takes a dtype, such as torch.float32 or "float32"`, {
    help: "a traced value has its dtype only when the graph runs",
  });
}
