/**
 * The kind `topo`: the order of a graph once it is sorted.
 *
 * @module
 */
import { FxError, legalizeGraph, stableTopologicalSort } from "tracefx";
import { build, encode, same } from "./corpus.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/**
 * @typedef {{ pass: "legalize_graph" | "stable_topological_sort", before: EncodedGraph, after?: EncodedGraph,
 *   error?: import("./corpus.mjs").RecordedError }} Case
 */

const SORTS = { legalize_graph: legalizeGraph, stable_topological_sort: stableTopologicalSort };

/** Sorts. */
export function checkTopo(/** @type {Case} */ { pass, before, after, error }) {
  const graph = build(before);
  if (after === undefined) {
    same(
      refusalOf(() => SORTS[pass](graph)),
      error?.msg.split("\n")[0],
      "the refusal",
    );
    return;
  }
  SORTS[pass](graph);
  same(encode(graph).nodes, after.nodes, "nodes");
  same(graph.problems().length, 0, "problems");
}

/** @type {(body: () => unknown) => string | undefined} */
function refusalOf(body) {
  try {
    body();
  } catch (error) {
    if (error instanceof FxError) return error.reason;
    throw error;
  }
  return undefined;
}
