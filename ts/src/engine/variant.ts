/**
 * The builds of the engine, and which of them this host can run.
 *
 * @module
 */
import type { PackagedPart } from "./parts.ts";

/** A build of the engine. There is one so far, with threads or without; one with relaxed SIMD comes when kernels use it. */
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

/** `(memory 1) (func (result v128) i32.const 0 i32.atomic.load i8x16.splat i8x16.popcnt)`, in base64. */
const SIMD_AND_ATOMICS = "AGFzbQEAAAABBQFgAAF7AwIBAAUDAQABCg4BDABBAP4QAgD9D/1iCw==";

/** The fastest build that this host can run; undefined where it can run none. */
export function bestVariant(): Variant | undefined {
  if (WebAssembly.validate(Uint8Array.from(atob(SIMD_AND_ATOMICS), (it) => it.charCodeAt(0)))) return "simd";
  return undefined;
}
