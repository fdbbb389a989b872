/**
 * Structures as programs have them, from those of JavaScript's containers.
 *
 * @module
 */
import { containerNamed } from "../trace/containers.ts";
import { PytreeSpec } from "../trace/pytree.ts";
import type { TreeSpec } from "./program.ts";
import { contextOf, keysOf, type TreeTypes } from "./tree.ts";

/** The structure of the arguments of a call. */
export function callSpec(args: PytreeSpec, kwargs: PytreeSpec): TreeSpec {
  return sequence("builtins.tuple", [sequence("builtins.tuple", args.children.map(treeSpec)), treeSpec(kwargs)]);
}

/** A structure as programs have it. */
export function treeSpec(spec: PytreeSpec): TreeSpec {
  if (spec.type === undefined) return { type: undefined, context: undefined, children: [] };
  const children = spec.children.map(treeSpec);
  switch (spec.type) {
    case "list":
    case "tuple":
      return sequence(`builtins.${spec.type}`, children);
    case "dict":
    case "Map":
      return { type: "builtins.dict", context: JSON.stringify(spec.context), children };
    default:
      // Whoever reads the program has to register the class under the same name.
      return { type: spec.type, context: JSON.stringify(spec.context ?? null), children };
  }
}

/** The structure of JavaScript's containers that a program's is: the inverse of {@link treeSpec}. */
export function pytreeSpec(spec: TreeSpec, types: TreeTypes): PytreeSpec {
  const children = spec.children.map((it) => pytreeSpec(it, types));
  if (spec.type === undefined) return new PytreeSpec(undefined, undefined, []);
  if (containerNamed(spec.type) !== undefined) return new PytreeSpec(spec.type, contextOf(spec), children);
  const keys = keysOf(spec, types);
  if (keys === undefined) return new PytreeSpec(spec.type === "builtins.tuple" ? "tuple" : "list", undefined, children);
  return new PytreeSpec(keys.every((it) => typeof it === "string") ? "dict" : "Map", keys, children);
}

function sequence(type: string, children: readonly TreeSpec[]): TreeSpec {
  return { type, context: "null", children };
}
