/**
 * Which modules are `torch.nn`'s own, which tracing takes as they are.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { checkGiven } from "../base/given.ts";
import { answerMembersOf } from "../base/pythonNames.ts";
import { respellModules } from "../graph/spelling.ts";
import type { Module } from "./module.ts";

/** A class of modules. */
interface ModuleClass {
  readonly prototype: Module;
  readonly forwardSignature?: string | undefined;
}

const names = new WeakMap<object, string>();
const byName = new Map<string, ModuleClass>();
const containers = new WeakSet<object>();
const bases = new WeakSet<object>();

/**
 * Notes that the modules of exactly these classes are `torch.nn`'s own, under the names that they have there: a bundler may
 * have given the classes shorter ones.
 */
export function markBuiltin(classes: Readonly<Record<string, ModuleClass>>): void {
  remember(classes);
  for (const it of Object.values(classes)) respellModules(it);
}

/** Notes the same of classes into whose modules tracing looks. */
export function markContainer(classes: Readonly<Record<string, ModuleClass>>): void {
  remember(classes);
  for (const it of Object.values(classes)) containers.add(it);
}

function remember(classes: Readonly<Record<string, ModuleClass>>): void {
  for (const [name, it] of Object.entries(classes)) {
    names.set(it, name);
    answerMembersOf(it);
    if (!byName.has(name)) byName.set(name, it);
  }
}

/** Notes a class that classes of `torch.nn` have their `forward` from, and that has no modules of its own. */
export function markShared(shared: ModuleClass): void {
  bases.add(shared);
}

/** The name of a class of `torch.nn` itself; of none that extends one. */
export function builtinNameOf(constructor: object): string | undefined {
  return names.get(constructor);
}

/** The class of `torch.nn` of this name. */
export function builtinClassNamed(name: string): (abstract new (...args: never[]) => Module) | undefined {
  return byName.get(name) as (abstract new (...args: never[]) => Module) | undefined;
}

/** The class that the `forward` of a module is from; a function that the module has by itself is from none. */
function forwardClassOf(module: Module): ModuleClass | undefined {
  if (Object.hasOwn(module, "forward")) return undefined;
  let prototype = Object.getPrototypeOf(module) as object;
  while (!Object.hasOwn(prototype, "forward")) prototype = Object.getPrototypeOf(prototype) as object;
  return prototype.constructor as unknown as ModuleClass;
}

/**
 * The parameter list of a module's `forward` in Python's words, where it is known. It is that of the class that has the
 * function: a class that overrides `forward` may have given it other parameters.
 */
export function forwardSignatureOf(module: Module): string | undefined {
  const owner = forwardClassOf(module);
  if (owner === undefined || Object.hasOwn(owner, "forwardSignature")) return owner?.forwardSignature;
  return hasBuiltinForward(module) ? (owner.forwardSignature ?? "(input)") : undefined;
}

/** Whether the `forward` of a module is one of `torch.nn`'s, whatever the class of the module. */
export function hasBuiltinForward(module: Module): boolean {
  const owner = forwardClassOf(module);
  return owner !== undefined && (names.has(owner) || bases.has(owner));
}

/**
 * Whether the module is `torch.nn`'s own and no Sequential; one of a subclass of such a class is the user's.
 *
 * @example
 * ```ts
 * isBuiltinModule(new Linear(4, 3)); // true
 * isBuiltinModule(new (class extends Linear {})(4, 3)); // false
 * ```
 */
export function isBuiltinModule(module: Module): boolean {
  checkGiven("isBuiltinModule", isObject(module), "a module");
  return names.has(module.constructor) && !containers.has(module.constructor);
}
