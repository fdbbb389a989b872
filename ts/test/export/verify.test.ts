/** An export runs the module and the program once on the example inputs, and leaves no trace of it. */
import { beforeAll, describe, expect, test, vi } from "vitest";
import { Dim, exportProgram, F, init, nn, operator, type Tensor, torch, tuple } from "../../src/index.ts";
import { getRngState } from "../../src/torch/random.ts";
import { thrown as refused } from "../thrown.ts";

beforeAll(async () => void (await init()));

/** A module of a function. */
function moduleOf(forward: (this: nn.Module, ...args: never[]) => unknown): nn.Module {
  return new (class extends nn.Module {
    override forward = forward;
  })();
}

/** Objects whose methods no analysis of `forward` reaches, where nobody reads the functions that run. */
function hidden<T>(value: T): Map<string, T> {
  return new Map([["it", value]]);
}

const AUTO = { x: { 0: Dim.AUTO } };

/** Dynamic sizes, of which the sources say nothing. */
const UNREAD = { dynamicShapes: AUTO, checkSources: false };

test("half precision, which a plan rounds less often, is no difference", () => {
  torch.manualSeed(0);
  const layers = Array.from({ length: 4 }, () => [new nn.Linear(64, 64), new nn.GELU(), new nn.LayerNorm(64)]).flat();
  const model = new nn.Sequential(...layers, new nn.Softmax(-1)).to(torch.float16);
  const x = torch.randn(8, 64).to(torch.float16);
  const program = exportProgram(model, [x]);
  using run = program.module();
  expect(String(run(x))).not.toBe(String(model.call(x)));
});

describe("what nobody saw while the module was exported is told", () => {
  const wide = hidden({ isWide: (x: Tensor) => x.shape[0] === 4 });
  const decides = (): nn.Module =>
    moduleOf((x: Tensor) => ([...wide.values()].some((it) => it.isWide(x)) ? x.add(1) : x.mul(3)));

  test("other numbers", () => {
    const { kind, message } = refused(() => exportProgram(decides(), [torch.ones(4)], {}, UNREAD));
    expect(kind).toBe("TraceMismatch");
    expect(message).toContain("4 of 4 elements differ");
    expect(message).toContain("guard(…)");
  });

  test("unless it is not asked for", () => {
    const program = exportProgram(decides(), [torch.ones(4)], {}, { ...UNREAD, verify: false });
    using run = program.module();
    expect(run(torch.ones(4))).toEqual(torch.full([4], 3, { dtype: "float32" }));
  });

  test("other sizes, dtypes and structures", () => {
    const forms: [(x: Tensor) => unknown, (x: Tensor) => unknown, string][] = [
      [(x) => x.sum(), (x) => x, "a tensor of float32 [4] instead of float32 []"],
      [(x) => x, (x) => x.to("float64"), "a tensor of float64 [4] instead of float32 [4]"],
      [(x) => tuple(x, x), (x) => x, "it gives * instead of tuple(*, *)"],
      [(x) => [x, x], (x) => tuple(x, x), "it gives tuple(*, *) instead of list(*, *)"],
      [(x) => ({ a: x }), (x) => ({ b: x }), 'it gives dict(["b"], *) instead of dict(["a"], *)'],
      [() => 3, () => 4, "it gives 4 instead of 3"],
    ];
    for (const [whenWide, otherwise, text] of forms) {
      const module = moduleOf((x: Tensor) =>
        [...wide.values()].some((it) => it.isWide(x)) ? whenWide(x) : otherwise(x),
      );
      const { message } = refused(() => exportProgram(module, [torch.ones(4)], {}, UNREAD));
      expect(message).toContain(text);
    }
  });

  test("a buffer that is left with other elements", () => {
    class Counts extends nn.Module {
      declare count: Tensor;

      constructor() {
        super();
        this.registerBuffer("count", torch.zeros(1));
      }

      override forward(x: Tensor): Tensor {
        this.count.add_([...wide.values()].some((it) => it.isWide(x)) ? 1 : 2);
        return x.neg();
      }
    }
    const { message } = refused(() => exportProgram(new Counts(), [torch.ones(4)], {}, UNREAD));
    expect(message).toContain("`count` afterwards: 1 of 1 elements differ, first element 0: 2 instead of 1");
  });

  test("what changes from run to run", () => {
    let calls = 0;
    const { message } = refused(() =>
      exportProgram(
        moduleOf((x: Tensor) => x.add(calls++)),
        [torch.ones(4)],
      ),
    );
    expect(message).toContain("elements differ");
  });
});

describe("both runs leave everything as it was", () => {
  test("buffers, parameters, inputs, fields and random numbers", () => {
    class Writes extends nn.Module {
      norm = new nn.BatchNorm1d(3);
      calls = 0;
      weight = new nn.Parameter(torch.ones(3));

      override forward(x: Tensor, y: Tensor): Tensor {
        this.calls++;
        torch.noGrad(() => this.weight.view(3).mul_(2));
        y.unsqueeze_(0).add_(1);
        return F.dropout(this.norm.forward(x), { p: 0.5 }).mul(this.weight);
      }
    }
    torch.manualSeed(7);
    const module = new Writes();
    const [x, y] = [torch.randn(4, 3), torch.zeros(2)];
    const expanded = torch.zeros(1, 3).expand(4, 3);
    const before = getRngState();
    const had = Array.from(module.stateDict(), ([name, it]) => [name, it.clone()] as const);
    for (const input of [x, expanded]) exportProgram(module, [input, y]);
    expect(torch.equal(getRngState(), before)).toBe(true);
    for (const [name, it] of had) expect(torch.equal(module.stateDict().get(name) as Tensor, it), name).toBe(true);
    expect([module.calls, y.shape, y.toArray()]).toEqual([0, [2], [0, 0]]);
  });

  test("also where they are refused", () => {
    const wide = hidden({ isWide: (x: Tensor) => x.shape[0] === 4 });
    const module = moduleOf((x: Tensor) => x.add_([...wide.values()].some((it) => it.isWide(x)) ? 1 : 2));
    const x = torch.zeros(4);
    expect(refused(() => exportProgram(module, [x], {}, UNREAD)).kind).toBe("TraceMismatch");
    expect(x.toArray()).toEqual([0, 0, 0, 0]);
  });
});

describe("random numbers", () => {
  test("are the same in both runs", () => {
    const module = new nn.Sequential(new nn.Linear(8, 8), new nn.Dropout(0.5));
    const program = exportProgram(module, [torch.randn(4, 8)]);
    expect(`${program.graph}`).toContain("aten.dropout.default");
    exportProgram(
      moduleOf((x: Tensor) => x.add(torch.randLike(x)).mul(torch.randn(4))),
      [torch.ones(4)],
    );
  });

  test("do not hide what is wrong with others", () => {
    const wide = hidden({ isWide: (x: Tensor) => x.shape[0] === 4 });
    const module = moduleOf((x: Tensor) => {
      const noise = torch.randLike(x);
      return [...wide.values()].some((it) => it.isWide(x)) ? x.add(noise) : x.mul(2).add(noise);
    });
    expect(refused(() => exportProgram(module, [torch.ones(4)], {}, UNREAD)).kind).toBe("TraceMismatch");
  });
});

describe("a module that does not run by itself", () => {
  test("is exported, and told of", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    try {
      // A number of JavaScript has no such method.
      const module = moduleOf((x: Tensor) => x.add((x.size(0) as never as { mul(by: number): number }).mul(2)));
      exportProgram(module, [torch.ones(4)], {}, { dynamicShapes: AUTO });
      expect(warn.mock.calls.flat().join()).toMatch(
        /not compared with the module.*mul is not a function[^]*operator\.mul/,
      );
      warn.mockClear();
      const same = moduleOf((x: Tensor) => x.add(operator.mul(x.size(0), 2)));
      exportProgram(same, [torch.ones(4)], {}, { dynamicShapes: AUTO });
      expect(warn.mock.calls).toEqual([]);
    } finally {
      warn.mockRestore();
    }
  });
});
