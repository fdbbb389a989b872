/**
 * Topological sorts: every node after the nodes that it uses.
 *
 * Graphs are sorted in place, so that their nodes stay the same objects; the users of each node then stand in the order of
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
  const sorted = byRank(waiting, (a, b) => a.compare(b));
  finish(graph, sorted, waiting);
}

/**
 * Some nodes of a graph, each after those that it uses and else in the order in which they are given:
 * `torch.fx.passes.utils.fuser_utils.topo_sort`. Throws where they use each other in a circle.
 *
 * @example
 * ```ts
 * const group = topoSort([relu, conv]); // [conv, relu]
 * ```
 */
export function topoSort(nodes: readonly Node[]): Node[] {
  const ranks = new Map(nodes.map((node, at) => [node, at]));
  const waiting = new Map(
    Array.from(ranks.keys(), (node) => [node, node.allInputNodes.filter((it) => ranks.has(it)).length]),
  );
  const sorted = byRank(waiting, (a, b) => (ranks.get(a) ?? 0) - (ranks.get(b) ?? 0));
  checkSorted(waiting, "the nodes have cycles");
  return sorted;
}

/**
 * Whether these nodes could be one node: no path leads out of them and back in.
 * `torch.fx.passes.utils.fuser_utils.validate_partition`.
 *
 * @example
 * ```ts
 * if (validatePartition([conv, relu])) fuse(conv, relu);
 * ```
 */
export function validatePartition(nodes: readonly Node[]): boolean {
  const inside = new Set(nodes);
  const seen = new Set<Node>();
  for (const node of inside) for (const user of node.users) if (!inside.has(user)) seen.add(user);
  // A set is walked in the order in which it grows, so this goes on to the end of the graph.
  for (const node of seen) {
    for (const user of node.users) {
      if (inside.has(user)) return false;
      seen.add(user);
    }
  }
  return true;
}

/** For each node how many of its inputs are not there yet. */
function inDegrees(graph: Graph): Map<Node, number> {
  return new Map(Array.from(graph.nodes, (it) => [it, it.allInputNodes.length]));
}

function readyNodes(waiting: ReadonlyMap<Node, number>): Node[] {
  return Array.from(waiting).flatMap(([node, count]) => (count === 0 ? [node] : []));
}

/** The nodes whose inputs are there, the one of the lowest rank first; those in a circle are left out. */
function byRank(waiting: Map<Node, number>, compare: (a: Node, b: Node) => number): Node[] {
  const ready = new NodeHeap(compare);
  for (const node of readyNodes(waiting)) ready.push(node);
  const sorted: Node[] = [];
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    sorted.push(node);
    for (const user of released(node, waiting)) ready.push(user);
  }
  return sorted;
}

/** The users of a node, among those that wait, that waited for nothing else. */
function released(node: Node, waiting: Map<Node, number>): Node[] {
  return Array.from(node.users).filter((user) => {
    const left = waiting.get(user);
    if (left !== undefined) waiting.set(user, left - 1);
    return left === 1;
  });
}

function finish(graph: Graph, sorted: readonly Node[], waiting: ReadonlyMap<Node, number>): void {
  checkSorted(waiting, "Input graph has cycles");
  graph.reorder(sorted);
  for (const node of sorted) stateOf(node).clearUsers();
  for (const node of sorted) for (const input of node.allInputNodes) stateOf(input).addUser(node);
}

/** Throws where nodes still wait for each other. */
function checkSorted(waiting: ReadonlyMap<Node, number>, problem: string): void {
  const [stuck, ...others] = Array.from(waiting).flatMap(([node, count]) => (count > 0 ? [node.name] : []));
  if (stuck !== undefined) {
    const names = [stuck, ...others].join(", ");
    throw fxError("GraphInvalid", `${problem}, unable to add [${names}]`, {
      node: stuck,
      help: "these nodes use each other: give one of them other args",
    });
  }
}

/** Nodes of which the lowest comes out first. */
class NodeHeap {
  readonly #items: Node[] = [];
  readonly #compare: (a: Node, b: Node) => number;

  constructor(compare: (a: Node, b: Node) => number) {
    this.#compare = compare;
  }

  push(node: Node): void {
    const items = this.#items;
    let at = items.length;
    for (let up = (at - 1) >> 1; at > 0 && this.#compare(node, items[up] as Node) < 0; up = (at - 1) >> 1) {
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
      if (right !== undefined && this.#compare(right, items[down] as Node) < 0) down += 1;
      if (this.#compare(last, items[down] as Node) <= 0) break;
      items[at] = items[down] as Node;
      at = down;
    }
    items[at] = last;
    return top;
  }
}
