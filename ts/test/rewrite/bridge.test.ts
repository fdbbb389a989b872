import { beforeAll, describe, expect, it } from "vitest";
import { Graph, GraphModule, init, Module, nn, Parameter, symbolicTrace, tensor, torch } from "../../src/index.ts";
import { runPass } from "../../src/rewrite/bridge.ts";

beforeAll(async () => {
  await init();
});

const dce = (gm: GraphModule) => runPass<{ modified: boolean }, GraphModule>(gm, "eliminate_dead_code");

describe("a pass of the engine", () => {
  it("changes the graph in place: nodes that stay are the same objects, with their notes", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const dead = graph.callFunction("torch.neg", [x]);
    graph.callFunction("torch.exp", [dead]);
    const relu = graph.callFunction("torch.relu", [x]);
    relu.meta.set("mine", { kept: true });
    graph.output(relu);
    const gm = GraphModule.ofGraph(graph);
    const { answer, module } = dce(gm);
    expect(answer).toEqual({ modified: true, leftOut: [] });
    expect(module).toBe(gm);
    expect([...gm.graph.nodes]).toEqual([x, relu, graph.outputNode()]);
    expect(relu.meta.get("mine")).toEqual({ kept: true });
    expect([...x.users]).toEqual([relu]);
    expect(dead.isErased).toBe(true);
    expect(graph.callFunction("torch.neg", [x]).name).toBe("neg_1");
    gm.graph.lint();
  });

  it("leaves modules and tensors as they are", () => {
    class Model extends Module {
      readonly linear = new nn.Linear(2, 3);
      readonly scale = new Parameter(tensor([1.5, 2, 3]));
      override forward(x: unknown) {
        return torch.mul(this.linear.call(x) as never, this.scale);
      }
    }
    const gm = symbolicTrace(new Model());
    const before = new Map(gm.attributes);
    dce(gm);
    expect(new Map(gm.attributes)).toEqual(before);
    for (const [name, attribute] of before) expect(gm.attributes.get(name)).toBe(attribute);
  });

  it("goes into the graphs that the module holds", () => {
    const inner = new Graph();
    const a = inner.placeholder("a");
    inner.callFunction("torch.neg", [a]);
    inner.output(a);
    const graph = new Graph();
    const x = graph.placeholder("x");
    const branch = graph.getAttr("branch");
    graph.output(graph.callFunction("torch.ops.higher_order.wrap", [branch, x]));
    const gm = GraphModule.ofGraph(graph);
    const child = GraphModule.ofGraph(inner);
    gm.addSubmodule("branch", child);
    dce(gm);
    expect(gm.getSubmodule("branch")).toBe(child);
    expect(child.graph.nodes.length).toBe(2);
  });

  it("refuses an unknown pass and changes nothing", () => {
    const gm = GraphModule.ofGraph(new Graph());
    expect(() => runPass(gm, "no_such_pass")).toThrow(/there is no pass `no_such_pass`/);
  });
});
