/**
 * Where values are used for the last time, and can be released.
 *
 * @module
 */
import type { Graph } from "./graph.ts";
import type { Node } from "./node.ts";

/**
 * For each node the inputs that have no later user, in the order of its arguments. Inputs of the graph that nothing uses
 * are in none of the lists.
 *
 * @example
 * ```ts
 * const released = lastUses(graph);
 * for (const node of graph.nodes) for (const it of released.get(node) ?? []) env.delete(it);
 * ```
 */
export function lastUses(graph: Graph): Map<Node, Node[]> {
  const seen = new Set<Node>();
  const res = new Map<Node, Node[]>();
  for (const user of graph.nodes.reversed()) {
    const released = user.allInputNodes.filter((it) => !seen.has(it));
    for (const it of released) seen.add(it);
    if (released.length > 0) res.set(user, released);
  }
  return res;
}
