/**
 * The builds of the engine, and which of them this host can run.
 *
 * @module
 */

/** A build of the engine: `simd` runs everywhere, `relaxed` uses relaxed SIMD where the host has it. */
export type Variant = "simd" | "relaxed";

/**
 * Where the module of each build lies. Each is a literal `new URL(…, import.meta.url)`, the one form that bundlers
 * recognise and rewrite.
 */
export const MODULES: Readonly<Record<Variant, () => URL>> = {
  simd: () => new URL("../../wasm/engine-simd.wasm", import.meta.url),
  relaxed: () => new URL("../../wasm/engine-relaxed.wasm", import.meta.url),
};

/** `(func (result v128) i32.const 0 i8x16.splat i8x16.popcnt)`. */
const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
];

/** `(func (result v128) i32.const 1 i8x16.splat i32.const 2 i8x16.splat i8x16.relaxed_swizzle)`. */
const RELAXED = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15,
  253, 128, 2, 11,
];

/** The fastest build that this host can run; undefined where it can run none. */
export function bestVariant(): Variant | undefined {
  if (WebAssembly.validate(Uint8Array.from(RELAXED))) return "relaxed";
  if (WebAssembly.validate(Uint8Array.from(SIMD))) return "simd";
  return undefined;
}
