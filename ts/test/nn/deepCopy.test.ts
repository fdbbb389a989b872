import { beforeAll, describe, expect, test } from "vitest";
import { callOperator } from "../../src/engine/dispatch.ts";
import { init } from "../../src/engine/engine.ts";
import * as operator from "../../src/functions/operator.ts";
import { ValueTuple } from "../../src/base/values.ts";
import { deepCopy } from "../../src/nn/deepCopy.ts";
import { symbolicTrace } from "../../src/trace/tracer.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { tensor } from "../../src/tensor/construct.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";

beforeAll(() => init());

let constructed = 0;

class Layer extends Module {
  weight = new Parameter(tensor([1.5, 2]), { requiresGrad: false });
  readonly sizes = [1, { deep: new Map([["k", new Set([3])]]) }] as const;
  readonly scale: number | null = null;

  constructor() {
    super();
    constructed += 1;
    this.registerBuffer("running", tensor([1]), { persistent: false });
  }

  override forward(x: Tensor): Tensor {
    return x;
  }
}

class Net extends Module {
  first = new Layer();
  second = this.first;
  readonly list = [this.first];
  self: Net | undefined;
}

describe("a deep copy", () => {
  test("is of the same class, made without its constructor", () => {
    const layer = new Layer().eval();
    const before = constructed;
    const copy = deepCopy(layer);
    expect([copy.constructor, copy.training, constructed]).toEqual([Layer, false, before]);
    expect(copy).toBeInstanceOf(Layer);
    expect([copy.scale, copy.sizes]).toEqual([null, layer.sizes]);
    expect([...copy.attributes].map(([name, { kind }]) => [name, kind])).toEqual([
      ["weight", "parameter"],
      ["running", "buffer"],
    ]);
    expect(copy.attributes.get("running")).toMatchObject({ persistent: false });
  });

  test("shares no tensor and no container", () => {
    const layer = new Layer();
    const copy = deepCopy(layer);
    expect(copy.weight).not.toBe(layer.weight);
    expect(copy.weight).toBeInstanceOf(Parameter);
    expect([copy.weight.requiresGrad, copy.weight.toArray()]).toEqual([false, [1.5, 2]]);
    callOperator("aten.fill_", [copy.weight, 0]);
    expect(layer.weight.toArray()).toEqual([1.5, 2]);
    const again = deepCopy(copy);
    callOperator("aten.fill_", [copy.weight, 7]);
    expect(again.weight.toArray()).toEqual([0, 0]);
    expect([copy.sizes === layer.sizes, copy.sizes[1] === layer.sizes[1]]).toEqual([false, false]);
  });

  test("registers what is assigned to it", () => {
    const copy = deepCopy(new Net());
    (copy as unknown as Record<string, unknown>)["third"] = new Layer();
    expect([...copy.namedChildren().keys()]).toEqual(["first", "third"]);
  });

  test("has one copy of what stands in several places, itself among them", () => {
    const net = new Net();
    net.self = net;
    const copy = deepCopy(net);
    expect(copy.first).not.toBe(net.first);
    expect([copy.second === copy.first, copy.list[0] === copy.first, copy.self === copy]).toEqual([true, true, true]);
  });

  test("copies what frozen containers hold, and shares those that hold nothing to copy", () => {
    const [layer, weight] = [new Layer(), tensor([1.5])];
    const sizes = Object.freeze([1, 2]);
    const net = Object.assign(new Net(), {
      parts: Object.freeze([layer, sizes]),
      table: Object.freeze({ weight }),
      pair: ValueTuple.frozen<unknown>([weight, 1]),
      sizes,
    });
    const copy = deepCopy(net);
    callOperator("aten.fill_", [weight, 0]);
    expect(copy.parts[0]).toBeInstanceOf(Layer);
    expect(copy.parts[0]).not.toBe(layer);
    expect([copy.sizes === sizes, copy.parts[1] === sizes]).toEqual([true, true]);
    expect(copy.table.weight.toArray()).toEqual([1.5]);
    expect(copy.pair[0]).toBe(copy.table.weight);
    expect([copy.parts, copy.table, copy.pair].every((it) => Object.isFrozen(it))).toBe(true);
  });

  test("runs the same hooks, and loses none where the original does", () => {
    const layer = new Layer();
    const seen: unknown[] = [];
    const handle = layer.registerForwardHook((module) => void seen.push(module));
    const copy = deepCopy(layer);
    handle.remove();
    layer.forward(tensor([1]));
    copy.forward(tensor([1]));
    expect(seen.length).toBe(1);
    expect(seen[0]).toBe(copy);
  });

  test("of a tensor is one of its own", () => {
    const x = tensor([[1, 2]]);
    const copy = deepCopy(x);
    callOperator("aten.fill_", [copy, 5]);
    expect([x.toArray(), copy.toArray()]).toEqual([[[1, 2]], [[5, 5]]]);
  });
});

test("the notes of a graph module are copied with it, and those of its nodes are the same values, as in torch.fx", () => {
  const gm = symbolicTrace((x: Tensor) => operator.neg(x));
  const shared = { parts: ["a"] };
  gm.meta
    .set("plain", shared)
    .set("again", shared)
    .set("names", new Set(["a"]))
    .set("self", gm);
  const note = ["a"];
  gm.graph.nodes.toArray()[1]?.meta.set("note", note);
  const copy = gm.clone();
  (copy.meta.get("plain") as typeof shared).parts.push("b");
  (copy.meta.get("names") as Set<string>).add("b");
  expect(shared.parts).toEqual(["a"]);
  expect(gm.meta.get("names")).toEqual(new Set(["a"]));
  expect(copy.meta.get("again")).toBe(copy.meta.get("plain"));
  expect(copy.meta.get("self")).toBe(copy);
  expect(copy.graph.nodes.toArray()[1]?.meta.get("note")).toBe(note);
});
