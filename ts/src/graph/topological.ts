/**
 * Topological sorts: every node after the nodes that it uses.
 *
 * Both sort the graph in place, so that its nodes stay the same objects; the users of each node then stand in the order of
 * the graph, as in the new graph that FX would make.
 *
 * @module
 */
import { fxError } from "../errors.ts";
import type { Graph } from "./graph.ts";
import { stateOf, type Node } from "./node.ts";

/** What runs as soon as it can, so that assertions about sizes come before the operators that need them. */
const PRIORITIZED: ReadonlySet<string> = new Set(
  ["add", "mul", "sub", "floordiv", "truediv", "mod", "le", "lt", "ge", "gt", "eq", "ne"]
    .map((name) => `operator.${name}`)
    .concat("torch.ops.aten.sym_constrain_range.default", "torch.ops.aten.sym_constrain_range_for_size.default")
    .concat("torch.ops.aten._assert_async.msg", "torch.ops.aten.scalar_tensor.default")
    .concat("torch.ops.aten._assert_scalar.default"),
);

/**
 * Sorts the graph as `torch.fx.passes.tools_common.legalize_graph` does: breadth first from the nodes that use nothing, with
 * arithmetic of sizes ahead. The order of a graph that is sorted already may change; {@link stableTopologicalSort} keeps it.
 * Throws where nodes use each other in a circle.
 *
 * @example
 * ```ts
 * legalizeGraph(gm.graph);
 * ```
 */
export function legalizeGraph(graph: Graph): void {
  const waiting = inDegrees(graph);
  const queue = readyNodes(waiting);
  const ahead: Node[] = [];
  const sorted: Node[] = [];
  for (let at = 0; ahead.length > 0 || at < queue.length; ) {
    const node = ahead.pop() ?? (queue[at++] as Node);
    sorted.push(node);
    for (const user of released(node, waiting)) {
      if (user.op === "call_function" && PRIORITIZED.has(user.target)) ahead.push(user);
      else queue.push(user);
    }
  }
  finish(graph, sorted, waiting);
}

/**
 * Sorts the graph and keeps its order where that is sorted: `torch.fx.passes.tools_common.stable_topological_sort`. Of the
 * nodes whose inputs are there, the one that stood first comes next. Throws where nodes use each other in a circle.
 *
 * @example
 * ```ts
 * first.prepend(last);
 * stableTopologicalSort(gm.graph);
 * gm.graph.lint();
 * ```
 */
export function stableTopologicalSort(graph: Graph): void {
  const waiting = inDegrees(graph);
  const ready = new NodeHeap();
  for (const node of readyNodes(waiting)) ready.push(node);
  const sorted: Node[] = [];
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    sorted.push(node);
    for (const user of released(node, waiting)) ready.push(user);
  }
  finish(graph, sorted, waiting);
}

/** For each node how many of its inputs are not there yet. */
function inDegrees(graph: Graph): Map<Node, number> {
  return new Map(Array.from(graph.nodes, (it) => [it, it.allInputNodes.length]));
}

function readyNodes(waiting: ReadonlyMap<Node, number>): Node[] {
  return Array.from(waiting).flatMap(([node, count]) => (count === 0 ? [node] : []));
}

/** The users of a node that waited for nothing else. */
function released(node: Node, waiting: Map<Node, number>): Node[] {
  return Array.from(node.users).filter((user) => {
    const left = (waiting.get(user) as number) - 1;
    waiting.set(user, left);
    return left === 0;
  });
}

function finish(graph: Graph, sorted: readonly Node[], waiting: ReadonlyMap<Node, number>): void {
  const [stuck, ...others] = Array.from(waiting).flatMap(([node, count]) => (count > 0 ? [node.name] : []));
  if (stuck !== undefined) {
    const names = [stuck, ...others].join(", ");
    throw fxError("GraphInvalid", `Input graph has cycles, unable to add [${names}]`, {
      node: stuck,
      help: "these nodes use each other: give one of them other args",
    });
  }
  graph.reorder(sorted);
  for (const node of sorted) stateOf(node).users.clear();
  for (const node of sorted) for (const input of node.allInputNodes) stateOf(input).users.add(node);
}

/** Nodes of which the one that stands first in its graph comes out first. */
class NodeHeap {
  readonly #items: Node[] = [];

  push(node: Node): void {
    const items = this.#items;
    let at = items.length;
    for (let up = (at - 1) >> 1; at > 0 && node.compare(items[up] as Node) < 0; up = (at - 1) >> 1) {
      items[at] = items[up] as Node;
      at = up;
    }
    items[at] = node;
  }

  pop(): Node | undefined {
    const items = this.#items;
    const [top] = items;
    const last = items.pop();
    if (last === undefined || items.length === 0) return top;
    let at = 0;
    for (let down = 1; down < items.length; down = 2 * at + 1) {
      const right = items[down + 1];
      if (right !== undefined && right.compare(items[down] as Node) < 0) down += 1;
      if (last.compare(items[down] as Node) <= 0) break;
      items[at] = items[down] as Node;
      at = down;
    }
    items[at] = last;
    return top;
  }
}
