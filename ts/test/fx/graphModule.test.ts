import { describe, expect, test } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
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
  test("cannot be taken over by a field of their name", () => {
    class Sized extends Module {
      declare attributes: Map<string, never>;
      constructor() {
        super();
        Reflect.set(this, "attributes", new Module());
      }
    }
    const refusal = expect.objectContaining({ kind: "GraphArgument", reason: expect.stringContaining("`attributes`") });
    expect(() => new Sized()).toThrow(refusal);
    const module = new Module();
    expect(() => Reflect.deleteProperty(module, "attributes")).toThrow(refusal);
    expect(() => Reflect.set(module, "attributes", 3)).toThrow(refusal);
    expect([...module.attributes]).toEqual([]);
  });

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

describe("GM-04: sub-modules", () => {
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

describe("GM-01: plain properties of the root that nodes refer to", () => {
  class Root extends Module {
    settings = { scale: 2 };
    inner = new (class extends Module {
      note = "text";
    })();
    graph = "taken";
  }

  test("are taken along", () => {
    const graph = new Graph();
    graph.output([graph.getAttr("settings"), graph.getAttr("inner.note")]);
    const root = new Root();
    const gm = new GraphModule(root, graph);
    expect(gm.forward()).toEqual([{ scale: 2 }, "text"]);
    expect(Reflect.get(gm, "settings")).toBe(root.settings);
  });

  test("must not be called as members of graph modules are, nor as those of every object", () => {
    for (const [path, kind] of [
      ["graph", "GraphArgument"],
      ["constructor", "AttributeMissing"],
      ["inner.toString", "AttributeMissing"],
    ] as const) {
      const graph = new Graph();
      graph.output(graph.getAttr(path));
      expect(() => new GraphModule(new Root(), graph), path).toThrow(expect.objectContaining({ kind }));
    }
  });
});

describe("GM-06: a copy", () => {
  class Scaled extends Module {
    weight = new Parameter(tensor([2.5]));
    inner = new Module();
  }

  function original(): GraphModule {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const w = graph.getAttr("weight");
    const call = graph.callModule("inner", [w]);
    call.meta.set("note", 1);
    graph.output([x, call]);
    const gm = new GraphModule(new Scaled(), graph, "Scaled");
    gm.meta.set("note", { shared: true });
    return gm;
  }

  test("has a graph and attributes of its own, and the notes", () => {
    const gm = original();
    const copy = gm.clone();
    expect([`${copy.graph}`, copy.className, copy.graph.owningModule === copy]).toEqual([
      `${gm.graph}`,
      "Scaled",
      true,
    ]);
    expect(copy.graph.find("inner")?.meta.get("note")).toBe(1);
    // PyTorch copies these deeply, and those of the nodes not.
    expect(copy.meta.get("note")).toEqual(gm.meta.get("note"));
    expect(copy.meta.get("note")).not.toBe(gm.meta.get("note"));
    expect([
      copy.getTensor("weight") === gm.getTensor("weight"),
      copy.getSubmodule("inner") === gm.getSubmodule("inner"),
    ]).toEqual([false, false]);
    copy.graph.placeholder("more");
    copy.meta.set("more", 1);
    copy.deleteSubmodule("inner");
    expect([`${gm.graph}`, [...gm.meta.keys()], [...gm.attributes.keys()]]).toEqual([
      `${original().graph}`,
      ["note"],
      ["weight", "inner"],
    ]);
  });

  test("of a subclass is of that class, with its properties", () => {
    class Named extends GraphModule {
      tags = ["a"];
    }
    const gm = new Named({}, new Graph());
    const copy = gm.clone();
    expect(copy).toBeInstanceOf(Named);
    expect([copy.tags, copy.tags === gm.tags]).toEqual([["a"], false]);
  });

  test("is told about edits of its own graph alone, by the hooks of both", () => {
    const gm = original();
    const made: string[] = [];
    using _hook = gm.graphHooks.onCreate((node) => void made.push(node.name));
    const copy = gm.clone();
    expect(made).toEqual([]);
    copy.graph.placeholder("in_copy");
    gm.graph.placeholder("in_original");
    expect(made).toEqual(["in_copy", "in_original"]);
  });

  test("of a graph deeper than any stack is made", () => {
    const graph = new Graph();
    let node = graph.placeholder("x");
    for (let count = 0; count < 50_000; count++) node = graph.callFunction("torch.neg", [node]);
    graph.output(node);
    expect(new GraphModule({}, graph).clone().graph.nodes.length).toBe(50_002);
  });
});

test("the text of a graph module is its tree of modules and its code", () => {
  const graph = new Graph();
  graph.output(graph.callModule("inner", [graph.placeholder("x")]));
  const gm = new GraphModule({ inner: GraphModule.ofGraph(new Graph(), "Inner") }, graph, "Outer");
  expect(`${gm}`).toBe(
    `Outer(\n  (inner): Inner()\n)\n\n${gm.code}\n// To see more debug info, please use \`graphModule.printReadable()\``,
  );
});

test("GM-10, CG-11: a graph module runs its graph as it is, and recompiling changes nothing", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  const output = graph.output(x);
  const gm = new GraphModule({}, graph);
  output.args = [[x, x]];
  expect(gm.forward(1)).toEqual([1, 1]);
  expect([gm.recompile().source, gm.forward(1)]).toEqual([gm.code, [1, 1]]);
});
