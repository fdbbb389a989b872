import { beforeAll, describe, expect, test } from "vitest";
import { init } from "../../src/engine/engine.ts";
import { callOperator } from "../../src/engine/dispatch.ts";
import { defineFunction } from "../../src/functions/table.ts";
import { tuple } from "../../src/graph/args.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { TensorMeta, ValSequence } from "../../src/graph/val.ts";
import { device, layout, ValueTuple } from "../../src/base/values.ts";
import { ShapeProp } from "../../src/passes/shapeProp.ts";
import { memoryFormatOf } from "../../src/engine/tensorMetadata.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";

beforeAll(() => init());

const negate = defineFunction("my.neg", (it: unknown) => callOperator("aten.neg", [it]));
const transpose = defineFunction("my.transpose", (x: unknown) => callOperator("aten.t", [x]));

const x = tensor([
  [1, 2, 3],
  [4, 5, 6],
]);
const meta = { shape: [2, 3], dtype: "int64", requiresGrad: false, stride: [3, 1], memoryFormat: "contiguous_format" };

describe("IN-09: what a node gave is noted", () => {
  const graph = new Graph();
  const input = graph.placeholder("x");
  const weight = graph.getAttr("w");
  const turned = graph.callFunction(transpose, [input]);
  const size = graph.callMethod("at", [graph.placeholder("sizes"), 0]);
  const output = graph.output({ out: [turned, tuple(input, size)], text: "t" });
  const gm = new GraphModule({ w: new Parameter(tensor([1.5])) }, graph);

  test("as tensor_meta, in the structure of the result", () => {
    new ShapeProp(gm).propagate(x, [7]);
    expect(input.meta.get("tensor_meta")).toEqual(meta);
    expect(weight.meta.get("tensor_meta")).toMatchObject({ requiresGrad: true, dtype: "float32" });
    const across = { ...meta, shape: [3, 2], stride: [1, 3], memoryFormat: undefined };
    expect(turned.meta.get("tensor_meta")).toEqual(across);
    expect(size.meta.has("tensor_meta")).toBe(false);
    expect(output.meta.get("tensor_meta")).toEqual({ out: [across, ValueTuple.frozen([meta, 7])], text: "t" });
  });

  test("as val, which exported programs and printing use", () => {
    const known = { device: device("cpu"), layout: layout("strided"), requiresGrad: false, storageOffset: 0 };
    const val = new TensorMeta({ ...known, dtype: "int64", sizes: [3, 2], strides: [1, 3] });
    expect(turned.meta.get("val")).toEqual(val);
    expect(size.meta.get("val")).toBe(7);
    expect(output.meta.has("val")).toBe(false);
    graph.insertingBefore(output, () => (output.args = [tuple(turned, 1)]));
    new ShapeProp(gm).propagate(x, [7]);
    expect(output.meta.get("val")).toEqual(new ValSequence("tuple", [val, 1]));
  });

  test("as the Python type", () => {
    expect([input, weight, size, output].map((it) => it.meta.get("type"))).toEqual([
      "Tensor",
      "Parameter",
      "int",
      "tuple",
    ]);
  });

  test("anew by every run", () => {
    new ShapeProp(gm).propagate(tensor([[1.5]]), [true]);
    expect(input.meta.get("tensor_meta")).toMatchObject({ shape: [1, 1], dtype: "float32" });
    expect(size.meta.get("type")).toBe("bool");
    new ShapeProp(gm).propagate(x, ["text"]);
    expect(size.meta.has("val")).toBe(false);
  });
});

/** An input and a call, of which the notes of a run were not read yet. */
function noted() {
  const graph = new Graph();
  const input = graph.placeholder("x");
  const neg = graph.callFunction(negate, [input]);
  graph.output(neg);
  neg.meta.set("tag", "mine");
  new ShapeProp(GraphModule.ofGraph(graph)).propagate(x);
  return { graph, input, neg };
}

describe("IN-09: what was noted and not read yet", () => {
  test("goes along with a copy", () => {
    const { graph, input } = noted();
    const copy = graph.nodeCopy(input);
    expect(copy.meta.get("tensor_meta")).toEqual(meta);
    expect(copy.meta.get("type")).toBe("Tensor");
    expect(input.meta.get("tensor_meta")).toEqual(meta);
  });

  test("stays after an edit, but for the value, which is not known any more", () => {
    const { input, neg } = noted();
    for (const node of [input, neg]) node.target = "abs";
    for (const { meta: notes } of [input, neg]) {
      expect(notes.has("val")).toBe(false);
      expect(notes.get("tensor_meta")).toEqual(meta);
    }
    expect(neg.meta.get("tag")).toBe("mine");
  });

  test("is told anew where a later run finds out more", () => {
    const { graph, neg } = noted();
    new ShapeProp(GraphModule.ofGraph(graph)).propagate(tensor([1.5]));
    expect(neg.meta.get("tensor_meta")).toMatchObject({ shape: [1], dtype: "float32" });
  });
});

// As torch.fx.passes.shape_prop tells them of torch.empty_strided(shape, stride).
test.each([
  [[], [], "contiguous_format"],
  [[2, 3], [3, 1], "contiguous_format"],
  [[2, 3], [1, 2], undefined],
  [[1, 3], [99, 1], "contiguous_format"],
  [[2, 0], [5, 7], "contiguous_format"],
  [[2, 3, 4, 5], [60, 20, 5, 1], "contiguous_format"],
  [[2, 3, 4, 5], [60, 1, 15, 3], "channels_last"],
  [[2, 1, 4, 5], [20, 1, 5, 1], "contiguous_format"],
  [[2, 3, 4, 5], [60, 1, 3, 12], undefined],
  [[2, 3, 2, 4, 5], [120, 1, 60, 15, 3], "channels_last_3d"],
  [[2, 3, 2, 4, 5], [120, 40, 20, 5, 1], "contiguous_format"],
])("IN-09: the memory format of %j with strides %j is %s", (shape, stride, format) => {
  expect(memoryFormatOf(shape, stride)).toBe(format);
});
