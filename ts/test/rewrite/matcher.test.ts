import { beforeAll, describe, expect, test } from "vitest";
import {
  Graph,
  GraphModule,
  type InternalMatch,
  init,
  replacePattern,
  replacePatternWithFilters,
  RewriteError,
  Rule,
  RuleSet,
  SubgraphMatcher,
  SubgraphMatcherWithNameNodeMap,
  symbolicTrace,
  type Tensor,
  tensor,
  torch,
  tuple,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

const targets = (gm: GraphModule) => Array.from(gm.graph.nodes, (it) => it.target);
const chain = (...names: string[]) => {
  const graph = new Graph();
  let value = graph.placeholder("x");
  for (const name of names) value = graph.callFunction(name, [value]);
  graph.output(value);
  return GraphModule.ofGraph(graph);
};

const binary = (name: string) => {
  const graph = new Graph();
  graph.output(graph.callFunction(name, [graph.placeholder("x"), graph.placeholder("by")]));
  return graph;
};
const two = (x: Tensor, y: Tensor) => torch.add(x, y);
const isNotThree = ({ placeholderNodes: [, by] }: InternalMatch) => by !== 3 || "three";

describe("SubgraphMatcher", () => {
  test("finds traced functions and says what their nodes stand for", () => {
    const gm = symbolicTrace((x: Tensor) => torch.neg(torch.relu(torch.exp(x))));
    const matcher = new SubgraphMatcher((x: Tensor) => torch.relu(torch.exp(x)));
    const [found, ...others] = matcher.match(gm.graph);
    expect(others).toEqual([]);
    expect(found?.returningNodes).toEqual([[...gm.graph.nodes][2]]);
    expect(found?.placeholderNodes).toEqual([[...gm.graph.nodes][0]]);
  });

  test("refuses a pattern that can match nothing", () => {
    expect(() => new SubgraphMatcher(new Graph())).toThrow(RewriteError);
  });

  test("names nodes", () => {
    const matcher = new SubgraphMatcherWithNameNodeMap((x: Tensor) => {
      const exp = torch.exp(x);
      const relu = torch.relu(exp);
      return [relu, { exp, relu }];
    });
    const gm = chain("torch.exp", "torch.relu");
    const names = matcher.match(gm)[0]?.nameNodeMap;
    expect(names?.get("exp")).toBe([...gm.graph.nodes][1]);
  });

  test("says why nothing matches", () => {
    const gm = chain("torch.abs", "torch.relu");
    const [miss] = new SubgraphMatcher(chain("torch.exp", "torch.relu")).explain(gm);
    expect(miss?.expected).toBe("call_function torch.exp");
    expect(miss?.found).toBe([...gm.graph.nodes][1]);
  });

  test("goes beyond torch.fx where that is asked for", () => {
    const add = new SubgraphMatcher((x: Tensor) => torch.add(torch.exp(x), torch.neg(x)), { commutative: true });
    expect(add.match(symbolicTrace((x: Tensor) => torch.add(torch.neg(x), torch.exp(x))))).toHaveLength(1);
  });
});

describe("replacePattern", () => {
  test("changes the graph in place and keeps nodes that stay", () => {
    const gm = chain("torch.neg", "torch.exp", "torch.neg");
    const exp = [...gm.graph.nodes][2];
    exp?.meta.set("mine", 1);
    const replaced = replacePattern(gm, chain("torch.neg").graph, chain("torch.relu").graph);
    expect(replaced).toHaveLength(2);
    expect(targets(gm)).toEqual(["x", "torch.relu", "torch.exp", "torch.relu", "output"]);
    expect([...gm.graph.nodes][2]).toBe(exp);
    expect(exp?.meta.get("mine")).toBe(1);
    gm.graph.lint();
  });

  test("asks filters, and makes replacements of matches", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    graph.output(tuple(...[2, 3, 4].map((by) => graph.callFunction("torch.mul", [x, by]))));
    const gm = GraphModule.ofGraph(graph);
    const replaced = replacePatternWithFilters(gm, binary("torch.mul"), undefined, {
      matchFilters: [isNotThree],
      replacementCallback: ({ placeholderNodes: [, by] }) => binary(by === 2 ? "torch.add" : "torch.sub"),
    });
    expect(targets(gm)).toEqual(["x", "torch.mul", "torch.add", "torch.sub", "output"]);
    expect(replaced.map((it) => it.replacements.map(({ target }) => target))).toEqual([["torch.add"], ["torch.sub"]]);
  });

  test("takes functions from a callback, and refuses filters that are no list", () => {
    const gm = chain("torch.neg");
    const pattern = chain("torch.neg");
    const matchFilters = (() => false) as never;
    expect(() => replacePatternWithFilters(gm, pattern, pattern, { matchFilters })).toThrow(
      "matchFilters is a list of functions",
    );
    replacePatternWithFilters(gm, pattern, undefined, { replacementCallback: () => (x: Tensor) => torch.exp(x) });
    expect(targets(gm)).toEqual(["x", "torch.exp", "output"]);
    expect(() => replacePattern(gm.graph as never, pattern, pattern)).toThrow("replacePattern takes a GraphModule");
  });

  test("keeps the constants of functions apart, which all have the same names", () => {
    const [one, five] = [tensor([1, 1]), tensor([5, 5])];
    const pattern = chain("torch.neg");
    const timesFive = (x: Tensor) => torch.mul(x, five);
    const gm = () => symbolicTrace((x: Tensor) => torch.neg(torch.neg(torch.add(x, one))));
    const [once, ruled, called] = [gm(), gm(), gm()];
    replacePattern(once, pattern, timesFive);
    new RuleSet([new Rule("times", pattern, timesFive)]).runToFixpoint(ruled);
    let factor = 5;
    replacePatternWithFilters(called, pattern, undefined, {
      replacementCallback: () => {
        const by = torch.mul(one, factor++);
        return (x: Tensor) => torch.mul(x, by);
      },
    });
    expect([once, ruled, called].map((it) => (it.forward(one) as Tensor).tolist())).toEqual([
      [50, 50],
      [50, 50],
      [60, 60],
    ]);
    expect([once, ruled, called].map((it) => it.attributes.size)).toEqual([2, 2, 3]);
  });

  test("changes nothing where the replacement does not fit", () => {
    const gm = chain("torch.neg");
    expect(() => replacePattern(gm, chain("torch.neg"), two)).toThrow(/Placeholder count mismatch: 1 vs 2/);
    expect(targets(gm)).toEqual(["x", "torch.neg", "output"]);
  });
});
