import { expect, it } from "vitest";
import { tuple } from "../../src/graph/args.ts";
import type { TreeSpec } from "../../src/export/program.ts";
import { countLeaves, flattenCall, unflatten } from "../../src/export/tree.ts";
import { refusal } from "./fixtures.ts";

const LEAF: TreeSpec = { type: undefined, context: undefined, children: [] };
const TYPES = { namedtupleFields: new Map([["mine.Point", ["x", "y"]]]) };

function container(type: string, context: unknown, n: number): TreeSpec {
  const text = typeof context === "string" ? context : JSON.stringify(context);
  return { type, context: text, children: Array.from({ length: n }, () => LEAF) };
}

function call(...args: TreeSpec[]): TreeSpec {
  const positional: TreeSpec = { type: "builtins.tuple", context: "null", children: args };
  return { type: "builtins.tuple", context: "null", children: [positional, container("builtins.dict", [], 0)] };
}

it.each([
  ["tuple", container("builtins.tuple", null, 2), tuple(1, 2)],
  ["list", container("builtins.list", null, 2), [1, 2]],
  ["deque", container("collections.deque", 5, 2), [1, 2]],
  ["dict", container("builtins.dict", ["b", "a"], 2), { b: 1, a: 2 }],
  [
    "dict with a hostile key",
    container("builtins.dict", ["__proto__", "a"], 2),
    JSON.parse('{"__proto__": 1, "a": 2}'),
  ],
  [
    "dict with ints for keys",
    container("builtins.dict", [7, 8], 2),
    new Map([
      [7, 1],
      [8, 2],
    ]),
  ],
  ["OrderedDict", container("collections.OrderedDict", ["b", "a"], 2), { b: 1, a: 2 }],
  [
    "defaultdict",
    container("collections.defaultdict", { default_factory_name: "int", dict_context: ["b", "a"] }, 2),
    { b: 1, a: 2 },
  ],
  ["namedtuple", container("collections.namedtuple", "mine.Point", 2), { x: 1, y: 2 }],
  ["dataclass", container("mine.Output", [["x", "y"], []], 2), { x: 1, y: 2 }],
])("a %s goes in and comes out", (_, spec, value) => {
  expect(countLeaves(spec)).toBe(2);
  expect(flattenCall([value], call(spec), TYPES)).toEqual([1, 2]);
  expect(unflatten([1, 2], spec, TYPES)).toEqual(value);
});

it.each([
  ["builtins.tuple", [1, 2], "argument 0 should be a tuple of 2 and is a list of 2"],
  ["builtins.list", tuple(1, 2), "argument 0 should be a list of 2 and is a tuple of 2"],
  ["collections.deque", tuple(1, 2), "argument 0 should be a list of 2 and is a tuple of 2"],
  ["builtins.tuple", { 0: 1 }, "argument 0 should be a tuple of 2 and is object"],
])("a %s is not taken for another sequence: PyTorch compares the structures", async (type, value, message) => {
  const error = await refusal(() => flattenCall([value], call(container(type, null, 2)), TYPES));
  expect([error.code, error.message]).toEqual(["FX0604", expect.stringContaining(message)]);
  expect(error.help).toContain("tuple(a, b)");
});

it("names the place of what does not fit", async () => {
  const spec = call(container("builtins.dict", ["a", "b"], 2));
  expect((await refusal(() => flattenCall([{ a: 1 }], spec, TYPES))).message).toContain(
    "argument 0 should be an object with a, b",
  );
  expect((await refusal(() => flattenCall([{ a: 1, b: 2, c: 3 }], spec, TYPES))).message).toContain("one with c");
  expect((await refusal(() => flattenCall([], spec, TYPES))).code).toBe("FX0601");
});
