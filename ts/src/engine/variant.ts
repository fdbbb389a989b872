/**
 * Where the engine's module and its parts lie, and whether this host can run them.
 *
 * @module
 */
import type { PackagedPart } from "./parts.ts";
import { isValid, RELAXED } from "./relaxed.ts";

export type { Variant } from "./relaxed.ts";

/** Where the module of all builds lies: a literal `new URL(…, import.meta.url)`, the one form that bundlers recognise and rewrite. */
export const MODULES = { simd: (): URL => new URL("../../wasm/engine-simd.wasm", import.meta.url) };

/**
 * The parts of the engine that are not in its module: `edit` has passes, decompositions, export and what saves programs, `rare` what programs
 * seldom call, and `relaxed` the products of the build with relaxed SIMD.
 */
export type PartName = "edit" | "rare" | typeof RELAXED;

/** Where the parts lie, in the order of their numbers. */
export const PARTS: readonly PackagedPart<PartName>[] = [
  ["edit", "engine-edit", () => new URL("../../wasm/engine-edit.wasm", import.meta.url)],
  ["rare", "engine-rare", () => new URL("../../wasm/engine-rare.wasm", import.meta.url)],
  [RELAXED, "engine-relaxed", () => new URL("../../wasm/engine-relaxed.wasm", import.meta.url)],
];

/** `(memory 1) (func (result v128) i32.const 0 i32.atomic.load i8x16.splat i8x16.popcnt)`, in base64. */
const SIMD_AND_ATOMICS = "AGFzbQEAAAABBQFgAAF7AwIBAAUDAQABCg4BDABBAP4QAgD9D/1iCw==";

/** Whether this host can run the engine. */
export function canRunEngine(): boolean {
  return isValid(SIMD_AND_ATOMICS);
}
