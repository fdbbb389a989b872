/**
 * The builds of the engine, and which of them this host can run.
 *
 * @module
 */
import type { PackagedPart } from "./parts.ts";

/** A build of the engine. There is one so far; builds with relaxed SIMD and with threads come when kernels use them. */
export type Variant = "simd";

/**
 * Where the module of each build lies. Each is a literal `new URL(…, import.meta.url)`, the one form that bundlers
 * recognise and rewrite.
 */
export const MODULES: Readonly<Record<Variant, () => URL>> = {
  simd: () => new URL("../../wasm/engine-simd.wasm", import.meta.url),
};

/**
 * The parts of a build that are fetched when they are needed: `edit` has passes, decompositions, export and what saves programs, and
 * `rare` what programs seldom call.
 */
export type PartName = "edit" | "rare";

/** Where the parts of each build lie, in the order of their numbers. */
export const PARTS: Readonly<Record<Variant, readonly PackagedPart<PartName>[]>> = {
  simd: [
    ["edit", "engine-edit", () => new URL("../../wasm/engine-edit.wasm", import.meta.url)],
    ["rare", "engine-rare", () => new URL("../../wasm/engine-rare.wasm", import.meta.url)],
  ],
};

/** `(func (result v128) i32.const 0 i8x16.splat i8x16.popcnt)`. */
const SIMD = [
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
];

/** The fastest build that this host can run; undefined where it can run none. */
export function bestVariant(): Variant | undefined {
  if (WebAssembly.validate(Uint8Array.from(SIMD))) return "simd";
  return undefined;
}
