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
  return isValid(RELAXED_MADD);
}

/** Whether this host can compile a module, which is given in base64. */
export function isValid(module: string): boolean {
  return WebAssembly.validate(Uint8Array.from(atob(module), (it) => it.charCodeAt(0)));
}

/** Whether a module has its part with relaxed SIMD: if it can be fetched, in any case, or not. */
export type RelaxedUse = "may" | "must" | "not";

/** What the build that is asked for, or else the best one, has of relaxed SIMD. Throws where the host has none of this name. */
export function relaxedUse(variant: Variant | undefined): RelaxedUse {
  const has = hasRelaxedSimd();
  if (variant === undefined) return has ? "may" : "not";
  if (variant === "simd") return "not";
  if (has && variant === RELAXED) return "must";
  throw fxError("InvalidOption", `this host has no variant ${String(variant)}`, {
    help: "leave `variant` out: then the best one is taken",
  });
}
