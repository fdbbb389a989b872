/**
 * The functions of pytrees that unflattened programs call around preserved modules. A structure is held by the module that
 * calls them: as a module of the class `TreeSpec`, whose note is the structure as JSON.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { defineFunction } from "../functions/table.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { TreeSpec } from "./program.ts";
import { flattenTree, unflatten } from "./tree.ts";

/** Named tuples are objects with their places as names: the two functions agree. */
const TYPES = { namedtupleFields: new Map<string, string[]>() };

/** Puts them into the table of functions. */
export function installTreeFunctions(): void {
  defineFunction(
    "torch.utils._pytree.tree_unflatten",
    (leaves: readonly unknown[], treespec: unknown) => unflatten(leaves, specOf(treespec), TYPES),
    { signature: "(leaves, treespec)" },
  );

  defineFunction(
    "torch.fx._pytree.tree_flatten_spec",
    (pytree: unknown, spec: unknown) => flattenTree(pytree, specOf(spec), TYPES),
    { signature: "(pytree, spec)" },
  );
}

function specOf(held: unknown): TreeSpec {
  const text = held instanceof GraphModule ? held.meta.get("tree_spec") : undefined;
  if (typeof text === "string") return revived(JSON.parse(text) as Parsed);
  throw fxError("InputStructure", "a structure is held by a module of the class TreeSpec", {
    help: "unflatten(program) makes such modules",
  });
}

/** JSON has null for what is not there. */
interface Parsed {
  readonly type: string | null;
  readonly context: string | null;
  readonly children: readonly Parsed[];
}

function revived({ type, context, children }: Parsed): TreeSpec {
  return { type: type ?? undefined, context: context ?? undefined, children: children.map(revived) };
}
