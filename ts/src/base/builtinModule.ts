/**
 * The modules of Node, Deno and Bun.
 *
 * @module
 */

/** A module of Node's, where there is one. `getBuiltinModule` keeps the import out of the sight of bundlers. */
export const builtinModule: typeof process.getBuiltinModule = ((name: string) =>
  globalThis.process?.getBuiltinModule?.(name)) as typeof process.getBuiltinModule;
