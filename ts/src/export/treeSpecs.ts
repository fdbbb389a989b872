/**
 * Structures as programs have them, from those of JavaScript's containers.
 *
 * @module
 */
import { fxError } from "../errors.ts";
import type { PytreeSpec } from "../trace/pytree.ts";
import type { TreeSpec } from "./program.ts";

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
      throw fxError("NotImplemented", `containers of the class ${spec.type} are not exported`, {
        help: "take and give their parts in arrays, tuples or objects",
      });
  }
}

function sequence(type: string, children: readonly TreeSpec[]): TreeSpec {
  return { type, context: "null", children };
}
