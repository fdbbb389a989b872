import { beforeAll, describe, expect, it } from "vitest";
import {
  AnnotateTypesWithSchema,
  annotateGetitemNodes,
  CSEPass,
  FakeTensorProp,
  functionalize,
  getCSEBannedOps,
  Graph,
  GraphModule,
  init,
  Module,
  nn,
  NormalizeArgs,
  NormalizeOperators,
  PassManager,
  reinplace,
  symbolicTrace,
  tensor,
  type Tensor,
  TensorMeta,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

function calls(build: (graph: Graph, x: ReturnType<Graph["placeholder"]>) => ReturnType<Graph["placeholder"]>) {
  const graph = new Graph();
  graph.output(build(graph, graph.placeholder("x")));
  return GraphModule.ofGraph(graph);
}

describe("CSEPass", () => {
  it("merges equal calls in place", () => {
    const gm = calls((graph, x) => {
      const [a, b] = [graph.callFunction("torch.relu", [x]), graph.callFunction("torch.relu", [x])];
      return graph.callFunction("torch.add", [a, b]);
    });
    const [, first] = [...gm.graph.nodes];
    const result = new CSEPass().run(gm);
    expect(result?.graphModule).toBe(gm);
    expect(result?.modified).toBe(true);
    const [, kept, add] = [...gm.graph.nodes];
    expect(kept).toBe(first);
    expect(add?.args.map((arg) => arg === first)).toEqual([true, true]);
    expect(new CSEPass().run(gm)?.modified).toBe(false);
  });

  it("leaves banned operators alone", () => {
    const gm = calls((graph, x) => {
      const draw = () => graph.callFunction("torch.ops.aten.rand_like.default", [x]);
      return graph.callFunction("torch.add", [draw(), draw()]);
    });
    const manager = new PassManager({ passes: [new CSEPass({ bannedOps: getCSEBannedOps() })] });
    expect(manager.run(gm).modified).toBe(false);
  });
});

describe("normalization", () => {
  it("writes arguments by name, with defaults", () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.ReLU()));
    expect(new NormalizeArgs().run(gm)?.modified).toBe(true);
    const [x, relu] = [...gm.graph.nodes];
    expect(relu?.args.length).toBe(0);
    expect(relu?.kwargs["input"]).toBe(x);
  });

  it("spells functions as operators of Python", () => {
    const gm = calls((graph, x) => graph.callFunction("torch.add", [x, 1]));
    new NormalizeOperators().run(gm);
    expect([...gm.graph.nodes][1]?.target).toBe("operator.add");
  });
});

it("annotates types", () => {
  class Model extends Module {
    readonly relu = new nn.ReLU();
    override forward(x: Tensor): Tensor {
      return this.relu.call(x) as Tensor;
    }
  }
  const gm = symbolicTrace(new Model());
  expect(new AnnotateTypesWithSchema().run(gm)?.modified).toBe(true);
  const [, relu] = [...gm.graph.nodes];
  expect(relu?.type).toBe("torch.Tensor");
  if (relu !== undefined) relu.type = "tuple[torch.Tensor, int]";
  const output = gm.graph.outputNode();
  const item = gm.graph.insertingBefore(output as never, () =>
    gm.graph.callFunction("operator.getitem", [relu as never, 1]),
  );
  annotateGetitemNodes(gm);
  expect(item.type).toBe("int");
});

describe("shapes without running", () => {
  it("are those of running, of functions, methods and operators", () => {
    const gm = symbolicTrace((x: Tensor) => torch.mul(torch.relu(x).unsqueeze(0), 2));
    const val = new FakeTensorProp(gm).propagate(tensor([[1, 2, 3]]));
    expect(val).toBeInstanceOf(TensorMeta);
    expect((val as TensorMeta).sizes.map(Number)).toEqual([1, 1, 3]);
  });

  it("refuses too many inputs", () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x));
    expect(() => new FakeTensorProp(gm).propagate(tensor([1]), tensor([1]))).toThrow(/takes 1 inputs, and 2/);
  });
});

it("takes writes out of a graph", () => {
  const gm = calls((graph, x) => {
    const view = graph.callFunction("torch.ops.aten.view.default", [x, [-1]]);
    graph.callFunction("torch.ops.aten.add_.Tensor", [view, 1]);
    return graph.callFunction("torch.ops.aten.mul.Tensor", [x, 2]);
  });
  new FakeTensorProp(gm).propagate(tensor([[1, 2]]));
  functionalize(gm);
  gm.graph.lint();
  const targets = [...gm.graph.nodes].map(({ target }) => target.replace("torch.ops.aten.", ""));
  expect(targets).toContain("add.Tensor");
  expect(targets).not.toContain("add_.Tensor");
  expect(targets.at(-2)).toBe("copy_.default");
});

it("works in place where nobody sees it", () => {
  const gm = calls((graph, x) => {
    const sum = graph.callFunction("torch.ops.aten.add.Tensor", [x, 1]);
    return graph.callFunction("torch.ops.aten.relu.default", [sum]);
  });
  new FakeTensorProp(gm).propagate(tensor([1, 2]));
  reinplace(gm);
  const targets = [...gm.graph.nodes].map(({ target }) => target.replace("torch.ops.aten.", ""));
  expect(targets).toEqual(["x", "add.Tensor", "relu_.default", "output"]);
});
