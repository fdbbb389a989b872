import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { Graph } from "../../src/graph/graph.ts";
import { Linear } from "../../src/nn/linear.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";

/** What `tests/oracle/gen_copied.py` recorded of `copy.deepcopy`. */
const RECORDED = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/copied/module.json", import.meta.url), "utf8"),
) as Record<string, unknown>;

function layer(weight: Parameter): Module {
  const res = new Linear(2, 2, { bias: false });
  res.registerParameter("weight", weight);
  return res;
}

test("a copy shares with the original what copy.deepcopy shares", () => {
  const weight = new Parameter(
    tensor([
      [1.5, 1.5],
      [1.5, 1.5],
    ]),
  );
  const innerGraph = new Graph();
  innerGraph.output(innerGraph.callFunction("torch.relu", [innerGraph.placeholder("y")]));
  const root = new Module();
  root.addModule("a", layer(weight));
  root.addModule("b", layer(weight));
  root.addModule("inner", new GraphModule({}, innerGraph));
  root.registerParameter("w", new Parameter(tensor([1.5, 1.5])));
  root.registerBuffer("buf", tensor([0, 0]));

  const graph = new Graph();
  const x = graph.placeholder("x", "int");
  let node = graph.callModule("inner", [graph.callModule("b", [graph.callModule("a", [x])])]);
  node = graph.callFunction("torch.add", [node, graph.getAttr("w")]);
  node = graph.callFunction("torch.add", [node, graph.getAttr("buf")]);
  graph.eraseNode(graph.callFunction("torch.relu", [node]));
  graph.output(node);
  const gm = new GraphModule(root, graph);
  const note = [1];
  for (const it of gm.graph.nodes) it.meta.set("note", note);
  gm.meta.set("note", note);
  const inner = gm.getSubmodule("inner") as GraphModule;
  inner.meta.set("note", note);
  gm.eval();
  gm.getSubmodule("a").train();
  const made: string[] = [];
  using _hook = gm.graphHooks.onCreate((it) => void made.push(it.name));

  const other = gm.clone();
  const [nodes, others] = [[...gm.graph.nodes], [...other.graph.nodes]];
  const otherInner = other.getSubmodule("inner") as GraphModule;
  const modules = [...other.namedModules()].filter(([name]) => name !== "");
  const found = {
    nodes: others.map((it) => it.name),
    types: others.map((it) => it.type ?? null),
    "node meta is shared": others.some((it, at) => it.meta === nodes[at]?.meta),
    "values of node meta are shared": others.every((it) => it.meta.get("note") === note),
    "meta is shared": other.meta === gm.meta,
    "value of meta is shared": other.meta.get("note") === note,
    "value of meta": other.meta.get("note"),
    "graph knows its module": other.graph.owningModule === other,
    modules: Object.fromEntries(modules.map(([name, it]) => [name, it.training])),
    "a is shared": other.getSubmodule("a") === gm.getSubmodule("a"),
    "weight is shared": other.getTensor("a.weight") === gm.getTensor("a.weight"),
    "weights are tied": other.getTensor("a.weight") === other.getTensor("b.weight"),
    parameters: [...other.namedParameters().keys()],
    buffers: [...other.namedBuffers().keys()],
    "buffer is shared": other.getTensor("buf") === gm.getTensor("buf"),
    "inner is shared": otherInner === inner,
    "graph of inner is shared": otherInner.graph === inner.graph,
    "graph of inner knows its module": otherInner.graph.owningModule === otherInner,
    "value of meta of inner is shared": otherInner.meta.get("note") === note,
  };
  const name = others[0] === undefined ? "" : other.graph.callFunction("torch.relu", [others[0]]).name;
  expect({ ...found, hooks: made.includes(name), "the name of another relu": name }).toEqual(RECORDED);
});
