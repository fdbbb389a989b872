import { describe, expect, test } from "vitest";
import { type Arg, type ArgInput, freezeArg, mapAggregate, mapArg, slice, tuple } from "../../src/graph/args.ts";
import { Graph } from "../../src/graph/graph.ts";
import {
  type Dict,
  device,
  dtype,
  Float,
  float,
  layout,
  List,
  memoryFormat,
  Slice,
  Tuple,
} from "../../src/base/values.ts";
import { tensor } from "../../src/tensor/construct.ts";

const refusal = expect.objectContaining({ code: "FX0205", name: "GraphError" });

describe("numbers", () => {
  test("are ints where they are whole, and floats otherwise or where float() says so", () => {
    expect(freezeArg(float(1))).toEqual(new Float(1));
    expect(freezeArg(float(1.5))).toBe(1.5);
    for (const it of [float(-0), float(Number.NaN), float(Infinity)]) expect(freezeArg(it)).toBe(it.value);
    expect([freezeArg(3), freezeArg(-0), freezeArg(0.5)]).toEqual([3, -0, 0.5]);
  });

  test("are exact: a safe bigint is the same int as a number, and a number that is not safe is refused", () => {
    expect(freezeArg(5n)).toBe(5);
    expect(freezeArg(2n ** 53n)).toBe(2n ** 53n);
    expect(freezeArg(2n ** 63n - 1n)).toBe(2n ** 63n - 1n);
    expect(freezeArg(-(2n ** 63n))).toBe(-(2n ** 63n));
    for (const it of [2n ** 63n, -(2n ** 63n) - 1n, 2 ** 53, 1e300]) expect(() => freezeArg(it)).toThrow(refusal);
    expect(freezeArg(float(1e300))).toEqual(new Float(1e300));
  });
});

describe("GR-04: containers", () => {
  test("become lists, tuples, dicts and slices, at any depth", () => {
    const frozen = freezeArg([tuple(1, [2]), { a: [3] }, new Map([["b", slice(1)]])]);
    expect(frozen).toBeInstanceOf(List);
    const [first, second, third] = frozen as List;
    expect([first, (first as Tuple)[1]].map((it) => it?.constructor)).toEqual([Tuple, List]);
    expect((second as Dict).get("a")).toBeInstanceOf(List);
    expect((third as Dict).get("b")).toEqual(new Slice(null, 1, null));
    expect(slice(1, 2)).toEqual(new Slice(1, 2, null));
    expect(slice(null, 2, -1)).toEqual(new Slice(null, 2, -1));
  });

  test("are copies: what was given may change afterwards", () => {
    const given = [1, [2]];
    const frozen = freezeArg(given);
    given.push(3);
    expect([...(frozen as List)]).toHaveLength(2);
  });

  test("cannot be changed, and say how to do it instead", () => {
    const list = freezeArg([1, 2]) as List;
    const dict = freezeArg({ a: 1 }) as Dict;
    const advice = expect.objectContaining({ code: "FX0205", help: expect.stringContaining("node.args = ") });
    const methods = ["push", "pop", "shift", "unshift", "splice", "sort", "reverse", "fill", "copyWithin"] as const;
    const changes: (() => unknown)[] = [
      ...methods.map((method) => () => (list[method] as () => unknown)()),
      () => dict.set("a", 2),
      () => (dict as Map<string, unknown>).delete("a"),
      () => (dict as Map<string, unknown>).clear(),
    ];
    for (const change of changes) expect(change).toThrow(advice);
    expect(() => {
      (list as Arg[])[0] = 5;
    }).toThrow(TypeError);
    expect([[...list], [...dict]]).toEqual([[1, 2], [["a", 1]]]);
  });

  test("give ordinary arrays when they are mapped", () => {
    const mapped = tuple(1, 2).map((it) => it);
    expect(mapped.constructor).toBe(Array);
    expect(mapped.concat(3)).toEqual([1, 2, 3]);
  });

  test("keep names of JavaScript's own as ordinary keys", () => {
    const graph = new Graph();
    const kwargs = JSON.parse('{"__proto__": 1, "constructor": 2, "toString": 3}') as { [name: string]: number };
    const node = graph.callFunction("f", [JSON.parse('{"__proto__": 4}')], kwargs);
    expect(Object.entries(node.kwargs)).toEqual(Object.entries(kwargs));
    expect(Object.getPrototypeOf(node.kwargs)).toBe(null);
    expect([...(node.args[0] as Dict)]).toEqual([["__proto__", 4]]);
    expect(node.formatNode()).toContain("kwargs = {__proto__: 1, constructor: 2, toString: 3}");
  });

  test("keep the order of their keys, numbers too, when they come as a Map", () => {
    const dict = freezeArg(
      new Map([
        ["b", 1],
        ["10", 2],
        ["2", 3],
      ]),
    );
    expect([...(dict as Dict).keys()]).toEqual(["b", "10", "2"]);
    expect(() => new Graph().callFunction("f", [], new Map([["0", 1]]))).toThrow(refusal);
  });

  test("that hold themselves are refused", () => {
    const cycle: ArgInput[] = [];
    cycle.push(cycle);
    expect(() => freezeArg(cycle)).toThrow(refusal);
  });
});

test.each([
  ["undefined", undefined],
  ["a function", () => 1],
  ["a symbol", Symbol("s")],
  ["a tensor", tensor([1])],
  ["a typed array", new Float32Array(1)],
  ["a date", new Date(0)],
  ["a set", new Set()],
  ["a map with numbers for keys", new Map([[1, 2]])],
])("%s is not an argument", (_, value) => {
  expect(() => freezeArg(value as unknown as ArgInput)).toThrow(refusal);
  expect(() => freezeArg([{ key: value as unknown as ArgInput }])).toThrow(refusal);
});

test("values of the wrong name are refused with the names that there are", () => {
  for (const make of [
    () => dtype("float" as "float32"),
    () => layout("dense" as "strided"),
    () => memoryFormat("nhwc" as "channels_last"),
    () => device("cuda:x"),
    () => device(""),
  ]) {
    expect(make).toThrow(expect.objectContaining({ code: "FX0205", help: expect.stringMatching(/one of|cuda:1/) }));
  }
});

test("GR-22: mapArg replaces nodes, and mapAggregate every leaf, wherever they stand", () => {
  const graph = new Graph();
  const [x, y] = [graph.placeholder("x"), graph.placeholder("y")];
  const arg = freezeArg([x, tuple(x, 1), { k: x }, slice(x, null, 2)]);
  expect(mapArg(arg, () => y)).toEqual(freezeArg([y, tuple(y, 1), { k: y }, slice(y, null, 2)]));
  expect(mapAggregate(arg, () => 7)).toEqual(freezeArg([7, tuple(7, 7), { k: 7 }, slice(7, 7, 7)]));
});

test("mapArg and mapAggregate look into plain arrays, objects and Maps too", () => {
  const graph = new Graph();
  const [a, b] = [graph.placeholder("a"), graph.placeholder("b")];
  const swapped = mapArg([a, { deep: [a] }, new Map([["m", a]]), float(2), Number.NaN], () => b);
  expect(`${swapped}`).toBe(`${freezeArg([b, { deep: [b] }, { m: b }, float(2), Number.NaN])}`);
  expect([...(swapped as List)][0]).toBe(b);
  expect([...(mapAggregate([1, [2]], (leaf) => (typeof leaf === "number" ? leaf + 1 : leaf)) as List)][0]).toBe(2);
});
