/**
 * What new nodes of a graph give, where the other nodes say it.
 *
 * @module
 */
import type { NoteValuesCall, UnknownValues } from "../../../bindings/passes.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { runPass } from "./bridge.ts";

/**
 * Notes (`meta.val`) what nodes give of which nothing is noted, as edits leave them: {@link FakeTensorProp} for them alone. What is
 * noted stays, and so do the symbols of sizes. Gives what nodes refused.
 */
export function noteValues(module: GraphModule, ranges: NoteValuesCall["ranges"] = {}): string[] {
  if (!hasUnknown(module)) return [];
  return runPass<UnknownValues, GraphModule>(module, "note_values", { options: { ranges }, notes: true }).answer
    .problems;
}

/** Runs an edit of a module; where all was known of the values of its nodes, what the new nodes give is noted afterwards. */
export function notingValues<T>(module: GraphModule, edit: () => T): T {
  const [input] = module.graph.findNodes({ op: "placeholder" });
  const isKnown = input?.meta.has("val") === true && !hasUnknown(module);
  const result = edit();
  if (isKnown) noteValues(module);
  return result;
}

function hasUnknown(module: GraphModule): boolean {
  return module.graphModules().some(([, it]) => it.graph.nodes.toArray().some((node) => isUnknown(it, node)));
}

/** Whether a node gives a value, and nothing is known of it. */
export function isUnknown(module: GraphModule, { op, target, meta }: Node): boolean {
  if (op === "placeholder" || op === "output" || meta.has("val")) return false;
  return op !== "get_attr" || module.findAttribute(target)?.kind !== "module";
}
