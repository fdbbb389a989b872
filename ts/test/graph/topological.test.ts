import { describe, expect, test } from "vitest";
import { build } from "../../../tests/conformance/graphs/corpus.mjs";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import type { Node } from "../../src/graph/node.ts";
import { Sequential } from "../../src/nn/container.ts";
import { ReLU } from "../../src/nn/rectifier.ts";
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

/** How `neg`, `sin` of it, a call, and `cos` are sorted: without the call `sin` comes last. */
function sorted(call?: (graph: Graph, x: Node) => void): string {
  const graph = new Graph();
  const x = graph.placeholder("x");
  graph.callFunction("torch.sin", [graph.callFunction("torch.neg", [x])]);
  call?.(graph, x);
  graph.output(graph.callFunction("torch.cos", [x]));
  const modules = { relu: new ReLU(), relu_: new ReLU({ inplace: true }) };
  const gm = new GraphModule({ ...modules, block: new Sequential(new ReLU({ inplace: true })) }, graph);
  legalizeGraph(gm.graph);
  gm.graph.lint();
  return [...gm.graph.nodes].map((it) => it.name).join(" ");
}

describe("legalizing leaves in their places", () => {
  test("nothing where nothing writes", () => {
    expect(sorted()).toBe("x neg cos sin output");
    const calls: [name: string, call: (graph: Graph, x: Node) => Node][] = [
      ["and_", (graph, x) => graph.callFunction("operator.and_", [x, x])],
      ["__and__", (graph, x) => graph.callMethod("__and__", [x, x])],
      ["relu", (graph, x) => graph.callModule("relu", [x])],
      ["relu_1", (graph, x) => graph.callFunction("torch.nn.functional.relu", [x, false])],
      ["add", (graph, x) => graph.callFunction("torch.add", [x, x], { out: null })],
      ["bn", (graph, x) => graph.callFunction("torch.ops.aten.batch_norm.default", [x, null, null, null, null, false])],
    ];
    for (const [name, call] of calls) {
      const names = sorted((graph, x) => (call(graph, x).name = name));
      expect(names).toBe(`x neg ${name} cos sin output`);
    }
  });

  test("what writes or switches", () => {
    const calls: ((graph: Graph, x: Node) => Node)[] = [
      (graph, x) => graph.callFunction("torch.ops.aten.relu_.default", [x]),
      (graph, x) => graph.callFunction("torch.ops.aten.add.out", [x, x], { out: x }),
      (graph, x) => graph.callFunction("torch.ops.aten.__iand__.Tensor", [x, x]),
      (graph, x) => graph.callFunction("torch.ops.aten.batch_norm.default", [x, null, null, x, x, true, 0.1, 1e-5]),
      (graph, x) => graph.callFunction("torch.ops.mine.op.default", [x]),
      (graph, x) => graph.callFunction("torch.add", [x, x], { out: x }),
      (graph, x) => graph.callFunction("torch.relu_", [x]),
      (graph, x) => graph.callFunction("torch.nn.functional.relu", [x, true]),
      (graph, x) => graph.callFunction("torch.nn.functional.relu", [x], { inplace: true }),
      (graph, x) => graph.callFunction("operator.iadd", [x, 1]),
      (graph, x) => graph.callFunction("operator.setitem", [x, 0, 1]),
      (graph, x) => graph.callMethod("relu_", [x]),
      (graph, x) => graph.callModule("relu_", [x]),
      (graph, x) => graph.callModule("block", [x]),
      (graph) => graph.callFunction("torch._C._set_grad_enabled", [false]),
      (graph) => graph.callFunction("torch.amp.autocast_mode._enter_autocast", ["cpu", null, true, null]),
    ];
    for (const call of calls)
      expect(sorted((graph, x) => (call(graph, x).name = "it"))).toBe("x neg sin it cos output");
  });

  test("a write of a graph that is not sorted", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const relu = graph.callMethod("relu_", [x]);
    const cos = graph.callFunction("torch.cos", [x]);
    graph.output(cos);
    relu.append(x);
    legalizeGraph(graph);
    expect([...graph.nodes].map((it) => it.name)).toEqual(["x", "relu_", "cos", "output"]);
  });
});
