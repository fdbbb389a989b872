/**
 * tracefx: torch.fx and torch.export for TypeScript.
 *
 * @module
 */
export { DTYPES, type DType } from "./bindings/dtypes.ts";
export { engineVersion, type InitOptions, init, initSync, restart } from "./engine/engine.ts";
export type { ModuleSource } from "./engine/module.ts";
export type { Variant } from "./engine/variant.ts";
export * from "./errors.ts";
