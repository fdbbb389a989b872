/**
 * Calls through `checkpoint`, as PyTorch 2.13 records and computes them.
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import { beforeAll, expect, test } from "vitest";
import {
  checkpoint,
  exportProgram,
  func,
  init,
  makeFx,
  Module,
  nn,
  operator,
  symbolicTrace,
  tensor,
  type Tensor,
  torch,
} from "../../src/index.ts";
import { experimental } from "../experimental.ts";
import { full, numbers } from "../ported/said.ts";

beforeAll(() => init());

const recorded = experimental("checkpointed");

class Doubles extends Module {
  readonly weight = new nn.Parameter(full(2, 3));
  override forward(x: Tensor): Tensor {
    return operator.mul(x, this.weight);
  }
}

class Layer extends Module {
  readonly inner = new Doubles();
  override forward(x: Tensor): Tensor {
    const y = checkpoint((it: Tensor) => (checkpoint(this.inner, it) as Tensor).relu(), x, { useReentrant: false });
    return operator.add(y, 1);
  }
}

const f = (x: Tensor, w: Tensor): Tensor =>
  checkpoint((a: Tensor, b: Tensor) => torch.sin(operator.matmul(a, b)), x, w, { useReentrant: false }).sum();

const x = (): Tensor => numbers(2, 3);
const w = (): Tensor => numbers(3, 3).add(1);

test("traces record the operators as they are called", () => {
  expect(
    [
      exportProgram(new Layer(), [x()]).graph,
      symbolicTrace(new Layer()).graph,
      symbolicTrace(f).graph,
      makeFx(f)(x(), w()).graph,
      makeFx(f, { preDispatch: true })(x(), w()).graph,
    ].map(String),
  ).toEqual(recorded.slice(0, 5));
});

test("examples are mapped and gradients taken through it", () => {
  const xs = torch.stack([x(), x().add(1)]);
  const ws = torch.stack([w(), w().mul(2)]);
  expect(String(func.vmap(f)(xs, ws))).toBe(recorded[5]);
  const [grads, value] = func.gradAndValue(f, { argnums: [0, 1] })(x(), w()) as [Tensor[], Tensor];
  expect(`[${[value, ...grads].map(String).join(", ")}]`).toBe(recorded[6]);
  expect(`[${grads.map(String).join(", ")}]`).toBe(recorded[7]);
});

test("keyword arguments go to the function, and options do not", () => {
  const scaled = (it: Tensor, { scale }: { scale: number }): Tensor => it.mul(scale);
  expect(String(checkpoint(scaled, numbers(2), { useReentrant: false, scale: 3 }))).toBe(recorded[8]);
  expect(() => checkpoint(scaled, numbers(2), { useReentrant: true, scale: 3 })).toThrow(recorded[9]);
  expect(() => checkpoint(scaled, numbers(2), { useReentrant: true, debug: true })).toThrow(recorded[10]);
  const counted = (...args: unknown[]): number => args.length;
  expect(checkpoint(counted, 1, { useReentrant: false, preserveRngState: true, earlyStop: false })).toBe(1);
  expect(checkpoint(counted, 1, {})).toBe(2);
  expect(checkpoint((it: { a: Tensor }) => it.a, { a: tensor([1]) })).toBeDefined();
});

test("what it cannot do is refused", () => {
  expect(() => checkpoint("f" as never, x())).toThrow("checkpoint takes a function as fn");
  expect(() => checkpoint(f, x(), w(), { useReentrant: 1 })).toThrow("true or false as useReentrant");
  expect(() => checkpoint(f, x(), w(), { determinismCheck: "all" })).toThrow('"default" or "none"');
  expect(() => checkpoint(f, x(), w(), { contextFn: () => [] })).toThrow("checkpoint has no contextFn");
});
