/**
 * Topological sorts: every node after the nodes that it uses.
 *
 * Graphs are sorted in place, so that their nodes stay the same objects; the users of each node then stand in the order of
 * the graph, as in the new graph that FX would make.
 *
 * @module
 */
import { PRIORITIZED } from "../../../bindings/effects.ts";
import { checkGiven, checkList } from "../base/given.ts";
import { isNode } from "./args.ts";
import { fxError } from "../base/errors.ts";
import type { Graph } from "./graph.ts";
import type { Node } from "./node.ts";
import { isGraph } from "./nodeList.ts";
import { stateOf } from "./nodeState.ts";
import { isSwitch, mayWrite } from "./effects.ts";

/** What runs as soon as it can, so that assertions about sizes come before the operators that need them. */
const AHEAD: ReadonlySet<string> = new Set(PRIORITIZED);

/**
 * Sorts the graph as `torch.fx.passes.tools_common.legalize_graph` does: breadth first from the nodes that use nothing, with
 * arithmetic of sizes ahead. The order of a graph that is sorted already may change; {@link stableTopologicalSort} keeps it.
 * Beyond torch.fx, what writes to what it takes, and what switches autocast or gradients, stays where it is between the
 * others. Throws where nodes use each other in a circle.
 *
 * @example
 * ```ts
 * legalizeGraph(gm.graph);
 * ```
 */
export function legalizeGraph(graph: Graph): void {
  checkGiven("legalizeGraph", isGraph(graph), "a Graph", "give the graph of the module: gm.graph");
  const fixed = new Set(graph.nodes.toArray().filter((it) => mayWrite(it) || isSwitch(it)));
  if (fixed.size > 0 && !isSorted(graph)) stableTopologicalSort(graph);
  const sorted: Node[] = [];
  let between: Node[] = [];
  const sortBetween = (): void => {
    const among = new Set(fixed.size > 0 ? between : []);
    const waiting = new Waiting(between, fixed.size > 0 ? (it) => among.has(it) : undefined);
    breadthFirst(waiting, sorted);
    checkSorted(waiting, HAS_CYCLES);
    between = [];
  };
  for (const node of graph.nodes.toArray()) {
    if (!fixed.has(node)) {
      between.push(node);
      continue;
    }
    sortBetween();
    sorted.push(node);
  }
  sortBetween();
  reorder(graph, sorted);
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
  checkGiven("stableTopologicalSort", isGraph(graph), "a Graph", "give the graph of the module: gm.graph");
  const waiting = new Waiting(graph.nodes.toArray());
  const sorted = byRank(waiting, (a, b) => a.compare(b));
  checkSorted(waiting, HAS_CYCLES);
  reorder(graph, sorted);
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
  checkNodes("topoSort", nodes);
  const ranks = new Map(nodes.map((node, at) => [node, at]));
  const waiting = new Waiting([...ranks.keys()], (it) => ranks.has(it));
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
  checkNodes("validatePartition", nodes);
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

/** Of some nodes, how many of their inputs among them are not there yet. */
class Waiting {
  readonly #nodes: readonly Node[];
  readonly #counts: Int32Array;

  constructor(nodes: readonly Node[], isAmong?: (input: Node) => boolean) {
    this.#nodes = nodes;
    this.#counts = new Int32Array(nodes.length);
    for (let at = 0; at < nodes.length; at++) {
      const state = stateOf(nodes[at] as Node);
      state.place = at;
      this.#counts[at] = isAmong === undefined ? state.inputs.length : state.inputs.filter(isAmong).length;
    }
  }

  /** The nodes that wait for nothing. */
  ready(): Node[] {
    return this.#nodes.filter((_, at) => this.#counts[at] === 0);
  }

  /** Whether this user of a node that is there waits for nothing else now; never where it is none of these nodes. */
  release(user: Node): boolean {
    const { place } = stateOf(user);
    if (this.#nodes[place] !== user) return false;
    const left = (this.#counts[place] as number) - 1;
    this.#counts[place] = left;
    return left === 0;
  }

  /** The nodes that still wait. */
  stuck(): Node[] {
    return this.#nodes.filter((_, at) => (this.#counts[at] as number) > 0);
  }
}

/** Whether every node stands after those that it uses. */
function isSorted(graph: Graph): boolean {
  return graph.nodes.toArray().every((node) => stateOf(node).inputs.every((it) => it.compare(node) < 0));
}

/** Adds the nodes whose inputs are there as each comes to be so; those in a circle are left out. */
function breadthFirst(waiting: Waiting, sorted: Node[]): void {
  const queue = waiting.ready();
  const ahead: Node[] = [];
  const release = (user: Node): void => {
    if (!waiting.release(user)) return;
    if (user.op === "call_function" && AHEAD.has(user.target)) ahead.push(user);
    else queue.push(user);
  };
  for (let at = 0; ahead.length > 0 || at < queue.length; ) {
    const node = ahead.pop() ?? (queue[at++] as Node);
    sorted.push(node);
    stateOf(node).forEachUser(release);
  }
}

/** The nodes whose inputs are there, the one of the lowest rank first; those in a circle are left out. */
function byRank(waiting: Waiting, compare: (a: Node, b: Node) => number): Node[] {
  const ready = new NodeHeap(compare);
  for (const node of waiting.ready()) ready.push(node);
  const sorted: Node[] = [];
  const release = (user: Node): void => {
    if (waiting.release(user)) ready.push(user);
  };
  for (let node = ready.pop(); node !== undefined; node = ready.pop()) {
    sorted.push(node);
    stateOf(node).forEachUser(release);
  }
  return sorted;
}

/** Puts all nodes of a graph into an order, and their users, too. */
function reorder(graph: Graph, sorted: readonly Node[]): void {
  graph.reorder(sorted);
  for (const node of sorted) stateOf(node).clearUsers();
  for (const node of sorted) for (const input of stateOf(node).inputs) stateOf(input).addUser(node);
}

const HAS_CYCLES = "Input graph has cycles";

/** Throws where nodes still wait for each other. */
function checkSorted(waiting: Waiting, problem: string): void {
  const [stuck, ...others] = waiting.stuck().map((it) => it.name);
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

function checkNodes(what: string, nodes: readonly Node[]): void {
  checkList(what, "nodes", nodes);
  const areNodes = nodes.every((it) => isNode(it));
  checkGiven(what, areNodes, "a list of nodes", 'graph.findNodes({ op: "call_function" }) gives some');
}
