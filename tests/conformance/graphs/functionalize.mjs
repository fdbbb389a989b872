/**
 * The kind `functionalize`: graphs without writes, with views and without.
 *
 * @module
 */
import { device, functionalize, GraphModule, layout, TensorMeta } from "tracefx";
import { build, encode, same } from "./corpus.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/** @typedef {{ before: EncodedGraph, after: EncodedGraph, after_mutations_only: EncodedGraph }} Case */

/** Takes writes out. The functions were recorded with one input of two rows of four. */
export function checkFunctionalize(/** @type {Case} */ { before, after, after_mutations_only }) {
  for (const [remove, wanted] of /** @type {const} */ ([
    ["mutations", after_mutations_only],
    ["mutations_and_views", after],
  ])) {
    const graph = build(before);
    const gm = GraphModule.ofGraph(graph);
    const [input] = graph.findNodes({ op: "placeholder" });
    const plain = { storageOffset: 0n, device: device("cpu"), layout: layout("strided"), requiresGrad: false };
    input?.meta.set("val", new TensorMeta({ dtype: "float32", sizes: [2n, 4n], strides: [4n, 1n], ...plain }));
    functionalize(gm, { remove });
    same(encode(gm.graph).nodes, wanted.nodes, remove);
  }
}
