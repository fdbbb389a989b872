/**
 * Elements of tensors: which array holds a dtype, and what a single element is in JavaScript.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { Complex } from "../base/values.ts";
import { decodeFloat, type SmallFloat } from "./floats.ts";

const ARRAYS = {
  bool: Uint8Array,
  uint8: Uint8Array,
  int8: Int8Array,
  uint16: Uint16Array,
  int16: Int16Array,
  uint32: Uint32Array,
  int32: Int32Array,
  uint64: BigUint64Array,
  int64: BigInt64Array,
  float8_e4m3fn: Uint8Array,
  float8_e5m2: Uint8Array,
  float8_e4m3fnuz: Uint8Array,
  float8_e5m2fnuz: Uint8Array,
  float8_e8m0fnu: Uint8Array,
  float16: Uint16Array,
  bfloat16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
  complex32: Uint16Array,
  complex64: Float32Array,
  complex128: Float64Array,
} as const satisfies Record<DType, unknown>;

/**
 * The array that holds a dtype: the elements themselves, the bits of floats that JavaScript has no array for, 0 and 1 for
 * bools, and real and imaginary parts in turn for complex numbers.
 */
export type ElementArray<D extends DType = DType> = InstanceType<(typeof ARRAYS)[D]>;

/** One element: an int that a `number` cannot hold exactly is a `bigint`. */
export type Element = number | bigint | boolean | Complex;

/** How many entries of the array one element takes. */
export function entriesPerElement(dtype: DType): 1 | 2 {
  return DTYPES[dtype].kind === "complex" ? 2 : 1;
}

/** The bytes as an array of this dtype; shares their memory where the alignment allows. */
export function viewElements<D extends DType>(dtype: D, bytes: Uint8Array): ElementArray<D> {
  const Elements: new (buffer: ArrayBufferLike, at: number, length: number) => ElementArray = ARRAYS[dtype];
  const size = DTYPES[dtype].size / entriesPerElement(dtype);
  const aligned = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
  return new Elements(aligned.buffer, aligned.byteOffset, aligned.byteLength / size) as ElementArray<D>;
}

/** The array as bytes, sharing its memory. */
export function bytesOf(array: ArrayBufferView): Uint8Array {
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

/** One element of an array of this dtype. */
export function elementAt(dtype: DType, array: ElementArray, index: number): Element {
  if (DTYPES[dtype].kind === "complex") {
    return new Complex(realAt(dtype, array, 2 * index), realAt(dtype, array, 2 * index + 1));
  }
  const entry = array[index] as number | bigint;
  if (dtype === "bool") return entry !== 0;
  if (typeof entry === "bigint") return Number.isSafeInteger(Number(entry)) ? Number(entry) : entry;
  return realAt(dtype, array, index);
}

/** One entry of an array of this dtype as a number; ints beyond 2^53 are rounded. */
export function realAt(dtype: DType, array: ElementArray, entry: number): number {
  const value = array[entry] as number | bigint;
  if (typeof value === "bigint") return Number(value);
  switch (dtype) {
    case "float16":
    case "bfloat16":
    case "float8_e4m3fn":
    case "float8_e5m2":
    case "float8_e4m3fnuz":
    case "float8_e5m2fnuz":
    case "float8_e8m0fnu":
      return decodeFloat(dtype satisfies SmallFloat, value);
    case "complex32":
      return decodeFloat("float16", value);
    case "bool":
    case "uint8":
    case "int8":
    case "uint16":
    case "int16":
    case "uint32":
    case "int32":
    case "uint64":
    case "int64":
    case "float32":
    case "float64":
    case "complex64":
    case "complex128":
      return value;
  }
}
