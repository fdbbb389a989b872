/** Graph modules that are compiled: they give what `gm.forward` gives, see what changes, and refuse what no program has. */
import { beforeAll, describe, expect, test, vi } from "vitest";
import {
  compile,
  complex,
  F,
  float,
  Graph,
  GraphModule,
  init,
  Interpreter,
  nn,
  Parameter,
  PH,
  replacePattern,
  restart,
  symbolicTrace,
  Tensor,
  tensor,
  torch,
  Tracer,
  tuple,
  wrap,
} from "../../src/index.ts";
import { fxError } from "../../src/base/errors.ts";

beforeAll(() => init());

const halved = wrap(function halved(x: Tensor): Tensor {
  return x.div(2);
});

class Scale extends nn.Module {
  weight = new Parameter(torch.ones(4));
  override forward(x: Tensor): Tensor {
    return x.mul(this.weight);
  }
}

class Net extends nn.Module {
  conv = new nn.Conv2d(3, 8, 3, { padding: 1 });
  norm = new nn.BatchNorm2d(8);
  drop = new nn.Dropout(0.5);
  head = new nn.Linear(8, 4);
  scale = new Scale();

  override forward(x: Tensor): Tensor {
    const y = F.relu(this.norm.forward(this.conv.forward(x)));
    return this.scale.forward(this.head.forward(this.drop.forward(y.mean([2, 3]))));
  }
}

/** A network for inference, and for training without random numbers. */
function net(isTraining = false): GraphModule {
  const gm = symbolicTrace(new Net());
  gm.train(isTraining);
  if (isTraining) (gm.getSubmodule("drop") as nn.Dropout).eval();
  return gm;
}

const image = (n = 2, size = 6): Tensor => torch.randn(n, 3, size, size);

function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (_, it: unknown) =>
      it instanceof Tensor ? { dtype: it.dtype, shape: it.shape, data: it.tolist() } : it,
    ) ?? "null",
  );
}

function message(act: () => unknown): string {
  try {
    return String(act());
  } catch (error) {
    return (error as Error).message;
  }
}

function index(it: number): Tensor {
  return tensor([it], { dtype: "int64" });
}

/** Whether both ways to call a module give the same. */
function same(gm: GraphModule, run: (...args: unknown[]) => unknown, ...args: unknown[]): void {
  expect(plain(run(...args))).toEqual(plain(gm.forward(...args)));
}

/** How often calls with inputs of these sizes make a program: an export runs the graph once. */
function compilations(gm: GraphModule, sizes: readonly number[], inputOf: (size: number) => Tensor): number[] {
  using run = compile(gm);
  using runs = vi.spyOn(Interpreter.prototype, "runWith");
  return sizes.map((size) => {
    run(inputOf(size));
    return runs.mock.calls.length;
  });
}

describe("a compiled module", () => {
  test("gives what the module gives, to the bit where it is asked to", () => {
    const gm = net();
    using run = compile(gm, { precision: "strict" });
    using fast = compile(gm);
    for (const n of [2, 2, 1, 5, 3, 5]) {
      const x = image(n);
      same(gm, run, x);
      const [given, expected] = [fast(x), gm.forward(x)] as [Tensor, Tensor];
      expect(torch.allclose(given, expected, { rtol: 1e-4, atol: 1e-5 })).toBe(true);
    }
  });

  test("takes inputs and gives results in the structures of the graph", () => {
    const gm = symbolicTrace((x: Tensor, n = 2) => {
      const [first, second] = torch.chunk(x, 2) as [Tensor, Tensor];
      return { out: tuple(first.mul(n), [second, 3.5, null]), x, n };
    });
    using run = compile(gm, { precision: "strict" });
    const x = torch.randn(4, 3);
    for (const args of [[x], [x, 3], [x, undefined], [x, { n: 4 }], [x, 2.5]]) same(gm, run, ...args);
    expect((run(x) as { x: Tensor }).x).toBe(x);
  });

  test("takes any number of inputs", () => {
    const gm = symbolicTrace((...xs: Tensor[]) => torch.cat(xs), { concreteArgs: { xs: [PH, PH, PH] } });
    using run = compile(gm);
    same(gm, run, torch.ones(2), torch.zeros(3), torch.ones(1));
  });

  test("says which input is missing as the module does", () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => x.add(y));
    using run = compile(gm);
    expect(message(() => run(torch.ones(2)))).toBe(message(() => gm.forward(torch.ones(2))));
  });

  test("takes inputs of other dtypes, ranks and layouts", () => {
    const gm = symbolicTrace((x: Tensor) => x.mul(2).sum(0));
    using run = compile(gm, { precision: "strict" });
    const x = torch.randn(3, 4);
    for (const it of [x, x.t(), x.to("float64"), x.gt(0), x.flatten(), torch.randn(5, 4), torch.randn(0, 4), x]) {
      same(gm, run, it);
    }
  });

  test("sees more kinds of calls than it remembers", () => {
    const gm = symbolicTrace((x: Tensor, n: number) => x.add(n));
    using run = compile(gm);
    for (let round = 0; round < 2; round++) for (let n = 0; n < 12; n++) same(gm, run, torch.ones(2), n);
  });

  test("compiles sizes that change once", () => {
    const gm = net();
    using run = compile(gm);
    run(image(2));
    run(image(3));
    const steps = run.explain([image(3)]).steps.length;
    for (let n = 4; n < 20; n++) run(image(n));
    expect(run.explain([image(20)]).steps.length).toBe(steps);
  });

  test("takes sizes that broadcast as they come", () => {
    const gm = symbolicTrace((x: Tensor, y: Tensor) => x.add(y));
    using run = compile(gm);
    for (const [a, b] of [
      [2, 2],
      [3, 3],
      [4, 1],
      [1, 4],
      [5, 5],
      [1, 1],
    ] as const)
      same(gm, run, torch.ones(a), torch.ones(b));
    expect(() => run(torch.ones(3), torch.ones(4))).toThrow(/size/);
  });

  test("tells inputs apart that are one tensor, or one that the module holds, in an earlier call", () => {
    const gm = symbolicTrace(new Scale());
    const both = symbolicTrace((x: Tensor, y: Tensor) => x.mul(2).sub(y));
    using run = compile(gm);
    using runBoth = compile(both);
    const weight = gm.findAttribute("weight") as { readonly tensor: Tensor };
    const [x, y] = [torch.randn(4), torch.randn(4)];
    for (const it of [weight.tensor, x, y]) same(gm, run, it);
    for (const [a, b] of [
      [x, x],
      [x, y],
      [y, y],
      [y, x],
    ] as const)
      same(both, runBoth, a, b);
  });

  test("gives tensors that there are as the module does", () => {
    class Held extends nn.Module {
      scale = new Scale();
      override forward(x: Tensor): unknown {
        return [x, this.scale.weight, x.view(2, 2), x.mul(2)];
      }
    }
    const gm = symbolicTrace(new Held());
    using run = compile(gm);
    const x = tensor([1, 2, 3, 4], { dtype: "float32" });
    const [given, held, view] = run(x) as Tensor[];
    expect(given === x && held === (gm.findAttribute("scale.weight") as { readonly tensor: Tensor }).tensor).toBe(true);
    view?.fill_(3);
    expect(x.tolist()).toEqual([3, 3, 3, 3]);
  });

  test("compiles a graph that wants to know a size for each", () => {
    const gm = symbolicTrace((x: Tensor) => x.view(-1, 6).add(torch.ones(1)));
    using run = compile(gm);
    for (const n of [6, 12, 18, 6]) same(gm, run, torch.ones(n));
  });

  test("exports once for the first sizes and once for others, whatever their order", () => {
    // One row is a size by itself, so that the program for many rows refuses it.
    const rows = symbolicTrace((x: Tensor) => x.view(-1, 6).add(torch.ones(1)));
    expect(compilations(rows, [6, 12, 18, 6, 18, 6], torch.ones)).toEqual([1, 2, 2, 2, 2, 2]);
    const start = symbolicTrace((x: Tensor) => x.narrow(0, 0, 4));
    expect(compilations(start, [4, 5, 9, 4, 6], torch.ones)).toEqual([1, 2, 2, 2, 2]);
  });
});

describe("what is taken as constant", () => {
  test("settings that are lists are seen when they change", () => {
    for (const [module, name] of [
      [new nn.MaxPool2d([2, 2]), "kernelSize"],
      [new nn.MaxPool2d({ kernelSize: 2, stride: [2, 2] }), "stride"],
      [new nn.Upsample({ size: [8, 8] }), "size"],
      [new nn.AdaptiveAvgPool2d([3, 3]), "outputSize"],
      [new nn.Unflatten(2, [2, 4]), "unflattenedSize"],
    ] as const) {
      const gm = symbolicTrace(new nn.Sequential(module));
      using run = compile(gm);
      const x = torch.randn(1, 3, 8, 8);
      same(gm, run, x);
      const sizes = Reflect.get(gm.getSubmodule("0"), name) as unknown as number[];
      sizes.reverse();
      sizes[0] = 4;
      if (name === "unflattenedSize") sizes[1] = 2;
      same(gm, run, x);
    }
  });

  test("properties that a graph reads are seen when they change, and those of classes are refused", () => {
    class Config {
      size = 2;
    }
    class Read extends nn.Module {
      sizes: unknown[] = [2, 2];
      override forward(x: Tensor): Tensor {
        return x;
      }
    }
    const root = new Read();
    const graph = new Graph();
    const x = graph.placeholder("x");
    graph.output(graph.callFunction("torch.reshape", [x, graph.getAttr("sizes")]));
    const gm = new GraphModule(root, graph);
    using run = compile(gm);
    same(gm, run, torch.ones(4));
    root.sizes.splice(0, 2, 4, 1);
    same(gm, run, torch.ones(4));
    root.sizes.push(new Config());
    expect(() => run(torch.ones(4))).toThrow(
      expect.objectContaining({ kind: "GraphArgument", node: "sizes", reason: expect.stringContaining("Config") }),
    );
  });

  test("inputs of classes are refused by their names, and those that are values are compared", () => {
    class Config {
      scale = 2;
    }
    const gm = symbolicTrace((x: Tensor, { config }: { config: { scale: number } }) => x.mul(config.scale), {
      concreteArgs: { arg1: { config: PH } },
    });
    using run = compile(gm);
    expect(() => run(torch.ones(2), { config: new Config() })).toThrow(
      expect.objectContaining({ kind: "InputType", reason: expect.stringMatching(/config is of the type Config/) }),
    );
    const scaled = symbolicTrace((x: Tensor, by: unknown) => torch.mul(x, by as number));
    using runScaled = compile(scaled);
    for (const by of [2, 2n, float(2), 2.5, complex(1, 2), complex(3, 4), true, 3n]) {
      same(scaled, runScaled, tensor([1, 2]), by);
    }
  });

  test("a value that is given is given back, and Maps may have any whole numbers as keys", () => {
    const gm = symbolicTrace((x: Tensor, y: unknown) => ({ x: x.mul(2), y }));
    using run = compile(gm);
    for (const y of [3, 3n, float(3), [3n, 3], new Map([[1n, 2]]), new Map([[1, 2]])]) {
      const res = run(torch.ones(1), y) as { y: unknown };
      expect(res.y).toEqual((gm.forward(torch.ones(1), y) as { y: unknown }).y);
    }
  });
});

describe("state is that of the module", () => {
  test("parameters that change in place are seen", () => {
    const gm = net();
    using run = compile(gm, { precision: "strict" });
    const x = image();
    same(gm, run, x);
    const before = plain(run(x));
    const weight = gm.findAttribute("head.weight");
    if (weight === undefined || weight.kind === "module") throw new Error("no weight");
    weight.tensor.mul_(2);
    same(gm, run, x);
    expect(plain(run(x))).not.toEqual(before);
  });

  test("parameters that are replaced, and settings, are seen", () => {
    const gm = net();
    using run = compile(gm, { precision: "strict" });
    const x = image();
    same(gm, run, x);
    gm.getSubmodule("head").attributes.set("bias", { kind: "parameter", tensor: new Parameter(torch.ones(4)) });
    same(gm, run, x);
    Reflect.set(gm.getSubmodule("norm"), "eps", 0.5);
    same(gm, run, x);
  });

  test("buffers that the graph writes are written", () => {
    const [gm, other] = [net(true), net(true)];
    other.loadStateDict(gm.stateDict());
    using run = compile(gm, { precision: "strict" });
    for (const n of [2, 3, 4]) {
      const x = image(n);
      expect(plain(run(x))).toEqual(plain(other.forward(x)));
      expect(plain([...gm.stateDict().values()])).toEqual(plain([...other.stateDict().values()]));
    }
    gm.eval();
    other.eval();
    const x = image();
    expect(plain(run(x))).toEqual(plain(other.forward(x)));
  });

  test("inputs that the graph writes are written", () => {
    const gm = symbolicTrace((x: Tensor) => x.add_(1).mul(2));
    using run = compile(gm);
    const [x, y] = [torch.ones(3), torch.ones(3)];
    expect(plain(run(x))).toEqual(plain(gm.forward(y)));
    expect(plain(x)).toEqual(plain(y));
  });

  test("random numbers are those that the module draws", () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(4, 4), new nn.Dropout(0.5)));
    using run = compile(gm, { precision: "strict" });
    const x = torch.randn(8, 4);
    const seeded = (act: (x: Tensor) => unknown): unknown => {
      torch.manualSeed(3);
      return plain([act(x), act(x)]);
    };
    expect(seeded(run)).toEqual(seeded((it) => gm.forward(it)));
  });

  test("edits of the graph are seen", () => {
    const gm = symbolicTrace((x: Tensor) => torch.relu(x).add(1));
    using run = compile(gm);
    const x = torch.randn(5);
    same(gm, run, x);
    replacePattern(
      gm,
      (it: Tensor) => torch.relu(it),
      (it: Tensor) => torch.neg(it),
    );
    same(gm, run, x);
  });
});

describe("results are written to tensors that there are", () => {
  test("of one result, and of several", () => {
    const gm = symbolicTrace((x: Tensor) => ({ double: x.mul(2), sums: [x.sum()] }));
    using run = compile(gm);
    const x = torch.randn(4);
    const [double, sum] = [torch.empty(4), torch.empty([])];
    const res = run.runInto([x], [double, sum]) as { double: Tensor; sums: [Tensor] };
    expect(res.double === double && res.sums[0] === sum).toBe(true);
    expect(plain([double, sum])).toEqual(plain([x.mul(2), x.sum()]));
  });

  test("and those of other sizes are refused", () => {
    using run = compile(symbolicTrace((x: Tensor) => x.mul(2)));
    const x = torch.randn(4);
    expect(() => run.runInto([x], [torch.empty(3)])).toThrow(/output 0/);
    expect(() => run.runInto([x], [])).toThrow(/output/);
    expect(() => run.runInto([x], [x])).toThrow("shares memory");
    run(torch.ones(2));
    const host = tensor([1, 2], { dtype: "float32" });
    expect(() => run.runInto([host], [host])).toThrow("shares memory");
    expect(host.tolist()).toEqual([1, 2]);
    expect(() => run.runInto([x], [3 as never])).toThrow("the output 0 is no tensor");
  });
});

describe("what no program has is refused", () => {
  test("functions and modules of JavaScript, all of them, by the line where they were traced", () => {
    class Leaves extends Tracer {
      override isLeafModule(module: nn.Module, path: string): boolean {
        return module instanceof Scale || super.isLeafModule(module, path);
      }
    }
    class Root extends nn.Module {
      scale = new Scale();
      override forward(x: Tensor): Tensor {
        return this.scale.forward(halved(x));
      }
    }
    const root = new Root();
    const gm = new (symbolicTrace((x: Tensor) => x).constructor as typeof GraphModule)(root, new Leaves().trace(root));
    expect(() => compile(gm)).toThrow(
      expect.objectContaining({
        kind: "GraphArgument",
        node: "halved",
        reason: "the node calls the function halved, and a compiled module calls no JavaScript",
        notes: expect.arrayContaining([
          "%scale calls scale, a module of the class Scale",
          expect.stringMatching(/Original traceback:[^]*compile\.test\.ts/),
        ]),
      }),
    );
  });

  test("hooks, be they there before or later", () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2), new nn.ReLU()));
    using run = compile(gm);
    const x = torch.ones(1, 2);
    same(gm, run, x);
    using _hook = gm.getSubmodule("0").registerForwardHook((_module, _args, output) => (output as Tensor).mul(2));
    expect(() => run(x)).toThrow("%_0 calls the module 0, which has hooks".slice(4));
    expect(() => compile(gm)).toThrow("which has hooks");
  });

  test("hooks of modules that the graph does not call, which are none of its affair", () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.Linear(2, 2)));
    const spare = new nn.ReLU();
    gm.addSubmodule("spare", spare);
    using _hook = spare.registerForwardHook(() => undefined);
    expect(compilations(gm, [2, 2, 2], (n) => torch.ones(n, 2))).toEqual([1, 1, 1]);
  });

  test("what has a forward of its own: the root, or a module that is called", () => {
    class Doubled extends GraphModule {
      override forward(...args: readonly unknown[]): unknown {
        return (super.forward(...args) as Tensor).mul(2);
      }
    }
    const doubled = new Doubled({}, symbolicTrace((x: Tensor) => x.add(1)).graph.clone());
    expect(() => compile(doubled)).toThrow("the module has a `forward` of its own");
    const linear = new nn.Linear(2, 2);
    Reflect.set(linear, "forward", (x: Tensor) => x.mul(3));
    for (const [module, reason] of [
      [doubled, "the node calls the module inner, which has a `forward` of its own"],
      [linear, "the node calls the module inner, which has a `forward` of its own"],
    ] as const) {
      const outer = new Graph();
      outer.output(outer.callModule("inner", [outer.placeholder("x")]));
      const gm = new GraphModule({ inner: module }, outer);
      expect(() => compile(gm)).toThrow(expect.objectContaining({ kind: "GraphArgument", node: "inner" }));
      expect(message(() => compile(gm))).toContain(reason);
    }
  });

  test("what gets a forward of its own later", () => {
    const gm = symbolicTrace(new nn.Sequential(new nn.ReLU()));
    using run = compile(gm);
    same(gm, run, torch.ones(2));
    Reflect.set(gm.getSubmodule("0"), "forward", (x: Tensor) => x.mul(3));
    expect(() => run(torch.ones(2))).toThrow("which has a `forward` of its own");
  });

  test("a call within autocast", () => {
    const gm = symbolicTrace((x: Tensor) => torch.matmul(x, x));
    using run = compile(gm);
    const x = torch.ones(2, 2);
    torch.autocast("cpu", { dtype: torch.bfloat16 }, () => expect(() => run(x)).toThrow("outside of autocast"));
  });

  test("an error of a run names the user's line", () => {
    const gm = symbolicTrace((x: Tensor, at: Tensor) => torch.relu(x).indexSelect(0, at));
    using run = compile(gm);
    same(gm, run, torch.ones(3), index(1));
    expect(() => run(torch.ones(3), index(7))).toThrow(/%at\b[^]*Original traceback:[^]*compile\.test\.ts/);
    expect(() => run(torch.ones(3), torch.ones(2))).toThrow(/Original traceback:[^]*compile\.test\.ts/);
  });

  test("what an operator of the user's throws, which runs once, whatever the error is", () => {
    let nCalls = 0;
    const refuse = torch.library.customOp(
      "compile_test::refuse",
      (x: Tensor) => {
        nCalls += 1;
        if (nCalls > 4) throw fxError("InputShape", "no more");
        return x.clone();
      },
      { schema: "(Tensor x) -> Tensor" },
    );
    refuse.registerFake((x: Tensor) => torch.emptyLike(x));
    using run = compile(symbolicTrace((x: Tensor) => (refuse(x) as Tensor).add(1)));
    for (const n of [2, 3, 4]) run(torch.ones(n));
    nCalls = 10;
    expect(message(() => run(torch.ones(5)))).toContain("no more");
    expect(nCalls).toBe(11);
  });

  test("outputs that are none, for which nothing is compiled", () => {
    using run = compile(symbolicTrace((x: Tensor) => x.mul(2)));
    for (const n of [2, 3]) run(torch.ones(n));
    using runs = vi.spyOn(Interpreter.prototype, "runWith");
    expect(() => run.runInto([torch.ones(4)], [3 as never])).toThrow("the output 0 is no tensor");
    expect(() => run.runInto([torch.ones(4)], [torch.ones(3)])).toThrow("output 0");
    expect(runs.mock.calls.length).toBe(0);
  });

  test("what is no graph module, options that there are not, and a module that was disposed of", () => {
    expect(() => compile(new nn.Linear(2, 2) as never)).toThrow("compile takes a GraphModule");
    const gm = symbolicTrace((x: Tensor) => x.neg());
    expect(() => compile(gm, { precison: "fast" } as never)).toThrow("precision");
    expect(() => compile(gm, { precision: "exact" as never })).toThrow("fast, strict");
    const run = compile(gm);
    run(torch.ones(2));
    run.dispose();
    run.dispose();
    expect(() => run(torch.ones(2))).toThrow("the compiled module was disposed");
  });
});

test("a compiled module goes on when the engine was made anew", () => {
  const gm = symbolicTrace((x: Tensor) => x.mul(2).add(1));
  using run = compile(gm);
  same(gm, run, torch.ones(2));
  restart();
  same(gm, run, torch.ones(2));
});

test("a trace sees the module in a compiled one", () => {
  class Outer extends nn.Module {
    inner = symbolicTrace((x: Tensor) => torch.relu(x));
    override forward(x: Tensor): Tensor {
      return (run(x) as Tensor).add(1);
    }
  }
  const outer = new Outer();
  using run = compile(outer.inner);
  const names = Array.from(symbolicTrace(outer).graph.nodes, (it) => it.name);
  expect(names).toEqual(["x", "relu", "add", "output"]);
});
