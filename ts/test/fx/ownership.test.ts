import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { callOperator } from "../../src/engine/dispatch.ts";
import { init } from "../../src/engine/engine.ts";
import { nn, symbolicTrace, torch } from "../../src/index.ts";
import { resnet18 } from "../../examples/models/resnet.ts";
import { defineFunction } from "../../src/functions/table.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import type { Node } from "../../src/graph/node.ts";
import { Interpreter } from "../../src/fx/interpreter.ts";
import { markBuiltin } from "../../src/nn/builtin.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";
import { type Tensor, tensorStorage } from "../../src/tensor/tensor.ts";
import { wrap } from "../../src/functions/wrap.ts";
import { keep, made, plusOne, same, seen, split, sum } from "./functions.ts";

beforeEach(() => {
  made.length = 0;
  seen.length = 0;
});

function input(): Tensor {
  return tensor([1, 2], { dtype: "float32" });
}

/** Runs a graph of one input and gives its output and which of the tensors that were made are still there. */
function alive(build: (graph: Graph, x: Node) => void, root: Module = new Module(), x = input()): [unknown, boolean[]] {
  const graph = new Graph();
  build(graph, graph.placeholder("x"));
  const output = new Interpreter(root, { graph }).run(x);
  expect(x.isDisposed).toBe(false);
  return [output, made.map((it) => !it.isDisposed)];
}

describe("disposed at its last use", () => {
  test("is what the run made and does not return", () => {
    const [output, living] = alive((graph, x) => {
      let value = x;
      for (let count = 0; count < 5; count++) value = graph.callFunction(plusOne, [value]);
      graph.output(graph.callFunction(sum, [value, x]));
    });
    expect((output as Tensor).toArray()).toEqual([7, 9]);
    expect(living).toEqual([false, false, false, false, false, true]);
  });

  test("is what nothing uses", () => {
    expect(
      alive((graph, x) => {
        graph.callFunction(plusOne, [x]);
        graph.output(x);
      })[1],
    ).toEqual([false]);
  });

  test("are the items of a list, with the list or after it", () => {
    const [, living] = alive((graph, x) => {
      const parts = graph.callFunction(split, [x]);
      const first = graph.callFunction("torch.testing.item", [parts, 0]);
      graph.output(graph.callFunction(plusOne, [first]));
    });
    expect(living).toEqual([false, false, true]);
  });
});

class Layer extends Module {
  override forward(x: Tensor): Tensor {
    return plusOne(x);
  }
}

/** A call of a layer on what a layer gave. */
function twice(graph: Graph, x: Node): void {
  graph.output(graph.callModule("layer", [graph.callModule("layer", [graph.callFunction(plusOne, [x])])]));
}

function rootWith(layer: Module): Module {
  const root = new Module();
  root.addModule("layer", layer);
  return root;
}

describe("what a module of torch.nn gives", () => {
  markBuiltin({ Layer });
  test("is disposed, and so is what it was given", () => {
    expect(alive(twice, rootWith(new Layer()))[1]).toEqual([false, false, true]);
  });

  test("is not where a function of the user sees it", () => {
    const keeping = new nn.TripletMarginWithDistanceLoss({
      distanceFunction: (a, b) => {
        seen.push(a);
        return torch.sub(a, b).abs().sum({ dim: -1 });
      },
    });
    const graph = new Graph();
    const one = graph.callFunction(plusOne, [graph.placeholder("x")]);
    graph.output(graph.callModule("layer", [one, one, one]));
    new Interpreter(rootWith(keeping), { graph }).run(input());
    expect([seen[0] === made[0], made[0]?.isDisposed]).toEqual([true, false]);
    const plain = new nn.TripletMarginLoss();
    new Interpreter(rootWith(plain), { graph }).run(input());
    expect(made[1]?.isDisposed).toBe(true);
  });

  test("is not where a hook sees it, or where the class was extended", () => {
    const hooked = new Layer();
    const hook = hooked.registerForwardHook((_module, _args, output) => void seen.push(output));
    expect(alive(twice, rootWith(hooked))[1]).toEqual([true, true, true]);
    hook.remove();
    made.length = 0;
    const holder = new Layer();
    holder.addModule("inner", new Module());
    expect(alive(twice, rootWith(holder))[1]).toEqual([true, true, true]);
    made.length = 0;
    expect(alive(twice, rootWith(new (class extends Layer {})()))[1]).toEqual([true, true, true]);
  });
});

class Packed {
  readonly x: Tensor;
  constructor(x: Tensor) {
    this.x = x;
  }
}

describe("not disposed", () => {
  test("is what the output holds, at any depth", () => {
    const [, living] = alive((graph, x) => {
      const one = graph.callFunction(plusOne, [x]);
      const two = graph.callFunction(plusOne, [one]);
      const three = graph.callFunction(plusOne, [two]);
      graph.output({ list: [one], three });
    });
    expect(living).toEqual([true, false, true]);
  });

  test("is what an operator gave back, until its last name is gone", () => {
    const order: boolean[] = [];
    const graph = new Graph();
    const one = graph.callFunction(plusOne, [graph.placeholder("x")]);
    const again = graph.callFunction(same, [one]);
    const last = graph.callFunction(plusOne, [again]);
    graph.output(last);
    class Watch extends Interpreter {
      override callFunction(...call: Parameters<Interpreter["callFunction"]>): unknown {
        order.push(made.some((it) => it.isDisposed));
        return super.callFunction(...call);
      }
    }
    new Watch(new Module(), { graph, disposeValues: true }).run(input());
    expect([order, made.map((it) => it.isDisposed)]).toEqual([
      [false, false, false],
      [true, false],
    ]);
  });

  test("are inputs and attributes that an operator gave back", () => {
    const root = new Module();
    const weight = new Parameter(input());
    root.registerParameter("weight", weight);
    alive((graph, x) => {
      const [a, b] = [graph.callFunction(same, [x]), graph.callFunction(same, [graph.getAttr("weight")])];
      graph.output(graph.callFunction(sum, [a, b]));
    }, root);
    expect(weight.isDisposed).toBe(false);
  });

  test("is what a function that is an input may see", () => {
    const apply = defineFunction("torch.testing.apply", (x: Tensor, run: (x: Tensor) => Tensor) => run(x));
    const graph = new Graph();
    const [x, run] = [graph.placeholder("x"), graph.placeholder("run")];
    const applied = graph.callFunction(apply, [graph.callFunction(plusOne, [x]), run]);
    graph.output(graph.callFunction(plusOne, [applied]));
    new Interpreter(new Module(), { graph }).run(input(), (it: Tensor) => {
      seen.push(it);
      return it;
    });
    expect([seen[0] === made[0], made.some((it) => it.isDisposed)]).toEqual([true, false]);
  });

  test("is what a function of the user saw or gave", () => {
    const [, living] = alive((graph, x) => {
      const one = graph.callFunction(plusOne, [x]);
      const kept = graph.callFunction(keep, [one]);
      graph.output(graph.callFunction(plusOne, [graph.callFunction(same, [kept])]));
    });
    expect(living).toEqual([true, true]);
    expect(seen).toEqual([made[0]]);
  });

  test("is what a function saw that the user wrapped under a name of torch's", () => {
    const wrapped = wrap((x: Tensor) => {
      seen.push(x);
      return x;
    }, "torch.users_own");
    const [, living] = alive((graph, x) => {
      const kept = graph.callFunction(wrapped, [graph.callFunction(plusOne, [x])]);
      graph.output(graph.callFunction(plusOne, [kept]));
    });
    expect([living, seen[0] === made[0]]).toEqual([[true, true], true]);
  });

  test("is what an object of some class holds", () => {
    const pack = defineFunction("torch.testing.pack", (x: Tensor) => new Packed(x));
    const unpack = defineFunction("torch.testing.unpack", ({ x }: Packed) => x);
    const [output, living] = alive((graph, x) => {
      const one = graph.callFunction(plusOne, [x]);
      const packed = graph.callFunction(pack, [one]);
      graph.callFunction(plusOne, [one]);
      graph.callFunction(plusOne, [graph.callFunction(unpack, [packed])]);
      graph.output(graph.callFunction(unpack, [packed]));
    });
    expect([output === made[0], living]).toEqual([true, [true, false, false]]);
  });

  test("is what a module of the user saw", () => {
    const root = new Module();
    const got: unknown[] = [];
    root.addModule(
      "log",
      new (class extends Module {
        override forward(x: Tensor): Tensor {
          got.push(x);
          return x;
        }
      })(),
    );
    const [, living] = alive((graph, x) => {
      const one = graph.callFunction(plusOne, [x]);
      graph.output(graph.callFunction(plusOne, [graph.callModule("log", [one])]));
    }, root);
    expect([living, got]).toEqual([[true, true], [made[0]]]);
  });

  test("is an item of a container of the user", () => {
    const held = input();
    const graph = new Graph();
    const item = graph.callFunction("operator.getitem", [graph.placeholder("box"), 0]);
    graph.output(graph.callFunction(plusOne, [item]));
    class Items extends Interpreter {
      override callFunction(...call: Parameters<Interpreter["callFunction"]>): unknown {
        return call[0] === "operator.getitem" ? held : super.callFunction(...call);
      }
    }
    new Items(new Module(), { graph, disposeValues: true }).run({ box: true });
    expect(held.isDisposed).toBe(false);
  });

  test("is what was put into a container of the user", () => {
    const box: unknown[] = [];
    const graph = new Graph();
    const [x, list] = [graph.placeholder("x"), graph.placeholder("list")];
    const one = graph.callFunction(plusOne, [x]);
    graph.callMethod("push", [list, one]);
    const two = graph.callFunction(plusOne, [one]);
    graph.callFunction("operator.setitem", [list, 1, two]);
    graph.output(graph.callFunction(sum, [one, two]));
    class Items extends Interpreter {
      override callFunction(...call: Parameters<Interpreter["callFunction"]>): unknown {
        if (call[0] === "operator.setitem") box[1] = call[1][2];
        return call[0] === "operator.setitem" ? null : super.callFunction(...call);
      }
    }
    new Items(new Module(), { graph, disposeValues: true }).run(input(), box);
    expect([box, made.some((it) => it.isDisposed)]).toEqual([[made[0], made[1]], false]);
  });

  test("is anything that a subclass sees, unless it says that it keeps nothing", () => {
    const graph = new Graph();
    const one = graph.callFunction(plusOne, [graph.placeholder("x")]);
    graph.output(graph.callFunction(plusOne, [one]));
    class Keeper extends Interpreter {
      override runNode(node: Node): unknown {
        return super.runNode(node);
      }
    }
    new Keeper(new Module(), { graph }).run(input());
    expect(made.some((it) => it.isDisposed)).toBe(false);
    new Keeper(new Module(), { graph, disposeValues: true }).run(input());
    expect(made.filter((it) => it.isDisposed)).toEqual([made[2]]);
  });

  test("is anything, where values are kept", () => {
    const graph = new Graph();
    graph.output(graph.callFunction(sum, [graph.callFunction(plusOne, [graph.placeholder("x")]), tensorNode(graph)]));
    const interpreter = new Interpreter(rootWithTensor(), { graph, garbageCollectValues: false });
    interpreter.run(input());
    expect(made.some((it) => it.isDisposed)).toBe(false);
  });
});

test("many runs of a module leave nothing but their outputs", () => {
  const graph = new Graph();
  const one = graph.callFunction(plusOne, [graph.placeholder("x")]);
  graph.output(graph.callFunction(plusOne, [one]));
  const gm = new GraphModule({}, graph);
  for (let count = 0; count < 10; count++) gm.forward(input());
  expect(made.filter((it) => !it.isDisposed).length).toBe(10);
});

function rootWithTensor(): Module {
  const root = new Module();
  root.registerBuffer("t", input());
  return root;
}

function tensorNode(graph: Graph): Node {
  return graph.getAttr("t");
}

/** The number of a new tensor's handle. Numbers are used again, so it is at most how many live at a time. */
function handleOf(x: Tensor): number {
  return (tensorStorage(x) as unknown as { view: { handle: number } }).view.handle;
}

describe("in the engine", () => {
  beforeAll(() => init());

  const add = defineFunction("torch.testing.engine_add", (x: Tensor) => callOperator("aten.add", [x, 1]));
  const view = defineFunction("torch.testing.engine_view", (x: Tensor) => callOperator("aten.view", [x, [2, 1]]));
  const write = defineFunction("torch.testing.engine_add_", (x: Tensor) => callOperator("aten.add_", [x, 1]));

  test("a thousand operators hold a few tensors at a time", () => {
    const graph = new Graph();
    let value = graph.placeholder("x");
    for (let count = 0; count < 250; count++) {
      value = graph.callFunction(add, [value]);
      value = graph.callFunction(view, [value]);
      value = graph.callFunction(write, [value]);
      value = graph.callFunction(add, [value]);
    }
    graph.output(value);
    const gm = new GraphModule({}, graph);
    const x = callOperator("aten.add", [input(), 0]) as Tensor;
    const before = handleOf(callOperator("aten.add", [x, 0]) as Tensor);
    let highest = 0;
    class Watch extends Interpreter {
      override callFunction(...call: Parameters<Interpreter["callFunction"]>): unknown {
        const result = super.callFunction(...call);
        highest = Math.max(highest, handleOf(result as Tensor));
        return result;
      }
    }
    const watched = new Watch(gm, { disposeValues: true }).run(x) as Tensor;
    expect(watched.toArray()).toEqual([[751], [752]]);
    expect(highest - before).toBeLessThanOrEqual(4);
    for (let count = 0; count < 20; count++) (gm.forward(x) as Tensor).dispose();
    expect(handleOf(callOperator("aten.add", [x, 0]) as Tensor) - before).toBeLessThanOrEqual(4);
  });

  test("ResNet-18 leaves nothing but its output, where its module leaves all that it made", () => {
    const model = resnet18().eval();
    const gm = symbolicTrace(model);
    const image = torch.randn(1, 3, 32, 32);
    model.forward(image).dispose();
    const grows = (run: () => unknown): number => {
      const before = handleOf(callOperator("aten.add", [image, 0]) as Tensor);
      run();
      return handleOf(callOperator("aten.add", [image, 0]) as Tensor) - before;
    };
    // A tensor that was made to look at the number lives on, too.
    expect(grows(() => gm.forward(image))).toBeLessThanOrEqual(2);
    expect(grows(() => new Interpreter(gm, { disposeValues: false }).run(image))).toBeGreaterThan(40);
  });

  test("a view outlives what it is a view of", () => {
    const graph = new Graph();
    const viewed = graph.callFunction(view, [graph.callFunction(add, [graph.placeholder("x")])]);
    graph.output(viewed);
    expect((new GraphModule({}, graph).forward(input()) as Tensor).toArray()).toEqual([[2], [3]]);
  });
});
