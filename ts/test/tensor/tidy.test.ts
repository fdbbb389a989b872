import { beforeAll, describe, expect, test } from "vitest";
import { callOperator } from "../../src/engine/dispatch.ts";
import { init, keep, type Tensor, tensor, tidy } from "../../src/index.ts";

beforeAll(() => init());

function add(a: Tensor, b: Tensor | number): Tensor {
  return callOperator("aten.add", [a, b]) as Tensor;
}

describe("tidy", () => {
  test("disposes of what was made in it, but for what it returns", () => {
    const made: Tensor[] = [];
    const outside = tensor([1]);
    const note = (it: Tensor): Tensor => {
      made.push(it);
      return it;
    };
    const result = tidy(() => {
      const a = note(add(outside, 1));
      const b = note(add(a, 1));
      return { b, list: [note(add(b, 1)), new Map([["c", note(add(b, 2))]])], outside };
    });
    expect(made.map((it) => it.isDisposed)).toEqual([true, false, false, false]);
    expect([result.b.item(), outside.isDisposed]).toEqual([3, false]);
  });

  test("disposes of everything when the function throws", () => {
    let made: Tensor | undefined;
    const run = () =>
      tidy(() => {
        made = tensor([1]);
        throw new Error("mine");
      });
    expect(run).toThrow("mine");
    expect(made?.isDisposed).toBe(true);
  });

  test("hands what it returns to the tidy around it", () => {
    let inner: Tensor | undefined;
    tidy(() => {
      inner = tidy(() => tensor([1]));
      expect(inner.isDisposed).toBe(false);
    });
    expect(inner?.isDisposed).toBe(true);
    expect(tensor([1]).isDisposed).toBe(false);
  });

  test("leaves what is kept, and what was there before", () => {
    const before = tensor([1]);
    let kept: Tensor | undefined;
    tidy(() => {
      kept = keep(tensor([2]));
      callOperator("aten.add_", [before, 1]);
    });
    expect([kept?.isDisposed, before.item()]).toEqual([false, 2]);
  });

  test("refuses functions that go on later", () => {
    let made: Tensor | undefined;
    const later = async () => {
      made = tensor([1]);
      await Promise.resolve();
    };
    expect(() => tidy(later)).toThrow(expect.objectContaining({ kind: "InvalidOption" }));
    expect(made?.isDisposed).toBe(true);
  });

  test("walks cycles once", () => {
    const cycle: unknown[] = [];
    cycle.push(cycle, tensor([1]));
    const [, it] = tidy(() => cycle) as [unknown, Tensor];
    expect(it.isDisposed).toBe(false);
  });
});
