/**
 * Which modules are `torch.nn`'s own, which tracing takes as they are.
 *
 * @module
 */
import type { Module } from "./module.ts";

const builtin = new WeakSet<object>();

/** Notes that the modules of exactly this class are `torch.nn`'s own and no containers. */
export function markBuiltin(constructor: abstract new (...args: never[]) => Module): void {
  builtin.add(constructor);
}

/** Whether the module is `torch.nn`'s own; one of a subclass of such a class is the user's. */
export function isBuiltinModule(module: Module): boolean {
  return builtin.has(module.constructor);
}
