/**
 * The kind `const_fold`: what depends on constants alone, the graph that is left, and what it gives.
 *
 * @module
 */
import { splitConstSubgraphs, tensor } from "tracefx";
import { same } from "./corpus.mjs";
import { moduleOf, sameGraph } from "./modules.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/**
 * @typedef {import("./modules.mjs").Recorded & { after: EncodedGraph, const_subgraph: EncodedGraph | null,
 *   folded_attrs: string | null, same_result: boolean }} Case
 */

/** Folds. */
export function checkConstFold(/** @type {Case} */ it) {
  const module = moduleOf(it);
  const folded = splitConstSubgraphs(module);
  sameGraph(folded, it.after, "after");
  same(folded.fxConstFoldedAttrsName ?? null, it.folded_attrs, "folded_attrs");
  if (it.const_subgraph === null) same(folded.constSubgraphModule, undefined, "const_subgraph");
  else if (folded.constSubgraphModule !== undefined) sameGraph(folded.constSubgraphModule, it.const_subgraph, "const");
  const x = tensor([-1, -0.25, 0.5, 1]);
  same(String(folded.forward(x)) === String(module.forward(x)), it.same_result, "same_result");
}
