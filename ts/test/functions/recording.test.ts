import { beforeAll, describe, expect, test } from "vitest";
import {
  builtins,
  float,
  GraphModule,
  init,
  math,
  operator,
  slice,
  symbolicTrace,
  type Tensor,
  tensor,
  torch,
  tuple,
} from "../../src/index.ts";

beforeAll(() => init());

/** What a function records, a line for each call. */
function recorded(fn: (x: Tensor) => unknown): string[] {
  const lines = Array.from(symbolicTrace(fn).graph.nodes, (node) => node.formatNode());
  return lines.filter((it) => it.includes("call_")).map((it) => it.replace(/^%(\w+) : \[num_users=\d+\] = /, "$1 = "));
}

describe("traced calls", () => {
  test.each<[string, (x: Tensor) => unknown, string]>([
    ["x + 1", (x) => operator.add(x, 1), "call_function[target=operator.add](args = (%x, 1), kwargs = {})"],
    ["1.0 - x", (x) => operator.sub(float(1), x), "call_function[target=operator.sub](args = (1.0, %x), kwargs = {})"],
    ["x += x", (x) => operator.iadd(x, x), "call_function[target=operator.iadd](args = (%x, %x), kwargs = {})"],
    ["x & x", (x) => operator.and_(x, x), "call_function[target=operator.and_](args = (%x, %x), kwargs = {})"],
    ["-x", (x) => operator.neg(x), "call_function[target=operator.neg](args = (%x,), kwargs = {})"],
    [
      "x[0, 1:]",
      (x) => operator.getitem(x, tuple(0, slice(1, null))),
      "call_function[target=operator.getitem](args = (%x, (0, slice(1, None, None))), kwargs = {})",
    ],
    [
      'operator.setitem(x, "key", {})',
      (x) => operator.setitem(x, "key", { a: 1 }),
      "call_function[target=operator.setitem](args = (%x, key, {a: 1}), kwargs = {})",
    ],
    ["math.sqrt(x)", (x) => math.sqrt(x), "call_function[target=math.sqrt](args = (%x,), kwargs = {})"],
    ["len(x)", (x) => builtins.len(x), "call_function[target=builtins.len](args = (%x,), kwargs = {})"],
    [
      'getattr(x, "shape")',
      (x) => builtins.getattr(x, "shape"),
      "call_function[target=builtins.getattr](args = (%x, shape), kwargs = {})",
    ],
    [
      "torch._assert",
      (x) => torch._assert(operator.eq(x, 1), "must be one"),
      "call_function[target=torch._assert](args = (%eq, must be one), kwargs = {})",
    ],
  ])("%s", (_, fn, line) => {
    expect(recorded(fn).at(-1)).toContain(line);
  });
});

describe("graphs that call them run", () => {
  test.each<[string, (x: Tensor) => unknown, unknown]>([
    ["arithmetic", (x) => operator.sub(operator.mul(x, 2), 1), [1, 3, 5]],
    [
      "a shape and a tuple",
      (x) => x.reshape(operator.add(operator.getitem(x.size(), slice(0, -1)), tuple(3, 1)) as number[]),
      [[1], [2], [3]],
    ],
    ["sizes", (x) => torch.full([operator.floordiv(x.size(0), 2) as number], 7), [7]],
    ["a square root", (x) => torch.div(operator.getitem(x, 0), math.sqrt(operator.mul(x.size(0), 3) as number)), 1 / 3],
    ["writing", (x) => [operator.setitem(x, 0, 9), operator.iadd(x, 1)][1], [10, 3, 4]],
    ["a check", (x) => [torch._assert(operator.gt(x.size(0), 2), "too small"), x][1], [1, 2, 3]],
  ])("%s", (_, fn, expected) => {
    const gm = symbolicTrace(fn);
    expect(gm).toBeInstanceOf(GraphModule);
    const result = gm.call(tensor([float(1), 2, 3])) as Tensor;
    const found = result.toArray();
    if (typeof expected === "number") expect(found).toBeCloseTo(expected, 6);
    else expect(found).toEqual(expected);
  });

  test("a check that does not hold stops the run", () => {
    const gm = symbolicTrace((x: Tensor) => [torch._assert(operator.gt(x.size(0), 3), "too small"), x][1]);
    expect(() => gm.call(tensor([1, 2, 3]))).toThrow("too small");
  });
});
