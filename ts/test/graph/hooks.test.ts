import { describe, expect, test } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";

function recorded(): { graph: Graph; gm: GraphModule; events: string[] } {
  const graph = new Graph();
  const gm = GraphModule.ofGraph(graph);
  const events: string[] = [];
  for (const [who, hooks] of Object.entries({ graph: graph.hooks, module: gm.graphHooks })) {
    hooks.onCreate((node) => events.push(`${who}: made ${node.name} of type ${node.type}`));
    hooks.onErase((node) => events.push(`${who}: erases ${node.name} with ${node.allInputNodes.length} inputs`));
    hooks.onReplace((old, name, user) => events.push(`${who}: ${user.name} uses ${name} for ${old.name}`));
  }
  return { graph, gm, events };
}

describe("GR-20: hooks", () => {
  test("of the graph and of its module are told of nodes that are made and erased, when they stand in the graph", () => {
    const { graph, events } = recorded();
    const x = graph.placeholder("x", "int");
    const neg = graph.nodeCopy(graph.callFunction("torch.neg", [x]));
    events.length = 0;
    graph.eraseNode(neg);
    graph.createNamedNode("call_function", "torch.abs", [x], {}, "y");
    expect(events).toEqual([
      "graph: erases neg_1 with 1 inputs",
      "module: erases neg_1 with 1 inputs",
      "graph: made y of type undefined",
      "module: made y of type undefined",
    ]);
  });

  test("are told of replaced inputs, user by user, and of new names", () => {
    const { graph, events } = recorded();
    const [x, y] = [graph.placeholder("x"), graph.placeholder("y")];
    const [neg] = [graph.callFunction("torch.neg", [x]), graph.callFunction("torch.abs", [x])];
    events.length = 0;
    x.replaceAllUsesWith(y, { filter: (it) => it !== neg });
    neg?.replaceInputWith(x, y);
    y.name = "z";
    y.rename("w");
    expect(events.filter((it) => it.startsWith("module"))).toEqual([
      "module: abs_1 uses y for x",
      "module: neg uses y for x",
      "module: abs_1 uses z for y",
      "module: neg uses z for y",
      "module: abs_1 uses w for z",
      "module: neg uses w for z",
    ]);
  });

  test("are told no more once they are disposed, and a refused edit tells nobody", () => {
    const { graph, events } = recorded();
    const x = graph.placeholder("x");
    graph.callFunction("torch.neg", [x]);
    events.length = 0;
    expect(() => graph.eraseNode(x)).toThrow();
    expect(() => graph.callFunction("torch.neg", [new Graph().placeholder("other")])).toThrow();
    expect(events).toEqual([]);
    let count = 0;
    {
      using _hook = graph.hooks.onCreate(() => (count += 1));
      graph.placeholder("y");
    }
    graph.placeholder("z");
    expect(count).toBe(1);
  });

  test("may edit the graph themselves", () => {
    const graph = new Graph();
    graph.hooks.onCreate((node) => {
      if (node.target === "torch.neg") graph.callFunction("torch.abs", [node]);
    });
    graph.callFunction("torch.neg", [graph.placeholder("x")]);
    expect(Array.from(graph.nodes, (it) => it.name)).toEqual(["x", "neg", "abs_1"]);
  });

  test("may erase the node themselves, or hold on to it", () => {
    const graph = new Graph();
    const [x, y, z] = [graph.placeholder("x"), graph.placeholder("y"), graph.placeholder("z")];
    let isErasing = false;
    graph.hooks.onErase((node) => {
      if (node === x && !isErasing) {
        isErasing = true;
        graph.eraseNode(x);
      }
      if (node === y) graph.callFunction("torch.neg", [y]);
    });
    graph.eraseNode(x);
    expect(() => graph.eraseNode(y)).toThrow(expect.objectContaining({ kind: "NodeHasUsers" }));
    expect(Array.from(graph.nodes, (it) => it.name)).toEqual(["y", "z", "neg"]);
    expect([graph.nodes.length, z.prev === y, x.isErased]).toEqual([3, true, true]);
  });

  test("go with a copy of the graph, which then has its own", () => {
    const { graph, gm, events } = recorded();
    const copy = graph.clone();
    copy.placeholder("x");
    expect([copy.owningModule, events]).toEqual([undefined, ["graph: made x of type undefined"]]);
    copy.hooks.onCreate(() => events.push("own"));
    graph.placeholder("y");
    expect(events.slice(1)).toEqual(["graph: made y of type undefined", "module: made y of type undefined"]);
    gm.graph = copy;
    expect(copy.owningModule).toBe(gm);
  });
});
