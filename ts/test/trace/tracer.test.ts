import { describe, expect, test } from "vitest";
import { defineFunction } from "../../src/functions/table.ts";
import { tuple } from "../../src/graph/args.ts";
import { markBuiltin } from "../../src/nn/builtin.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";
import type { Inputs } from "../../src/trace/inputs.ts";
import { symbolicTrace, type Traceable, type TraceOptions, Tracer } from "../../src/trace/tracer.ts";
import { GraphAppendingTracer, Proxy } from "../../src/trace/tracerBase.ts";
import { Graph } from "../../src/graph/graph.ts";
import { thrown } from "../thrown.ts";

class Leaf extends Module {
  weight = new Parameter(tensor([1.5]));
  override forward(x: Tensor): Tensor {
    return x;
  }
}
markBuiltin({ Leaf });

class Net extends Module {
  leaf = new Leaf();
  scale = new Parameter(tensor([2.5]));
  #power = 3;
  override forward(x: Tensor, dim = 1): unknown {
    const [first, second] = join(this.leaf.forward(x), [this.scale, this.scale], { keepDim: true }) as [Tensor, Tensor];
    return tuple(first, second, { shape: x.shape[0], power: this.#power, dim });
  }
}

const join = defineFunction("test.join", (...args: unknown[]): unknown => args);

describe("tracing", () => {
  test("records leaves, parameters once, destructuring, attributes and options by PyTorch's names", () => {
    expect(`${symbolicTrace(new Net()).graph}`).toMatchInlineSnapshot(`
      "graph():
          %x : [num_users=2] = placeholder[target=x]
          %dim : [num_users=1] = placeholder[target=dim](default=1)
          %leaf : [num_users=1] = call_module[target=leaf](args = (%x,), kwargs = {})
          %scale : [num_users=1] = get_attr[target=scale]
          %join : [num_users=2] = call_function[target=test.join](args = (%leaf, [%scale, %scale]), kwargs = {keep_dim: True})
          %getitem : [num_users=1] = call_function[target=operator.getitem](args = (%join, 0), kwargs = {})
          %getitem_1 : [num_users=1] = call_function[target=operator.getitem](args = (%join, 1), kwargs = {})
          %getattr_1 : [num_users=1] = call_function[target=builtins.getattr](args = (%x, shape), kwargs = {})
          %getitem_2 : [num_users=1] = call_function[target=operator.getitem](args = (%getattr_1, 0), kwargs = {})
          return (getitem, getitem_1, {'shape': getitem_2, 'power': 3, 'dim': dim})"
    `);
  });

  test("calls the function with what a tracer makes its inputs", () => {
    class Noisy extends Tracer {
      protected override createInputs(root: Traceable, options: TraceOptions): Inputs {
        const inputs = super.createInputs(root, options);
        const noise = this.createProxy("placeholder", "noise", [], {});
        return { ...inputs, run: (fn) => inputs.run((x) => fn(join(x, noise))) };
      }
    }
    expect(`${new Noisy().trace((x: Tensor) => x.relu())}`).toMatchInlineSnapshot(`
      "graph():
          %x : [num_users=1] = placeholder[target=x]
          %noise : [num_users=1] = placeholder[target=noise]
          %join : [num_users=1] = call_function[target=test.join](args = (%x, %noise), kwargs = {})
          %relu : [num_users=1] = call_method[target=relu](args = (%join,), kwargs = {})
          return relu"
    `);
  });

  test("says what to do in the place of wrapping by itself", () => {
    for (const name of ["autowrapFunctions", "autowrap_modules"]) {
      const refused = thrown(() => new Tracer({ [name]: [] } as object));
      expect([refused.kind, refused.help]).toEqual(["InvalidOption", expect.stringContaining("wrap(fn)")]);
    }
  });

  test("notes the user's line and the modules around", () => {
    const nodes = [...symbolicTrace(new Net()).graph.nodes];
    const leaf = nodes.find(({ name }) => name === "leaf");
    expect(leaf?.meta.get("stack_trace")).toMatch(/^at .*forward.*tracer\.test\.ts:\d+:\d+\)$/);
    expect(leaf?.meta.get("nn_module_stack")).toEqual(new Map([["leaf", ["leaf", "Leaf"]]]));
    expect(nodes.find(({ name }) => name === "getitem")?.meta.get("stack_trace")).toContain("tracer.test.ts");
  });

  test.each<[string, (x: never) => unknown, string]>([
    ["a sum with +", (x: number) => x + 1, "TraceCoercion"],
    ["a text", (x: Tensor) => `${x.shape}`, "TraceCoercion"],
    ["JSON", (x: Tensor) => JSON.stringify([x]), "TraceCoercion"],
    ["a loop over all items", (x: Tensor[]) => x.map.call([...x], (it) => it), "TraceIteration"],
    ["a length", (x: Tensor[]) => x.length, "TraceIteration"],
    ["in", (x: object) => "a" in x, "TraceIteration"],
    ["an assignment", (x: { a: number }) => (x.a = 1), "TraceUnsupported"],
    ["delete", (x: { a?: number }) => delete x.a, "TraceUnsupported"],
    ["keys", (x: object) => ({ ...x }), "TraceIteration"],
  ])("refuses %s, and names the line", (_, fn, kind) => {
    const error = thrown(() => symbolicTrace(fn));
    expect(error.kind).toBe(kind);
    expect(error.notes[0]).toContain("tracer.test.ts");
  });

  test("appends to a graph that is there", () => {
    const graph = new Graph();
    const x = new Proxy(graph.placeholder("x"), new GraphAppendingTracer(graph));
    expect(x).toBeInstanceOf(Proxy);
    graph.output((join(x) as Proxy).node);
    expect([...graph.nodes].map(({ name }) => name)).toEqual(["x", "join", "output"]);
  });
});
