/** Rules: what fires, and files that Rust and TypeScript share (`crates/engine/tests/it/rules.rs` has the other half). */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { GraphError, Graph, GraphModule, init, Rule, RuleSet, type Tensor, torch } from "../../src/index.ts";
import { saveGraphModule } from "../../src/save/graphModule.ts";

beforeAll(async () => {
  await init();
});

const golden = (name: string) => new URL(`../../../tests/golden/rules/${name}.fxg`, import.meta.url);
const negOfNeg = () =>
  new Rule(
    "neg_of_neg",
    (x: Tensor) => torch.neg(torch.neg(x)),
    (x: Tensor) => x,
  );

function negations(count: number): GraphModule {
  const graph = new Graph();
  let value = graph.placeholder("x");
  for (let at = 0; at < count; at++) value = graph.callFunction("torch.neg", [value]);
  graph.output(value);
  return GraphModule.ofGraph(graph);
}

describe("rules", () => {
  it("run to a fixpoint and tell what fired where", () => {
    const gm = negations(7);
    const { fired, isFixpoint } = new RuleSet([negOfNeg()]).runToFixpoint(gm);
    expect([fired.length, isFixpoint, gm.graph.nodes.length]).toEqual([3, true, 3]);
    expect(fired[0]?.rule).toBe("neg_of_neg");
    gm.graph.lint();
  });

  it("run once", () => {
    const gm = negations(3);
    expect(new RuleSet([negOfNeg()]).runOnce(gm).fired.length).toBe(1);
  });

  it("are stopped where they go on for ever", () => {
    const forEver = new Rule(
      "for_ever",
      (x: Tensor) => torch.neg(x),
      (x: Tensor) => torch.neg(x),
    );
    const gm = negations(1);
    const { fired, isFixpoint } = new RuleSet([forEver]).runToFixpoint(gm, { maxFired: 5 });
    expect([fired.length, isFixpoint]).toEqual([5, false]);
    gm.graph.lint();
  });

  it("are files that Rust reads, and reads those of Rust", () => {
    expect(Buffer.from(negOfNeg().save()).equals(readFileSync(golden("typescript")))).toBe(true);
    for (const name of ["typescript", "rust"]) {
      const rule = Rule.load(readFileSync(golden(name)));
      expect(rule.name).toBe("neg_of_neg");
      const gm = negations(4);
      expect(new RuleSet([rule]).runToFixpoint(gm).fired.length).toBe(2);
    }
  });

  it("are told from other modules", () => {
    expect(() => Rule.load(saveGraphModule(negations(1)))).toThrow(GraphError);
  });
});
