/**
 * Which modules are `torch.nn`'s own, which tracing takes as they are.
 *
 * @module
 */
import type { Module } from "./module.ts";

const builtin = new WeakSet<object>();
const byName = new Map<string, abstract new (...args: never[]) => Module>();

/** Notes that the modules of exactly this class are `torch.nn`'s own and no containers. */
export function markBuiltin(constructor: abstract new (...args: never[]) => Module): void {
  builtin.add(constructor);
  byName.set(constructor.name, constructor);
}

/** Whether the module is `torch.nn`'s own; one of a subclass of such a class is the user's. */
export function isBuiltinModule(module: Module): boolean {
  return builtin.has(module.constructor);
}

/** Whether a class is one of `torch.nn`'s own. */
export function isBuiltinClass(constructor: object): boolean {
  return builtin.has(constructor);
}

/** The class of `torch.nn` of this name. */
export function builtinClassNamed(name: string): (abstract new (...args: never[]) => Module) | undefined {
  return byName.get(name);
}
