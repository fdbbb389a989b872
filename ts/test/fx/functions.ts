/** Functions for graphs in tests that need no engine. Those called `torch.testing.*` count as the package's own. */
import { defineFunction } from "../../src/functions/table.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";

/** All tensors that the functions here made, in order. */
export const made: Tensor[] = [];

function result(values: readonly number[]): Tensor {
  const res = tensor([...values], { dtype: "float32" });
  made.push(res);
  return res;
}

function valuesOf(x: Tensor): number[] {
  return x.toArray() as number[];
}

export const plusOne = defineFunction(
  "torch.testing.plus_one",
  (x: Tensor) => result(valuesOf(x).map((it) => it + 1)),
  {
    signature: "(x)",
  },
);

export const sum = defineFunction("torch.testing.sum", (a: Tensor, b: Tensor) => {
  const other = valuesOf(b);
  return result(valuesOf(a).map((it, at) => it + (other[at] as number)));
});

export const split = defineFunction("torch.testing.split", (x: Tensor) => valuesOf(x).map((it) => result([it])));

export const same = defineFunction("torch.testing.same_", (x: Tensor) => x);

export const item = defineFunction("torch.testing.item", (xs: readonly Tensor[], at: number) => xs[at] as Tensor);

/** A function of a user, which keeps what it sees. */
export const seen: unknown[] = [];
export const keep = defineFunction("my.keep", (x: Tensor) => {
  seen.push(x);
  return x;
});

export const fails = defineFunction("my.fails", (error: unknown) => {
  throw error;
});

export const calls = defineFunction("my.calls", (run: () => unknown) => run());
