import { beforeAll, expect, test } from "vitest";
import {
  cond,
  exportProgram,
  type FxError,
  init,
  map,
  Module,
  scan,
  type Tensor,
  tensor,
  torch,
  whileLoop,
} from "tracefx";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

class Net extends Module {
  readonly #body: (net: Net, x: Tensor) => unknown;

  constructor(body: (net: Net, x: Tensor) => unknown) {
    super();
    this.#body = body;
    this.registerBuffer("seen", torch.zeros([3]));
  }

  override forward(x: Tensor): unknown {
    return this.#body(this, x);
  }
}

const program = (body: (net: Net, x: Tensor) => unknown) => exportProgram(new Net(body), [torch.ones([2, 3])]);
const refusal = (body: (net: Net, x: Tensor) => unknown): FxError => thrown(() => program(body));
const cos = (y: Tensor): Tensor => y.cos();

/** Each of these is refused by PyTorch 2.13 as well: "Encountered input mutation during higher order op tracing". */
const WRITES: Readonly<Record<string, (net: Net, x: Tensor) => unknown>> = {
  "an input": (_, x) => cond(x.sum().gt(0), (y) => y.add_(1).sin(), cos, [x]),
  "a view of an input": (_, x) =>
    cond(
      x.sum().gt(0),
      (y) => {
        y.view([-1]).select(0, 0).add_(1);
        return y.sin();
      },
      cos,
      [x],
    ),
  "a part of an input": (_, x) =>
    cond(
      x.sum().gt(0),
      (y) => {
        (torch.split(y, 1) as unknown as Tensor[])[0]?.add_(1);
        return y.sin();
      },
      cos,
      [x],
    ),
  "a value from around": (_, x) =>
    cond(
      x.sum().gt(0),
      () => {
        x.add_(1);
        return x.sin();
      },
      () => x.cos(),
      [],
    ),
  "the last branch": (_, x) => cond(x.sum().gt(0), cos, (y) => y.mul_(2).sin(), [x]),
  "the condition of a loop": (_, x) =>
    whileLoop(
      (_i, y: Tensor) => y.add_(1).sum().lt(30),
      (i: Tensor, y: Tensor) => [i.add(1), y.mul(2)],
      [tensor(0), x],
    ),
  "the body of a loop": (_, x) =>
    whileLoop(
      (i: Tensor, _y: Tensor) => i.lt(3),
      (i: Tensor, y: Tensor) => [i.add(1), y.add_(1).mul(2)],
      [tensor(0), x],
    ),
  "what is carried": (_, x) => scan((c: Tensor, y: Tensor) => [c.add_(y).mul(1), y.mul(2)], torch.zeros([3]), x),
  "a slice": (_, x) => scan((c: Tensor, y: Tensor) => [c.add(y.add_(1)), y.mul(2)], torch.zeros([3]), x),
  "a row": (_, x) => map((y: Tensor) => y.add_(1).sin(), x),
};

test.each(Object.entries(WRITES))("control flow that writes to %s is refused", (_, body) => {
  const { kind, reason, help } = refusal(body);
  const words = "Higher order ops do not support input mutation: a function of control flow writes to its input";
  expect([kind, reason]).toEqual(["TraceUnsupported", expect.stringContaining(words)]);
  expect(help).toContain("clone()");
});

test("what a function writes to values of its own is its business", () => {
  const core = program((_, x) => cond(x.sum().gt(0), (y) => y.sin().add_(1), cos, [x])).runDecompositions();
  expect((core.module()(torch.ones([2, 3])) as Tensor).shape).toEqual([2, 3]);
});

/** A running sum. */
const step = (sum: Tensor, row: Tensor): readonly [Tensor, Tensor] => {
  const next = sum.add(row);
  return [next, next.clone()];
};

test("a scan along another dimension, and backwards, is exported, decomposed and run as eagerly", () => {
  const x = torch.arange(6, { dtype: "float32" }).reshape(2, 3);
  for (const options of [{ dim: 1 }, { reverse: true }, { dim: -1, reverse: true }]) {
    const body = (_: Net, it: Tensor): unknown => scan(step, torch.zeros(["dim" in options ? 2 : 3]), it, options);
    const expected = body(new Net(body), x);
    const exported = exportProgram(new Net(body), [x]);
    for (const it of [exported, exported.runDecompositions()]) expect(it.module()(x)).toEqual(expected);
  }
});
