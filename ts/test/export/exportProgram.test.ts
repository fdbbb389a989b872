/** What exporting refuses, keeps and leaves alone; and that programs give what their modules give. */
import { beforeAll, describe, expect, test, vi } from "vitest";
import {
  associativeScan,
  cond,
  Dim,
  type DynamicShapes,
  exportProgram,
  float,
  type FxError,
  getSourcePartitions,
  init,
  map,
  nn,
  operator,
  scan,
  type Tensor,
  tensor,
  torch,
  tuple,
  whileLoop,
} from "../../src/index.ts";
import { treeFlatten } from "../../src/trace/pytree.ts";
import { thrown as refused } from "../thrown.ts";
import type { Case } from "./case.ts";
import { CASES } from "./cases.ts";

beforeAll(async () => void (await init()));

/** A module of a function. */
function moduleOf(forward: (this: nn.Module, ...args: never[]) => unknown): nn.Module {
  return new (class extends nn.Module {
    override forward = forward;
  })();
}

/** Inputs like the zeros of a case, with numbers in them. */
function drawn(value: unknown): unknown {
  const [leaves] = treeFlatten(value);
  for (const leaf of leaves) {
    const it = leaf as Tensor | null;
    if (typeof it === "object" && it !== null && "isFloatingPoint" in it && it.isFloatingPoint()) it.uniform_(-2, 2);
  }
  return value;
}

/** Cases that draw random numbers, which a program draws too, and perhaps others; and those that check what these inputs do not hold. */
const RANDOM = new Set([
  "randoms",
  "dropout_train",
  "encoder_layer_train",
  "factories",
  "assignments",
  "item",
  "picked_and_checked",
]);

describe("EP: a program gives what its module gives", () => {
  const names = Object.keys(CASES).filter((name) => !RANDOM.has(name));
  test.each(names)("%s", (name) => {
    const { module: make, args, kwargs, train = true, dynamicShapes } = CASES[name] as Case;
    torch.manualSeed(0);
    const given = drawn(args()) as unknown[];
    const named = drawn(kwargs?.() ?? {}) as Record<string, unknown>;
    const rest = Object.keys(named).length === 0 ? given : [...given, named];
    const module = make().train(train);
    const program = exportProgram(module, given, named, { ...(dynamicShapes && { dynamicShapes }) });
    using whole = program.module();
    using core = program.runDecompositions().module();
    const results = [whole(...rest), core(...rest), module.call(...rest)].map((it) => treeFlatten(it)[0]);
    const [ofWhole, ofCore, ofModule] = results as [unknown[], unknown[], unknown[]];
    expect(ofWhole.length).toBe(ofModule.length);
    for (const [at, want] of ofModule.entries()) {
      for (const got of [ofWhole[at], ofCore[at]]) expect(same(got, want), `output ${at}`).toBe(true);
    }
  });
});

describe("DS: a program with dynamic sizes gives what its module gives, for other sizes too", () => {
  const others: readonly (readonly [name: string, inputs: () => unknown[]])[] = [
    ["vit_dynamic", () => [torch.zeros(5, 3, 8, 8)]],
    ["gpt_dynamic", () => [torch.zeros([3, 7], { dtype: "int64" })]],
    ["lstm_dynamic", () => [torch.zeros(5, 7, 4)]],
    ["resnet_dynamic", () => [torch.zeros(7, 3, 16, 16)]],
    ["dynamic_views", () => [torch.zeros(9, 4)]],
  ];
  test.each(others)("%s", (name, inputs) => {
    const { module: make, args, train = true, dynamicShapes } = CASES[name] as Case;
    torch.manualSeed(0);
    const module = make().train(train);
    const program = exportProgram(module, drawn(args()) as unknown[], {}, { dynamicShapes: dynamicShapes ?? null });
    const given = drawn(inputs()) as unknown[];
    const want = treeFlatten(module.call(...given))[0];
    for (const it of [program, program.runDecompositions()]) {
      const got = treeFlatten(it.module()(...given))[0];
      for (const [at, value] of want.entries()) expect(same(got[at], value), `output ${at}`).toBe(true);
    }
  });
});

describe("DS: recurrent layers take sequences of any length", () => {
  const auto = [Dim.AUTO, Dim.AUTO, null];
  const layers: readonly (readonly [string, nn.Module, (steps: number, batch: number) => Tensor, unknown])[] = [
    ["GRU", new nn.GRU(3, 4, { numLayers: 2 }), (steps, batch) => torch.randn(steps, batch, 3), [auto]],
    ["RNN", new nn.RNN(3, 4, { batchFirst: true }), (steps, batch) => torch.randn(batch, steps, 3), [auto]],
    [
      "LSTM both ways",
      new nn.LSTM(3, 4, { numLayers: 2, bidirectional: true, projSize: 2, batchFirst: true }),
      (steps, batch) => torch.randn(batch, steps, 3),
      [auto],
    ],
  ];
  test.each(layers)("%s", (_, module, input, dynamicShapes) => {
    const program = exportProgram(module.eval(), [input(5, 3)], {}, { dynamicShapes: dynamicShapes as DynamicShapes });
    expect(program.rangeConstraints.size).toBe(2);
    for (const it of [program, program.runDecompositions()]) {
      const whole = [...it.graph.nodes].filter(({ target }) => /aten\.(gru|rnn_tanh|lstm)\.input/.test(target));
      expect(whole.length).toBe(1);
      using run = it.module();
      for (const [steps, batch] of [
        [5, 3],
        [1, 2],
        [9, 4],
      ] as const) {
        const x = input(steps, batch);
        const [got, want] = [run(x), module.call(x)].map((result) => treeFlatten(result)[0]) as [unknown[], unknown[]];
        for (const [at, value] of want.entries()) expect(same(got[at], value), `output ${at}`).toBe(true);
      }
    }
  });

  test("but for gradients, for which they are decomposed", () => {
    const layer = new nn.LSTM(3, 4);
    const module = moduleOf((x: Tensor) => layer.forward(x)[0].sum());
    module.addModule("layer", layer);
    const program = exportProgram(module, [torch.randn(5, 2, 3)], {}, { dynamicShapes: [[Dim.AUTO, null, null]] });
    const { code, reason } = refused(() => program.exportForwardBackward({ jointLossIndex: 0 }));
    expect([code, reason]).toEqual(["FX0401", "a recurrent layer over a number of steps that is not known"]);
  });
});

test("DS-07: guards look into what the rest of the arguments holds", () => {
  const module = moduleOf((x: Tensor, ...others: Tensor[]) => x.add((others[0] as Tensor).add(others[1] as Tensor)));
  const [x, y, z] = [torch.ones(1, 2), torch.ones(4, 2), torch.ones(4, 2)];
  const dynamicShapes = [null, [{ 0: Dim.AUTO }, { 0: Dim.AUTO }]];
  using program = exportProgram(module, [x, y, z], {}, { dynamicShapes }).module();
  expect((program(x, torch.ones(6, 2), torch.ones(6, 2)) as Tensor).shape).toEqual([6, 2]);
  expect(refused(() => program(x, torch.ones(6, 2), torch.ones(5, 2))).code).toBe("FX0603");
});

test("DS-07: guards look into a rest of one argument", () => {
  const module = moduleOf((...xs: Tensor[]) => (xs[0] as Tensor).narrow(0, 0, 4));
  using program = exportProgram(module, [torch.ones(6)], {}, { dynamicShapes: [[{ 0: Dim.AUTO }]] }).module();
  for (const n of [6, 4, 9]) expect((program(torch.ones(n)) as Tensor).shape).toEqual([4]);
  expect(refused(() => program(torch.ones(3))).code).toBe("FX0603");
});

function same(got: unknown, want: unknown): boolean {
  if (typeof want !== "object" || want === null) return Object.is(got ?? null, want ?? null);
  const [a, b] = [got as Tensor, want as Tensor];
  if (a.dtype !== b.dtype || a.shape.join() !== b.shape.join()) return false;
  if (!b.isFloatingPoint()) return torch.equal(a, b);
  return torch.allclose(a, b, { rtol: 1.3e-6, atol: 1e-5, equalNan: true });
}

const net = (): nn.Module => moduleOf((x: Tensor) => x.sin());

describe("EP-01: what is given", () => {
  test("arguments are an array", () => {
    const { message } = refused(() => exportProgram(net(), torch.zeros(2) as never));
    expect(message).toContain("Expecting `args` to be a tuple of example positional inputs, got Tensor");
  });

  test("functions are no modules", () => {
    const { message } = refused(() => exportProgram(((x: Tensor) => x) as never, [torch.zeros(2)]));
    expect(message).toContain("Expected `mod` to be an instance of `torch.nn.Module`, got function");
  });

  test("strict export is not there", () => {
    expect(refused(() => exportProgram(net(), [torch.zeros(2)], {}, { strict: true })).code).toBe("FX0401");
  });

  test("an input of another class is refused by its place", () => {
    const { message } = refused(() => exportProgram(net(), [{ a: [new Date()] }]));
    expect(message).toContain("Unsupported input type Date at x_a_0");
  });
});

describe("EP-16: what a module assigns", () => {
  test("a tensor that is no buffer must not be assigned", () => {
    class Keeps extends nn.Module {
      last = torch.zeros(2);

      override forward(x: Tensor): Tensor {
        this.last = x.add(1);
        return this.last;
      }
    }
    const module = new Keeps();
    const before = module.last;
    const { message } = refused(() => exportProgram(module, [torch.zeros(2)]));
    expect(message).toContain("The tensor attribute self.last was assigned during export");
    expect(module.last).toBe(before);
  });

  test("a new attribute is dropped, and buffers stay what they were", () => {
    class Counts extends nn.Module {
      declare count: Tensor;
      note: unknown;

      constructor() {
        super();
        this.registerBuffer("count", torch.zeros(1));
      }

      override forward(x: Tensor): Tensor {
        this.note = x;
        this.count = this.count.add(1);
        return x.mul(this.count);
      }
    }
    const module = new Counts();
    const { count } = module;
    const program = exportProgram(module, [torch.ones(1)]);
    expect([module.count, module.note]).toEqual([count, undefined]);
    using run = program.module();
    run(torch.ones(1));
    expect(run(torch.ones(1))).toEqual(tensor([2], { dtype: "float32" }));
    expect(program.stateDict.get("count")).toBe(count);
  });
});

describe("EP-18: where nodes come from", () => {
  test("nodes know the user's line, the modules around and the function", () => {
    class Outer extends nn.Module {
      inner = new nn.Sequential(new nn.Linear(2, 2));

      override forward(x: Tensor): Tensor {
        return this.inner.forward(x).relu();
      }
    }
    const { graph } = exportProgram(new Outer(), [torch.zeros(1, 2)]);
    const [linear, relu] = Array.from(graph.nodes).filter(({ op }) => op === "call_function");
    expect(Array.from(linear?.meta.get("nn_module_stack") as Map<string, unknown>)).toEqual([
      ["L__self__", ["", "Outer"]],
      ["L__self__inner", ["inner", "torch.nn.modules.container.Sequential"]],
      ["L__self__inner.0", ["inner.0", "torch.nn.modules.linear.Linear"]],
    ]);
    for (const wanted of [nn.Linear, "Linear", "torch.nn.modules.linear.Linear"]) {
      expect(
        getSourcePartitions(graph, [wanted])
          .get(wanted)
          ?.map((it) => it.nodes),
      ).toEqual([[linear]]);
    }
    expect(relu?.meta.get("stack_trace")).toMatch(/^at .*exportProgram\.test\.ts:\d+:\d+\)?$/);
    expect(relu?.meta.get("torch_fn")).toEqual(["relu_1", "function.relu"]);
  });
});

describe("what depends on elements is refused", () => {
  const cases: readonly (readonly [name: string, forward: (x: Tensor) => unknown, kind: string])[] = [
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- it is what a user may write
    ["the truth of a tensor", (x) => (x.sum() ? x : x.neg()), "TraceControlFlow"],
    ["a comparison", (x) => ((x.sum() as unknown as number) > 0 ? x : x.neg()), "TraceCoercion"],
    ["arithmetic", (x) => (x as unknown as number) + 1, "TraceCoercion"],
    ["a text", (x) => x.mul(`${x}`.length), "TraceCoercion"],
    ["the elements", (x) => x.mul(x.toArray() as never), "TraceCoercion"],
  ];
  test.each(cases)("%s", (_name, forward, kind) => {
    const error: FxError = refused(() => exportProgram(moduleOf(forward as never), [torch.ones(2)]));
    expect(error.kind).toBe(kind);
  });

  test("a number of the data is not taken for a size, and says what to write", () => {
    const module = moduleOf(((x: Tensor) => ((x.sum().item() as number) > 3 ? x : x.neg())) as never);
    const { message } = refused(() => exportProgram(module, [torch.ones(2)]));
    expect(message).toContain("the unbacked number zuf0 cannot become a number while it is exported");
    expect(message).toContain(
      "help: write n.gt(3) for n > 3, cond(condition, whenTrue, whenFalse, [inputs]) for a decision",
    );
  });

  test("decisions on static sizes are taken while exporting", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
    const module = moduleOf(((x: Tensor) => (x.shape[0] === 2 && x.dim() === 1 ? x.sin() : x.cos())) as never);
    const { graph } = exportProgram(module, [torch.ones(2)]);
    expect(Array.from(graph.nodes, (it) => it.name)).toEqual(["x", "sin", "output"]);
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });
});

describe("EP-17: control flow", () => {
  class Branches extends nn.Module {
    lin = new nn.Linear(4, 4);

    override forward(x: Tensor, y: Tensor): Tensor {
      return cond(
        x.sum().gt(0),
        (it: Tensor) => this.lin.forward(it).add(y),
        (it: Tensor) => it.cos(),
        [x],
      );
    }
  }

  test("what functions use from around becomes operands, in PyTorch's order", () => {
    const { graph, graphModule } = exportProgram(new Branches(), [torch.zeros(2, 4), torch.zeros(2, 4)]);
    expect(`${graph}`).toContain(
      "(%gt, %true_graph_0, %false_graph_0, (%x, %p_lin_bias, %p_lin_weight, %y)), kwargs = {})",
    );
    const inner = graphModule.getSubmodule("true_graph_0") as unknown as {
      graph: { nodes: Iterable<{ name: string }> };
    };
    expect(Array.from(inner.graph.nodes, (it) => it.name)).toEqual([
      "x",
      "p_lin_bias",
      "p_lin_weight",
      "y",
      "linear",
      "add",
      "output",
    ]);
  });

  test.each([1, -1])("both branches run, for inputs of sign %d", (sign) => {
    const module = new Branches();
    const [x, y] = [torch.full([2, 4], float(sign)), torch.ones(2, 4)];
    const program = exportProgram(module, [torch.ones(2, 4), y]);
    for (const it of [program, program.runDecompositions()]) expect(it.module()(x, y)).toEqual(module.forward(x, y));
  });

  test("branches that give other shapes are refused", () => {
    const module = moduleOf(((x: Tensor) =>
      cond(
        x.sum().gt(0),
        (it: Tensor) => it.sin(),
        (it: Tensor) => it.sum(),
        [x],
      )) as never);
    const { message } = refused(() => exportProgram(module, [torch.ones(2)]));
    expect(message).toContain("the branches of cond give float32[2] and float32[] for result 0");
  });

  const loops: readonly (readonly [name: string, forward: (x: Tensor) => unknown])[] = [
    ["map", (x) => map((row: Tensor, y: Tensor) => row.mul(y).sin(), x, x.sum(0))],
    ["scan", (x) => tuple(...scan((sum: Tensor, row: Tensor) => [sum.add(row), sum.mul(2)], torch.zeros(4), x))],
    ["associative scan", (x) => associativeScan((a: Tensor, b: Tensor) => a.mul(b), x, 1, { reverse: true })],
    [
      "while_loop",
      (x) =>
        whileLoop(
          (i: Tensor, _it: Tensor) => i.lt(3),
          (i: Tensor, it: Tensor) => [i.add(1), it.mul(2)],
          [torch.zeros([], { dtype: "int64" }), x],
        )[1],
    ],
  ];
  test.each(loops)("%s runs as the module does", (_name, forward) => {
    const module = moduleOf(forward as never);
    const x = torch.randn(3, 4);
    const program = exportProgram(module, [x]);
    const want = treeFlatten(module.call(x))[0];
    for (const it of [program, program.runDecompositions()]) expect(treeFlatten(it.module()(x))[0]).toEqual(want);
  });

  test("an associative scan of any length is a scan", () => {
    const module = moduleOf(((x: Tensor) =>
      associativeScan((a: Tensor, b: Tensor) => a.mul(b), x, -2, { reverse: true })) as never);
    const program = exportProgram(module, [torch.randn(3, 4)], {}, { dynamicShapes: [{ 0: Dim("n") }] });
    const x = torch.arange(1, 25, { dtype: "float32" }).remainder(3).reshape(6, 4);
    expect(program.module()(x)).toEqual(module.call(x));
  });
});

/** Takes the first input to have two elements that are not zero. */
function countedTwo(x: Tensor): Tensor {
  const count = x.nonzero().size(0);
  torch._check(operator.eq(count, 2) as boolean);
  return x.mul(count);
}

test("what is checked of data to be a number is asserted, and the number used", () => {
  const module = exportProgram(moduleOf(countedTwo as never), [tensor([1, 0, 2], { dtype: "float32" })]).module();
  expect((module(tensor([1, 2, 0], { dtype: "float32" })) as Tensor).toArray()).toEqual([2, 4, 0]);
  expect(() => module(torch.ones(3))).toThrow("Runtime assertion failed for expression u0 <= 2");
});
