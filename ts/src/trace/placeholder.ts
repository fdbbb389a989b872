/**
 * Values that are fixed while tracing, and {@link PH} for those that are not: FX's `concrete_args`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { Node } from "../graph/node.ts";
import type { Parameters } from "./parameters.ts";
import { traceError } from "../record/stack.ts";

/**
 * Values that are fixed while tracing, by the name of the parameter or in order. Where {@link PH} stands in one of them,
 * alone or in arrays, objects and other containers, there is an input instead.
 */
export type ConcreteArgs = Readonly<Record<string, unknown>> | readonly unknown[];

/**
 * An input in a concrete argument. What a subclass has as properties, the placeholder node gets too, unless it has such a
 * property already: `torch.fx._symbolic_trace.PHBase`.
 *
 * @example
 * ```ts
 * class Tagged extends PHBase {
 *   constructor(readonly tag: string) {
 *     super();
 *   }
 * }
 * symbolicTrace(f, { concreteArgs: { x: [new Tagged("left"), new Tagged("right")] } });
 * ```
 */
export class PHBase {
  /** Gives a placeholder the properties of this one. */
  transferTo(node: Node): void {
    for (const [key, value] of Object.entries(this)) {
      if (!(key in node)) Object.defineProperty(node, key, { value, writable: true, enumerable: true });
    }
  }

  /** What is printed. */
  toString(): string {
    return "PH";
  }
}

/**
 * An input in a concrete argument.
 *
 * @example
 * ```ts
 * symbolicTrace((x: { a: Tensor; b: Tensor }) => torch.add(x.a, x.b), { concreteArgs: { x: { a: PH, b: PH } } });
 * ```
 */
export const PH: PHBase = Object.freeze(new PHBase());

/** The concrete values by the name of the parameter; of an options parameter, by the names of its properties. */
export function concreteValues({ list, what }: Parameters, given: ConcreteArgs = {}): ReadonlyMap<string, unknown> {
  const isArray = Array.isArray(given);
  if (isArray && given.length !== list.length) {
    const reason = `Tracing expected ${list.length} arguments but got ${given.length} concrete arguments`;
    throw traceError("TraceUnsupported", reason, {
      help: "give one for each parameter, PH for those that are inputs, or name them: concreteArgs: { flag: true }",
    });
  }
  const res = new Map<string, unknown>();
  const byName: ReadonlyMap<string, unknown> = isArray ? new Map() : new Map(Object.entries(given));
  const unknown = new Set(byName.keys());
  list.forEach((parameter, at) => {
    const value: unknown = isArray ? (given as readonly unknown[])[at] : byName.get(parameter.name);
    const isGiven = isArray || unknown.delete(parameter.name);
    if (parameter.kind !== "options") {
      // An input by itself is what a parameter is anyway.
      if (isGiven && value !== PH) res.set(parameter.name, value);
      return;
    }
    const options = isGiven && value !== PH ? new Map(Object.entries(value ?? {})) : new Map<string, unknown>();
    for (const { name } of parameter.properties) {
      const property: unknown = options.has(name) ? options.get(name) : byName.get(name);
      const isNamed = options.delete(name) || unknown.delete(name);
      if (isNamed && property !== PH) res.set(name, property);
    }
    for (const name of options.keys()) unknown.add(name);
  });
  const [stray] = unknown;
  if (stray === undefined) return res;
  const names = list.flatMap((it) => (it.kind === "options" ? it.properties.map(({ name }) => name) : [it.name]));
  throw fxError("InvalidOption", `concreteArgs names \`${stray}\`, which is no parameter of ${what}`, {
    help: names.length === 0 ? "it takes no arguments" : `its parameters are ${names.join(", ")}`,
  });
}
