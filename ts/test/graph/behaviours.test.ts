/**
 * Behaviours of torch.fx's graphs that other tests only touch, by the ids of the list that docs/compat.md keeps.
 *
 * Some have no counterpart. GR-05: Python's lists are hashed, pickled and taken apart as pytrees; arrays here are none of that,
 * and their immutability is GR-04. CG-10: errors of code that runs are tested with the import that runs it.
 */
import { describe, expect, test } from "vitest";
import { slice, tuple, type ArgInput } from "../../src/graph/args.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import type { Node } from "../../src/graph/node.ts";
import type { Opcode } from "../../src/base/opcode.ts";

function names(nodes: Iterable<Node>): string[] {
  return Array.from(nodes, (it) => it.name);
}

/** A graph with these inputs. */
function inputs(...wanted: string[]): { graph: Graph; nodes: Node[] } {
  const graph = new Graph();
  return { graph, nodes: wanted.map((name) => graph.placeholder(name)) };
}

describe("GR-06: inputs are found", () => {
  test.each<[where: string, wrap: (node: Node) => ArgInput]>([
    ["in a list", (it) => [it]],
    ["in a tuple", (it) => tuple(1, it)],
    ["in a value of a dict", (it) => ({ key: it })],
    ["at the start of a slice", (it) => slice(it, null)],
    ["at the stop of a slice", (it) => slice(null, it)],
    ["in the step of a slice", (it) => slice(null, null, it)],
    ["deep inside", (it) => [{ a: tuple([slice(null, [{ b: it }])]) }]],
  ])("%s", (_, wrap) => {
    const { graph, nodes } = inputs("x");
    const [x] = nodes as [Node];
    for (const node of [graph.callFunction("f", [wrap(x)]), graph.callFunction("f", [], { k: wrap(x) })]) {
      expect(names(node.allInputNodes)).toEqual(["x"]);
      expect(x.users.has(node)).toBe(true);
    }
  });
});

test("GR-07: inputs are distinct, in order of first appearance, args before kwargs", () => {
  const { graph, nodes } = inputs("a", "b", "c");
  const [a, b, c] = nodes as [Node, Node, Node];
  const node = graph.callFunction("f", [[b, a], b], { z: c, y: a });
  expect(names(node.allInputNodes)).toEqual(["b", "a", "c"]);
});

test("GR-08: users are each there once, and go to the end when their arguments are assigned", () => {
  const { graph, nodes } = inputs("x");
  const [x] = nodes as [Node];
  const [first, second] = [graph.callFunction("f", [x, x]), graph.callFunction("g", [x])];
  expect(names(x.users)).toEqual(["f", "g"]);
  first.args = [...first.args];
  expect(names(x.users)).toEqual(["g", "f"]);
  second.kwargs = {};
  expect(names(x.users)).toEqual(["f", "g"]);
  first.insertArg(0, x);
  first.updateKwarg("k", 1);
  expect(names(x.users)).toEqual(["g", "f"]);
});

test("GR-11: a new node that uses the old one is kept from using itself", () => {
  const { graph, nodes } = inputs("x");
  const [x] = nodes as [Node];
  graph.output(x);
  const neg = graph.insertingAfter(x, () => graph.callFunction("torch.neg", [x]));
  const changed = x.replaceAllUsesWith(neg, { filter: (user) => user !== neg });
  expect(names(changed)).toEqual(["output"]);
  expect([names(neg.allInputNodes), names(x.users)]).toEqual([["x"], ["neg"]]);
});

describe("GR-15: order", () => {
  test("is the same both ways, and compared by position", () => {
    const { graph, nodes } = inputs("a", "b", "c");
    const [a, b, c] = nodes as [Node, Node, Node];
    expect(names(graph.nodes.reversed())).toEqual(["c", "b", "a"]);
    expect([graph.nodes.length, a.next, c.prev, a.prev, c.next].map((it) => it?.toString())).toEqual([
      "3",
      "b",
      "b",
      undefined,
      undefined,
    ]);
    const late = graph.insertingBefore(b, () => graph.placeholder("late"));
    expect(names([c, late, b, a].toSorted((left, right) => left.compare(right)))).toEqual(["a", "late", "b", "c"]);
    expect(b.compare(b)).toBe(0);
  });
});

describe("GR-16: moving", () => {
  test("puts a node before or after another, and next to itself nowhere else", () => {
    const { graph, nodes } = inputs("a", "b", "c");
    const [a, b, c] = nodes as [Node, Node, Node];
    a.prepend(c);
    a.append(c);
    b.append(a);
    b.append(b);
    b.prepend(b);
    expect(names(graph.nodes)).toEqual(["c", "b", "a"]);
    const other = new Graph().placeholder("x");
    expect(() => other.prepend(a)).toThrow(expect.objectContaining({ kind: "NodeForeign" }));
    expect(() => other.append(a)).toThrow(expect.objectContaining({ kind: "NodeForeign" }));
  });
});

test("GR-25: clearing erases every node and what was noted, and keeps the names given", () => {
  const { graph, nodes } = inputs("x");
  const [x] = nodes as [Node];
  graph.output(graph.callFunction("torch.neg", [x]));
  x.meta.set("note", 1);
  graph.clearNodes();
  expect([graph.nodes.length, x.isErased, x.meta.size]).toEqual([0, true, 0]);
  expect(graph.placeholder("x").name).toBe("x_1");
});

describe("names", () => {
  test.each<[id: string, op: Opcode, target: string, name: string | undefined, given: string]>([
    ["NM-01: of a target are in snake case", "call_module", "PascalCase", undefined, "pascal_case"],
    ["NM-01: of a target in capitals too", "call_module", "ALL_CAPS", undefined, "all_caps"],
    ["NM-01: that are given are not", "call_module", "m", "MyNode", "MyNode"],
    ["NM-01: of a magic method have no underscores", "call_method", "__add__", undefined, "add"],
    ["NM-01: of a function are its own", "call_function", "torch.nn.functional.layer_norm", undefined, "layer_norm"],
    ["NM-02: have no illegal characters", "get_attr", "a.b-c  d", undefined, "a_b_c_d"],
    ["NM-02: begin with no digit", "call_module", "0.conv", undefined, "_0_conv"],
    ["NM-02: are not empty", "call_module", "", undefined, "_unnamed"],
    ["NM-03: hide nothing of Python", "call_function", "torch.sum", undefined, "sum_1"],
    ["NM-03: are no keywords", "placeholder", "lambda", "lambda", "lambda_1"],
    ["NM-07: of `*args` lose the star", "placeholder", "*args", "*args", "_args"],
    ["NM-07: of `**kwargs` lose both", "placeholder", "**kwargs", "**kwargs", "_kwargs"],
    ["NM-09: of operators have their overload", "call_function", "torch.ops.aten.add.Tensor", undefined, "add_tensor"],
    [
      "NM-09: of operators have `default` too",
      "call_function",
      "torch.ops.aten.relu.default",
      undefined,
      "relu_default",
    ],
  ])("%s", (_, op, target, name, given) => {
    const node = new Graph().createNode(op, target, [], {}, name);
    expect([node.name, node.target]).toEqual([given, target]);
  });

  test("NM-04: count on from the largest number", () => {
    const graph = new Graph();
    const given = ["a_5", "a", "a", "a_01", "a", "b_99999999999999999999", "b"].map((it) => graph.placeholder(it).name);
    expect(given).toEqual(["a_5", "a", "a_6", "a_01", "a_2", "b_99999999999999999999", "b"]);
  });

  test("NM-05: are never given again", () => {
    const { graph, nodes } = inputs("x");
    graph.eraseNode(nodes[0] as Node);
    expect(graph.placeholder("x").name).toBe("x_1");
  });

  test("NM-08: of copies stay where they are free", () => {
    const { graph } = inputs("a", "b");
    const { graph: into } = inputs("b");
    into.graphCopy(graph);
    expect(names(into.nodes)).toEqual(["b", "a", "b_1"]);
  });
});

test("CG-01: a value is released where nothing needs it any more, and an unused one at once", () => {
  const { graph, nodes } = inputs("x", "never");
  const [x] = nodes as [Node];
  const neg = graph.callFunction("torch.neg", [x]);
  graph.callFunction("torch.ops.aten.add_.Tensor", [x, neg]);
  graph.output(null);
  expect(graph.generateCode().source.split("\n").slice(1, 3)).toEqual([
    "  let neg = torch.neg(x);",
    expect.stringMatching(/;\s{2}x = neg = add__tensor = null;$/),
  ]);
});

test("CG-09: a module prints its tree, and its graph as text has the names that people say", () => {
  const { graph, nodes } = inputs("x");
  const [x] = nodes as [Node];
  graph.callFunction("builtins.getattr", [x, "shape"]);
  graph.callFunction("operator.add", [x, 1]);
  expect(`${graph}`).toContain(
    "%getattr_1 : [num_users=0] = call_function[target=builtins.getattr](args = (%x, shape)",
  );
  expect(`${graph}`).toContain("call_function[target=operator.add]");
  expect(String(GraphModule.ofGraph(graph))).toContain("GraphModule()");
});
