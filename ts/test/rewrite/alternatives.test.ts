/** Patterns that say more than one graph. */
import { beforeAll, describe, expect, expectTypeOf, it } from "vitest";
import {
  anyOf,
  Graph,
  GraphModule,
  init,
  optional,
  replacePattern,
  RewriteError,
  SubgraphMatcher,
  type Tensor,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

function calls(...targets: readonly string[]): GraphModule {
  const graph = new Graph();
  let value = graph.placeholder("x");
  for (const target of targets) value = graph.callFunction(target, [value]);
  graph.output(value);
  return GraphModule.ofGraph(graph);
}

const either = (x: Tensor) => torch.exp(anyOf(torch.relu(x), torch.abs(x)));
const maybe = (x: Tensor) => torch.exp(optional(torch.neg(x)));
const sin = (x: Tensor) => torch.sin(x);
const cos = (x: Tensor) => torch.cos(x);
const targetsOf = (gm: GraphModule) => [...gm.graph.nodes].map((node) => node.target).slice(1, -1);

describe("anyOf", () => {
  it("stands for each of its alternatives", () => {
    const matcher = new SubgraphMatcher(either);
    const found = (...targets: readonly string[]) => matcher.match(calls(...targets)).length;
    expect([
      found("torch.relu", "torch.exp"),
      found("torch.abs", "torch.exp"),
      found("torch.neg", "torch.exp"),
    ]).toEqual([1, 1, 0]);
    const gm = calls("torch.abs", "torch.exp", "torch.relu", "torch.exp");
    replacePattern(gm, either, sin);
    expect(targetsOf(gm)).toEqual(["torch.sin", "torch.sin"]);
    gm.graph.lint();
  });

  it("is of the type of its alternatives", () => {
    expectTypeOf(anyOf<Tensor>).returns.toEqualTypeOf<Tensor>();
    // @ts-expect-error There must be something that it stands for.
    expect(() => anyOf()).toThrow(RewriteError);
  });

  it("is refused outside of a pattern", () => {
    expect(() => anyOf(torch.ones([1]), torch.zeros([1]))).toThrow(expect.objectContaining({ kind: "PatternInvalid" }));
  });
});

describe("optional", () => {
  it("stands for the call and for what that takes", () => {
    for (const targets of [["torch.neg", "torch.exp"], ["torch.exp"]]) {
      const gm = calls("torch.sin", ...targets);
      expect(replacePattern(gm, maybe, cos).length).toBe(1);
      expect(targetsOf(gm)).toEqual(["torch.sin", "torch.cos"]);
      gm.graph.lint();
    }
  });

  it("is refused outside of a pattern", () => {
    expect(() => optional(torch.ones([1]))).toThrow(RewriteError);
  });
});
