/**
 * Where in the tree of modules a call stands: FX's `Scope`.
 *
 * @module
 */
import type { Module } from "../nn/module.ts";
import { qualifiedNameOf } from "../nn/qualifiedNames.ts";
import type { CapturedStack } from "../record/stack.ts";

/** The module that is being called, and those around it. */
export class Scope {
  readonly path: string;
  /** How often the module was called before. */
  readonly count: number;
  readonly outer: Scope | undefined;
  /** Where the module was called. */
  readonly stack: CapturedStack | undefined;
  readonly #module: Module | undefined;

  constructor(path: string, module?: Module, count = 0, outer?: Scope, stack?: CapturedStack) {
    this.path = path;
    this.#module = module;
    this.count = count;
    this.outer = outer;
    this.stack = stack;
  }

  /** The name of the class of the module; asked for when somebody reads it, and not in each call. */
  get type(): string {
    return this.#module?.className ?? "";
  }

  /** The same as programs name it. */
  get qualifiedType(): string {
    return this.#module === undefined ? "" : qualifiedNameOf(this.#module);
  }

  /** The path, with the number of the call where the module was called before: `layer@1`. */
  get key(): string {
    return this.count === 0 ? this.path : `${this.path}@${this.count}`;
  }
}

/** Not in a module, or in the root. */
export const ROOT_SCOPE: Scope = new Scope("");

/** FX's `nn_module_stack`: path and class of the modules around a node, outermost first. */
export function moduleStack(scope: Scope): Map<string, readonly [path: string, type: string]> {
  const inner: Scope[] = [];
  for (let at = scope; at.outer !== undefined; at = at.outer) inner.unshift(at);
  return new Map(inner.map(({ key, path, type }) => [key, [path, type]]));
}

/** PyTorch's `nn_module_stack` of exports: from keys to paths and classes, the root first. */
export function moduleStackFrom(root: Module, innermost: Scope): Map<string, readonly [path: string, type: string]> {
  const inner: Scope[] = [];
  for (let at: Scope | undefined = innermost; at?.outer !== undefined; at = at.outer)
    if (at.path !== "") inner.unshift(at);
  const entries = inner.map(({ key, path, qualifiedType }) => [`L__self__${key}`, [path, qualifiedType]] as const);
  return new Map([["L__self__", ["", qualifiedNameOf(root)]], ...entries]);
}

/** A stack with those of the calls of modules around it. */
export function stacksAround(innermost: CapturedStack, scope: Scope): CapturedStack[] {
  const res = [innermost];
  for (let at: Scope | undefined = scope; at !== undefined; at = at.outer)
    if (at.stack !== undefined) res.push(at.stack);
  return res;
}
