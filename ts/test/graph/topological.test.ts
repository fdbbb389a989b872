import { describe, expect, test } from "vitest";
import { build } from "../../../tests/conformance/graphs/corpus.mjs";
import { Graph } from "../../src/graph/graph.ts";
import type { Node } from "../../src/graph/node.ts";
import { legalizeGraph, stableTopologicalSort, topoSort, validatePartition } from "../../src/graph/topological.ts";

test("LT-04, LT-05: sorting keeps the nodes and puts users into the order of the graph", () => {
  const graph = build({
    nodes: [
      { name: "late", op: "call_function", target: "torch.neg", args: [{ $n: "x" }], kwargs: {} },
      { name: "x", op: "placeholder", target: "x", args: [], kwargs: {} },
      { name: "early", op: "call_function", target: "torch.abs", args: [{ $n: "x" }], kwargs: {} },
    ],
  });
  const [late, x, early] = [...graph.nodes];
  x?.meta.set("val", 1);
  stableTopologicalSort(graph);
  expect([...graph.nodes]).toEqual([x, late, early]);
  expect(x?.meta.get("val")).toBe(1);
  legalizeGraph(graph);
  expect(Array.from(x?.users ?? [], (it) => it.name)).toEqual(["late", "early"]);
});

test("a new order is all the nodes, each once", () => {
  const graph = build({
    nodes: ["a", "b"].map((name) => ({ name, op: "placeholder", target: name, args: [], kwargs: {} })),
  });
  const [a, b] = [...graph.nodes] as [Node, Node];
  for (const order of [[a], [a, a], [a, b, b]]) {
    expect(() => graph.reorder(order)).toThrow(expect.objectContaining({ kind: "GraphArgument" }));
  }
  graph.reorder([b, a]);
  expect([...graph.nodes.reversed()]).toEqual([a, b]);
});

describe("LT-06: some nodes of a graph", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  const a = graph.callFunction("torch.neg", [x]);
  const b = graph.callFunction("torch.abs", [a]);
  const c = graph.callFunction("torch.add", [a, b]);
  const free = graph.callFunction("torch.sin", [x]);

  test("are sorted by what they use, and else stay as they are given", () => {
    expect(topoSort([c, free, a, b])).toEqual([free, a, b, c]);
    expect(topoSort([free, c, a])).toEqual([free, a, c]);
    expect(topoSort([b, b])).toEqual([b]);
    expect(topoSort([])).toEqual([]);
  });

  test("are refused where they use each other in a circle", () => {
    const circle = new Graph();
    const first = circle.callFunction("torch.neg", []);
    const second = circle.callFunction("torch.abs", [first]);
    first.args = [second];
    expect(() => topoSort([first, second])).toThrow(expect.objectContaining({ kind: "GraphInvalid", node: "neg" }));
    expect(topoSort([first])).toEqual([first]);
  });

  test("can be one node where no path leads out and back in", () => {
    expect(validatePartition([a, b, c])).toBe(true);
    expect(validatePartition([a, c])).toBe(false);
    expect(validatePartition([x, c])).toBe(false);
    expect(validatePartition([a, free])).toBe(true);
    expect(validatePartition([])).toBe(true);
  });
});
