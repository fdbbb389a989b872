import { describe, expect, test } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";

const graph = new Graph();
const inputs = ["x", "keep_dim", "scale"].map((it, at) => graph.placeholder(it, undefined, at === 0 ? undefined : at));
graph.output(inputs);
const gm = new GraphModule({}, graph);

describe("inputs by name", () => {
  test.each([
    [["x"], ["x", 1, 2]],
    [
      ["x", { scale: 5 }],
      ["x", 1, 5],
    ],
    [
      ["x", { keepDim: 5 }],
      ["x", 5, 2],
    ],
    [
      ["x", { keep_dim: 5, scale: 6 }],
      ["x", 5, 6],
    ],
    [[{ scale: 5, x: "named" }], ["named", 1, 5]],
  ])("%j are put into their places", (given, expected) => {
    expect(gm.forward(...given)).toEqual(expected);
  });

  test.each([
    [
      ["x", { other: 5 }],
      ["x", { other: 5 }, 2],
    ],
    [
      ["x", { x: 5 }],
      ["x", { x: 5 }, 2],
    ],
    [
      ["x", { scale: 5, other: 6 }],
      ["x", { scale: 5, other: 6 }, 2],
    ],
    [
      ["x", {}],
      ["x", {}, 2],
    ],
    [
      ["x", 1, 2, {}],
      ["x", 1, 2],
    ],
    [
      [["x"], new Map([["scale", 5]])],
      [["x"], new Map([["scale", 5]]), 2],
    ],
  ])("%j are none: the object is an input itself", (given, expected) => {
    expect(gm.forward(...given)).toEqual(expected);
  });

  test("reach a graph module that another one calls", () => {
    const outer = new Graph();
    outer.output(outer.callModule("sub", [1], { scale: 7 }));
    expect(new GraphModule({ sub: gm }, outer).forward()).toEqual([1, 1, 7]);
  });
});
