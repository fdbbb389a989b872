/** Replacing where something writes in place: numbers stay what they were, and what stays says why. */
import { beforeAll, describe, expect, test } from "vitest";
import {
  type GraphModule,
  init,
  replacePattern,
  replacePatternWithFilters,
  Rule,
  RuleSet,
  SubgraphMatcher,
  symbolicTrace,
  type Tensor,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

/** The square is of the input before it is written to, and is used afterwards. */
const model = (x: Tensor): Tensor => {
  const square = torch.mul(x, x);
  const written = x.add_(1);
  return torch.add(square, written);
};
const square = (x: Tensor): Tensor => torch.mul(x, x);
const power = (x: Tensor): Tensor => torch.pow(x, 2);
/** The cosine is of the input after it was written to. */
const apart = (x: Tensor): Tensor => {
  const sine = torch.sin(x);
  x.add_(1);
  return torch.mul(sine, torch.cos(x));
};
const product = (x: Tensor): Tensor => torch.mul(torch.sin(x), torch.cos(x));
const half = (x: Tensor): Tensor => torch.div(torch.sin(torch.mul(x, 2)), 2);
const numbers = (gm: GraphModule) => (gm.forward(torch.tensor([1, 2, 3])) as Tensor).tolist();
const targets = (gm: GraphModule) => Array.from(gm.graph.nodes, (it) => it.target);

describe("a write between a match and its users", () => {
  test("stays behind the replacement", () => {
    const before = numbers(symbolicTrace(model));
    const ways: ((gm: GraphModule) => unknown[])[] = [
      (gm) => replacePattern(gm, square, power),
      (gm) => replacePatternWithFilters(gm, square, power, { matchFilters: [() => true] }),
      (gm) => replacePatternWithFilters(gm, square, undefined, { replacementCallback: () => symbolicTrace(power) }),
      (gm) => new RuleSet([new Rule("power", square, power)]).runOnce(gm).fired,
      (gm) => new RuleSet([new Rule("power", square, power)]).runToFixpoint(gm).fired,
    ];
    for (const replace of ways) {
      const gm = symbolicTrace(model);
      expect(replace(gm)).toHaveLength(1);
      expect(targets(gm)).toEqual(["x", "torch.pow", "add_", "torch.add", "output"]);
      expect(numbers(gm)).toEqual(before);
    }
  });
});

describe("a write between the nodes of a match", () => {
  test("keeps it from being replaced, and is named", () => {
    const gm = symbolicTrace(apart);
    const before = targets(gm);
    expect(replacePattern(gm, product, half)).toEqual([]);
    const { fired, isFixpoint } = new RuleSet([new Rule("half", product, half)]).runToFixpoint(gm);
    expect([fired, isFixpoint, targets(gm)]).toEqual([[], true, before]);
    const [miss] = new SubgraphMatcher(product).explain(gm);
    expect(miss?.found).toBe([...gm.graph.nodes].find((it) => it.target === "torch.sin"));
    expect(miss?.expected).toBe("what may pass %add_, though one writes to what the other uses");
  });
});
