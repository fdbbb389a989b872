/**
 * The kind `split_module`: the parts of a module, and the graph that calls them.
 *
 * @module
 */
import { FxError, splitModule } from "tracefx";
import { same } from "./corpus.mjs";
import { moduleOf, sameGraph, sameParts } from "./modules.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/**
 * @typedef {{ partition_of: { readonly [node: string]: number }, keep_original_order?: boolean,
 *   keep_original_node_name?: boolean, keep_original_input_name?: boolean, partition_affix?: string,
 *   tuple_return?: boolean }} Options
 */
/**
 * @typedef {import("./modules.mjs").Recorded & { options: Options, after: EncodedGraph,
 *   submodules: { readonly [name: string]: EncodedGraph }, qualname_map: { readonly [now: string]: string },
 *   error?: import("./corpus.mjs").RecordedError }} Case
 */

/** Splits. */
export function checkSplitModule(/** @type {Case} */ it) {
  const { partition_of: partitionOf, ...rest } = it.options;
  const named = Object.entries(rest).map(([name, value]) => [name.replace(/_(.)/g, (_, c) => c.toUpperCase()), value]);
  const qualnameMap = new Map();
  const options = { ...Object.fromEntries(named), qualnameMap };
  const split = () => splitModule(moduleOf(it), (node) => /** @type {number} */ (partitionOf[node.name]), options);
  if (it.error !== undefined) {
    try {
      split();
    } catch (error) {
      if (!(error instanceof FxError)) throw error;
      same([error.kind, error.reason], ["PartitionCycle", it.error.msg.split("\n")[0]], "the refusal");
      return;
    }
    same("nothing", it.error.msg, "the refusal");
  }
  const after = split();
  sameGraph(after, it.after, "after");
  sameParts(after, it.submodules);
  same(Object.fromEntries(qualnameMap), it.qualname_map, "qualname_map");
}
