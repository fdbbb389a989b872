import { beforeAll, describe, expect, it } from "vitest";
import {
  createOpSupport,
  Graph,
  GraphModule,
  init,
  type MinimizerSettings,
  NetMinimizer,
  splitByTags,
  Splitter,
  symbolicTrace,
  type Tensor,
  tensor,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

const x = tensor([0.5, -1.5]);

const run = (module: GraphModule, inputs: readonly unknown[]) => module.forward(...inputs);

const looksAlike = (a: unknown, b: unknown) => String(a) === String(b);

/** Runs a module, where `add_` gives something else. */
const addsWrongly = (module: GraphModule, inputs: readonly unknown[]) => {
  const result = run(module, inputs) as Tensor;
  return module.graph.findNodes({ op: "call_method", target: "add_" }).length > 0 ? result.mul_(-3) : result;
};

const largest = (of: Tensor): number => Number(of.abs().max().item());

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
    expect(() => splitByTags(gm, ["a", "a"], () => "a")).toThrow("the tag a is given twice");
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

  it("makes values that are no tensors where they are used", () => {
    const graph = new Graph();
    const input = graph.placeholder("x");
    const size = graph.callMethod("size", [graph.callFunction("torch.sin", [input]), 0]);
    graph.output(graph.callFunction("torch.neg", [graph.callFunction("torch.mul", [input, size])]));
    const gm = new GraphModule({}, graph);
    const some = createOpSupport((_, node) => node.target !== "torch.mul");
    const settings = { allowNonTensor: true, skipFusion: true };
    const part = (more: object) => new Splitter(gm, [tensor([1, 2])], some, { ...settings, ...more });
    expect(part({}).getNodeSubmoduleMap().get("size")).toBe("_run_on_acc_0");
    const moved = part({ moveNonTensorNodesOnBoundary: true });
    expect(moved.getNodeSubmoduleMap().get("size")).toBe("_run_on_cpu_1");
    expect(String(moved.split().forward(tensor([1, 2])))).toBe(String(gm.forward(tensor([1, 2]))));
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

  it("adds errors up where it is told", () => {
    const gm = chain();
    const seen: string[][] = [];
    const found = (accumulateError: boolean) => {
      // The second backend is a quarter too large in each node; more than half is too much.
      const minimizer = new NetMinimizer(gm, [x], {
        runA: (module, inputs) => module.forward(...inputs),
        runB: (module, inputs) => torch.mul(module.forward(...inputs) as never, 1.25 as never),
        compareFn: (a, b) => largest(torch.sub(a as never, b as never)) < 0.5 * largest(a as never),
      });
      const culprits = minimizer.minimize({ accumulateError, findAll: true });
      seen.push(Array.from(culprits, (node) => node.name));
    };
    found(false);
    found(true);
    expect(seen).toEqual([[], ["neg", "abs_1"]]);
  });

  it("shows no backend what the other wrote, and leaves the inputs as they are", () => {
    const gm = symbolicTrace((value: unknown) => torch.relu((value as Tensor).add_(1)));
    for (const accumulateError of [false, true]) {
      for (const traverseMethod of ["sequential", "binary", "accumulate", "block", "defined"] as const) {
        const input = tensor([0.5, -1.5]);
        const backends = { runA: run, runB: run, compareFn: looksAlike };
        const same = new NetMinimizer(gm, [input], backends).minimize({ traverseMethod, accumulateError });
        expect([traverseMethod, ...Array.from(same, String)]).toEqual([traverseMethod]);
        expect(String(input)).toBe(String(tensor([0.5, -1.5])));
        // What one writes is not the result of the other.
        const found = new NetMinimizer(gm, [input], { ...backends, runB: addsWrongly }).minimize({ accumulateError });
        expect(Array.from(found, String)).toEqual(["add_"]);
      }
    }
  });

  it("refuses inputs and names that the graph does not have, and skips nothing without names", () => {
    const backends = { runA: run, runB: run, compareFn: () => true };
    expect(() => new NetMinimizer(chain(), [x, x], backends)).toThrow(
      "Placeholder count (1) does not match sample_input count (2)",
    );
    const minimizer = new NetMinimizer(chain(), [x], backends);
    const wrong: MinimizerSettings[] = [{ start: "cos" }, { end: "cos" }, { skipNodes: ["cos"] }];
    for (const settings of wrong) {
      expect(() => minimizer.minimize(settings)).toThrow("the graph has no call named `cos`");
    }
    expect(() => minimizer.minimize({ traverseMethod: "skip" })).toThrow("'skipNodes' can't be empty");
  });
});
