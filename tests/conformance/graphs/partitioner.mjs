/**
 * The kind `partitioner`: the partitions of what is supported, and the graph that calls them.
 *
 * @module
 */
import { CapabilityBasedPartitioner, createOpSupport } from "tracefx";
import { same } from "./corpus.mjs";
import { moduleOf, sameGraph, sameParts } from "./modules.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/**
 * @typedef {import("./modules.mjs").Recorded & {
 *   options: { supported: string[], allows_single_node_partition: boolean, skip_horizontal_fusion?: boolean },
 *   partitions: { id: number, nodes: string[] }[], after?: EncodedGraph,
 *   submodules: { readonly [name: string]: EncodedGraph } }} Case
 */

/** Partitions. */
export function checkPartitioner(/** @type {Case} */ it) {
  const { supported, allows_single_node_partition, skip_horizontal_fusion = false } = it.options;
  const support = createOpSupport((_, node) => supported.includes(node.name));
  const partitioner = new CapabilityBasedPartitioner(moduleOf(it), support, {
    allowsSingleNodePartition: allows_single_node_partition,
    skipHorizontalFusion: skip_horizontal_fusion,
  });
  const partitions = partitioner.proposePartitions();
  const named = partitions.map(({ id, nodes }) => ({ id, nodes: Array.from(nodes, (node) => node.name) }));
  same(named, it.partitions, "partitions");
  if (it.after === undefined) return;
  const fused = partitioner.fusePartitions(partitions);
  sameGraph(fused, it.after, "after");
  sameParts(fused, it.submodules);
}
