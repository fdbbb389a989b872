/**
 * Functions and classes of the user's that a trace takes as they are: `torch.fx.wrap` and `ProxyableClassMeta`.
 *
 * @module
 */
import { isPlainFunction } from "../base/objects.ts";
import { checkGiven } from "../base/given.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { defineFunction, isDefined } from "./table.ts";
import type { NamedTarget } from "../graph/target.ts";
import { splitArguments } from "../base/naming.ts";
import { recorderOf } from "../record/record.ts";
import { enter, leave } from "../record/stack.ts";

/** What was wrapped, by what it was made of and by itself. */
const wrapped = new WeakMap<object, NamedTarget>();

/** The qualified names of what was wrapped. */
const targets = new Set<string>();

/** Whether a call of this name is one of a wrapped function or class. */
export function isWrapped(target: string): boolean {
  return targets.has(target);
}

/**
 * A function that a trace records as one call, without looking into it, where an argument is traced; with other arguments
 * it just runs: `torch.fx.wrap`. Graphs know it by its name, so it must be wrapped in the same way where such a graph is run.
 *
 * It is what it gives that records. Import that, not the function itself: JavaScript cannot change what others imported.
 *
 * @example
 * ```ts
 * export const batchSize = wrap(function batchSize(x: Tensor): number {
 *   return x.shape[0] > 8 ? 8 : x.shape[0];
 * });
 * symbolicTrace((x: Tensor) => x.narrow(0, 0, batchSize(x))); // call_function[target=batchSize]
 * ```
 */
export function wrap<F extends (...args: never[]) => unknown>(fn: F, name: string = fn?.name): F & NamedTarget {
  if (!isPlainFunction(fn) || isClass(fn)) {
    throw fxError("InvalidOption", "wrap takes a function", { help: "proxyableClass records the making of an object" });
  }
  const known = wrapped.get(fn);
  // What the function table has, records itself anyway.
  if (known === undefined && isNamed(fn)) return fn;
  if (known !== undefined) return sameName(known, name) as F & NamedTarget;
  checkName(name);
  return remember(fn, defineFunction(name, fn, { verbatim: true }));
}

/**
 * A class of which a trace records the making of an object as one call, where an argument is traced:
 * `torch.fx.ProxyableClassMeta`. It may be used as a decorator. Classes that extend it are not recorded by themselves.
 *
 * @example
 * ```ts
 * const Pair = proxyableClass(class Pair { constructor(readonly left: Tensor, readonly right: Tensor) {} });
 * symbolicTrace((x: Tensor) => new Pair(x, x).left); // call_function[target=Pair], getattr
 * ```
 */
export function proxyableClass<C extends abstract new (...args: never[]) => object>(
  definition: C,
  name?: string | ClassDecoratorContext,
): C & NamedTarget {
  if (!isClass(definition)) throw fxError("InvalidOption", "proxyableClass takes a class", { help: "wrap a function" });
  const target = typeof name === "string" ? name : definition.name;
  const known = wrapped.get(definition);
  if (known !== undefined) return sameName(known, target) as C & NamedTarget;
  checkName(target);
  const construct = (args: readonly unknown[], newTarget: Function): object =>
    Reflect.construct(definition, args, newTarget) as object;
  const handler = {
    construct: (_: C, args: unknown[], newTarget: Function): object => {
      const recorder = newTarget === proxyable ? recorderOf(args) : undefined;
      if (recorder === undefined) return construct(args, newTarget);
      const split = splitArguments(args, true);
      // This is what stands on the stack, and not the class.
      const outer = enter(handler.construct);
      try {
        return recorder.createProxy("call_function", target, split.args, split.kwargs) as object;
      } finally {
        leave(outer);
      }
    },
    get: (_: C, key: PropertyKey, receiver: unknown): unknown =>
      key === "target" ? target : (Reflect.get(definition, key, receiver) as unknown),
  };
  const proxyable = new globalThis.Proxy(definition, handler) as C & NamedTarget;
  defineFunction(target, (...args: unknown[]) => construct(args, proxyable as unknown as Function), { verbatim: true });
  return remember(definition, proxyable);
}

function remember<T extends NamedTarget & object>(source: object, made: T): T {
  wrapped.set(source, made);
  wrapped.set(made, made);
  targets.add(made.target);
  return made;
}

function isClass(value: unknown): boolean {
  return typeof value === "function" && /^class\b/.test(Function.prototype.toString.call(value));
}

function isNamed<F extends object>(fn: F): fn is F & NamedTarget {
  return "target" in fn && typeof fn.target === "string" && isDefined(fn.target);
}

/** What was wrapped before, which is harmless to do again, unless under another name. */
function sameName(known: NamedTarget, name: string): NamedTarget {
  // What wrap gives has the last part of its name.
  if (known.target === name || known.target.endsWith(`.${name}`)) return known;
  throw fxError("InvalidOption", `the function is wrapped as \`${known.target}\` already, and not as \`${name}\``, {
    help: "use what the first wrap gave",
  });
}

function checkName(name: string): void {
  checkGiven("wrap", typeof name === "string", "a function, and its name as text");
  if (name === "") {
    throw fxError("InvalidOption", "a function without a name cannot be wrapped", {
      help: 'graphs know it by its name: wrap(fn, "myModule.fn")',
    });
  }
  if (isDefined(name)) throw taken(name);
}

function taken(name: string): FxError {
  return fxError("InvalidOption", `another function is called \`${name}\` already`, {
    help: `graphs could not tell them apart: give this one another name, wrap(fn, "myModule.${name}")`,
  });
}
