/**
 * The functions that a call of a member of the module reaches while it is traced.
 *
 * A member may be a method, a function in a field, one in an array or an object that the module holds, or a method of an
 * object of another class. What is reached is read as the traced function itself is. Nothing of the user's runs for it:
 * getters are left alone.
 *
 * @module
 */
import { isPlainFunction } from "../base/objects.ts";
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
      if (holder === OPAQUE) return [OPAQUE];
      if (isPlainFunction(holder) && INDIRECT.has(name))
        return functionOf(holder).map((fn) => (fn === OPAQUE ? fn : { fn, isIndirect: true }));
      if ((typeof holder !== "object" && typeof holder !== "function") || holder === null) return [];
      if (holder instanceof Module && (isDispatch(name) || (holder !== self && isLeaf(holder)))) return [];
      if (keeps(holder, name)) return [KEPT];
      return functionsIn(holder, name).map((fn) => {
        if (fn === OPAQUE) return fn;
        if (!owners.has(fn) && holder !== root) owners.set(fn, holder);
        return { fn };
      });
    });
  };
}

/** Something that nobody can read without running code of the user's. */
const OPAQUE = "opaque";

/** Something that puts what it is given into what it is called on. */
const KEPT = "kept";

const KEEPING: ReadonlySet<string> = new Set(["push", "unshift", "splice", "fill", "set", "add"]);

/** Whether a method of an array, map or set of the user's keeps what it is given. */
function keeps(object: object, name: string): boolean {
  const owner = [Array, Map, Set, WeakMap, WeakSet].find((it) => object instanceof it);
  return owner !== undefined && KEEPING.has(name) && propertyOf(object, name) === Reflect.get(owner.prototype, name);
}

/** The methods of functions that call them with other arguments than those that they are given. */
const INDIRECT: ReadonlySet<string> = new Set(["call", "apply", "bind"]);

/** What stands in a value under a name; `*` is any element. */
function itemsOf(value: unknown, name: string): unknown[] {
  if (value === OPAQUE) return [OPAQUE];
  if ((typeof value !== "object" && typeof value !== "function") || value === null || value instanceof Tensor)
    return [];
  if (value instanceof Module) {
    const attributes = name === "*" ? [...value.attributes.values()] : [value.attributes.get(name)];
    const modules = attributes.flatMap((it) => (it?.kind === "module" ? [it.module] : []));
    if (modules.length > 0 || name === "*") return modules;
  }
  if (name !== "*") {
    const own = Object.getOwnPropertyDescriptor(value, name);
    return own === undefined ? [propertyOf(value, name)] : [valueOf(own)];
  }
  if (value instanceof Map || value instanceof Set) return [...value.values()];
  return Object.values(Object.getOwnPropertyDescriptors(value)).map(valueOf);
}

/** The functions of the user's that an object has under a name: its own, or those of its class. */
function functionsIn(object: object, name: string): (Readable | typeof OPAQUE)[] {
  if (object instanceof Tensor) return [];
  if (name === "*") {
    const own = itemsOf(object, name).flatMap(functionOf);
    return isPlainContainer(object) ? own : [...own, OPAQUE];
  }
  if (name.startsWith("#")) {
    const found = classesOf(object).flatMap((it) => privateFunctions(it).get(name) ?? []);
    return found.length === 0 ? [OPAQUE] : found;
  }
  const found = propertyOf(object, name);
  if (found === Reflect.get(Module.prototype, name) && object instanceof Module) return [];
  return functionOf(found);
}

/** Whether an object has no methods but those that JavaScript gives it. */
function isPlainContainer(object: object): boolean {
  if (Array.isArray(object)) return true;
  const prototype: unknown = Object.getPrototypeOf(object);
  return [Object.prototype, Map.prototype, Set.prototype, null].some((it) => it === prototype);
}

/** A function of the user's, that records nothing by itself; whether it can be read. */
function functionOf(value: unknown): (Function | typeof OPAQUE)[] {
  if (value === OPAQUE) return [OPAQUE];
  if (!isPlainFunction(value) || ("target" in value && typeof value.target === "string")) return [];
  if (!/\{\s*\[native code\]\s*\}\s*$/.test(Function.prototype.toString.call(value))) return [value];
  return isOfJavaScript(value) ? [] : [OPAQUE];
}

/** The functions of JavaScript's own. Others without source are bound ones, proxies around one, and those of the host. */
function isOfJavaScript(fn: Function): boolean {
  OF_JAVASCRIPT ??= new WeakSet(
    [...globalObjects()].flatMap((it) =>
      Object.values(Object.getOwnPropertyDescriptors(it)).flatMap(({ value, get, set }) =>
        [value as unknown, get, set].filter((one) => typeof one === "function"),
      ),
    ),
  );
  return OF_JAVASCRIPT.has(fn);
}

let OF_JAVASCRIPT: WeakSet<Function> | undefined;

/** Namespaces, classes and prototypes of the language. */
function* globalObjects(): Generator<object> {
  const TypedArray: unknown = Object.getPrototypeOf(Int8Array.prototype);
  yield* [
    Object,
    Function,
    Array,
    Map,
    Set,
    WeakMap,
    WeakSet,
    String,
    Number,
    Boolean,
    Symbol,
    BigInt,
    Promise,
  ].flatMap((it) => [it, it.prototype as object]);
  yield* [Math, JSON, Reflect, Date, Date.prototype, RegExp.prototype, Error.prototype, TypedArray as object];
}

/** The value of a property of an object or of its classes; that of one that is computed nobody knows. */
function propertyOf(object: object, name: string): unknown {
  let it: unknown = object;
  while ((typeof it === "object" || typeof it === "function") && it !== null) {
    const descriptor = Object.getOwnPropertyDescriptor(it, name);
    if (descriptor !== undefined) return valueOf(descriptor);
    it = Object.getPrototypeOf(it);
  }
  return undefined;
}

function valueOf(descriptor: PropertyDescriptor): unknown {
  return "value" in descriptor ? (descriptor.value as unknown) : OPAQUE;
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
