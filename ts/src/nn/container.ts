/**
 * Modules that hold modules: `Sequential`, `ModuleList`, `ModuleDict`.
 *
 * @module
 */
import { checkGiven, checkIterable } from "../base/given.ts";
import { fxError } from "../base/errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { attributesOfKind } from "./attributeMap.ts";
import { markBuiltin, markContainer } from "./builtin.ts";
import { type Attribute, callFromInside, Module } from "./module.ts";

/** Modules by name, in order. */
export type NamedModules = ReadonlyMap<string, Module> | Readonly<Record<string, Module>>;

/** What lists of modules are: modules whose names are their positions. */
abstract class Indexed extends Module implements Iterable<Module> {
  readonly [index: number]: Module;

  /** The number of modules. */
  override get length(): number {
    return attributesOfKind(this, "module").names.length;
  }

  /** The module at a position; -1 is the last one. */
  at(index: number): Module {
    return moduleAt(this, positionOf(this, index));
  }

  /** Puts a module in the place of another. */
  set(index: number, module: Module): void {
    const name = attributesOfKind(this, "module").names[positionOf(this, index)] as string;
    this.attributes.set(name, { kind: "module", module: checked(this, module) });
  }

  /** Puts a module behind all others. */
  append(module: Module): this {
    this.addModule(String(this.length), checked(this, module));
    return this;
  }

  /** Puts modules behind all others. */
  extend(modules: Iterable<Module>): this {
    checkIterable(`${this.className}.extend`, "modules", modules);
    // They may come from this list, which grows.
    for (const module of Array.from(modules)) this.append(module);
    return this;
  }

  /** Puts a module before the one at a position. */
  insert(index: number, module: Module): this {
    const modules = modulesOf(this);
    if (!Number.isInteger(index) || index < -modules.length || index > modules.length) {
      throw fxError("IndexOutOfRange", `Index out of range: ${index}`, { help: `there are ${modules.length} modules` });
    }
    if (namesOf(this).some((name, at) => name !== String(at))) {
      throw fxError("GraphArgument", "the modules have names that are not their positions", {
        help: "make a new container with the names in order",
      });
    }
    modules.splice(index, 0, checked(this, module));
    replaceModules(this, modules);
    return this;
  }

  /** Takes a module out and gives it back; those behind it get new names. */
  pop(index = -1): Module {
    const modules = modulesOf(this);
    const [res] = modules.splice(positionOf(this, index), 1);
    replaceModules(this, modules);
    return res as Module;
  }

  [Symbol.iterator](): IterableIterator<Module> {
    return modulesOf(this)[Symbol.iterator]();
  }
}

/**
 * Modules that are called one after another.
 *
 * @example
 * ```ts
 * const net = new Sequential(new Linear(4, 8), new ReLU(), new Linear(8, 2));
 * const named = new Sequential({ first: new Linear(4, 8), act: new ReLU() });
 * net[0]; // the first Linear
 * ```
 */
export class Sequential extends Indexed {
  constructor(...modules: readonly Module[] | readonly [NamedModules]) {
    super();
    const [first] = modules;
    if (modules.length === 1 && first !== undefined && !(first instanceof Module)) {
      for (const [name, module] of entriesOf(first)) this.addModule(name, checked(this, module));
    } else {
      this.extend(modules as readonly Module[]);
    }
  }

  /** A part of the modules, with their names. */
  slice(start?: number, end?: number): Sequential {
    const names = namesOf(this);
    const modules = modulesOf(this).slice(start, end);
    return new Sequential(new Map(names.slice(start, end).map((name, at) => [name, modules[at] as Module])));
  }

  override forward(input: Tensor): Tensor {
    let res = input;
    for (const module of this) res = callFromInside(module, res) as Tensor;
    return res;
  }
}

/**
 * A list of modules, which calls none of them.
 *
 * @example
 * ```ts
 * class Net extends Module {
 *   layers = new ModuleList(Array.from({ length: 3 }, () => new Linear(4, 4)));
 *   forward(x: Tensor): Tensor {
 *     for (const layer of this.layers) x = layer.call(x) as Tensor;
 *     return x;
 *   }
 * }
 * ```
 */
export class ModuleList extends Indexed {
  constructor(modules: Iterable<Module> = []) {
    super();
    if (typeof (modules as Partial<Iterable<Module>> | null)?.[Symbol.iterator] !== "function") {
      throw fxError("InvalidArgument", "ModuleList takes a list of modules", {
        help: "new ModuleList([first, second])",
      });
    }
    this.extend(modules);
  }

  /** A list of a part of the modules. */
  slice(start?: number, end?: number): ModuleList {
    return new ModuleList(modulesOf(this).slice(start, end));
  }

  /** As PyTorch prints it: equal modules in a row are printed once. */
  override repr(): string {
    const texts = modulesOf(this).map((module) => module.repr());
    if (texts.length === 0) return `${this.className}()`;
    const lines: string[] = [];
    for (let start = 0; start < texts.length; ) {
      let end = start + 1;
      while (texts[end] === texts[start]) end++;
      const head = end - start === 1 ? `(${start}): ` : `(${start}-${end - 1}): ${end - start} x `;
      lines.push(`  ${(head + texts[start]).replaceAll("\n", "\n  ")}`);
      start = end;
    }
    return `${this.className}(\n${lines.join("\n")}\n)`;
  }
}

/**
 * Modules by name, which calls none of them.
 *
 * @example
 * ```ts
 * const heads = new ModuleDict({ classes: new Linear(8, 10), boxes: new Linear(8, 4) });
 * heads.get("classes").call(x);
 * ```
 */
export class ModuleDict extends Module implements Iterable<[string, Module]> {
  constructor(modules: NamedModules = {}) {
    super();
    this.update(modules);
  }

  /** The number of modules. */
  get size(): number {
    return attributesOfKind(this, "module").names.length;
  }

  /** The module of this name. */
  get(name: string): Module {
    const found = this.attributes.get(name);
    if (found?.kind === "module") return found.module;
    throw fxError("AttributeMissing", `the ModuleDict has no module \`${name}\``, {
      help: `it has ${namesOf(this).join(", ") || "none"}`,
    });
  }

  /** Whether there is a module of this name. */
  has(name: string): boolean {
    return this.attributes.get(name)?.kind === "module";
  }

  /** Puts a module under this name. */
  set(name: string, module: Module): this {
    this.addModule(name, checked(this, module));
    return this;
  }

  /** Removes the module of this name; whether there was one. */
  delete(name: string): boolean {
    return this.has(name) && this.attributes.delete(name);
  }

  /** Removes the module of this name and gives it back. */
  pop(name: string): Module {
    const res = this.get(name);
    this.attributes.delete(name);
    return res;
  }

  /** Removes all modules. */
  clear(): void {
    for (const name of namesOf(this)) this.attributes.delete(name);
  }

  /** Adds modules, in the place of those of the same names. */
  update(modules: NamedModules | ModuleDict): this {
    for (const [name, module] of modules instanceof ModuleDict ? modules : entriesOf(modules)) this.set(name, module);
    return this;
  }

  /** The names. */
  keys(): IterableIterator<string> {
    return namesOf(this)[Symbol.iterator]();
  }

  /** The modules. */
  values(): IterableIterator<Module> {
    return modulesOf(this)[Symbol.iterator]();
  }

  [Symbol.iterator](): IterableIterator<[string, Module]> {
    const modules = modulesOf(this);
    const entries = namesOf(this).map((name, at): [string, Module] => [name, modules[at] as Module]);
    return entries[Symbol.iterator]();
  }
}

/** Names and values of a `Map` or an object. */
export function entriesOf<T>(items: ReadonlyMap<string, T> | Readonly<Record<string, T>>): [string, T][] {
  checkGiven("a container", typeof items === "object" && items !== null, "a Map or an object");
  return items instanceof Map ? [...(items as ReadonlyMap<string, T>)] : Object.entries(items);
}

/** The position that an index means, counting from the end where it is negative. */
export function positionIn(length: number, index: number): number {
  if (Number.isInteger(index) && index >= -length && index < length) return index < 0 ? index + length : index;
  throw fxError("IndexOutOfRange", `index ${index} is out of range`, { help: `there are ${length}` });
}

function positionOf(container: Indexed, index: number): number {
  return positionIn(container.length, index);
}

function namesOf(container: Module): string[] {
  return [...attributesOfKind(container, "module").names];
}

function modulesOf(container: Module): Module[] {
  return attributesOfKind(container, "module").attributes.flatMap((it) => (it.kind === "module" ? [it.module] : []));
}

function moduleAt(container: Module, position: number): Module {
  const found = attributesOfKind(container, "module").attributes[position];
  return (found as Extract<Attribute, { readonly kind: "module" }>).module;
}

function replaceModules(container: Module, modules: readonly Module[]): void {
  for (const name of namesOf(container)) container.attributes.delete(name);
  for (const [at, module] of modules.entries()) container.attributes.set(String(at), { kind: "module", module });
}

function checked(container: Module, module: Module): Module {
  if (module instanceof Module) return module;
  throw fxError("GraphArgument", `a ${container.className} holds modules, not a value of type ${typeof module}`);
}

markContainer({ Sequential });
markBuiltin({ ModuleList, ModuleDict });
