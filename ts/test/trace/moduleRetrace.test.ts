/** Graph modules in traces: TR-23. */
import { beforeAll, describe, expect, test } from "vitest";
import { init, nn, type Tensor, tensor, torch, Tracer, symbolicTrace } from "../../src/index.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";

beforeAll(() => init());

class Net extends Module {
  weight = new Parameter(tensor([2, 3], { dtype: "float32" }));
  linear = new nn.Linear(2, 2);
  override forward(x: Tensor, scale = 2): Tensor {
    return torch.mul(this.linear.forward(x), this.weight).add(scale).relu();
  }
}

class Outer extends Module {
  inner: Module = symbolicTrace(new Net());
  override forward(x: Tensor): Tensor {
    return torch.neg(this.inner.call(torch.abs(x)) as Tensor);
  }
}

const x = tensor([[1, -2]], { dtype: "float32" });

function same(a: unknown, b: unknown): void {
  expect((a as Tensor).toArray()).toEqual((b as Tensor).toArray());
}

function targets(graph: Graph): string[] {
  return Array.from(graph.nodes, ({ op, target }) => `${op} ${target}`);
}

describe("TR-23: a graph module that is traced", () => {
  test("gives its own graph again", () => {
    const gm = symbolicTrace(new Net());
    const again = symbolicTrace(gm);
    expect(`${again.graph}`).toBe(`${gm.graph}`);
    same(again.forward(x), gm.forward(x));
    expect(again.getParameter("weight") === gm.getParameter("weight")).toBe(true);
  });

  test("in another module is looked into", () => {
    const outer = new Outer();
    const gm = symbolicTrace(outer);
    expect(targets(gm.graph)).toEqual([
      "placeholder x",
      "call_function torch.abs",
      "call_module inner.linear",
      "get_attr inner.weight",
      "call_function torch.mul",
      "call_method add",
      "call_method relu",
      "call_function torch.neg",
      "output output",
    ]);
    same(gm.forward(x), outer.forward(x));
  });

  test("is a leaf where the tracer says so", () => {
    class Coarse extends Tracer {
      override isLeafModule(module: Module, path: string): boolean {
        return module instanceof GraphModule || super.isLeafModule(module, path);
      }
    }
    const outer = new Outer();
    const gm = symbolicTrace(outer, { tracer: new Coarse() });
    expect(targets(gm.graph)).toEqual([
      "placeholder x",
      "call_function torch.abs",
      "call_module inner",
      "call_function torch.neg",
      "output output",
    ]);
    expect(gm.getSubmodule("inner")).toBe(outer.inner);
    same(gm.forward(x), outer.forward(x));
  });

  test("keeps the tensors that it makes while it is traced", () => {
    const graph = new Graph();
    const ones = graph.callFunction("torch.ones", [2]);
    const twos = graph.callFunction("torch.add", [ones, 1]);
    graph.output(graph.callFunction("torch.add", [graph.placeholder("x"), twos]));
    const again = symbolicTrace(new GraphModule({}, graph));
    expect(targets(again.graph)).toEqual([
      "placeholder x",
      "get_attr _tensor_constant0",
      "call_function torch.add",
      "output output",
    ]);
    same(again.forward(x), tensor([[3, 0]], { dtype: "float32" }));
  });

  test("runs hooks of the modules in it", () => {
    const gm = symbolicTrace(new Outer());
    const seen: Module[] = [];
    gm.getSubmodule("inner.linear").registerForwardHook((module) => void seen.push(module));
    gm.forward(x);
    expect(seen.map((it) => it.className)).toEqual(["Linear"]);
  });
});
