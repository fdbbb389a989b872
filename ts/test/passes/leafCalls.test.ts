import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import {
  FakeTensorProp,
  FxError,
  Graph,
  GraphModule,
  init,
  Module,
  nn,
  operator,
  ShapeProp,
  SymExpr,
  symbolicTrace,
  type Tensor,
  TensorMeta,
  torch,
  tuple,
  ValSequence,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

/** What is known of a result, as PyTorch's FakeTensorProp recorded it. */
type Known = { dtype: string; size: (number | string)[]; stride: (number | string)[] } | Known[];

interface Case {
  module: string;
  args: number[];
  kwargs: Record<string, unknown>;
  inputs: number[][];
  eval: boolean;
  outputs: Known;
}

const text = readFileSync(new URL("../../../tests/fixtures/passes/fake_leaves.jsonl", import.meta.url), "utf8");
const cases = text
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Case)
  .map((row) => ({ ...row, title: `${row.module} ${JSON.stringify([row.args, row.kwargs, row.inputs])} ${row.eval}` }));

const camel = (name: string) => name.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());

function leafOf({ module, args, kwargs, eval: isEval }: Case): Module {
  const options = Object.fromEntries(Object.entries(kwargs).map(([key, value]) => [camel(key), value]));
  const Leaf = Reflect.get(nn, module) as new (...given: unknown[]) => Module;
  return new Leaf(...args, options).train(!isEval);
}

/** A graph that calls a leaf on its inputs. */
function calling(leaf: Module, inputs: number): GraphModule {
  const graph = new Graph();
  const nodes = Array.from({ length: inputs }, (_, at) => graph.placeholder(`x${at}`));
  graph.output(graph.callModule("leaf", nodes));
  return new GraphModule({ leaf }, graph);
}

const number = (size: unknown) => (size instanceof SymExpr ? `${size}` : Number(size));

function knownOf(val: unknown): Known | undefined {
  if (val instanceof ValSequence) return val.items.map((item) => knownOf(item) as Known);
  if (!(val instanceof TensorMeta)) return undefined;
  return { dtype: val.dtype, size: val.sizes.map(number), stride: val.strides.map(number) };
}

describe("a module whose path depends on its inputs", () => {
  it.each(cases)("$title", (recorded) => {
    const { inputs, outputs } = recorded;
    const gm = calling(leafOf(recorded), inputs.length);
    const known = new FakeTensorProp(gm).propagate(...inputs.map((size) => torch.zeros(size)));
    expect(knownOf(known)).toEqual(outputs);
  });
});

const symbol = (name: string) => new SymExpr(`Symbol('${name}', positive=True, integer=True)`);
const s0 = symbol("s0");
const dynamic = (...sizes: (number | SymExpr)[]) => {
  const strides = sizes.map((_, at) => (at === sizes.length - 1 ? 1 : Number(sizes.at(-1)) * (at === 0 ? 7 : 1)));
  return new TensorMeta({ ...metaOf(torch.zeros(sizes.map(() => 1))), sizes, strides });
};

function metaOf(tensor: Tensor): TensorMeta {
  const gm = symbolicTrace((x: Tensor) => torch.relu(x));
  new FakeTensorProp(gm).propagate(tensor);
  return gm.graph.findNodes({ op: "placeholder" })[0]?.meta.get("val") as TensorMeta;
}

const sizes = (known: Known | undefined): unknown => (Array.isArray(known) ? known.map(sizes) : known?.size);

describe("symbolic sizes through such modules", () => {
  it.each([
    [
      new nn.LSTM(3, 4, { batchFirst: true }),
      [s0, 7, 3],
      [
        ["s0", 7, 4],
        [
          [1, "s0", 4],
          [1, "s0", 4],
        ],
      ],
    ],
    [
      new nn.GRU(3, 4),
      [s0, 7, 3],
      [
        ["s0", 7, 4],
        [1, 7, 4],
      ],
    ],
    [new nn.InstanceNorm1d(7), [s0, 7, 3], ["s0", 7, 3]],
    [new nn.TransformerEncoderLayer(8, 2, 16, { batchFirst: true }), [s0, 7, 8], ["s0", 7, 8]],
  ])("stay", (leaf, size, expected) => {
    const known = new FakeTensorProp(calling(leaf, 1)).propagate(dynamic(...(size as (number | SymExpr)[])));
    expect(sizes(knownOf(known))).toEqual(expected);
  });

  it("are not taken to be equal however many there are", () => {
    class Sums extends Module {
      override forward(...xs: Tensor[]): Tensor {
        const sum = torch.add(xs[5] as Tensor, xs[12] as Tensor);
        return sum.ndim > 1 ? torch.relu(sum) : torch.sum(sum);
      }
    }
    const inputs = Array.from({ length: 13 }, (_, at) => dynamic(symbol(`s${at}`), 2));
    expect(() => new FakeTensorProp(calling(new Sums(), 13)).propagate(...inputs)).toThrow(/must match/);
  });

  it("are refused where the module wants a number", () => {
    class Unrolled extends Module {
      override forward(x: Tensor): Tensor {
        return torch.stack(Array.from({ length: x.shape[0] as number }, (_, at) => x.select(0, at)));
      }
    }
    const gm = calling(new Unrolled(), 1);
    expect(() => new FakeTensorProp(gm).propagate(dynamic(s0, 7, 3))).toThrow(FxError);
  });

  it("are refused where a decision makes a number of them", () => {
    class Decides extends Module {
      override forward(x: Tensor): Tensor {
        torch._check(operator.eq(x.shape[0], 1009));
        return x.ndim > 2 ? torch.relu(x) : torch.sum(x);
      }
    }
    const gm = calling(new Decides(), 1);
    expect(() => new FakeTensorProp(gm).propagate(dynamic(s0, 7, 3))).toThrow(/Decides depends on the size s0/);
  });
});

describe("calls of such modules", () => {
  it("may follow each other with other sizes, and have states and keywords", () => {
    const graph = new Graph();
    const [x, y] = [graph.placeholder("x"), graph.placeholder("y")];
    const first = graph.callModule("lstm", [x]);
    const out = graph.callFunction("operator.getitem", [first, 0]);
    const state = graph.callFunction("operator.getitem", [first, 1]);
    const second = graph.callModule("lstm", [y], { hx: state });
    graph.output(tuple(out, second));
    const lstm = new nn.LSTM(3, 4);
    const gm = new GraphModule({ lstm }, graph);
    const before = [...gm.graph.nodes];
    const known = new ShapeProp(gm, { fakeMode: true }).propagate(torch.zeros([5, 2, 3]), torch.zeros([6, 2, 3]));
    expect(sizes(knownOf(known))).toEqual([
      [5, 2, 4],
      [
        [6, 2, 4],
        [
          [1, 2, 4],
          [1, 2, 4],
        ],
      ],
    ]);
    expect(sizes(knownOf(first.meta.get("val")))).toEqual([
      [5, 2, 4],
      [
        [1, 2, 4],
        [1, 2, 4],
      ],
    ]);
    expect([...gm.graph.nodes].every((node, at) => node === before[at])).toBe(true);
    expect([gm.graph.owningModule, lstm.training, [...gm.attributes.keys()]]).toEqual([gm, true, ["lstm"]]);
    const run = new ShapeProp(gm);
    run.propagate(torch.zeros([5, 2, 3]), torch.zeros([6, 2, 3]));
    expect(sizes(knownOf(second.meta.get("val")))).toEqual([
      [6, 2, 4],
      [
        [1, 2, 4],
        [1, 2, 4],
      ],
    ]);
  });

  it("may stand in the graph of a module that is called", () => {
    class Inner extends Module {
      readonly norm = new nn.InstanceNorm2d(3);
      override forward(x: Tensor): Tensor {
        return torch.relu(this.norm.forward(x));
      }
    }
    const inner = symbolicTrace(new Inner());
    const gm = calling(inner, 1);
    const known = new FakeTensorProp(gm).propagate(torch.zeros([2, 3, 4, 5]));
    expect(sizes(knownOf(known))).toEqual([2, 3, 4, 5]);
  });

  it("say what the module says of a wrong input", () => {
    const gm = calling(new nn.LSTM(3, 4), 1);
    expect(() => new FakeTensorProp(gm).propagate(torch.zeros([2, 5, 2]))).toThrow(/input_size. Expected 3, got 2/);
  });
});
