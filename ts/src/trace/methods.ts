/**
 * The functions that a call of a member of the module reaches while it is traced.
 *
 * A member may be a method, a function in a field, one in an array or an object that the module holds, or a method of an
 * object of another class. What is reached is read as the traced function itself is. Nothing of the user's runs for it:
 * getters are left alone.
 *
 * @module
 */
import { Module } from "../nn/module.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Reached } from "./analysis/check.ts";
import type { MethodCall } from "./analysis/knowledge.ts";
import { privateFunctions, type Readable } from "./analysis/parse.ts";

/** What it takes to know which calls a trace runs through. */
interface MethodContext {
  /** Whether a call of the module becomes one node. */
  readonly isLeaf: (module: Module) => boolean;
}

/** Whether a method of a module only calls `forward`, which the tracer sees. */
function isDispatch(name: string | undefined): boolean {
  return name === "forward" || name === "call";
}

/** Finds the functions that a call reaches, of those that run as a part of the trace of this module. */
export function methodsOf(
  root: Module,
  { isLeaf }: MethodContext,
): (call: MethodCall, from: Readable) => Reached<Readable>[] {
  // In a method of another object, `this` is that object.
  const owners = new Map<Readable, object>();
  return ({ root: on, path }, from) => {
    const name = path.at(-1) ?? "";
    const self = owners.get(from) ?? root;
    if (on === "super") return path.length === 1 ? superMethod(self, name, from).map((fn) => ({ fn })) : [];
    let holders: unknown[] = [self];
    for (const part of path.slice(0, -1)) holders = holders.flatMap((it) => itemsOf(it, part));
    return holders.flatMap((holder): Reached<Readable>[] => {
      if (typeof holder === "function") return INDIRECT.has(name) ? [{ fn: holder, isIndirect: true }] : [];
      if (typeof holder !== "object" || holder === null) return [];
      if (holder instanceof Module && (isDispatch(name) || (holder !== self && isLeaf(holder)))) return [];
      return functionsIn(holder, name).map((fn) => {
        if (!owners.has(fn) && holder !== root) owners.set(fn, holder);
        return { fn };
      });
    });
  };
}

/** The methods of functions that call them with other arguments than those that they are given. */
const INDIRECT: ReadonlySet<string> = new Set(["call", "apply", "bind"]);

/** What stands in a value under a name; `*` is any element. */
function itemsOf(value: unknown, name: string): unknown[] {
  if (typeof value !== "object" || value === null || value instanceof Tensor) return [];
  if (value instanceof Module) {
    const attributes = name === "*" ? [...value.attributes.values()] : [value.attributes.get(name)];
    const modules = attributes.flatMap((it) => (it?.kind === "module" ? [it.module] : []));
    if (modules.length > 0 || name === "*") return modules;
  }
  if (name !== "*") {
    const own: unknown = Object.getOwnPropertyDescriptor(value, name)?.value;
    return own === undefined ? functionsIn(value, name) : [own];
  }
  if (value instanceof Map || value instanceof Set) return [...value.values()];
  return Object.values(Object.getOwnPropertyDescriptors(value)).map((it): unknown => it.value);
}

/** The functions of the user's that an object has under a name: its own, or those of its class. */
function functionsIn(object: object, name: string): Readable[] {
  if (object instanceof Tensor) return [];
  if (name === "*") return itemsOf(object, name).filter(isUsers);
  if (name.startsWith("#")) return classesOf(object).flatMap((it) => privateFunctions(it).get(name) ?? []);
  const found = propertyOf(object, name);
  return isUsers(found) && found !== Reflect.get(Module.prototype, name) ? [found] : [];
}

/** Whether this is a function that records nothing by itself. */
function isUsers(value: unknown): value is Function {
  return typeof value === "function" && !("target" in value && typeof value.target === "string");
}

/** The value of a property of an object or of its classes, unless it is computed. */
function propertyOf(object: object, name: string): unknown {
  for (let it: unknown = object; typeof it === "object" && it !== null; it = Object.getPrototypeOf(it)) {
    const descriptor = Object.getOwnPropertyDescriptor(it, name);
    if (descriptor !== undefined) return descriptor.value;
  }
  return undefined;
}

/** The classes of an object, the innermost first. */
function classesOf(object: object): Function[] {
  const res: Function[] = [];
  for (let it: unknown = Object.getPrototypeOf(object); typeof it === "object" && it !== null; ) {
    const owner: unknown = Object.getOwnPropertyDescriptor(it, "constructor")?.value;
    if (owner === Module || owner === Object) break;
    if (typeof owner === "function") res.push(owner);
    it = Object.getPrototypeOf(it);
  }
  return res;
}

/** The method of the class above the one that a function belongs to. */
function superMethod(object: object, name: string, from: Readable): Function[] {
  for (let it: unknown = Object.getPrototypeOf(object); typeof it === "object" && it !== null; ) {
    const owns = Object.values(Object.getOwnPropertyDescriptors(it)).some(({ value }) => value === from);
    const above: unknown = Object.getPrototypeOf(it);
    if (owns && typeof above === "object" && above !== null && above !== Module.prototype) {
      const method = propertyOf(above, name);
      return typeof method === "function" ? [method] : [];
    }
    it = above;
  }
  return [];
}
