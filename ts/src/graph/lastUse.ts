/**
 * Where values are used for the last time, and can be released.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import type { Graph } from "./graph.ts";
import type { Node } from "./node.ts";
import { isGraph } from "./nodeList.ts";
import { stateOf } from "./nodeState.ts";

/** The nodes whose value nothing needs once the key ran. */
export type LastUses = ReadonlyMap<Node, readonly Node[]>;

/** What was found, with the version of the graph that it is true of. */
const known = new WeakMap<Graph, { readonly version: number; readonly lastUses: LastUses }>();

/**
 * For each node the inputs that have no later user, in the order of its arguments. Inputs of the graph that nothing uses
 * are in none of the lists. It is computed again only where the graph was edited.
 *
 * @example
 * ```ts
 * const released = lastUses(graph);
 * for (const node of graph.nodes) for (const it of released.get(node) ?? []) env.delete(it);
 * ```
 */
export function lastUses(graph: Graph): LastUses {
  checkGiven("lastUses", isGraph(graph), "a Graph", "give the graph of the module: gm.graph");
  const found = known.get(graph);
  if (found?.version === graph.version) return found.lastUses;
  const seen = new Set<Node>();
  const res = new Map<Node, readonly Node[]>();
  for (const user of graph.nodes.toArray().toReversed()) {
    const released: Node[] = [];
    for (const it of stateOf(user).inputs) {
      if (seen.has(it)) continue;
      seen.add(it);
      released.push(it);
    }
    if (released.length > 0) res.set(user, released);
  }
  known.set(graph, { version: graph.version, lastUses: res });
  return res;
}
