import { expect, test } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { markBuiltin } from "../../src/nn/builtin.ts";
import { Module } from "../../src/nn/module.ts";

/** Gives back what it is called with. */
class Told extends Module {
  override forward(...given: unknown[]): unknown {
    return given;
  }
}
class Layer extends Told {}
markBuiltin({ Layer });

test("a module of the user's gets its options as they were traced, and one of torch.nn's as JavaScript spells them", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  const calls = ["own", "layer"].map((path) => graph.callModule(path, [x], { attn_mask: 1 }));
  graph.output(calls);
  const gm = new GraphModule({ own: new Told(), layer: new Layer() }, graph);
  expect(gm.forward(0)).toEqual([
    [0, { attn_mask: 1 }],
    [0, { attnMask: 1 }],
  ]);
  expect(gm.code).toContain("this.own.forward(x, { attn_mask: 1 });");
  expect(gm.code).toContain("this.layer.forward(x, { attnMask: 1 });");
});
