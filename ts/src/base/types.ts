/**
 * What callers may give where PyTorch's schemas ask for a number, a dtype and the like.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import type {
  Complex,
  DeviceArg,
  DTypeArg,
  Float,
  LayoutArg,
  LayoutName,
  MemoryFormatArg,
  MemoryFormatName,
} from "./values.ts";

/** An int. */
export type Int = number | bigint;
/** A float; whole numbers are taken for floats where a float is asked for. */
export type Real = number | Float;
/** A number: `1` is an int, `1.5` and `float(1)` are floats. */
export type Scalar = number | bigint | boolean | Float | Complex;
/** A dtype, or its name. */
export type DTypeLike = DType | DTypeArg;
/** A device, or its name, such as `cpu`. */
export type DeviceLike = string | DeviceArg;
/** A layout, or its name. */
export type LayoutLike = LayoutName | LayoutArg;
/** A memory format, or its name. */
export type MemoryFormatLike = MemoryFormatName | MemoryFormatArg;
