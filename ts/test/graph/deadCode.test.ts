import { describe, expect, test } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { hasSideEffect } from "../../src/graph/impure.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { Module } from "../../src/nn/module.ts";

function names(graph: Graph): string[] {
  return Array.from(graph.nodes, (it) => it.name);
}

/** A module with dead code. */
function inner(): GraphModule {
  const graph = new Graph();
  graph.callFunction("torch.neg", [graph.placeholder("x")]);
  return GraphModule.ofGraph(graph);
}

describe("dead code", () => {
  test("is what nothing uses and what does nothing else", () => {
    const graph = new Graph();
    graph.placeholder("x");
    graph.callFunction("torch.ops.aten.rand.default", [[2]]);
    graph.callFunction("torch.neg", [graph.callFunction("torch.abs", [graph.first ?? null])]);
    expect(graph.eliminateDeadCode()).toBe(true);
    expect(names(graph)).toEqual(["x", "rand_default"]);
    expect(graph.eliminateDeadCode()).toBe(false);
    expect(graph.eliminateDeadCode((node) => node.isImpure({ impureRandom: false }))).toBe(true);
    expect(names(graph)).toEqual(["x"]);
  });

  test("is not a call of a module that the owner has for impure", () => {
    class Printer extends Module {
      override get isImpure(): boolean {
        return true;
      }
    }
    const graph = new Graph();
    graph.callModule("printer");
    graph.callModule("plain");
    expect(graph.first?.isImpure()).toBe(false);
    const owner = new GraphModule({ printer: new Printer(), plain: new Module() }, graph);
    expect(graph.first?.isImpure()).toBe(true);
    expect(graph.first?.isImpure({ owner: new Module() })).toBe(false);
    expect(owner.graph.eliminateDeadCode()).toBe(true);
    expect(names(graph)).toEqual(["printer"]);
  });

  test("is not a call of a function that is said to do something", () => {
    const print = { target: "my.print" };
    expect(hasSideEffect(print)).toBe(print);
    const graph = new Graph();
    graph.callFunction(print);
    expect(graph.eliminateDeadCode()).toBe(false);
  });

  test("goes from the graphs that get_attr names, whatever the predicate, and from no others", () => {
    const [body, other] = [inner(), inner()];
    const graph = new Graph();
    graph.getAttr("body");
    const gm = new GraphModule({ body, other }, graph);
    gm.addSubmodule("other", other);
    expect(graph.eliminateDeadCode(() => true)).toBe(true);
    expect([names(graph), names(body.graph), names(other.graph)]).toEqual([["body"], ["x"], ["x", "neg"]]);
  });
});
