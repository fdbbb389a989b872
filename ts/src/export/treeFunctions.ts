/**
 * The functions of pytrees that unflattened programs call around preserved modules. A structure is held by the module that
 * calls them: as a module of the class `TreeSpec`, whose note is the structure as JSON.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { defineFunction } from "../functions/table.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { ValueTuple } from "../base/values.ts";
import { treeFlatten } from "../trace/pytree.ts";
import type { TreeSpec } from "./program.ts";
import { flattenTree, unflatten } from "./tree.ts";

/** Named tuples are objects with their places as names: the two functions agree. */
const TYPES = { namedtupleFields: new Map<string, string[]>() };

/** Under which key a module of the class `TreeSpec` notes the structure that it stands for. */
const SPEC_NOTE = "tree_spec";

/** Puts them into the table of functions. */
export function installTreeFunctions(): void {
  defineFunction(
    "torch.utils._pytree.tree_flatten",
    (tree: unknown) => {
      const [leaves, spec] = treeFlatten(tree);
      return ValueTuple.frozen([leaves, spec]);
    },
    { signature: "(tree)" },
  );

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

/** Has a module hold a structure, and gives the name that it is held under. */
export function holdTreeSpec(module: GraphModule, spec: TreeSpec): string {
  let at = 0;
  while (module.attributes.has(`_spec_${at}`)) at++;
  const held = new GraphModule({}, undefined, "TreeSpec");
  held.meta.set(SPEC_NOTE, JSON.stringify(spec));
  module.addSubmodule(`_spec_${at}`, held);
  return `_spec_${at}`;
}

function specOf(held: unknown): TreeSpec {
  const text = held instanceof GraphModule ? held.meta.get(SPEC_NOTE) : undefined;
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
