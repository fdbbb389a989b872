import { beforeAll, expect, test } from "vitest";
import { init } from "../../src/engine/engine.ts";
import { Tensor, tensor } from "../../src/index.ts";
import { Graph } from "../../src/graph/graph.ts";
import type { Node } from "../../src/graph/node.ts";
import { Interpreter } from "../../src/fx/interpreter.ts";
import { Module } from "../../src/nn/module.ts";

beforeAll(() => init());

/** `x.neg().abs()` by methods, the square of it by a function, and the sum of that. */
function graphOf(): { graph: Graph; nodes: Node[] } {
  const graph = new Graph();
  const negative = graph.callMethod("neg", [graph.placeholder("x")]);
  const absolute = graph.callMethod("abs", [negative]);
  const square = graph.callFunction("torch.mul", [absolute, absolute]);
  const root = graph.callMethod("sqrt", [square]);
  graph.output(root);
  return { graph, nodes: [negative, absolute, square, root] };
}

/** Which values of the nodes are still there after a run: the last one is what the run gives. */
function living(make: (graph: Graph, watch: (node: string, value: unknown) => void) => Interpreter): boolean[] {
  const { graph } = graphOf();
  const values: Tensor[] = [];
  const interpreter = make(graph, (_, value) => {
    if (value instanceof Tensor) values.push(value);
  });
  const input = tensor([-3, 2]);
  const output = interpreter.run(input) as Tensor;
  expect(output.toArray()).toEqual([3, 2]);
  expect(input.isDisposed).toBe(false);
  return values.map((it) => !it.isDisposed);
}

test("what an override of a kind of node saw is the subclass's to keep, and nothing else", () => {
  // The function sees its argument, which a method made, and its result; the other methods' values are gone.
  const seen: unknown[] = [];
  class Functions extends Interpreter {
    override callFunction(...call: Parameters<Interpreter["callFunction"]>): unknown {
      const value = super.callFunction(...call);
      seen.push(...call[1], value);
      return value;
    }
  }
  expect(living((graph) => new Functions(new Module(), { graph }))).toEqual([]);
  expect(seen.map((it) => (it as Tensor).isDisposed)).toEqual([false, false, false]);
});

/** Which values are there after a run of a subclass that looks at each node. */
function watched(disposeValues: boolean | undefined): boolean[] {
  return living((graph, watch) => {
    class Watch extends Interpreter {
      override runNode(node: Node): unknown {
        const value = super.runNode(node);
        if (node.op !== "placeholder" && node.op !== "output") watch(node.name, value);
        return value;
      }
    }
    return new Watch(new Module(), disposeValues === undefined ? { graph } : { graph, disposeValues });
  });
}

test("what runNode saw is the subclass's to keep, unless it says that it keeps nothing", () => {
  expect(watched(undefined)).toEqual([true, true, true, true]);
  expect(watched(false)).toEqual([true, true, true, true]);
  expect(watched(true)).toEqual([false, false, false, true]);
});

test("what env knew when it was read is the reader's to keep", () => {
  const seen: unknown[] = [];
  class Reader extends Interpreter {
    override getAttr(...call: Parameters<Interpreter["getAttr"]>): unknown {
      seen.push(...this.env.values());
      return super.getAttr(...call);
    }
  }
  const graph = new Graph();
  const first = graph.callMethod("neg", [graph.placeholder("x")]);
  const attribute = graph.getAttr("w");
  const sum = graph.callFunction("torch.add", [first, attribute]);
  graph.output(graph.callMethod("abs", [sum]));
  const root = new Module();
  root.registerBuffer("w", tensor([1, 1]));
  const output = new Reader(root, { graph }).run(tensor([-3, 2])) as Tensor;
  expect(output.toArray()).toEqual([4, 1]);
  expect(seen.length).toBe(1);
  expect(seen.every((it) => !(it as Tensor).isDisposed)).toBe(true);
});

test("methods that are not overridden hand their values to nobody", () => {
  // A hook of the graph's own functions would see them; the handles of tensors are used again instead.
  class Modules extends Interpreter {
    override callModule(...call: Parameters<Interpreter["callModule"]>): unknown {
      return super.callModule(...call);
    }
  }
  const made: Tensor[] = [];
  const original = Tensor.prototype.neg;
  Tensor.prototype.neg = function neg(this: Tensor): Tensor {
    const value = original.call(this);
    made.push(value);
    return value;
  };
  try {
    const { graph } = graphOf();
    expect((new Modules(new Module(), { graph }).run(tensor([-3, 2])) as Tensor).toArray()).toEqual([3, 2]);
    expect((new Interpreter(new Module(), { graph }).run(tensor([-3, 2])) as Tensor).toArray()).toEqual([3, 2]);
  } finally {
    Tensor.prototype.neg = original;
  }
  expect(made.map((it) => it.isDisposed)).toEqual([true, true]);
});
