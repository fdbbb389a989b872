import { expect, test } from "vitest";
import { build } from "../../../tests/conformance/graphs/corpus.mjs";
import type { Node } from "../../src/graph/node.ts";
import { legalizeGraph, stableTopologicalSort } from "../../src/graph/topological.ts";

test("sorting keeps the nodes and puts users into the order of the graph", () => {
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
