import { describe, expect, test } from "vitest";
import { type ArgInput, forEachNode, slice, tuple } from "../../src/graph/args.ts";
import { Graph } from "../../src/graph/graph.ts";
import type { Node } from "../../src/graph/node.ts";
import { type Link, NOWHERE, Order } from "../../src/graph/order.ts";
import { Random } from "./random.ts";

const SEEDS = Array.from({ length: 16 }, (_, seed) => seed);

/** Some arguments over these nodes, of every kind of container. */
function someArgs(random: Random, nodes: readonly Node[]): ArgInput[] {
  const some = (): Node => random.pick(nodes);
  const kinds: (() => ArgInput)[] = [
    some,
    () => 1.5,
    () => [some(), some()],
    () => tuple(some(), [2, some()]),
    () => ({ key: some(), other: "text" }),
    () => slice(some(), null, some()),
  ];
  return Array.from({ length: random.below(4) }, () => random.pick(kinds)());
}

/** Something that stands in an order. */
class Item implements Link<Item> {
  before: Item | undefined;
  after: Item | undefined;
  label = NOWHERE;
}

/** One random edit that is allowed. */
function edit(random: Random, graph: Graph): void {
  const nodes = [...graph.nodes];
  const node = random.pick(nodes);
  const other = random.pick(nodes);
  const edits: (() => void)[] = [
    () => graph.callFunction("torch.cat", someArgs(random, nodes), { out: other }),
    () => graph.insertingBefore(node, () => graph.callMethod("relu", someArgs(random, nodes))),
    () =>
      graph.insertingAfter(node, () => {
        graph.getAttr("weight");
        graph.callModule("layer", [other]);
      }),
    () => {
      node.args = someArgs(random, nodes);
    },
    () => {
      node.kwargs = { dim: other, list: someArgs(random, nodes) };
    },
    () => node.insertArg(random.below(node.args.length + 1), [other, node]),
    () => node.args.length > 0 && node.updateArg(-1, other),
    () => node.updateKwarg("dim", other),
    () => node.replaceInputWith(random.pick([...node.allInputNodes, other]), node),
    () => node.replaceAllUsesWith(other, { filter: () => random.next() < 0.7 }),
    () => node.prepend(other),
    () => node.append(other),
    () => graph.reorder(nodes.toSorted(() => random.next() - 0.5)),
    () => node.rename(random.pick(["a", "a_1", "sum", "x y"])),
    () => graph.nodeCopy(node),
    () => node.users.size === 0 && nodes.length > 3 && graph.eraseNode(node),
    () => graph.problems().length === 0 && graph.eliminateDeadCode((it) => it.isImpure() || random.next() < 0.9),
  ];
  random.pick(edits)();
}

function edited(seed: number, body: (graph: Graph) => void): void {
  const random = new Random(seed);
  const graph = new Graph();
  const inputs = ["x", "y", "z"].map((name) => graph.placeholder(name));
  graph.output(tuple(...inputs));
  for (let at = 0; at < 60; at++) {
    edit(random, graph);
    body(graph);
  }
}

/** The nodes that use each node, from the arguments alone. */
function recomputedUsers(graph: Graph): Map<Node, Set<Node>> {
  const res = new Map(Array.from(graph.nodes, (it) => [it, new Set<Node>()]));
  for (const node of graph.nodes) {
    const use = (input: Node): void => void res.get(input)?.add(node);
    for (const arg of [...node.args, ...Object.values(node.kwargs)]) forEachNode(arg, use);
  }
  return res;
}

function userNames(graph: Graph): string[][] {
  return Array.from(graph.nodes, (node) => Array.from(node.users, (user) => user.name));
}

function chain(): { graph: Graph; nodes: Node[] } {
  const graph = new Graph();
  return { graph, nodes: ["a", "b", "c", "d"].map((name) => graph.placeholder(name)) };
}

function walked(graph: Graph, visit: (node: Node) => void): string[] {
  const names: string[] = [];
  for (const node of graph.nodes) {
    names.push(node.name);
    visit(node);
  }
  return names;
}

describe("after any sequence of edits", () => {
  test.each(SEEDS)("users are the nodes whose arguments name the node (seed %d)", (seed) => {
    edited(seed, (graph) => {
      for (const [node, users] of recomputedUsers(graph)) expect(new Set(node.users)).toEqual(users);
    });
  });

  test.each(SEEDS)("comparison, both directions and length agree with the list (seed %d)", (seed) => {
    const random = new Random(seed);
    edited(seed, (graph) => {
      const nodes = [...graph.nodes];
      expect(graph.nodes.length).toBe(nodes.length);
      expect([...graph.nodes.reversed()].toReversed()).toEqual(nodes);
      if (random.next() < 0.7) expect(graph.nodes.toArray()).toEqual(nodes);
      for (const [at, node] of nodes.entries()) {
        expect(node.next).toBe(nodes[at + 1]);
        expect(node.prev).toBe(nodes[at - 1]);
        if (node.next !== undefined) expect(node.compare(node.next)).toBeLessThan(0);
      }
      expect(nodes.toSorted((a, b) => a.compare(b))).toEqual(nodes);
    });
  });

  test.each(SEEDS)("lint finds exactly the uses before a definition (seed %d)", (seed) => {
    edited(seed, (graph) => {
      const nodes = [...graph.nodes];
      const early = nodes.flatMap((node, at) => node.allInputNodes.filter((it) => nodes.indexOf(it) >= at));
      expect(graph.problems().map((it) => it.kind)).toEqual(early.map(() => "GraphInvalid"));
      expect(new Set(nodes.map((it) => it.name)).size).toBe(nodes.length);
    });
  });

  test.each(SEEDS)("a clone prints the same, has the same users and is independent (seed %d)", (seed) => {
    edited(seed, (graph) => {
      const clone = graph.clone();
      expect(clone.toString()).toBe(graph.toString());
      expect(userNames(clone)).toEqual(userNames(graph));
      expect(clone.callFunction("torch.add").name).toBe(graph.clone().callFunction("torch.add").name);
    });
  });
});

describe("GR-14: a walk", () => {
  test("visits a node that was inserted after the current one, and not one before it", () => {
    const { graph } = chain();
    const names = walked(graph, (node) => {
      if (node.name !== "b") return;
      graph.insertingAfter(node, () => graph.placeholder("after"));
      graph.insertingBefore(node, () => graph.placeholder("before"));
    });
    expect(names).toEqual(["a", "b", "after", "c", "d"]);
    expect(graph.nodes.length).toBe(6);
  });

  test("skips a node that was erased before it came to it", () => {
    const { graph, nodes } = chain();
    expect(walked(graph, (node) => node === nodes[0] && graph.eraseNode(nodes[2] as Node))).toEqual(["a", "b", "d"]);
  });

  test("goes on when the current node is erased, even with its neighbours", () => {
    const { graph, nodes } = chain();
    const names = walked(graph, (node) => {
      if (node.name !== "b") return;
      for (const it of [0, 1, 2]) graph.eraseNode(nodes[it] as Node);
    });
    expect(names).toEqual(["a", "b", "d"]);
    expect(walked(graph, (node) => graph.eraseNode(node))).toEqual(["d"]);
    expect(graph.nodes.length).toBe(0);
  });

  test("follows a node that was moved", () => {
    const { graph, nodes } = chain();
    const [a, , , d] = nodes as [Node, Node, Node, Node];
    expect(walked(graph, (node) => node === a && !a.prev && d.append(a))).toEqual(["a"]);
  });
});

// A quadratic algorithm would take hours; the limit only leaves room for a busy machine.
describe("a graph of 100,000 nodes", { timeout: 120_000 }, () => {
  const N = 100_000;

  test("is built, grows before its output and is erased in time that is not quadratic", () => {
    const graph = new Graph();
    let last = graph.placeholder("x");
    for (let at = 0; at < N; at++) last = graph.callFunction("torch.neg", [last]);
    const output = graph.output(last);
    graph.insertingBefore(output);
    for (let at = 0; at < N; at++) last = graph.callFunction("torch.abs", [last]);
    output.args = [last];
    expect(graph.nodes.length).toBe(2 * N + 2);
    expect(graph.problems()).toEqual([]);
    output.args = [graph.first ?? null];
    expect(graph.eliminateDeadCode()).toBe(true);
    expect(Array.from(graph.nodes, (it) => it.name)).toEqual(["x", "output"]);
  });

  test("has a node with 100,000 users that leave one by one", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const users = Array.from({ length: N }, () => graph.callMethod("neg", [x]));
    expect(x.users.size).toBe(N);
    for (const user of users) graph.eraseNode(user);
    expect(x.users.size).toBe(0);
  });

  test("changes a logarithmic number of labels when all insertions meet in one place", () => {
    const order = new Order<Item>();
    const end = new Item();
    order.insert(end, undefined);
    for (let at = 0; at < N; at++) order.insert(new Item(), end);
    expect(order.relabelled).toBeLessThan(N * 20);
    for (let item = order.first; item?.after !== undefined; item = item.after) {
      expect(item.label < item.after.label).toBe(true);
    }
  });
});
