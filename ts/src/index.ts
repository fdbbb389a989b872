/**
 * tracefx: torch.fx and torch.export for TypeScript.
 *
 * @module
 */
export { DTYPES, type DType } from "./bindings/dtypes.ts";
export * from "./errors.ts";
