/** What is shown of recorded programs: modules, weights, inner graphs, and the boxes and edges that are visible. */
import { existsSync, readdirSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { exportProgram, Graph, GraphModule, init, Module, nn, symbolicTrace, type Tensor, torch, tuple } from "tracefx";
import { detailsOf, overviewOf } from "../../src/explorer/details.ts";
import { layOut } from "../../src/explorer/layout.ts";
import { pictureOf } from "../../src/explorer/drawing.ts";
import { GraphModel, type Item } from "../../src/explorer/model.ts";
import { linkOf, stateOfLink } from "../../src/explorer/permalink.ts";
import { labelOf, opening, type Scene, sceneOf } from "../../src/explorer/scene.ts";
import { search } from "../../src/explorer/search.ts";
import { svgOf } from "../../src/explorer/svg.ts";
import { fixture, open } from "../export/fixtures.ts";

const PROGRAMS = readdirSync(fixture("")).filter((name) => existsSync(fixture(`${name}/model.pt2`)));

beforeAll(async () => {
  await init();
});

/** The items as an indented list, weights left out. */
function outline(model: GraphModel): string[] {
  return model.items
    .filter((item) => !item.isWeight)
    .map(({ index, title, caption }) => `${"  ".repeat(model.around(index).length)}${title} | ${caption}`);
}

function named(model: GraphModel, id: string): Item {
  const found = model.items.find((item) => item.id === id);
  if (found === undefined) throw new Error(`there is no ${id}: ${model.items.map((item) => item.id).join(", ")}`);
  return found;
}

function titles({ model, items }: Scene): string[] {
  return items.map((item) => (model.items[item] as Item).title);
}

/** The edges as pairs of titles. */
function edges({ model, items, edges: them }: Scene): string[] {
  const title = (box = -1): string => (model.items[items[box] as number] as Item).title;
  return Array.from({ length: them.length / 2 }, (_, at) => `${title(them[2 * at])} → ${title(them[2 * at + 1])}`);
}

class Block extends Module {
  readonly linear = new nn.Linear(4, 4);

  override forward(x: Tensor): Tensor {
    return this.linear.forward(x).relu().add(x);
  }
}

class Net extends Module {
  readonly first = new Block();
  readonly second = new Block();

  override forward(x: Tensor): Tensor {
    return this.second.forward(this.first.forward(x));
  }
}

const exported = (): GraphModel => new GraphModel(exportProgram(new Net(), [torch.ones([2, 4])]));

describe("a model", () => {
  it("has the nodes in their modules, and one that is alone in its module says it", () => {
    expect(outline(exported())).toEqual([
      "x | ",
      "first | Block",
      "  linear | linear · Linear",
      "  relu | ",
      "  add.Tensor | ",
      "second | Block",
      "  linear | linear · Linear",
      "  relu | ",
      "  add.Tensor | ",
      "output | ",
    ]);
  });

  it("has weights in the innermost module that has all of their users, with their tensors", () => {
    const model = exported();
    const weights = model.items.filter((item) => item.isWeight);
    expect(weights.map((item) => item.title)).toEqual([
      "first.linear.weight",
      "first.linear.bias",
      "second.linear.weight",
      "second.linear.bias",
    ]);
    expect(weights.map((item) => (model.items[item.parent] as Item).title)).toEqual([
      "first",
      "first",
      "second",
      "second",
    ]);
    expect(weights.map((item) => model.value(item.index))).toEqual(["f32[4, 4]", "f32[4]", "f32[4, 4]", "f32[4]"]);
    expect(weights.map((item) => model.tensor(item.index)?.shape)).toEqual([[4, 4], [4], [4, 4], [4]]);
  });

  it.each(PROGRAMS)("of %s has items with names of their own, places and a picture", async (name) => {
    const model = new GraphModel(await open(name));
    for (const { index, parent } of model.items) expect(parent).toBeLessThan(index);
    expect(new Set(model.items.map((item) => item.id)).size).toBe(model.items.length);
    const scene = sceneOf(model, { open: opening(model, 1000), weights: true });
    expect(scene.items.length).toBe(model.items.length);
    const layout = layOut(scene.request);
    expect([layout.boxes, layout.wires.points].every((them) => them.every(Number.isFinite))).toBe(true);
    expect(svgOf(pictureOf(scene, layout))).not.toMatch(/NaN|undefined/);
    for (const { index } of model.items) expect(detailsOf(model, index).length).toBeGreaterThan(0);
  });

  it("has the graphs of branches in the node that calls them", async () => {
    const model = new GraphModel(await open("cond_simple"));
    const cond = model.items.find((item) => item.title === "cond") as Item;
    const graphs = model.children(cond.index).map((item) => model.items[item] as Item);
    expect(graphs.map(({ kind, title }) => [kind, title])).toEqual([
      ["graph", "true_graph_0"],
      ["graph", "false_graph_0"],
    ]);
    for (const { index } of graphs) expect(model.children(index).length).toBeGreaterThan(1);
  });

  it("of a graph module names called modules by class", () => {
    const model = new GraphModel(symbolicTrace(new Net()));
    expect(outline(model)).toEqual([
      "x | ",
      "first | Block",
      "  Linear | ",
      "  .relu | ",
      "  .add | ",
      "second | Block",
      "  Linear | ",
      "  .relu | ",
      "  .add | ",
      "output | ",
    ]);
  });

  it("puts the nodes of a very long level into runs", () => {
    const graph = new Graph();
    let value = graph.placeholder("x");
    for (let at = 0; at < 20_100; at++) value = graph.callFunction("torch.ops.aten.relu.default", [value]);
    graph.output(tuple(value));
    const model = new GraphModel(new GraphModule({}, graph));
    const scene = sceneOf(model, { open: opening(model, 160), weights: false });
    expect(scene.items.length).toBe(142);
    expect(scene.edges.length / 2).toBe(141);
    expect(model.items.filter((item) => item.kind === "range").reduce((n, item) => n + item.nNodes, 0)).toBe(20_102);
  });
});

it("the explorer is imported where there are no elements", async () => {
  const explorer = await import("../../src/explorer/explorer.ts");
  expect(explorer.TracefxGraph.observedAttributes).toEqual(["src", "compare", "theme"]);
});

describe("a scene", () => {
  it("has the boxes of what is open, and edges between the outermost of what is closed", () => {
    const model = exported();
    const closed = sceneOf(model, { open: new Set(), weights: false });
    expect(titles(closed)).toEqual(["x", "first", "second", "output"]);
    expect(edges(closed)).toEqual(["x → first", "first → second", "second → output"]);
    // Two nodes of the second block use the one value of the first.
    expect([0, 1, 2, 3].map((box) => labelOf(closed, box))).toEqual(["f32[2, 4]", "f32[2, 4]", "f32[2, 4]", ""]);
    const half = sceneOf(model, { open: new Set([named(model, "L__self__first").index]), weights: false });
    expect(titles(half)).toEqual(["x", "first", "linear", "relu", "add.Tensor", "second", "output"]);
    expect(edges(half)).toContain("x → linear");
    expect(edges(half)).toContain("add.Tensor → second");
  });

  it("has weights where they are asked for", () => {
    const model = exported();
    const scene = sceneOf(model, { open: opening(model, 100), weights: true });
    expect(edges(scene)).toContain("first.linear.weight → linear");
  });

  it("opens what there is room for", () => {
    const model = exported();
    expect(titles(sceneOf(model, { open: opening(model, 4), weights: false })).length).toBe(4);
    expect(titles(sceneOf(model, { open: opening(model, 7), weights: false })).length).toBe(7);
    expect(titles(sceneOf(model, { open: opening(model, 100), weights: false })).length).toBe(10);
  });

  it("is drawn as SVG, whatever the names are", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    graph.output(graph.callFunction("lib.<script>&\u0001", [x]));
    const model = new GraphModel(new GraphModule({}, graph));
    const scene = sceneOf(model, { open: new Set(), weights: false });
    const svg = svgOf(pictureOf(scene, layOut(scene.request)));
    expect(svg).toContain("lib.&lt;script&gt;&amp;\ufffd");
    expect(svg.match(/<rect /g)?.length).toBe(1 + 3 + 1);
    expect(svg.match(/<path /g)?.length).toBe(2);
  });
});

describe("search", () => {
  it("finds by name, operator, target, class and shape", () => {
    const model = exported();
    const found = (text: string): string[] => search(model, text).map((item) => (model.items[item] as Item).id);
    expect(found("aten.relu")).toEqual(["relu", "relu_1"]);
    expect(found("RELU_1")).toEqual(["relu_1"]);
    expect(found("block")).toEqual(["L__self__first", "L__self__second"]);
    expect(found("placeholder f32[2, 4]")).toEqual(["x"]);
    expect(found("weight f32[4, 4]")).toEqual(["p_first_linear_weight", "p_second_linear_weight"]);
    expect(found("no such")).toEqual([]);
    expect(found("  ")).toEqual([]);
  });
});

describe("a permalink", () => {
  it("keeps what is open, selected and seen", () => {
    const model = exported();
    const state = {
      open: new Set([1, 2, 3, 7]),
      selected: 4,
      weights: true,
      query: "a & b",
      camera: [10, -20.5, 0.75] as const,
    };
    expect(stateOfLink(`#${linkOf(state)}`, model)).toEqual(state);
    expect(stateOfLink(`#${linkOf({ ...state, open: new Set(), camera: undefined })}`, model)?.open).toEqual(new Set());
  });

  it("of another program, or of nothing, is no harm", () => {
    const model = exported();
    expect(stateOfLink("#chapter-2", model)).toBeUndefined();
    const told = stateOfLink("#open=0-zzzzzz.x&at=99999&view=1_2_-3", model);
    expect(told?.open.size).toBe(model.items.length);
    expect([told?.selected, told?.camera]).toEqual([-1, undefined]);
    expect(stateOfLink("#open=%FF.-.--&view=a_b_c", model)?.open).toEqual(new Set());
  });
});

describe("details", () => {
  it("of a node tell its arguments, users, modules and source", () => {
    const model = exported();
    const sections = detailsOf(model, named(model, "linear").index);
    expect(sections.map((section) => section.title.replace(/:.*/, ""))).toEqual(
      expect.arrayContaining(["Node", "Arguments", "Users", "Modules (nn_module_stack)", "Source (stack_trace)"]),
    );
    expect(sections[0]?.rows).toContainEqual({ name: "target", value: "torch.ops.aten.linear.default" });
    expect(sections[0]?.rows).toContainEqual({ name: "value", value: "f32[2, 4]" });
    const [, args] = sections;
    expect(args?.rows[0]?.links).toEqual([named(model, "x").index]);
  });

  it("of a module tell its weights", () => {
    const model = exported();
    const sections = detailsOf(model, named(model, "L__self__first").index);
    expect(sections.map((section) => section.title)).toEqual(["Module", "Weights: 2"]);
  });

  it("of a program tell its signature and its constraints", async () => {
    const model = new GraphModel(await open("dyn_derived__core"));
    const sections = overviewOf(model);
    expect(sections.map((section) => section.title)).toEqual(["Program", "Inputs", "Outputs", "Range constraints"]);
    for (const section of sections) expect(section.rows.length).toBeGreaterThan(0);
  });
});
