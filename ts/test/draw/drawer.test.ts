import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { instance } from "@viz-js/viz";
import { describe, expect, test } from "vitest";
import { FxGraphDrawer } from "../../src/draw/drawer.ts";
import { md5 } from "../../src/draw/md5.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { ShapeProp } from "../../src/passes/shapeProp.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { plusOne } from "../fx/functions.ts";

class Shift extends Module {
  weight = new Parameter(tensor([1.5]));
  override extraRepr(): string {
    return "by=1.5";
  }
  override forward(x: Tensor): Tensor {
    return plusOne(x);
  }
}

/** A `Shift` that says nothing of itself, as modules do in Rust. */
class Quiet extends Shift {
  override get className(): string {
    return "Shift";
  }
  override extraRepr(): string {
    return "";
  }
}

class Root extends Module {
  shift = new Shift();
}

function small(): GraphModule {
  const graph = new Graph();
  const x = graph.placeholder("x");
  const shifted = graph.callModule("shift", [x]);
  const weight = graph.getAttr("shift.weight");
  const method = graph.callMethod("clamp", [shifted], { min: 0, max: weight });
  graph.output([graph.callFunction("torch.testing.plus_one", [method, 1, "a|b"])]);
  return new GraphModule(new Root(), graph, "Small");
}

function style(color: string): string {
  return `shape="record", fillcolor="${color}", style="filled,rounded", fontcolor="#000000"`;
}

test("a drawing has a box for each node, arrows to its users, and the state of called modules", () => {
  expect(String(new FxGraphDrawer(small(), "small").getDotGraph()).split("\n")).toEqual([
    'digraph "small" {',
    "rankdir=TB;",
    `"x" [label="{name=%x|op_code=placeholder\\n|target=x\\n|num_users=1\\n}", ${style("AliceBlue")}];`,
    `"shift" [label="{name=%shift|op_code=call_module\\n|Shift\\n|by=1.5\\n}", ${style("LemonChiffon1")}];`,
    `"shift.weight" [label="{shift.weight|op_code=get_parameter\\l|torch.float32[1]\\n}", ${style("Salmon")}];`,
    '"shift.weight" -> "shift";',
    `"shift_weight" [label="{name=%shift_weight|op_code=get_attr\\n|target=shift.weight\\n|num_users=1\\n}", ${style("LightGrey")}];`,
    `"clamp" [label="{name=%clamp|op_code=call_method\\n|target=clamp\\n|kwargs=\\{min: 0,\\}|num_users=1\\n}", ${style("Khaki1")}];`,
    `"plus_one" [label="{name=%plus_one|op_code=call_function\\n|target=torch.testing.plus_one\\n|args=(\\l1,\\na\\|b,\\n)\\l|num_users=1\\n}", ${style("Wheat1")}];`,
    `"output" [label="{name=%output|op_code=output\\n|target=output\\n|num_users=0\\n}", ${style("PowderBlue")}];`,
    '"x" -> "shift";',
    '"shift" -> "clamp";',
    '"shift_weight" -> "clamp";',
    '"clamp" -> "plus_one";',
    '"plus_one" -> "output";',
    "}",
    "",
  ]);
});

const golden = (name: string): string =>
  readFileSync(new URL(`../../../tests/golden/draw/${name}.dot`, import.meta.url), "utf8");

test("a drawing is the one of Rust", () => {
  const inner = new Graph();
  inner.output(inner.placeholder("y"));
  const graph = new Graph();
  const x = graph.placeholder("x");
  x.stackTrace = "at forward (model.ts:3:5)\nat main";
  const part = graph.callModule("part", [graph.callModule("shift", [x])]);
  const method = graph.callMethod("clamp", [part], { min: 0, max: graph.getAttr("shift.weight") });
  const args = [method, 1, "a|b", Array.from({ length: 9 }, (_, at) => at)];
  graph.output([graph.callFunction("torch.testing.plus_one", args)]);
  const root = Object.assign(new Module(), { shift: new Quiet(), part: new GraphModule({}, inner, "Part") });
  const drawer = new FxGraphDrawer(new GraphModule(root, graph), "shared", { parseStackTrace: true });
  expect(String(drawer.getDotGraph())).toBe(golden("shared"));
  expect(String(drawer.getDotGraph("part"))).toBe(golden("part"));
});

test("a drawing leaves out what is ignored", () => {
  const text = String(
    new FxGraphDrawer(small(), "small", {
      ignoreGetattr: true,
      ignoreParametersAndBuffers: true,
      skipNodeNamesInArgs: false,
    }).getDotGraph(),
  );
  expect(text).not.toContain('weight" [');
  expect(text).not.toContain("shift.weight");
  expect(text).toContain("kwargs=\\{\\lmin: 0,\\nmax: %shift_weight,\\n\\}\\l");
});

test("a drawing shows arguments by name, in boxes of another shape", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  const targets = ["torch.flatten", "torch.add", "my.unknown"];
  graph.output(targets.map((target) => graph.callFunction(target, [x, 1])));
  const options = { normalizeArgs: true, dotGraphShape: "box" };
  const text = String(new FxGraphDrawer(new GraphModule({}, graph), "g", options).getDotGraph());
  expect(text).toContain("kwargs=\\{\\lstart_dim: 1,\\nend_dim: -1,\\n\\}\\l");
  // Two overloads take these arguments, so that PyTorch leaves them.
  expect(text).toContain("target=torch.add\\n|args=(1,)|num_users=1");
  expect(text).toContain("target=my.unknown\\n|args=(1,)|num_users=1");
  expect(text).not.toContain('shape="record"');
});

test("a drawing shows shapes, and where nodes come from", () => {
  const graph = new Graph();
  const node = graph.callFunction(plusOne, [graph.placeholder("x")]);
  node.stackTrace = "at forward (model.ts:3:5)\nat main";
  graph.output([node]);
  const gm = new GraphModule({}, graph);
  new ShapeProp(gm).propagate(tensor([1, 2], { dtype: "float32" }));
  const text = String(new FxGraphDrawer(gm, "g", { parseStackTrace: true }).getDotGraph());
  const shape = "|dtype=torch.float32\\n|shape=(2,)\\n|requires_grad=False\\n|stride=(1,)\\n";
  expect(text).toContain(`num_users=1\\n${shape}|file=at forward (model.ts:3:5)\\n}"`);
  expect(text).toContain(`target=output\\n|num_users=0\\n${shape}}"`);
});

describe("graph modules that are called", () => {
  const graph = new Graph();
  graph.output(graph.callModule("inner", [graph.placeholder("x")]));
  const drawer = new FxGraphDrawer(new GraphModule({ inner: small() }, graph), "outer");

  test("have drawings of their own", () => {
    expect([...drawer.getAllDotGraphs().keys()]).toEqual(["outer", "outer_inner"]);
    expect(String(drawer.getDotGraph("inner"))).toContain("torch.testing.plus_one");
  });

  test("are named where there is none of that name", () => {
    expect(() => drawer.getDotGraph("none")).toThrow(
      expect.objectContaining({ kind: "AttributeMissing", help: "there are drawings of outer, outer_inner" }),
    );
  });
});

describe("svg", () => {
  test("is what Graphviz makes of the drawing", async () => {
    const svg = await new FxGraphDrawer(small(), "small").getDotGraph().toSvg();
    expect(svg).toContain("<svg");
    for (const text of ["name=%clamp", "kwargs={min: 0,}", "a|b,", "shift.weight"]) expect(svg).toContain(`>${text}<`);
  });

  test("shows texts that mean something to Graphviz as they are", async () => {
    const hostile = [
      "bfnd,ndh->bfh",
      "a\\nb",
      '"; x [label="y',
      "{<p> a|b}",
      "\\",
      "\\N",
      "é\u2028<b>&amp;",
      "-->",
      "]",
    ];
    const viz = await instance();
    for (const text of hostile) {
      const graph = new Graph();
      graph.output(
        graph.callFunction("torch.einsum", [text, graph.createNamedNode("placeholder", text, [], {}, text)]),
      );
      const dot = String(new FxGraphDrawer(new GraphModule({}, graph), text).getDotGraph());
      const { objects = [] } = viz.renderJSON(dot) as { objects?: { name: string }[] };
      expect(objects.length, text).toBe(3);
    }
  });
});

test("the digest that chooses colours is MD5", () => {
  const texts = [
    "",
    "a",
    "torch.relu",
    "é".repeat(40),
    "x".repeat(55),
    "x".repeat(56),
    "x".repeat(64),
    "x".repeat(1000),
  ];
  for (const text of texts) expect(md5(text)).toBe(createHash("md5").update(text).digest("hex"));
});
