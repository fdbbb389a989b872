import { describe, expect, test } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/graph/module.ts";
import { Module } from "../../src/nn/module.ts";
import { tensor } from "../../src/tensor/construct.ts";

const leaf = new Module();
const weight = { kind: "parameter", tensor: tensor([1]) } as const;

function paths(module: GraphModule): string[] {
  return module
    .graphModules()
    .flatMap(([path, { attributes }]) =>
      Array.from(attributes.keys(), (name) => (path === "" ? name : `${path}.${name}`)),
    );
}

describe("attributes", () => {
  test("are found through modules, and by names with dots", () => {
    const gm = new GraphModule();
    expect(gm.addSubmodule("inner.deep.leaf", leaf)).toBe(true);
    (gm.getSubmodule("inner") as GraphModule).attributes.set("weight", weight);
    gm.attributes.set("a.b", weight);
    expect(gm.getTensor("inner.weight")).toBe(weight.tensor);
    expect(gm.getTensor("a.b")).toBe(weight.tensor);
    expect([gm.getSubmodule("inner.deep.leaf"), gm.getSubmodule("")]).toEqual([leaf, gm]);
    for (const path of ["a", "inner.", "inner.none", "inner.weight.more", "a.b.c", "toString"]) {
      expect(() => gm.getAttribute(path)).toThrow(expect.objectContaining({ kind: "AttributeMissing" }));
    }
  });

  test("are tensors or modules, and each is asked for as what it is", () => {
    const gm = new GraphModule();
    gm.attributes.set("weight", weight);
    gm.addSubmodule("leaf", leaf);
    const refusal = expect.objectContaining({ kind: "AttributeMissing" });
    expect(() => gm.getSubmodule("weight")).toThrow(refusal);
    expect(() => gm.getTensor("leaf")).toThrow(refusal);
  });
});

describe("sub-modules", () => {
  test("are put under new parents, but not under a tensor", () => {
    const gm = new GraphModule();
    gm.attributes.set("weight", weight);
    expect(gm.addSubmodule("a.b.c", leaf)).toBe(true);
    expect(gm.addSubmodule("a.b.d", leaf)).toBe(true);
    expect(gm.addSubmodule("weight.a", leaf)).toBe(false);
    expect(paths(gm)).toEqual(["weight", "a", "a.b", "a.b.c", "a.b.d"]);
  });

  test("are removed by their path, and tensors are not", () => {
    const gm = new GraphModule();
    gm.attributes.set("weight", weight);
    gm.addSubmodule("a.b", leaf);
    expect([gm.deleteSubmodule("a.b"), gm.deleteSubmodule("a.b"), gm.deleteSubmodule("weight")]).toEqual([
      true,
      false,
      false,
    ]);
    expect(paths(gm)).toEqual(["weight", "a"]);
  });

  test("that no node refers to are removed, with what PyTorch keeps", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    graph.callModule("called", [x]);
    graph.callModule("above.used", [x]);
    graph.getAttr("attr");
    const gm = GraphModule.ofGraph(graph);
    for (const path of ["called.inside", "above.used", "above.unused", "unused.inside", "attr.inside"]) {
      gm.addSubmodule(path, leaf);
    }
    (gm.getSubmodule("unused") as GraphModule).attributes.set("weight", weight);
    gm.attributes.set("weight", weight);
    gm.deleteAllUnusedSubmodules();
    expect(paths(gm)).toEqual(["called", "above", "attr", "weight", "called.inside", "above.used"]);
  });
});
