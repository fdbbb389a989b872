import { describe, expect, test } from "vitest";
import { defineFunction } from "../../src/functions/table.ts";
import type { Node } from "../../src/graph/node.ts";
import { Transformer } from "../../src/trace/transformer.ts";
import { Module } from "../../src/nn/module.ts";
import { symbolicTrace } from "../../src/trace/tracer.ts";
import { proxyableClass, wrap } from "../../src/functions/wrap.ts";
import { thrown } from "../thrown.ts";

const calls: unknown[][] = [];

const aLiftedLeaf = wrap(function aLiftedLeaf(x: string, y: string, options: { upperCase?: boolean } = {}): string {
  calls.push([x, y]);
  if (options.upperCase === true) return `${x}${y}`.toUpperCase();
  return `${x}${y}`;
});

class Pair {
  readonly left: string;
  readonly right: string;
  constructor(left: string, right = "right") {
    this.left = left;
    this.right = right;
  }
  static readonly kind = "pair";
}
const ProxyablePair = proxyableClass(Pair, "test.Pair");

class Triple extends ProxyablePair {
  readonly third = "third";
}

const call = (graph: { readonly nodes: Iterable<Node> }): Node | undefined =>
  [...graph.nodes].find(({ op }) => op === "call_function");

const once = (x: string): string => x;

describe("wrap", () => {
  test("WR-01: is recorded where an argument is traced, with the options as they are written, else runs", () => {
    calls.length = 0;
    const gm = symbolicTrace((x: string) => [
      aLiftedLeaf(x, aLiftedLeaf("a", "b"), { upperCase: true }),
      aLiftedLeaf("c", "d"),
    ]);
    expect(calls).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
    expect(call(gm.graph)?.formatNode()).toBe(
      "%a_lifted_leaf : [num_users=1] = call_function[target=aLiftedLeaf](args = (%x, ab), kwargs = {upperCase: True})",
    );
    expect(gm.forward("x")).toEqual(["XAB", "cd"]);
  });

  test("WR-01: an argument deep inside counts", () => {
    const total = wrap((parts: { all: [string] }[]) => parts.length, "test.total");
    const gm = symbolicTrace((x: string) => total([{ all: [x] }]));
    expect(call(gm.graph)?.args).toHaveLength(1);
    expect(gm.forward("x")).toBe(1);
  });

  test("WR-02: nothing is left of a trace that fails", () => {
    const fails = (x: string): string => {
      aLiftedLeaf(x, "b");
      throw new RangeError("no");
    };
    expect(() => symbolicTrace(fails)).toThrow(RangeError);
    expect(aLiftedLeaf("a", "b")).toBe("ab");
  });

  test("WR-02: wrapping twice is harmless", () => {
    const first = wrap(once);
    expect(wrap(once)).toBe(first);
    expect(wrap(first)).toBe(first);
    expect(wrap(aLiftedLeaf)).toBe(aLiftedLeaf);
    expect(thrown(() => wrap(once, "other")).reason).toBe(
      "the function is wrapped as `once` already, and not as `other`",
    );
  });

  test("WR-02: another function of the same name is refused, with advice", () => {
    const other = { aLiftedLeaf: (x: string): string => x }.aLiftedLeaf;
    const error = thrown(() => wrap(other));
    expect(error.reason).toBe("another function is called `aLiftedLeaf` already");
    expect(error.help).toContain('wrap(fn, "myModule.aLiftedLeaf")');
    expect(wrap(other, "mine.aLiftedLeaf").target).toBe("mine.aLiftedLeaf");
    expect(thrown(() => wrap(() => 1, "")).help).toContain("name");
    expect(thrown(() => wrap(Pair as never)).help).toContain("proxyableClass");
  });

  test("WR-03: what the function table has records itself, however it was imported", () => {
    const sqrt = defineFunction("test.math.sqrt", (x: number) => Math.sqrt(x));
    const { sqrt: renamed } = { sqrt };
    expect(wrap(sqrt)).toBe(sqrt);
    const gm = symbolicTrace((x: number) => [renamed(x), renamed(9)]);
    expect(gm.forward(4)).toEqual([2, 3]);
    expect([...gm.graph.nodes]).toHaveLength(3);
  });

  test("WR-04: nodes say that they are wrapped, through retracing, a transformer and generated code", () => {
    const gm = symbolicTrace((x: string) => aLiftedLeaf(x, "b"));
    expect(call(gm.graph)?.meta.get("is_wrapped")).toBe(true);
    const again = symbolicTrace(gm);
    expect(call(again.graph)?.meta.get("is_wrapped")).toBe(true);
    expect(again.forward("x")).toBe("xb");
    const transformed = new Transformer(gm).transform();
    expect(call(transformed.graph)?.meta.get("is_wrapped")).toBe(true);
    expect(transformed.forward("x")).toBe("xb");
    expect(gm.code).toContain('aLiftedLeaf(x, "b")');
  });

  test("a helper of a module is recorded, methods of the module are looked into", () => {
    class Net extends Module {
      readonly helper = wrap((x: string, y: string): string => (x > y ? x : y), "test.Net.helper");
      #twice(x: string): string {
        return aLiftedLeaf(x, x);
      }
      override forward(x: string): string {
        return this.helper(this.#twice(x), "b");
      }
    }
    const gm = symbolicTrace(new Net());
    expect([...gm.graph.nodes].map(({ name }) => name)).toEqual(["x", "a_lifted_leaf", "helper", "output"]);
    expect(gm.forward("a")).toBe("b");
  });
});

describe("proxyableClass", () => {
  test("TR-17: making an object of traced values is one call, and its fields are read from it", () => {
    const gm = symbolicTrace((x: string) => {
      const pair = new ProxyablePair(x);
      return aLiftedLeaf(pair.left, pair.right);
    });
    expect(call(gm.graph)?.formatNode()).toBe(
      "%pair : [num_users=2] = call_function[target=test.Pair](args = (%x,), kwargs = {})",
    );
    expect(gm.forward("x")).toBe("xright");
    expect(symbolicTrace((x: string) => new ProxyablePair(x)).forward("x")).toEqual(new Pair("x"));
  });

  test("TR-17: without traced values it is the class that it was", () => {
    const pair = new ProxyablePair("a", "b");
    expect(pair).toBeInstanceOf(ProxyablePair);
    expect(pair).toBeInstanceOf(Pair);
    expect(ProxyablePair.kind).toBe("pair");
    expect(new Triple("a")).toBeInstanceOf(ProxyablePair);
    expect(new Triple("a").third).toBe("third");
    expect(proxyableClass(Pair, "test.Pair")).toBe(ProxyablePair);
    expect(thrown(() => proxyableClass(Pair, "Other")).kind).toBe("InvalidOption");
    expect(thrown(() => proxyableClass((() => 1) as never)).help).toContain("wrap");
  });
});
