import { expect, test } from "vitest";
import { builtins, math, operator, slice } from "../../src/index.ts";

const huge = 2n ** 1_000_000n;

test.each<[string, () => unknown]>([
  ["a power", () => operator.pow(7, 1_000_000_000)],
  ["a shift", () => operator.lshift(1, 2n ** 40n)],
  ["a product", () => operator.mul(huge, huge)],
  ["a product of many", () => math.prod([huge, huge])],
  ["a text, repeated", () => operator.mul("ab", 2 ** 40)],
  ["a list, repeated", () => operator.imul([1, 2], 2 ** 40)],
  ["a range", () => builtins.range(2 ** 40)],
  ["a width", () => operator.mod("%999999999d", 1)],
  ["an int of many digits", () => builtins.int("9".repeat(1_000_000))],
])("%s that would fill the memory is refused", (_, run) => {
  expect(run).toThrow(expect.objectContaining({ kind: "LimitExceeded" }));
});

test("a list that holds itself can be printed, and is not compared for ever", () => {
  const list: unknown[] = [1];
  list.push(list);
  expect(builtins.repr(list)).toContain("...");
  const other: unknown[] = [1];
  other.push(other);
  expect(() => operator.eq(list, other)).toThrow("nested deeper");
  expect(() => operator.lt(list, other)).toThrow("nested deeper");
});

test("keys that JavaScript has a meaning for are keys like any other", () => {
  const dict: Record<string, unknown> = {};
  operator.setitem(dict, "__proto__", { polluted: true });
  expect(Object.keys(dict)).toEqual(["__proto__"]);
  expect(Reflect.get({}, "polluted")).toBeUndefined();
  expect(builtins.len(operator.or_(dict, builtins.dict([["constructor", 1]])))).toBe(2);
  expect(() => operator.getitem({}, "toString")).toThrow("no key");
  expect(() => builtins.getattr({}, "constructor")).toThrow("no attribute");
  // Python's results have fields of these names, and JavaScript's arrays have functions.
  expect(() => builtins.getattr([1, 2], "values")).toThrow("a list has no attribute `values`");
  expect(builtins.hasattr([1, 2], "values")).toBe(false);
});

test("a slice of a list has Python's bounds", () => {
  expect(operator.getitem([0, 1, 2, 3], slice(null, null, -2))).toEqual([3, 1]);
  expect(operator.getitem([0, 1, 2, 3], slice(-100, 100))).toEqual([0, 1, 2, 3]);
});
