import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { describe, expect, test, vi } from "vitest";
import { type KwargsInput, tuple } from "../../src/graph/args.ts";
import { Graph } from "../../src/graph/graph.ts";
import { lastUses } from "../../src/graph/lastUse.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { Node, noteLater } from "../../src/graph/node.ts";
import type { Opcode } from "../../src/base/opcode.ts";
import type { List } from "../../src/base/values.ts";
import { tensor } from "../../src/tensor/construct.ts";

function names(nodes: Iterable<Node>): string[] {
  return Array.from(nodes, (it) => it.name);
}

function refused(kind: string): unknown {
  return expect.objectContaining({ kind });
}

function three(): { graph: Graph; a: Node; b: Node; c: Node } {
  const graph = new Graph();
  return { graph, a: graph.placeholder("a"), b: graph.placeholder("b"), c: graph.placeholder("c") };
}

describe("GR-17: the insertion point", () => {
  test("GR-18: is the end, even after an output", () => {
    const { graph, a } = three();
    graph.output(a);
    graph.callFunction("torch.neg", [a]);
    expect(names(graph.nodes)).toEqual(["a", "b", "c", "output", "neg"]);
  });

  test("holds for a body, whose nodes stand in the order in which they were made", () => {
    const { graph, a, b } = three();
    const made = graph.insertingAfter(a, () => [graph.placeholder("d"), graph.placeholder("e")]);
    graph.insertingBefore(b, () => [graph.placeholder("f"), graph.placeholder("g")]);
    graph.insertingBefore(undefined, () => graph.placeholder("h"));
    graph.placeholder("i");
    expect(names(graph.nodes)).toEqual(["h", "a", "d", "e", "f", "g", "b", "c", "i"]);
    expect(names(made)).toEqual(["d", "e"]);
  });

  test("holds for a scope, also one that is left by an error, and scopes nest", () => {
    const { graph, a, b } = three();
    expect(() => {
      using _outer = graph.insertingAfter(a);
      graph.placeholder("d");
      {
        using _inner = graph.insertingBefore(b);
        graph.placeholder("e");
      }
      graph.placeholder("f");
      throw new Error("left");
    }).toThrow("left");
    graph.placeholder("g");
    expect(names(graph.nodes)).toEqual(["a", "d", "f", "e", "b", "c", "g"]);
  });

  test("stays where nobody takes it back", () => {
    const { graph, b } = three();
    graph.insertingBefore(b);
    graph.placeholder("d");
    graph.placeholder("e");
    graph.insertingAfter();
    graph.placeholder("f");
    expect(names(graph.nodes)).toEqual(["a", "d", "e", "b", "c", "f"]);
  });

  test("moves on when its node is erased, inside the scope or outside", () => {
    const { graph, a, b, c } = three();
    graph.insertingBefore(b);
    graph.insertingAfter(c, () => graph.eraseNode(b));
    graph.placeholder("d");
    expect(names(graph.nodes)).toEqual(["a", "d", "c"]);
    graph.insertingAfter(a);
    graph.eraseNode(a);
    graph.placeholder("e");
    expect(names(graph.nodes)).toEqual(["e", "d", "c"]);
  });

  test("is not a node of another graph, or an erased one", () => {
    const { graph, a } = three();
    graph.eraseNode(a);
    expect(() => graph.insertingBefore(a)).toThrow(refused("NodeForeign"));
    expect(() => graph.insertingAfter(new Graph().placeholder("x"))).toThrow(refused("NodeForeign"));
  });
});

describe("GR-09: arguments", () => {
  test("are nodes of this graph that are still there, or nothing changes", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const neg = graph.callFunction("torch.neg", [x]);
    const gone = graph.placeholder("gone");
    graph.eraseNode(gone);
    const foreign = new Graph().placeholder("y");
    for (const bad of [gone, foreign]) {
      const attempts: (() => unknown)[] = [
        () => graph.callFunction("torch.abs", [[bad]]),
        () => (neg.args = [x, { key: bad }]),
        () => (neg.kwargs = { out: tuple(bad) }),
        () => neg.updateArg(0, bad),
        () => neg.updateKwarg("dim", bad),
        () => neg.insertArg(0, bad),
        () => neg.replaceInputWith(x, bad),
        () => x.replaceAllUsesWith(bad),
        () => neg.prepend(bad),
        () => neg.append(bad),
        () => neg.compare(bad),
        () => graph.eraseNode(bad),
      ];
      for (const attempt of attempts) expect(attempt).toThrow(refused("NodeForeign"));
    }
    expect(graph.toString()).toBe(`graph():
    %x : [num_users=1] = placeholder[target=x]
    %neg : [num_users=0] = call_function[target=torch.neg](args = (%x,), kwargs = {})`);
    expect(graph.callFunction("torch.abs", [x]).name).toBe("abs_1");
  });

  test("are updated by index, from the end too, and by name", () => {
    const graph = new Graph();
    const [x, y] = [graph.placeholder("x"), graph.placeholder("y")];
    const node = graph.callFunction("f", [x, 1], { dim: 0 });
    node.updateArg(-1, y);
    node.updateKwarg("dim", 1);
    node.updateKwarg("out", x);
    node.insertArg(2, "end");
    expect(node.formatNode()).toContain("(args = (%x, %y, end), kwargs = {dim: 1, out: %x})");
    for (const index of [3, -4, 0.5]) expect(() => node.updateArg(index, 0)).toThrow(refused("GraphArgument"));
    for (const index of [4, -1, 0.5]) expect(() => node.insertArg(index, 0)).toThrow(refused("GraphArgument"));
  });

  test("that change make the known value of the node invalid, and nothing else that is known", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const node = graph.callFunction("f", [x]);
    const edits: (() => void)[] = [
      () => (node.args = [x, 1]),
      () => (node.kwargs = {}),
      () => (node.target = "g"),
      () => node.insertArg(0, 1),
    ];
    for (const edit of edits) {
      node.meta.set("val", 1).set("stack_trace", "here");
      edit();
      expect([...node.meta.keys()]).toEqual(["stack_trace"]);
    }
  });
});

describe("replaceAllUsesWith", () => {
  test("GR-12: gives the meta over on request, to a node without meta", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const [old, replacement] = [graph.callFunction("f", [x]), graph.callFunction("g", [x])];
    old.meta.set("custom", 1);
    graph.output(old);
    old.replaceAllUsesWith(replacement, { propagateMeta: true });
    expect(replacement.meta.get("custom")).toBe(1);
    expect(() => old.replaceAllUsesWith(replacement, { propagateMeta: true })).toThrow(refused("GraphArgument"));
  });

  test("GR-10, GR-11: asks the filter about every user, and changes nothing when it throws", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const users = [0, 1, 2].map(() => graph.callFunction("f", [x]));
    const y = graph.placeholder("y");
    const filter = (user: Node): boolean => {
      if (user === users[2]) throw new Error("no");
      return true;
    };
    expect(() => x.replaceAllUsesWith(y, { filter })).toThrow("no");
    expect([...x.users]).toEqual(users);
    expect(x.replaceAllUsesWith(y, { filter: (user) => user !== users[1] })).toEqual([users[0], users[2]]);
    expect([names(x.users), names(y.users)]).toEqual([["f_1"], ["f", "f_2"]]);
  });
});

describe("GR-21: copies", () => {
  test("of a node keep type and notes, and map its arguments", () => {
    const source = new Graph();
    const node = source.callFunction("f", [source.placeholder("x")], {}, "int");
    node.meta.set("note", { deep: 1 });
    const graph = new Graph();
    const y = graph.placeholder("y");
    const copy = graph.nodeCopy(node, () => y);
    expect([copy.type, copy.meta.get("note"), copy.allInputNodes]).toEqual(["int", node.meta.get("note"), [y]]);
    copy.meta.set("own", 1);
    expect(node.meta.has("own")).toBe(false);
    expect(() => graph.nodeCopy(node)).toThrow(refused("NodeForeign"));
  });

  test("of a graph inline it, and give back what it returns without its output", () => {
    const inner = new Graph();
    const [a, b] = [inner.placeholder("a"), inner.placeholder("b")];
    inner.output([inner.callFunction("torch.add", [a, b]), a]);
    const graph = new Graph();
    const x = graph.placeholder("x");
    const map = new Map([[a, x]]);
    const result = graph.graphCopy(inner, map);
    expect(names(graph.nodes)).toEqual(["x", "b", "add"]);
    expect(graph.output(result ?? null).formatNode()).toBe("return [add, x]");
    expect(names(map.keys())).toEqual(["a", "b", "add"]);
  });

  test("of a graph into itself end, and ill-formed graphs are refused", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    graph.callFunction("torch.neg", [x]);
    expect(graph.graphCopy(graph)).toBe(undefined);
    expect(names(graph.nodes)).toEqual(["x", "neg", "x_1", "neg_1"]);
    const late = new Graph();
    const early = late.callFunction("torch.neg", []);
    early.args = [late.placeholder("x")];
    expect(() => new Graph().graphCopy(late)).toThrow(refused("GraphInvalid"));
  });
});

describe("NM-10: names", () => {
  test("are given exactly by assignment, and freely by rename", () => {
    const graph = new Graph();
    const [x, y] = [graph.placeholder("x"), graph.placeholder("y")];
    expect(() => {
      y.name = "x";
    }).toThrow(refused("GraphInvalid"));
    expect(y.rename("x")).toBe("x_1");
    expect(x.rename("x")).toBe("x");
    y.name = "aten::odd name";
    expect(graph.find("aten::odd name")).toBe(y);
    expect(graph.find("y")).toBe(undefined);
  });
});

describe("GR-19: nodes are found by opcode and target", () => {
  test("in order, under a name or a function that has one", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const f = Object.assign(() => undefined, { target: "f" });
    const calls = ["f", "g", f].map((target) => graph.callFunction(target, [x]));
    graph.callMethod("f", [x]);
    expect(graph.findNodes({ op: "call_function", target: "f" })).toEqual([calls[0], calls[2]]);
    expect(graph.findNodes({ op: "call_function", target: f })).toEqual([calls[0], calls[2]]);
    expect(graph.findNodes({ op: "placeholder" })).toEqual([x]);
    expect(graph.findNodes({ op: "call_method", target: "g" })).toEqual([]);
    expect(() => graph.findNodes({ op: "call_function" })).toThrow(refused("GraphArgument"));
    expect(() => graph.findNodes({ op: "call" as Opcode })).toThrow(refused("GraphArgument"));
  });

  test("after every kind of edit", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const [a, b, c] = [0, 1, 2].map(() => graph.callFunction("f", [x])) as [Node, Node, Node];
    const found = (op: Opcode, target?: string): Node[] =>
      graph.findNodes({ op, ...(target === undefined ? {} : { target }) });
    expect(found("call_function", "f")).toEqual([a, b, c]);
    const d = graph.insertingBefore(a, () => graph.callFunction("f", [x]));
    expect(found("call_function", "f")).toEqual([d, a, b, c]);
    expect(graph.findNodes({ op: "call_function", target: "f", sort: false })).toEqual([a, b, c, d]);
    d.append(b);
    a.target = "g";
    c.op = "call_method";
    expect(found("call_function", "f")).toEqual([d, b]);
    expect(found("call_function", "g")).toEqual([a]);
    expect(found("call_method")).toEqual([c]);
    a.name = "other";
    graph.eraseNode(d);
    graph.reorder([x, c, b, a]);
    const copy = graph.nodeCopy(b);
    expect(found("call_function", "f")).toEqual([b, copy]);
    graph.clearNodes();
    expect([found("placeholder"), found("call_function", "f"), found("call_method")]).toEqual([[], [], []]);
  });

  test("by looking at all nodes once, and at hits alone afterwards", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    for (let i = 0; i < 100; i++) graph.callFunction("f", [x]);
    const g = graph.callFunction("g", [x]);
    const reads = [vi.spyOn(Node.prototype, "op", "get"), vi.spyOn(Node.prototype, "target", "get")];
    expect(graph.findNodes({ op: "call_function", target: "g" })).toEqual([g]);
    for (const it of reads) it.mockClear();
    expect(graph.findNodes({ op: "call_function", target: "g" })).toEqual([g]);
    for (const it of reads) expect(it).not.toHaveBeenCalled();
    vi.restoreAllMocks();
  });

  test("GR-15: and the output among them is the last", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    expect(graph.outputNode()).toBe(undefined);
    const output = graph.output(x);
    graph.placeholder("late");
    expect(graph.outputNode()).toBe(output);
  });
});

describe("GR-02: a target", () => {
  test("is a name, or a function that has one", () => {
    const graph = new Graph();
    const relu = { target: "torch.relu" };
    const node = graph.callFunction(relu, [graph.placeholder("x")]);
    expect([node.target, node.name]).toEqual(["torch.relu", "relu"]);
    node.target = Object.assign(() => undefined, { target: "torch.neg" });
    expect(node.target).toBe("torch.neg");
    for (const bad of [Math.max, 1, null, undefined, { target: 1 }]) {
      expect(() => graph.callFunction(bad as unknown as string)).toThrow(refused("GraphArgument"));
      expect(() => (node.target = bad as unknown as string)).toThrow(refused("GraphArgument"));
    }
    expect(() => (node.op = "root" as Opcode)).toThrow(refused("GraphArgument"));
    expect(node.formatNode()).toContain("call_function[target=torch.neg]");
  });
});

describe("GR-23: notes", () => {
  test("have the stack where the node was made", () => {
    const node = new Graph().placeholder("x");
    expect(node.stackTrace).toBe(undefined);
    node.stackTrace = 'File "a.ts", line 1, in f';
    expect(node.meta.get("stack_trace")).toBe('File "a.ts", line 1, in f');
    node.stackTrace = undefined;
    expect(node.meta.has("stack_trace")).toBe(false);
  });

  test("that are made when they are read are there for whoever reads first", () => {
    const graph = new Graph();
    const node = graph.placeholder("x");
    noteLater(node, (meta) => void meta.set("stack_trace", "at forward (model.ts:3:5)"));
    expect(node.stackTrace).toBe("at forward (model.ts:3:5)");
  });

  test("of a copy are its own, also those that were not made yet", () => {
    const graph = new Graph();
    const node = graph.placeholder("x");
    node.meta.set("early", 1);
    noteLater(node, (meta) => void meta.set("stack_trace", "at forward (model.ts:3:5)"));
    const [copy] = graph.clone().nodes;
    node.meta.set("late", 2);
    node.meta.delete("stack_trace");
    expect([...(copy?.meta.keys() ?? [])]).toEqual(["early", "stack_trace"]);
    expect([...node.meta.keys()]).toEqual(["early", "late"]);
  });
});

describe("GR-21: a graph in the place of a call", () => {
  const callee = new Graph();
  const [a, b] = [callee.placeholder("a"), callee.placeholder("b", undefined, 2)];
  callee.output([callee.callFunction("torch.add", [a, b]), a]);

  test("takes values for its inputs, and their defaults", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const result = graph.inlineGraph(callee, [x]);
    graph.output(result ?? null);
    expect(`${graph}`).toBe(`graph():
    %x : [num_users=2] = placeholder[target=x]
    %add : [num_users=1] = call_function[target=torch.add](args = (%x, 2), kwargs = {})
    return [add, x]`);
    const [sum, one] = graph.inlineGraph(callee, [1, null]) as List;
    expect([sum === graph.last, one]).toEqual([true, 1]);
    expect(graph.last?.args[1]).toBe(null);
  });

  test("needs a value for each input, and no more", () => {
    expect(() => new Graph().inlineGraph(callee, [])).toThrow(refused("InputCount"));
    expect(() => new Graph().inlineGraph(callee, [1, 2, 3])).toThrow(refused("InputCount"));
  });

  test("gives its output node on request", () => {
    const graph = new Graph();
    const [result, output] = graph.graphCopy(callee, new Map(), { returnOutputNode: true }) ?? [];
    const [sum, input] = result as List;
    expect([sum === graph.last, input === graph.first, output === callee.outputNode()]).toEqual([true, true, true]);
    expect(graph.graphCopy(new Graph(), new Map(), { returnOutputNode: true })).toBe(undefined);
  });
});

test("GM-05: reading an attribute that the owner does not have warns", () => {
  const graph = new Graph();
  graph.getAttr("weight");
  const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
  const owner = new GraphModule({ weight: tensor([1]) }, graph);
  expect(graph.owningModule).toBe(owner);
  graph.getAttr("weight");
  expect(warn).not.toHaveBeenCalled();
  graph.getAttr("bias");
  expect(warn.mock.calls).toEqual([[expect.stringContaining("has no attribute bias")]]);
  warn.mockRestore();
});

test("GR-16: an erased node is not held by its graph", async () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  graph.findNodes({ op: "placeholder" });
  const gone = (() => {
    const node = graph.callFunction("torch.neg", [x]);
    graph.output(x);
    graph.eraseNode(node);
    return new WeakRef(node);
  })();
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // What a WeakRef gave stays until the task ends, so the collection waits for another.
  await new Promise((resolve) => setImmediate(resolve));
  collect();
  expect(gone.deref()).toBe(undefined);
});

test("values are used for the last time where nothing after needs them", () => {
  const graph = new Graph();
  const [x, unused] = [graph.placeholder("x"), graph.placeholder("unused")];
  const neg = graph.callFunction("torch.neg", [x]);
  graph.callFunction("torch.add", [neg, x]);
  graph.output(neg);
  expect(Array.from(lastUses(graph), ([user, values]) => [user.name, names(values)])).toEqual([
    ["output", ["neg"]],
    ["add", ["x"]],
  ]);
  expect(unused.users.size).toBe(0);
});

test("the version grows with every edit, and what was found about uses is found again", () => {
  const graph = new Graph();
  const [x, y] = [graph.placeholder("x"), graph.placeholder("y")];
  const add = graph.callFunction("torch.add", [x, y]);
  const neg = graph.callFunction("torch.neg", [add]);
  const output = graph.output(neg);
  const edits: (() => unknown)[] = [
    () => graph.placeholder("z"),
    () => (add.args = [x, x]),
    () => (add.kwargs = { alpha: y }),
    () => add.updateArg(0, y),
    () => add.insertArg(0, x),
    () => neg.replaceInputWith(add, y),
    () => neg.replaceAllUsesWith(add),
    () => (neg.target = "torch.abs"),
    () => (neg.name = "absolute"),
    () => neg.rename("other"),
    () => y.append(neg),
    () => output.prepend(neg),
    () => graph.reorder([...graph.nodes]),
    () => graph.eraseNode(neg),
  ];
  for (const edit of edits) {
    const [before, uses] = [graph.version, lastUses(graph)];
    expect(lastUses(graph)).toBe(uses);
    edit();
    expect(graph.version, String(edit)).toBeGreaterThan(before);
    expect(lastUses(graph), String(edit)).not.toBe(uses);
  }
});

test("GR-13: erasing says who still uses the node", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  graph.callFunction("torch.neg", [x]);
  graph.callFunction("torch.abs", [x]);
  expect(() => graph.eraseNode(x)).toThrow(
    "Tried to erase Node x but it still had 2 users in the graph: {neg, abs_1}!",
  );
});

test("GR-13: an erased node keeps its name and gives up the rest", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  const neg = graph.callFunction("torch.neg", [x], { dim: x });
  graph.eraseNode(neg);
  expect([neg.name, neg.isErased, [...neg.args], neg.kwargs, x.users.size]).toEqual(["neg", true, [], {}, 0]);
  expect(() => graph.eraseNode(neg)).toThrow(refused("NodeForeign"));
  expect(() => (neg.args = [x])).toThrow(refused("NodeForeign"));
});

test("GR-01, GR-03: what is not an opcode, a target or a list of arguments is refused", () => {
  const graph = new Graph();
  expect(() => graph.createNode("call" as Opcode, "f")).toThrow(refused("GraphArgument"));
  expect(() => graph.createNode("root" as Opcode, "f")).toThrow(refused("GraphArgument"));
  expect(() => graph.callFunction(Math.max as unknown as string)).toThrow(refused("GraphArgument"));
  expect(() => graph.callFunction("f", { 0: 1 } as unknown as [])).toThrow(refused("GraphArgument"));
  expect(() => graph.callFunction("f", [], [] as unknown as KwargsInput)).toThrow(refused("GraphArgument"));
  expect(graph.nodes.length).toBe(0);
});
