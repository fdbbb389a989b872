/**
 * Copies of modules with all that they hold: Python's `copy.deepcopy`.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import { ValueTuple } from "../base/values.ts";
import { HostStorage } from "../tensor/storage.ts";
import { Tensor, tensorBytes, tensorStorage } from "../tensor/tensor.ts";
import { type Attribute, copyHooks, Module } from "./module.ts";
import { Parameter } from "./parameter.ts";
import { copyPending, isPending } from "./state.ts";

/** The method by which a class says how its copies begin, before they get their attributes and properties. */
export const BEGIN_COPY: unique symbol = Symbol("begin copy");

/** A class whose copies must be begun by itself. */
interface BeginsCopy {
  [BEGIN_COPY](): Module;
}

/** Values nested deeper than this hold themselves in a way that is not seen, or are not meant to be copied. */
const MAX_DEPTH = 1000;

/**
 * A copy that shares nothing with the original: parameters, buffers, sub-modules, properties, and of a graph module the
 * graph. What stands in two places of the original stands in the same two places of the copy. Functions, hooks among
 * them, are the same.
 *
 * A copy is made without calling the constructor of its class, as in Python; private fields (`#name`) of a class are
 * not copied, since JavaScript shows them to nobody.
 *
 * @example
 * ```ts
 * const frozen = deepCopy(model).eval();
 * ```
 */
export function deepCopy<T extends Module | Tensor | readonly unknown[]>(value: T): T {
  return new Copier().value(value, 0) as T;
}

class Copier {
  readonly #copies = new Map<object, unknown>();

  value(value: unknown, depth: number): unknown {
    if (!isObject(value)) return value;
    const known = this.#copies.get(value);
    if (known !== undefined) return known;
    if (depth > MAX_DEPTH) throw fxError("LimitExceeded", `modules are nested deeper than ${MAX_DEPTH} levels`);
    const noted = <T>(copy: T): T => {
      this.#copies.set(value, copy);
      return copy;
    };
    if (value instanceof Module) return this.#fill(value, noted(begin(value)), depth);
    if (value instanceof Tensor) return noted(copyTensor(value));
    const each = (it: unknown): unknown => this.value(it, depth + 1);
    if (Object.isFrozen(value)) {
      // One that holds itself is found here again.
      noted(value);
      return noted(frozenCopy(value, each));
    }
    if (Array.isArray(value)) {
      const copy: unknown[] = noted([]);
      for (const it of value) copy.push(each(it));
      return copy;
    }
    if (value instanceof Map) {
      const copy = noted(new Map<unknown, unknown>());
      for (const [key, it] of value) copy.set(each(key), each(it));
      return copy;
    }
    if (value instanceof Set) {
      const copy = noted(new Set<unknown>());
      for (const it of value) copy.add(each(it));
      return copy;
    }
    if (!isOptions(value)) return value;
    const copy = noted(Object.create(Object.getPrototypeOf(value) as object | null) as Record<string, unknown>);
    for (const [key, it] of Object.entries(value)) define(copy, key, each(it));
    return copy;
  }

  #fill(module: Module, copy: Module, depth: number): Module {
    copy.training = module.training;
    for (const [name, attribute] of module.attributes) copy.attributes.set(name, this.#attribute(attribute, depth));
    for (const key of Object.keys(module)) {
      // What a new module has anyway was dealt with by the class that makes it.
      if (!Object.hasOwn(copy, key)) define(copy, key, this.value(Reflect.get(module, key), depth + 1));
    }
    const [notes, copied]: unknown[] = [Reflect.get(module, "meta"), Reflect.get(copy, "meta")];
    if (notes instanceof Map && copied instanceof Map) {
      for (const [key, it] of notes) copied.set(key, this.value(it, depth + 1));
    }
    copyHooks(module, copy);
    return copy;
  }

  #attribute(attribute: Attribute, depth: number): Attribute {
    if (attribute.kind === "module")
      return { kind: "module", module: this.value(attribute.module, depth + 1) as Module };
    return { ...attribute, tensor: this.value(attribute.tensor, depth + 1) as Tensor };
  }
}

/** A module of the same class without attributes; the constructors of the classes above Module do not run. */
function begin(module: Module): Module {
  const { [BEGIN_COPY]: own } = module as Partial<BeginsCopy>;
  return own === undefined ? (Reflect.construct(Module, [], module.constructor) as Module) : own.call(module);
}

/** What nobody can change is its own copy, unless it holds something that is copied. */
function frozenCopy(value: object, each: (it: unknown) => unknown): object {
  if (Array.isArray(value)) {
    const [items, copies] = [value as readonly unknown[], Array.from(value as readonly unknown[], each)];
    if (copies.every((it, at) => it === items[at])) return value;
    return value instanceof ValueTuple ? ValueTuple.frozen(copies) : Object.freeze(copies);
  }
  if (!isOptions(value)) return value;
  const copy = Object.create(Object.getPrototypeOf(value) as object | null) as Record<string, unknown>;
  for (const [key, it] of Object.entries(value)) define(copy, key, each(it));
  return Object.keys(copy).every((key) => copy[key] === value[key]) ? value : Object.freeze(copy);
}

function copyTensor(tensor: Tensor): Tensor {
  if (isPending(tensor)) return copyPending(tensor);
  const copy = tensorStorage(tensor).needsFree
    ? (callOperator("aten.clone", [tensor]) as Tensor)
    : new Tensor(tensor.dtype, tensor.shape, new HostStorage(tensorBytes(tensor).slice()));
  if (tensor instanceof Parameter) return new Parameter(copy, { requiresGrad: tensor.requiresGrad });
  copy.requiresGrad = tensor.requiresGrad;
  return copy;
}

/** Defines a property, also one whose name means something to assignments. */
function define(target: object, key: string, value: unknown): void {
  Object.defineProperty(target, key, { value, enumerable: true, writable: true, configurable: true });
}
