import { beforeAll, describe, expect, it } from "vitest";
import {
  constantFold,
  FakeTensorProp,
  fuseBatchNorm,
  Graph,
  GraphModule,
  init,
  insertDeferredRuntimeAsserts,
  linearPermuteFusion,
  mergeMatmul,
  Module,
  type Node,
  nn,
  Parameter,
  PassManager,
  ShapeProp,
  SymExpr,
  symbolicTrace,
  type Tensor,
  tensor,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

const aten = (name: string) => `torch.ops.aten.${name}`;
const targets = (gm: GraphModule) => Array.from(gm.graph.nodes, ({ target }) => target.replace("torch.ops.aten.", ""));
const numbers = (value: unknown) => (value as Tensor).reshape([-1]).tolist() as number[];

const input = () => torch.ones([2, 3]);
const countOf = (gm: GraphModule) => targets(gm).filter((target) => target === "torch.matmul").length;

function expectClose(a: unknown, b: unknown) {
  const [left, right] = [numbers(a), numbers(b)];
  expect(left.length).toBe(right.length);
  for (const [at, value] of left.entries()) expect(value).toBeCloseTo(right[at] as number, 4);
}

class Scaled extends Module {
  readonly weight = new Parameter(tensor([[1.5, 2.5, 0.5]]));
  readonly bias = new Parameter(tensor([0.5]));

  override forward(x: Tensor): Tensor {
    const scale = torch.exp(torch.add(this.weight, this.bias)).transpose(0, 1);
    return torch.add(torch.matmul(x, scale), this.bias);
  }
}

describe("constantFold", () => {
  it("computes once what depends on parameters alone", () => {
    const gm = symbolicTrace(new Scaled());
    const expected = gm.forward(input());
    const [first] = gm.graph.nodes;
    expect(constantFold(gm)).toBe(true);
    gm.graph.lint();
    expect(targets(gm)).toEqual(["x", "bias", "_frozen_param0", "torch.matmul", "torch.add", "output"]);
    expect([...gm.graph.nodes][0]).toBe(first);
    expect([...gm.attributes.keys()]).toEqual(["bias", "_frozen_param0"]);
    expect(numbers(gm.forward(input()))).toEqual(numbers(expected));
    expect(constantFold(gm)).toBe(false);
  });

  it("folds less where it may not, or where results are large", () => {
    for (const options of [
      { constraintFn: ({ target }: { target: string }) => target !== "transpose" },
      { maxBytes: 4 },
    ]) {
      const gm = symbolicTrace(new Scaled());
      const expected = gm.forward(input());
      const isFolded = constantFold(gm, options);
      expect(isFolded).toBe("constraintFn" in options);
      expect(targets(gm)).toContain("transpose");
      expect(numbers(gm.forward(input()))).toEqual(numbers(expected));
    }
  });

  it("leaves a module as it is where a constant cannot be computed", () => {
    const graph = new Graph();
    const weight = graph.getAttr("weight");
    const wrong = graph.callFunction("torch.matmul", [weight, weight]);
    graph.output(graph.callFunction("torch.add", [graph.placeholder("x"), wrong]));
    const gm = GraphModule.ofGraph(graph);
    gm.attributes.set("weight", { kind: "parameter", tensor: new Parameter(tensor([[0.5, 1.5]])) });
    const before = gm.graph.toString();
    expect(() => constantFold(gm)).toThrow();
    expect(gm.graph.toString()).toBe(before);
    expect([...gm.attributes.keys()]).toEqual(["weight"]);
  });
});

describe("mergeMatmul", () => {
  class Products extends Module {
    readonly weight = new Parameter(torch.randn([3, 4]));
    override forward(x: Tensor, y: Tensor): unknown {
      return [torch.matmul(x, this.weight), torch.relu(torch.matmul(y, this.weight))];
    }
  }
  it("multiplies matrices at once that have one right-hand side", () => {
    const gm = symbolicTrace(new Products());
    const inputs = [torch.randn([2, 3]), torch.randn([5, 3])] as const;
    const expected = gm.forward(...inputs) as Tensor[];
    mergeMatmul(gm);
    expect(countOf(gm)).toBe(2);
    new ShapeProp(gm).propagate(...inputs);
    mergeMatmul(gm);
    gm.graph.lint();
    expect(countOf(gm)).toBe(1);
    const merged = gm.forward(...inputs) as Tensor[];
    for (const [at, value] of expected.entries()) expectClose(merged[at], value);
    // The sizes are those of the inputs of each run.
    expect((gm.forward(inputs[1], inputs[1]) as Tensor[])[0]?.shape).toEqual([5, 4]);
  });

  it("leaves products of vectors alone", () => {
    const gm = symbolicTrace(new Products());
    new FakeTensorProp(gm).propagate(torch.randn([3]), torch.randn([3]));
    mergeMatmul(gm);
    expect(countOf(gm)).toBe(2);
  });
});

describe("layers of operators", () => {
  it("take batch normalizations in", () => {
    const graph = new Graph();
    const [x, ...parameters] = [
      graph.placeholder("x"),
      ...["weight", "scale", "shift", "mean", "variance"].map((name) => graph.getAttr(name)),
    ];
    const [weight, ...norm] = parameters;
    const conv = graph.callFunction(aten("conv2d.default"), [x, weight as never]);
    graph.output(graph.callFunction(aten("batch_norm.default"), [conv, ...norm, false, 0.1, 1e-5, false]));
    const gm = GraphModule.ofGraph(graph);
    const sizes = { weight: [4, 3, 2, 2], scale: [4], shift: [4], mean: [4], variance: [4] };
    for (const [name, shape] of Object.entries(sizes)) {
      gm.attributes.set(name, { kind: "buffer", tensor: torch.add(torch.rand(shape), 0.5) });
    }
    const given = torch.randn([2, 3, 5, 5]);
    const expected = gm.forward(given);
    expect(fuseBatchNorm(gm).modified).toBe(true);
    constantFold(gm);
    expect(targets(gm)).toEqual(["x", "_frozen_param0", "_frozen_param1", "conv2d.default", "output"]);
    expectClose(gm.forward(given), expected);
  });

  it("take batch normalizations in that activations in place follow, as in torchvision", () => {
    const graph = new Graph();
    const [x, weight, mean, variance] = [
      graph.placeholder("x"),
      ...["weight", "mean", "variance"].map((name) => graph.getAttr(name)),
    ] as [Node, Node, Node, Node];
    const normed = (value: Node): Node => {
      const conv = graph.callFunction(aten("conv2d.default"), [value, weight, null, 1, 1]);
      return graph.callFunction(aten("batch_norm.default"), [
        conv,
        null,
        null,
        mean,
        variance,
        false,
        0.1,
        1e-5,
        false,
      ]);
    };
    let last = x;
    for (let block = 0; block < 2; block++) {
      const first = graph.callFunction(aten("relu_.default"), [normed(last)]);
      const sum = graph.callFunction(aten("add_.Tensor"), [normed(first), last]);
      last = graph.callFunction(aten("relu_.default"), [sum]);
    }
    graph.output(last);
    const gm = GraphModule.ofGraph(graph);
    // Each convolution adds 27 products: values that grew by them would keep fewer digits after the point.
    for (const [name, shape] of Object.entries({ weight: [3, 3, 3, 3], mean: [3], variance: [3] })) {
      const positive = torch.add(torch.rand(shape), 0.5);
      gm.attributes.set(name, { kind: "buffer", tensor: name === "weight" ? torch.div(positive, 27) : positive });
    }
    const given = torch.randn([2, 3, 5, 5]);
    const expected = gm.forward(given);
    const result = fuseBatchNorm(gm);
    expect([result.modified, result.leftOut]).toEqual([true, undefined]);
    constantFold(gm);
    expect(targets(gm).filter((target) => target.startsWith("batch_norm"))).toEqual([]);
    expectClose(gm.forward(given), expected);
  });

  it("say why they stay", () => {
    const graph = new Graph();
    const [x, weight, mean] = ["x", "weight", "mean"].map((name) => graph.placeholder(name)) as [Node, Node, Node];
    const conv = graph.callFunction(aten("conv2d.default"), [x, weight]);
    graph.output(
      graph.callFunction(aten("batch_norm.default"), [conv, null, null, mean, mean, false, 0.1, 1e-5, false]),
    );
    const gm = GraphModule.ofGraph(graph);
    const leftOut = [
      { node: "batch_norm_default", reason: "the weight `weight` is an input and no constant of the module" },
    ];
    expect(fuseBatchNorm(gm)).toEqual({ graphModule: gm, modified: false, leftOut });
    const manager = new PassManager({ passes: [fuseBatchNorm, linearPermuteFusion], steps: 3 });
    expect(manager.run(gm)).toEqual({ graphModule: gm, modified: false, leftOut });
  });

  it("give their results swapped", () => {
    const graph = new Graph();
    const [x, weight] = [graph.placeholder("x"), graph.getAttr("weight")];
    const linear = graph.callFunction(aten("linear.default"), [x, weight]);
    graph.output(graph.callFunction(aten("permute.default"), [linear, [0, 2, 1]]));
    const gm = GraphModule.ofGraph(graph);
    gm.attributes.set("weight", { kind: "parameter", tensor: new Parameter(torch.randn([4, 3])) });
    const given = torch.randn([2, 5, 3]);
    const expected = gm.forward(given);
    new FakeTensorProp(gm).propagate(given);
    expect(linearPermuteFusion(gm).modified).toBe(true);
    expect(targets(gm)).toContain("matmul.default");
    expectClose(gm.forward(given), expected);
  });

  it("of modules stay what they are", () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2)));
    expect(fuseBatchNorm(gm).modified).toBe(false);
    expect(constantFold(gm)).toBe(false);
  });
});

describe("insertDeferredRuntimeAsserts", () => {
  it("checks what must hold of a size when the graph runs", () => {
    const graph = new Graph();
    const item = graph.callFunction(aten("item.default"), [graph.placeholder("x")]);
    item.meta.set("val", new SymExpr("Symbol('u0', integer=True)"));
    graph.output(graph.callFunction(aten("zeros.default"), [[item]]));
    const gm = GraphModule.ofGraph(graph);
    const known = { ranges: { u0: [2, 5] as const }, asserts: ["u0 < u1"] };
    const answer = insertDeferredRuntimeAsserts(gm, known);
    expect(answer).toEqual({ modified: true, skipped: ["u0 < u1"] });
    const texts = Array.from(gm.graph.nodes, ({ args }) => args[1]).filter((arg) => typeof arg === "string");
    expect(texts).toEqual([
      "Runtime assertion failed for expression u0 >= 2 on node 'ge'",
      "Runtime assertion failed for expression u0 <= 5 on node 'le'",
    ]);
    expect((gm.forward(tensor(3)) as Tensor).shape).toEqual([3]);
    expect(() => gm.forward(tensor(1))).toThrow(/u0 >= 2/);
    expect(insertDeferredRuntimeAsserts(gm, { ranges: known.ranges }).modified).toBe(false);
  });
});
