import { afterEach, beforeAll, describe, expect, expectTypeOf, test, vi } from "vitest";
import { callFunction } from "../../../src/functions/table.ts";
import { F, init, Tensor, tensor, torch } from "../../../src/index.ts";

beforeAll(() => init());
afterEach(() => vi.restoreAllMocks());

function pair(): Tensor {
  return tensor([[-1.5, 2]]);
}

describe("arguments", () => {
  test("go by position, by name in camel case, or both", () => {
    const slopes = [
      F.leakyRelu(pair(), 0.5),
      F.leakyRelu(pair(), { negativeSlope: 0.5 }),
      F.leakyRelu(pair(), 0.5, { inplace: true }),
    ];
    for (const it of slopes) expect(it.toArray()).toEqual([[-0.75, 2]]);
  });

  test("are refused by name where there is no such parameter", () => {
    // @ts-expect-error the option is called inplace
    expect(() => F.relu(pair(), { inPlace: true })).toThrow("relu() got an unexpected keyword argument 'in_place'");
    // @ts-expect-error the weight is missing
    expect(() => F.linear(pair())).toThrow("linear() missing 1 required positional argument: 'weight'");
    // @ts-expect-error there are too many
    expect(() => F.relu(pair(), true, 1)).toThrow("relu() takes from 1 to 2 positional arguments but 3 were given");
  });

  test("may have dtypes by name", () => {
    expect(F.softmax(tensor([1, 2]), 0, { dtype: "float64" }).dtype).toBe("float64");
  });
});

test("what a function gives has its type", () => {
  const x = tensor([[[1.5, 2, 0.5, 3]]]);
  expectTypeOf(F.maxPool1d(x, 2)).toEqualTypeOf<Tensor>();
  expectTypeOf(F.maxPool1d(x, 2, { returnIndices: false })).toEqualTypeOf<Tensor>();
  const [output, indices] = F.maxPool1d(x, 2, { returnIndices: true });
  expect([output.toArray(), indices.toArray()]).toEqual([[[[2, 3]]], [[[1, 3]]]]);
  const chosen: Tensor | readonly [Tensor, Tensor] = F.maxPool1d(x, 2, null, 0, 1, false, Math.random() < 2);
  expect(chosen).toHaveLength(2);
});

test("in place, the input itself is given back", () => {
  const x = tensor([-1.5, 2]);
  expect(F.relu(x, { inplace: true })).toBe(x);
  expect(F.relu_(x)).toBe(x);
  expect(F.dropout(x, { training: false, inplace: true })).toBe(x);
  expect(x.toArray()).toEqual([0, 2]);
});

test("tensors in between are freed at once, and no others", () => {
  const x = tensor([-1.5, 2]);
  const dispose = vi.spyOn(Tensor.prototype, "dispose");
  const result = F.softsign(x);
  expect(dispose).toHaveBeenCalledTimes(2);
  expect([x.isDisposed, result.isDisposed]).toEqual([false, false]);
  expect(result.toFloat32Array()[1]).toBeCloseTo(2 / 3);
});

test("functions of other places are the same functions here", () => {
  expect(torch.conv2d).toBe(F.conv2d);
  expect(torch._C._nn.linear).toBe(F.linear);
});

test("functions of other places have their name in this module too", () => {
  const [x, weight, bias] = [tensor([[1.5]]), tensor([[2.5]]), tensor([0.25])];
  const call = { args: [x, weight], kwargs: { bias } };
  for (const target of ["torch.nn.functional.linear", "torch._C._nn.linear"]) {
    expect((callFunction(target, call) as Tensor).toArray()).toEqual([[4]]);
  }
  const limits = { args: [x, 2, 7], kwargs: {} };
  expect((callFunction("torch.nn.functional.threshold", limits) as Tensor).toArray()).toEqual([[7]]);
  expect(callFunction("_operator.add", { args: [1, 2], kwargs: {} })).toBe(3);
});
