/**
 * Where values are used for the last time, and can be released.
 *
 * @module
 */
import type { Graph } from "./graph.ts";
import type { Node } from "./node.ts";

/**
 * For each node the values that nothing needs once it ran, in PyTorch's order: its inputs that have no later user, and its
 * own value where nothing uses it. Inputs that are never used are nobody's to release, and what an output returns stays.
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
    if (user.op === "placeholder" || user.op === "output") continue;
    if (user.users.size === 0) released.push(user);
    if (released.length > 0) res.set(user, released);
  }
  return res;
}
