/**
 * Relaxed SIMD: which hosts have it, and which build is chosen by it.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";

/**
 * A build, with threads or without: `relaxed` has instructions of relaxed SIMD beside those of `simd`, which multiply and add at once where
 * the processor does. They are in a part of their own; plans have them where `precision` is `"fast"`.
 */
export type Variant = "simd" | "relaxed";

/** The part of a module whose functions have relaxed SIMD. A host without it cannot compile them. */
export const RELAXED = "relaxed";

/** `(func (param v128 v128 v128) (result v128) local.get 0 local.get 1 local.get 2 f32x4.relaxed_madd)`, in base64. */
const RELAXED_MADD = "AGFzbQEAAAABCAFgA3t7ewF7AwIBAAoNAQsAIAAgASAC/YUCCw==";

/** Whether this host has relaxed SIMD. */
export function hasRelaxedSimd(): boolean {
  return WebAssembly.validate(Uint8Array.from(atob(RELAXED_MADD), (it) => it.charCodeAt(0)));
}

/** The build that is asked for, or the best one. Throws where there is none of this name, or the host cannot run it. */
export function chosenVariant(asked: Variant | undefined): Variant {
  const has = hasRelaxedSimd();
  switch (asked) {
    case undefined:
      return has ? "relaxed" : "simd";
    case "simd":
      return asked;
    case "relaxed":
      if (has) return asked;
      throw fxError("NotImplemented", "this host has no WebAssembly with relaxed SIMD", {
        help: "leave `variant` out: then what the host has is taken",
      });
    default:
      throw fxError("InvalidOption", `there is no variant ${String(asked)}`, {
        help: "the variants are simd and relaxed",
      });
  }
}
