import { beforeAll, describe, expect, it } from "vitest";
import {
  createOpSupport,
  type GraphModule,
  init,
  NetMinimizer,
  splitByTags,
  Splitter,
  symbolicTrace,
  tensor,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

const x = tensor([0.5, -1.5]);

/** `abs(neg(sin(x)))`. */
const chain = (): GraphModule => symbolicTrace((value: unknown) => torch.abs(torch.neg(torch.sin(value as never))));

describe("splitByTags", () => {
  it("calls the parts in the order of the tags", () => {
    const gm = chain();
    const split = splitByTags(gm, ["first", "second"], (node) => (node.target === "torch.sin" ? "first" : "second"));
    const calls = [...split.graph.nodes].filter((node) => node.op === "call_module");
    expect(calls.map((node) => node.target)).toEqual(["first", "second"]);
    expect(String(split.forward(x))).toBe(String(gm.forward(x)));
    expect(() => splitByTags(gm, ["first"], () => undefined)).toThrow("Node does not have tag: sin");
  });
});

describe("Splitter", () => {
  const support = createOpSupport((_, node) => node.target !== "torch.neg");

  it("gives the accelerator what it supports", () => {
    const gm = chain();
    const splitter = new Splitter(gm, [x], support);
    expect([...splitter.getNodeSubmoduleMap()]).toEqual([
      ["sin", "_run_on_acc_0"],
      ["neg", "_run_on_cpu_1"],
      ["abs_1", "_run_on_acc_2"],
    ]);
    expect(splitter.events.find(({ node }) => node.name === "neg")?.desc).toBe("init_cpu|operator_support");
    expect(String(splitter.split().forward(x))).toBe(String(gm.forward(x)));
  });

  it("holds to the least size and the largest number of parts", () => {
    const gm = chain();
    expect(new Splitter(gm, [x], support, { minAccModuleSize: 2 }).subgraphs).toHaveLength(1);
    expect(() => new Splitter(gm, [x], support, { maxAccSplits: 2 }).split()).toThrow("there are 3");
  });
});

describe("NetMinimizer", () => {
  it("finds the node for which two backends differ", () => {
    const gm = chain();
    const minimizer = new NetMinimizer(gm, [x], {
      runA: (module, inputs) => module.forward(...inputs),
      runB: (module, inputs) => {
        if (module.graph.findNodes({ op: "call_function", target: "torch.neg" }).length > 0) return "wrong";
        return module.forward(...inputs);
      },
      compareFn: (a, b) => String(a) === String(b),
    });
    for (const traverseMethod of ["sequential", "binary", "accumulate", "block"] as const) {
      const culprits = minimizer.minimize({ traverseMethod });
      expect(Array.from(culprits, (node) => node.name)).toEqual(["neg"]);
    }
    expect(minimizer.reports[0]).toMatchObject({ differs: false });
  });
});
