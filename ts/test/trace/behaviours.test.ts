/**
 * What torch.fx's tests hold of symbolic tracing, line by line. The lines that other files hold: TR-02, TR-04, TR-13 and
 * TR-14 in corpus/, TR-05 to TR-08 in analysis/, snippets/ and tracer.test.ts, TR-09 in inputs.test.ts, TR-17 in
 * wrap.test.ts, TR-24 in controlFlow.test.ts. TR-25, a tracer with values, is a tracer of its own and none of these.
 */
import { describe, expect, test } from "vitest";
import {
  GraphAppendingTracer,
  GraphModule,
  Graph,
  type Node,
  nn,
  operator,
  Proxy,
  symbolicTrace,
  tensor,
  type Tensor,
  torch,
  Tracer,
} from "../../src/index.ts";
import type { TracedValue } from "../../src/trace/proxy.ts";
import { thrown } from "../thrown.ts";

const names = (graph: Graph): string[] => Array.from(graph.nodes, ({ name }) => name);

/** Marks its nodes, and refuses a function. */
class Tagging extends Tracer {
  override createNode(...args: Parameters<Tracer["createNode"]>): Node {
    const [op, target] = args;
    if (op === "call_function" && target.startsWith("operator.i")) throw new RangeError("in place");
    const node = super.createNode(...args);
    node.meta.set("tag", "foo");
    return node;
  }
}

class Layer extends nn.Module {
  weight = new nn.Parameter(tensor([1.5, 2.5]));
  override forward(x: Tensor): Tensor {
    return operator.mul(x, this.weight);
  }
  encode(x: Tensor): Tensor {
    return operator.add(x, this.weight);
  }
}

class Twice extends nn.Module {
  layer = new Layer();
  override forward(x: Tensor): Tensor {
    return this.layer.forward(this.layer.forward(x));
  }
}

class ByShape extends nn.Module {
  weight = new nn.Parameter(tensor([1.5, 2.5]));
  override forward(x: Tensor): Tensor {
    return this.weight.shape[0] === 2 && this.weight.dim() === 1 && this.weight.numel() === 2 ? x.relu() : x.neg();
  }
}

const writes = (x: Tensor, out: Tensor): Tensor => torch.sigmoid(x, { out });

/** The modules around a node. */
const modulesOf = (node: Node | undefined): unknown[] => [
  ...((node?.meta.get("nn_module_stack") ?? []) as Map<string, unknown>),
];

describe("symbolic tracing", () => {
  test("TR-01: traces another method of a module", () => {
    const tracer = new Tracer();
    tracer.tracedMethod = "encode";
    expect(names(tracer.trace(new Layer()))).toEqual(["x", "weight", "add", "output"]);
    tracer.tracedMethod = "decode";
    expect(thrown(() => tracer.trace(new Layer())).reason).toBe('traced method "decode" doesn\'t exist in Layer');
  });

  test("TR-01: traces a function of the parts of a module", () => {
    const net = new Twice();
    const gm = symbolicTrace((x: Tensor) => net.layer.encode(x), { root: net });
    expect(names(gm.graph)).toEqual(["x", "layer_weight", "add", "output"]);
    expect(gm.getParameter("layer.weight")).toBe(net.getParameter("layer.weight"));
    const byThis = symbolicTrace(
      function first(this: Twice, x: Tensor) {
        return this.layer.forward(x);
      },
      { root: net },
    );
    expect(names(byThis.graph)).toEqual(["x", "layer_weight", "mul", "output"]);
  });

  test("TR-03: an attribute that is only called makes one node, and an unused one none", () => {
    const gm = symbolicTrace((x: Tensor) => {
      const { size } = x;
      void size;
      return x.size(0);
    });
    expect(names(gm.graph)).toEqual(["x", "size", "output"]);
  });

  test("TR-10: which modules are leaves is up to the tracer", () => {
    class Leaves extends Tracer {
      override isLeafModule(module: nn.Module, path: string): boolean {
        return module instanceof Layer || super.isLeafModule(module, path);
      }
    }
    const graph = new Leaves().trace(new Twice());
    expect(names(graph)).toEqual(["x", "layer", "layer_1", "output"]);
  });

  test("TR-11: a parameter is read once, a buffer at each use, or once on request", () => {
    class Held extends nn.Module {
      declare b: Tensor;
      constructor() {
        super();
        this.registerBuffer("b", tensor([1.5]));
      }
      override forward(x: Tensor): Tensor {
        return operator.add(operator.add(x, this.b), this.b);
      }
    }
    expect(names(symbolicTrace(new Held()).graph)).toEqual(["x", "b", "add", "b_1", "add_1", "output"]);
    const tracer = new Tracer();
    tracer.proxyBufferAttributes = true;
    expect(names(tracer.trace(new Held()))).toEqual(["x", "b", "add", "add_1", "output"]);
  });

  test("TR-12: a tensor that the module does not know is a constant of the graph module, once for each object", () => {
    const held = tensor([1.5]);
    const net = new (class extends nn.Module {
      override forward(x: Tensor): Tensor {
        return operator.add(operator.add(x, held), operator.mul(held, x));
      }
    })();
    const gm = symbolicTrace(net);
    expect(names(gm.graph).filter((it) => it.startsWith("_tensor"))).toEqual([
      "_tensor_constant0",
      "_tensor_constant0_1",
    ]);
    expect(gm.getTensor("_tensor_constant0")).toBe(held);
    expect([...net.attributes.keys()]).toEqual([]);
    expect(names(symbolicTrace(net).graph)).toEqual(names(gm.graph));
  });

  test("TR-15: an object says itself what it is in a graph, and others are refused by class", () => {
    class Described {
      readonly kind = "flag";
      __fx_create_arg__(): string {
        return this.kind;
      }
    }
    const gm = symbolicTrace((x: Tensor) => [x, new Described()]);
    expect(`${gm.graph}`).toContain("return [x, 'flag']");
    const error = thrown(() => symbolicTrace((x: Tensor) => [x, new URL("http://localhost")]));
    expect(error.reason).toBe("argument of type: an object of class URL cannot be recorded");
    expect(error.help).toContain("__fx_create_arg__");
  });

  test("TR-16: the shapes of parameters are constants on request", () => {
    const gm = symbolicTrace(new ByShape(), { tracer: new Tracer({ paramShapesConstant: true }) });
    expect(names(gm.graph)).toContain("relu");
    expect(thrown(() => symbolicTrace(new ByShape())).kind).toBe("TraceControlFlow");
  });

  test("TR-18: nodes know the modules around them, and how often those were called", () => {
    const tracer = new Tracer();
    const graph = tracer.trace(new Twice());
    const [first, second] = graph.findNodes({ op: "call_function", target: operator.mul });
    expect(modulesOf(first)).toEqual([["layer", ["layer", "Layer"]]]);
    expect(modulesOf(second)).toEqual([["layer@1", ["layer", "Layer"]]]);
    expect(tracer.nodeNameToScope.get("mul")).toMatchObject({ path: "layer", type: "Layer" });
    const stack = String(first?.meta.get("stack_trace")).split("\n");
    expect(stack).toHaveLength(2);
    expect(stack.every((it) => it.includes("behaviours.test.ts"))).toBe(true);
    tracer.recordStackTraces = false;
    expect(tracer.trace(new Twice()).find("mul")?.meta.has("stack_trace")).toBe(false);
  });

  test("TR-19: values of two tracers in one call are refused", () => {
    const stale = new Proxy(new Graph().placeholder("stale"));
    const error = thrown(() => symbolicTrace((x: Tensor) => operator.add(x, stale)));
    expect(error.reason).toContain("two different tracers");
  });

  test("TR-20: functions that change an argument are refused on request", () => {
    const tracer = new Tracer();
    expect(names(tracer.trace(writes))).toContain("sigmoid");
    tracer.checkMutableOperations = true;
    expect(thrown(() => tracer.trace(writes)).reason).toBe("Tried to trace mutable operation aten::sigmoid.out");
    expect(thrown(() => tracer.trace((x: Tensor) => torch.relu_(x))).reason).toContain("aten::relu_");
    expect(names(tracer.trace((x: Tensor) => torch.sigmoid(x)))).toContain("sigmoid");
  });

  test("TR-21: subclasses decide about nodes, module calls, truth, items and keys", () => {
    const tags = symbolicTrace((x: Tensor) => x.relu(), { tracer: new Tagging() });
    expect(Array.from(tags.graph.nodes, ({ meta }) => meta.get("tag"))).toEqual(["foo", "foo", "foo"]);
    expect(() => symbolicTrace((x: Tensor) => operator.iadd(x, 1), { tracer: new Tagging() })).toThrow(RangeError);
    class Known extends Tracer {
      override toBool(): boolean {
        return true;
      }
      override keys(): readonly string[] {
        return ["a", "b"];
      }
      override *iter(proxy: TracedValue): Generator<TracedValue> {
        for (const index of [0, 1, 2]) yield operator.getitem(proxy, index) as unknown as TracedValue;
      }
      override callModule(call: Parameters<Tracer["callModule"]>[0]): unknown {
        return this.pathOfModule(call.module) === "layer" ? call.args[0] : super.callModule(call);
      }
    }
    const spread = symbolicTrace((x: { a: Tensor; b: Tensor }) => ({ ...x }), { tracer: new Known() });
    expect(`${spread.graph}`).toContain("return {'a': getattr_1, 'b': getattr_2}");
    const items = symbolicTrace((x: Iterable<Tensor>) => [...x], { tracer: new Known() });
    expect(names(items.graph)).toEqual(["x", "getitem", "getitem_1", "getitem_2", "output"]);
    expect(names(new Known().trace(new Twice()))).toEqual(["x", "output"]);
  });

  test("TR-22: a traced value outside of a trace appends to the graph of its node", () => {
    const graph = new Graph();
    const x = new Proxy(graph.placeholder("x"));
    expect(x.tracer).toBeInstanceOf(GraphAppendingTracer);
    graph.output((operator.add(x, 1) as unknown as TracedValue).node);
    expect(names(graph)).toEqual(["x", "add", "output"]);
  });

  test("TR-23: a retrace looks into a graph module, and a tracer may take one as it is", () => {
    const inner = symbolicTrace(new Layer());
    class Outer extends nn.Module {
      inner = inner;
      override forward(x: Tensor): Tensor {
        return (this.inner.forward(x) as Tensor).neg();
      }
    }
    expect(names(symbolicTrace(new Outer()).graph)).toEqual(["x", "inner_weight", "mul", "neg", "output"]);
    class Whole extends Tracer {
      override isLeafModule(module: nn.Module, path: string): boolean {
        return module instanceof GraphModule || super.isLeafModule(module, path);
      }
    }
    expect(names(new Whole().trace(new Outer()))).toEqual(["x", "inner", "neg", "output"]);
    expect(`${symbolicTrace(symbolicTrace(new Outer())).graph}`).toBe(`${symbolicTrace(new Outer()).graph}`);
  });
});
