import { beforeAll, describe, expect, it } from "vitest";
import {
  anyChain,
  CapabilityBasedPartitioner,
  chain,
  constantFold,
  createOpSupport,
  CSEPass,
  fuse,
  fuseByPartitions,
  Graph,
  GraphModule,
  init,
  Module,
  nn,
  OperatorSupport,
  OpSupports,
  Parameter,
  RuleSet,
  ShapeProp,
  splitByTags,
  splitConstSubgraphs,
  splitModule,
  symbolicTrace,
  tensor,
  torch,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

/** `relu(linear(x)) + scale`. */
class Model extends Module {
  readonly linear = new nn.Linear(3, 3);
  readonly scale = new Parameter(tensor([1.5, 2, 3]));
  override forward(x: unknown) {
    return torch.add(torch.relu(this.linear.call(x) as never), this.scale);
  }
}

const x = tensor([[1, 2, -2.5]]);

describe("splitModule", () => {
  it("makes parts that together give the same, and leaves the module as it is", () => {
    const gm = symbolicTrace(new Model());
    const before = String(gm.graph);
    for (const node of gm.graph.nodes) node.meta.set("mine", node.name);
    const qualnameMap = new Map<string, string>();
    const split = splitModule(gm, (node) => (node.op === "call_module" ? 0 : 1), { qualnameMap, partitionAffix: "p" });
    expect(String(gm.graph)).toBe(before);
    expect([...qualnameMap]).toEqual([["submod_p_0.linear", "linear"]]);
    expect(split.meta.get("partition_names")).toEqual(new Set(["submod_p_0", "submod_p_1"]));
    expect(String(split.forward(x))).toBe(String(gm.forward(x)));
    expect(split.getSubmodule("submod_p_0.linear")).toBe(gm.getSubmodule("linear"));
    const part = split.getSubmodule("submod_p_1") as GraphModule;
    expect(part.graph.findNodes({ op: "call_function", target: "torch.relu" })[0]?.meta.get("mine")).toBe("relu");
    split.graph.lint();
  });

  it("refuses parts in a circle, and numbers that are none", () => {
    const graph = new Graph();
    const input = graph.placeholder("x");
    const [a, b, c] = ["torch.relu", "torch.neg", "torch.abs"].reduce(
      (done, target) => [...done, graph.callFunction(target, [done.at(-1) ?? input])],
      [] as ReturnType<Graph["placeholder"]>[],
    );
    graph.output(c ?? null);
    const gm = GraphModule.ofGraph(graph);
    expect(a).toBeDefined();
    expect(() => splitModule(gm, (node) => (node === b ? 1 : 0))).toThrow("cycle exists between partitions!");
    expect(() => splitModule(gm, () => 0.5)).toThrow("an integer, not 0.5");
    expect(() => splitModule(gm, (() => {}) as never)).toThrow("an integer, not undefined");
    expect(() => splitModule(new Model() as never, () => 0)).toThrow("splitModule takes a GraphModule");
  });
});

describe("CapabilityBasedPartitioner", () => {
  const functions = createOpSupport((_, node) => node.op === "call_function");

  it("makes one call of what is supported, in place", () => {
    const gm = symbolicTrace(new Model());
    const expected = String(gm.forward(x));
    const [linear] = gm.graph.findNodes({ op: "call_module", target: "linear" });
    const fused = new CapabilityBasedPartitioner(gm, functions).partitionAndFuse();
    expect(fused).toBe(gm);
    expect(gm.graph.findNodes({ op: "call_module", target: "linear" })[0]).toBe(linear);
    expect(gm.graph.findNodes({ op: "call_module", target: "fused_0" })).toHaveLength(1);
    expect(String(gm.forward(x))).toBe(expected);
  });

  it("leaves out what computes nothing at the ends", () => {
    const gm = symbolicTrace((value: unknown) => torch.relu(torch.neg(torch.relu(value as never))));
    const partitioner = new CapabilityBasedPartitioner(gm, functions, { nonComputeOps: ["torch.relu"] });
    const everything = { id: 0, nodes: new Set([...gm.graph.nodes].filter((node) => node.op === "call_function")) };
    const [kept] = partitioner.removeBookendNonComputeOps([everything]);
    expect(Array.from(kept?.nodes ?? [], (node) => node.name)).toEqual(["neg"]);
  });

  it("refuses groups that would need their own results", () => {
    const gm = symbolicTrace((value: unknown) => torch.relu(torch.neg(torch.abs(value as never))));
    const [abs, , relu] = [...gm.graph.nodes].filter((node) => node.op === "call_function");
    const before = String(gm.graph);
    const groups = [{ nodes: new Set([abs, relu].flatMap((node) => (node === undefined ? [] : [node]))) }];
    expect(() => fuseByPartitions(gm, groups)).toThrow("found dependency cycles");
    expect(String(gm.graph)).toBe(before);
  });
});

describe("operator support", () => {
  it("knows functions, classes of modules, and the dtypes that they take", () => {
    const gm = symbolicTrace(new Model());
    new ShapeProp(gm).propagate(x);
    const names = (support: ReturnType<typeof chain>): string[] =>
      Array.from(gm.graph.nodes)
        .filter((node) => node.op.startsWith("call") && support.isNodeSupported(gm.namedModules(), node))
        .map((node) => node.name);
    const table = new OperatorSupport({ "torch.add": [[["float32"], undefined], {}], Linear: undefined });
    expect(names(table)).toEqual(["linear", "add"]);
    expect(names(new OperatorSupport({ "torch.add": [[["int64"]], {}] }))).toEqual([]);
    expect(names(chain(table, OpSupports.declineIfNodeInNames(new Set(["add"]))))).toEqual(["linear"]);
    expect(names(chain(table, OpSupports.declineIfInputDtype("float32")))).toEqual([]);
    expect(
      names(
        anyChain(
          table,
          createOpSupport((_, node) => node.name === "relu"),
        ),
      ),
    ).toEqual(["linear", "relu", "add"]);
  });
});

describe("splitConstSubgraphs", () => {
  /** `x * abs(w) + neg(w)`. */
  class Constant extends Module {
    readonly w = new Parameter(tensor([1.5, -2, 3]));
    override forward(value: unknown) {
      return torch.add(torch.mul(value as never, torch.abs(this.w)), torch.neg(this.w));
    }
  }

  it("computes what depends on constants alone once", () => {
    const gm = symbolicTrace(new Constant());
    const folded = splitConstSubgraphs(gm);
    expect(folded.hasFoldingBeenRun).toBe(false);
    expect(folded.constSubgraphModule?.graph.findNodes({ op: "call_function", target: "torch.abs" })).toHaveLength(1);
    expect(String(folded.forward(x))).toBe(String(gm.forward(x)));
    expect(folded.hasFoldingBeenRun).toBe(true);
    expect(folded.graph.findNodes({ op: "call_function", target: "torch.abs" })).toEqual([]);
  });

  it("leaves what is skipped", () => {
    const gm = symbolicTrace(new Constant());
    const folded = splitConstSubgraphs(gm, { skipFoldingNodeFn: (node) => node.op === "call_function" });
    expect(folded.constSubgraphModule).toBeUndefined();
    expect(String(folded.forward(x))).toBe(String(gm.forward(x)));
  });

  it("traces what has no graph", () => {
    expect(String(splitConstSubgraphs(new Constant()).forward(x))).toBe(String(new Constant().forward(x)));
  });

  it("keeps what was computed where a parameter changes later, even of a view", () => {
    const module = new (class extends Module {
      readonly w = new Parameter(tensor([[1.5, 2, 3]]));
      override forward(value: unknown) {
        return torch.add(value as never, torch.transpose(this.w, 0, 1));
      }
    })();
    const folded = splitConstSubgraphs(module);
    const before = String(folded.forward(x));
    torch.noGrad(() => module.w.mul_(5));
    expect(String(folded.forward(x))).toBe(before);
  });

  it("is run again where it failed", () => {
    const folded = splitConstSubgraphs(new Constant());
    const attributes = folded.constSubgraphModule?.attributes ?? new Map();
    const w = attributes.get("w");
    attributes.delete("w");
    expect(() => folded.runFolding()).toThrow();
    attributes.set("w", w);
    expect(String(folded.forward(x))).toBe(String(new Constant().forward(x)));
  });
});

describe("options of passes", () => {
  it("are refused where a pass has none of that name", () => {
    const gm = symbolicTrace(new Model());
    expect(() => splitConstSubgraphs(gm, { skipFn: () => true } as never)).toThrow(
      "splitConstSubgraphs has no option `skipFn`",
    );
    expect(() => constantFold(gm, { maxByte: 1 } as never)).toThrow("constantFold has no option `maxByte`");
    expect(() => fuseByPartitions(gm, [], { name: "a" } as never)).toThrow("fuseByPartitions has no option `name`");
    expect(() => splitByTags(gm, ["a"], () => "a", { tuple: true } as never)).toThrow(
      "splitByTags has no option `tuple`",
    );
    expect(() => new CSEPass(["torch.add"] as never)).toThrow("CSEPass takes its options as an object");
    expect(() => new CSEPass({ bannedOps: "torch.add" })).toThrow("bannedOps is a list of functions");
    expect(() => fuse(gm, { inPlace: true } as never)).toThrow("fuse has no option `inPlace`");
    expect(() => new RuleSet([]).runToFixpoint(gm, 10 as never)).toThrow("takes its options as an object");
  });
});
