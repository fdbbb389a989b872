import { describe, expect, test } from "vitest";
import { mul } from "../../src/functions/operator.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { Module } from "../../src/nn/module.ts";

describe("lint", () => {
  test("LT-01: reports every problem, the first as the error and the others as notes", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const first = graph.callFunction("torch.neg", [x]);
    const second = graph.callFunction("torch.abs", [first]);
    const third = graph.callFunction("torch.add", [second, { alpha: [first] }]);
    graph.output(third);
    x.prepend(third);
    expect(graph.problems().map((it) => it.node)).toEqual(["add", "add"]);
    expect(() => graph.lint()).toThrow(
      expect.objectContaining({
        code: "FX0201",
        node: "add",
        reason: expect.stringContaining("Argument 'abs_1' of Node 'add' was used before it has been defined!"),
        notes: [expect.stringContaining("Argument 'neg' of Node 'add'")],
      }),
    );
  });

  test("LT-02: finds attributes through sub-modules, and names with dots whole", () => {
    const graph = new Graph();
    graph.getAttr("inner.leaf");
    graph.getAttr("a.b");
    const inner = new GraphModule();
    const owner = GraphModule.ofGraph(graph);
    const leaf = { kind: "module", module: new Module() } as const;
    expect(graph.problems(owner)).toHaveLength(2);
    inner.attributes.set("leaf", leaf);
    owner.attributes.set("inner", { kind: "module", module: inner });
    owner.attributes.set("a.b", leaf);
    expect(graph.problems(owner)).toEqual([]);
    expect(owner.graphModules()).toEqual([
      ["", owner],
      ["inner", inner],
    ]);
  });

  test("LT-02: finds what a module has without having registered it, as a run does", () => {
    class Scaled extends Module {
      scale = 3;
    }
    const graph = new Graph();
    graph.output(graph.callFunction(mul, [graph.placeholder("x"), graph.getAttr("scale")]));
    const gm = new GraphModule(new Scaled(), graph);
    expect(gm.forward(2)).toBe(6);
    expect(graph.problems()).toEqual([]);
    expect(graph.eliminateDeadCode()).toBe(false);
    graph.insertingBefore(undefined, () => graph.callModule("scale"));
    expect(graph.problems().map((it) => it.reason)).toEqual([
      "Node scale_1 target scale does not reference an nn.Module",
    ]);
  });

  test("does not mistake JavaScript's own properties for attributes", () => {
    const graph = new Graph();
    graph.getAttr("constructor");
    graph.getAttr("__proto__.toString");
    expect(graph.problems(GraphModule.ofGraph(graph)).map((it) => it.node)).toEqual([
      "constructor",
      "__proto___to_string",
    ]);
  });

  test("LT-02: asks the owning module, where there is one and no other is given", () => {
    const graph = new Graph();
    graph.getAttr("weight");
    expect(graph.problems()).toEqual([]);
    GraphModule.ofGraph(graph);
    expect(graph.problems().map((it) => it.kind)).toEqual(["AttributeMissing"]);
    expect(() => graph.lint()).toThrow(expect.objectContaining({ kind: "AttributeMissing", node: "weight" }));
    expect(() => graph.eliminateDeadCode()).toThrow(expect.objectContaining({ kind: "AttributeMissing" }));
  });

  test("LT-03: does not refuse two outputs, late inputs or no output", () => {
    const graph = new Graph();
    const neg = graph.callFunction("torch.neg", [1]);
    graph.placeholder("late");
    expect(graph.problems()).toEqual([]);
    graph.output(neg);
    graph.output(neg);
    expect(graph.problems()).toEqual([]);
  });
});
