import { describe, expect, test } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { init, symbolicTrace, torch } from "../../src/index.ts";
import { Interpreter } from "../../src/fx/interpreter.ts";
import { Transformer } from "../../src/trace/transformer.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import { Proxy } from "../../src/trace/tracerBase.ts";
import { plusOne, sum } from "../fx/functions.ts";

class Scale extends Module {
  weight = new Parameter(tensor([2, 3], { dtype: "float32" }));
  override forward(x: Tensor): Tensor {
    return sum(x, this.weight);
  }
}

class Root extends Module {
  scale = new Scale();
}

function notesOf(name: string): object {
  return { stack_trace: `at ${name}`, nn_module_stack: name, custom: { by: name } };
}

/** The notes of what a transformer makes of a node. */
function sourced(name: string): object {
  return { ...notesOf(name), from_node: [`(name=${name}, pass_name=Interpreter_Transformer, action=create)\n`] };
}

/** A graph with a node of every kind. */
function everything(): GraphModule {
  const graph = new Graph();
  const x = graph.placeholder("x", "torch.Tensor");
  graph.placeholder("unused");
  const k = graph.placeholder("k", "int", 2);
  const weight = graph.getAttr("scale.weight");
  const scaled = graph.callModule("scale", [x]);
  const both = graph.callFunction(sum, [scaled, weight]);
  const method = graph.callMethod("clamp", [both], { min: k });
  both.name = "renamed";
  for (const node of graph.nodes) {
    node.meta.set("stack_trace", `at ${node.name}`);
    node.meta.set("nn_module_stack", node.name);
    node.meta.set("custom", { by: node.name });
    node.meta.set("mine", 1);
  }
  const output = graph.output({ out: [method], k }, "dict");
  output.meta.set("mine", 2);
  return new GraphModule(new Root(), graph, "Whole");
}

describe("IN-08: a transformer that overrides nothing", () => {
  test("records the graph as it was, but for names and types", () => {
    const gm = everything();
    const res = new Transformer(gm).transform();
    expect(`${res.graph}`).toBe(
      `${gm.graph}`
        .replaceAll("renamed", "sum_1")
        .replace("%x : torch.Tensor [", "%x : [")
        .replace("%k : int [", "%k : ["),
    );
    expect(res.className).toBe("GraphModule");
    res.graph.lint(res);
  });

  test("shares the attributes that the graph refers to", () => {
    const gm = everything();
    gm.addSubmodule("other", new Module());
    const res = new Transformer(gm).transform();
    expect([...res.attributes.keys()]).toEqual(["scale"]);
    expect(res.getParameter("scale.weight")).toBe(gm.getParameter("scale.weight"));
  });

  test("keeps the notes about where a node comes from, and all of the output's", () => {
    const res = new Transformer(everything()).transform();
    const meta = Object.fromEntries(
      Array.from(res.graph.nodes, (it) => {
        const { from_node: from, ...notes } = Object.fromEntries(it.meta) as {
          readonly from_node?: readonly unknown[];
        };
        const source = from?.map((node) => String(node).replace(/, graph_id=\d+/, ""));
        return [it.name, source === undefined ? notes : { ...notes, from_node: source }];
      }),
    );
    expect(meta).toEqual({
      x: {},
      unused: {},
      k: {},
      scale_weight: sourced("scale_weight"),
      scale: sourced("scale"),
      sum_1: sourced("renamed"),
      clamp: sourced("clamp"),
      output: { mine: 2 },
    });
  });

  test("leaves the module that it reads as it was", () => {
    const gm = everything();
    const before = `${gm.graph}`;
    new Transformer(gm).transform();
    expect([`${gm.graph}`, [...gm.attributes.keys()]]).toEqual([before, ["scale"]]);
  });

  test("gives a graph without an output, where there was none", () => {
    const graph = new Graph();
    graph.placeholder("x");
    expect(`${new Transformer(new GraphModule({}, graph)).transform().graph}`).toBe(
      "graph():\n    %x : [num_users=0] = placeholder[target=x]",
    );
  });

  test("works once", () => {
    const transformer = new Transformer(everything());
    transformer.transform();
    expect(() => transformer.transform()).toThrow(expect.objectContaining({ kind: "GraphArgument" }));
  });
});

describe("IN-08: a transformer that overrides", () => {
  test("functions and methods records what it calls in their place", () => {
    class Swap extends Transformer {
      override callFunction(target: string, args: readonly unknown[], kwargs: Record<string, unknown>): unknown {
        if (target !== "torch.testing.sum") return super.callFunction(target, args, kwargs);
        return plusOne(args[0] as Tensor);
      }
      override callMethod(target: string, args: readonly unknown[], kwargs: Record<string, unknown>): unknown {
        return super.callMethod(target === "clamp" ? "clip" : target, args, kwargs);
      }
    }
    const res = new Swap(everything()).transform();
    const calls = Array.from(res.graph.nodes, (it) => [it.op, it.target, it.meta.get("stack_trace")]);
    expect(calls.slice(5, 7)).toEqual([
      ["call_function", "torch.testing.plus_one", "at renamed"],
      ["call_method", "clip", "at clamp"],
    ]);
    res.graph.lint(res);
  });

  test("modules may look into them, and their parameters are referred to by path", () => {
    class Inline extends Transformer {
      override callModule(target: string, args: readonly unknown[]): unknown {
        return (this.fetchAttr(target) as Module).call(...args);
      }
    }
    const { graph } = new Inline(everything()).transform();
    expect(Array.from(graph.nodes, (it) => `${it.op} ${it.target}`).slice(3, 7)).toEqual([
      "get_attr scale.weight",
      "get_attr scale.weight",
      "call_function torch.testing.sum",
      "call_function torch.testing.sum",
    ]);
  });

  test("may use tensors of its own, which only the new module gets", () => {
    const shift = tensor([1, 1], { dtype: "float32" });
    class Shift extends Transformer {
      override callFunction(target: string, args: readonly unknown[], kwargs: Record<string, unknown>): unknown {
        return sum(super.callFunction(target, args, kwargs) as Tensor, sum(shift, shift));
      }
    }
    const graph = new Graph();
    const one = graph.callFunction(plusOne, [graph.placeholder("x")]);
    graph.output(graph.callFunction(plusOne, [one]));
    const gm = new GraphModule({}, graph);
    const res = new Shift(gm).transform();
    expect([[...gm.attributes.keys()], [...res.attributes.keys()]]).toEqual([
      [],
      ["_tensor_constant0", "_tensor_constant1"],
    ]);
    expect((res.forward(tensor([0, 1], { dtype: "float32" })) as Tensor).toArray()).toEqual([6, 7]);
  });

  test("is refused what the module does not have", () => {
    const graph = new Graph();
    graph.output(graph.callModule("scale", [graph.placeholder("x")]));
    const gm = new GraphModule({ scale: new Scale() }, graph);
    gm.deleteSubmodule("scale");
    expect(() => new Transformer(gm).transform()).toThrow(
      expect.objectContaining({ kind: "AttributeMissing", node: "scale" }),
    );
  });
});

test("the example of torch.fx's documentation swaps neg and sigmoid", async () => {
  await init();
  class NegSigmSwap extends Transformer {
    override callFunction(target: string, args: readonly unknown[], kwargs: Record<string, unknown>): unknown {
      if (target === "torch.sigmoid") return torch.neg(...(args as [Tensor]));
      return super.callFunction(target, args, kwargs);
    }
    override callMethod(target: string, args: readonly unknown[], kwargs: Record<string, unknown>): unknown {
      const [self, ...rest] = args;
      if (target === "neg") return (self as Tensor).sigmoid(...(rest as []));
      return super.callMethod(target, args, kwargs);
    }
  }
  const transformed = new NegSigmSwap(symbolicTrace((x: Tensor) => torch.sigmoid(x).neg())).transform();
  expect(`${transformed.graph}`.split("\n").slice(1)).toEqual([
    "    %x : [num_users=1] = placeholder[target=x]",
    "    %neg : [num_users=1] = call_function[target=torch.neg](args = (%x,), kwargs = {})",
    "    %sigmoid : [num_users=1] = call_method[target=sigmoid](args = (%neg,), kwargs = {})",
    "    return sigmoid",
  ]);
  const x = tensor([0.5, -2]);
  expect((transformed.forward(x) as Tensor).toArray()).toEqual(torch.neg(x).sigmoid().toArray());
});

describe("an interpreter on traced values", () => {
  test("writes the graph of another module into one", () => {
    const inner = new Graph();
    inner.output(inner.callFunction(plusOne, [inner.callMethod("relu", [inner.placeholder("y")])]));
    const graph = new Graph();
    const x = graph.placeholder("x");
    const call = graph.callModule("sub", [x]);
    const output = graph.output(call);
    graph.insertingBefore(call, () => {
      const value = new Interpreter(new GraphModule({}, inner)).run(new Proxy(x)) as Proxy;
      call.replaceAllUsesWith(value.node);
    });
    graph.eraseNode(call);
    expect(Array.from(graph.nodes, (it) => it.name)).toEqual(["x", "relu", "plus_one", "output"]);
    expect(output.args[0]).toBe(graph.find("plus_one"));
  });
});
