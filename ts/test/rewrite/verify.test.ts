/** Replacements that are checked on random inputs. */
import { beforeAll, describe, expect, it } from "vitest";
import {
  FakeTensorProp,
  type GraphModule,
  init,
  nn,
  replacePatternWithFilters,
  Rule,
  RuleSet,
  symbolicTrace,
  type Tensor,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

const relu = (x: Tensor) => torch.relu(x);
const abs = (x: Tensor) => torch.abs(x);
const sum = (x: Tensor, y: Tensor) => torch.add(x, y);
const turned = (x: Tensor, y: Tensor) => torch.add(y, x);
const first = (x: Tensor, y: Tensor) => torch.add(x, torch.mul(y, 0));
const clamped = (x: Tensor) => torch.clamp(x, 0);

function known(fn: (x: Tensor) => Tensor): GraphModule {
  const gm = symbolicTrace(fn);
  new FakeTensorProp(gm).propagate(torch.zeros([2, 3]));
  return gm;
}

const failed = expect.objectContaining({
  kind: "VerifyFailed",
  message: expect.stringContaining("the replacement computes something else: output 0[") as unknown,
}) as unknown;

describe("verify", () => {
  it("puts in what computes the same", () => {
    const gm = known(relu);
    expect(replacePatternWithFilters(gm, relu, clamped, { verify: true }).length).toBe(1);
    expect([...gm.graph.nodes].map((node) => node.target)).toContain("torch.clamp");
  });

  it("refuses what does not, and changes nothing", () => {
    const gm = known(relu);
    const before = gm.graph.toString();
    expect(() => replacePatternWithFilters(gm, relu, abs, { verify: { seed: 7 } })).toThrow(failed);
    expect(gm.graph.toString()).toBe(before);
    expect(replacePatternWithFilters(gm, relu, abs, { verify: false }).length).toBe(1);
  });

  it("asks for shapes where none are known", () => {
    const gm = symbolicTrace(relu);
    expect(() => replacePatternWithFilters(gm, relu, abs, { verify: true })).toThrow(
      expect.objectContaining({ help: expect.stringContaining("FakeTensorProp") as unknown }),
    );
  });

  it("makes parameters at random", () => {
    class Net extends nn.Module {
      readonly weight = new nn.Parameter(torch.zeros([3]));
      override forward(x: Tensor): Tensor {
        return torch.add(x, this.weight);
      }
    }
    const gm = symbolicTrace(new Net());
    new FakeTensorProp(gm).propagate(torch.zeros([2, 3]));
    // Right for a weight of zeros alone.
    expect(() => replacePatternWithFilters(gm, sum, first, { verify: true })).toThrow(failed);
    expect(replacePatternWithFilters(gm, sum, turned, { verify: true }).length).toBe(1);
  });

  it("is part of a rule and its file", () => {
    const rule = Rule.load(new Rule("wrong", relu, abs, { verify: { seed: 3 } }).save());
    expect(rule.options.verify).toEqual({ seed: 3 });
    expect(() => new RuleSet([rule]).runToFixpoint(known(relu))).toThrow(failed);
  });
});
