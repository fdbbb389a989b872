import { beforeAll, describe, expect, test } from "vitest";
import { Graph, GraphModule, init, Module, nn, Parameter, programOf, Tensor, tensor, tuple } from "../../src/index.ts";
import { openProgram } from "../../src/export/exportedProgram.ts";

beforeAll(() => init());

class Root extends Module {
  weight = new Parameter(
    tensor(
      [
        [1, 2],
        [3, 4],
        [5, 6],
      ],
      { dtype: "float32" },
    ),
  );
  inner = new nn.Linear(2, 3);

  constructor() {
    super();
    this.registerBuffer("shift", tensor([0.5], { dtype: "float32" }), { persistent: false });
    this.registerBuffer("scale", tensor([2], { dtype: "float32" }));
    this.attributes.set("fixed", { kind: "constant", tensor: tensor([1, 1, 1], { dtype: "float32" }) });
  }
}

const aten = (name: string): string => `torch.ops.aten.${name}`;

function original(): GraphModule {
  const graph = new Graph();
  const x = graph.placeholder("x");
  const linear = graph.callFunction(aten("linear.default"), [x, graph.getAttr("weight"), graph.getAttr("inner.bias")]);
  const scaled = graph.callFunction(aten("mul.Tensor"), [linear, graph.getAttr("scale")]);
  const again = graph.callFunction(aten("mul.Tensor"), [scaled, graph.getAttr("scale")]);
  const shifted = graph.callFunction(aten("add.Tensor"), [again, graph.getAttr("shift")], { alpha: 2 });
  const fixed = graph.callFunction(aten("add.Tensor"), [shifted, graph.getAttr("fixed")]);
  const parts = graph.callFunction(aten("split.Tensor"), [fixed, 2, 1]);
  const first = graph.callFunction("operator.getitem", [parts, 0]);
  graph.output({ out: [first, tuple(fixed, 3)], none: null });
  return new GraphModule(new Root(), graph, "Net");
}

function inJson(value: unknown): string {
  return JSON.stringify(value, (_, it: unknown) => (it instanceof Tensor ? it.toArray() : it));
}

const x = tensor(
  [
    [1, -1],
    [2, 0.5],
  ],
  { dtype: "float32" },
);

describe("a program of a graph module", () => {
  test("gives what the graph module gives, in the same structure", () => {
    const gm = original();
    using run = programOf(gm).module();
    expect(inJson(run(x))).toBe(inJson(gm.forward(x)));
  });

  test("has its state as inputs, each tensor once", () => {
    const program = programOf(original());
    expect(
      program.graphSignature.inputSpecs.map(({ kind, arg, target, persistent }) => [
        kind,
        arg.name,
        target,
        persistent,
      ]),
    ).toEqual([
      ["PARAMETER", "p_weight", "weight", undefined],
      ["PARAMETER", "p_inner_bias", "inner.bias", undefined],
      ["BUFFER", "b_scale", "scale", true],
      ["BUFFER", "b_shift", "shift", false],
      ["CONSTANT_TENSOR", "c_fixed", "fixed", undefined],
      ["USER_INPUT", "x", undefined, undefined],
    ]);
    expect([[...program.stateDict.keys()], [...program.constants.keys()]]).toEqual([
      ["weight", "inner.bias", "scale"],
      ["shift", "fixed"],
    ]);
    program.graph.lint();
  });

  test("is saved, and opened again", () => {
    const gm = original();
    using run = openProgram(programOf(gm).toFxg(), {}).module();
    expect(inJson(run(x))).toBe(inJson(gm.forward(x)));
  });

  test("leaves the graph module as it was", () => {
    const gm = original();
    const before = `${gm.graph}`;
    programOf(gm);
    expect([`${gm.graph}`, gm.graph.owningModule === gm]).toEqual([before, true]);
  });
});

test("what is no operator is refused, all of it at once", () => {
  const graph = new Graph();
  const y = graph.placeholder("y", undefined, 1);
  graph.output(graph.callMethod("relu", [graph.callModule("inner", [graph.callFunction("torch.neg", [y])])]));
  expect(() => programOf(new GraphModule(new Root(), graph))).toThrow(
    expect.objectContaining({
      kind: "GraphArgument",
      node: "y",
      reason: "the node is an input that may be left out, and a program has operators only",
      notes: ["%neg calls torch.neg", "%inner calls the module inner", "%relu calls the method relu"],
    }),
  );
  expect(() => programOf(new GraphModule())).toThrow("a program has an output");
});
