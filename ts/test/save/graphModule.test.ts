import { beforeAll, describe, expect, test } from "vitest";
import { callOperator } from "../../src/engine/dispatch.ts";
import { init } from "../../src/engine/engine.ts";
import { tuple } from "../../src/graph/args.ts";
import type { Node } from "../../src/graph/node.ts";
import { CodeGen } from "../../src/graph/codegen/codegen.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { device, dtype, float, ValueTuple } from "../../src/base/values.ts";
import { nn, torch } from "../../src/index.ts";
import { markBuiltin } from "../../src/nn/builtin.ts";
import { Module } from "../../src/nn/module.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { loadGraphModule, type ModuleClasses, saveGraphModule } from "../../src/save/graphModule.ts";
import { tensor } from "../../src/tensor/construct.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { PH } from "../../src/trace/placeholder.ts";
import { symbolicTrace } from "../../src/trace/tracer.ts";
import { encodeModule } from "../../src/wire/codec.ts";
import { plusOne, sum } from "../fx/functions.ts";

beforeAll(() => init());

class Shift extends Module {
  by = 2;
  readonly odd = [
    Number.NaN,
    -0,
    2n ** 60n,
    dtype("float16"),
    device("cpu"),
    float(3),
    null,
    tuple(1, [2]),
    { $number: 1, k: [true] },
  ];
  readonly act = plusOne;
  weight = new Parameter(tensor([1.5, 2]), { requiresGrad: false });

  constructor() {
    super();
    this.registerBuffer("count", tensor([3]), { persistent: false });
  }

  override forward(x: Tensor): unknown {
    return this.act(sum(x, this.weight));
  }
}

class Mine extends Shift {}

markBuiltin({ Shift });

class Root extends Module {
  shift = new Shift();
  again = this.shift;
  tied = new Parameter(tensor([0, 0], { dtype: "float32" }));
  same = this.tied;
}

function saved(): GraphModule {
  const graph = new Graph();
  const x = graph.placeholder("x", "torch.Tensor");
  const first = graph.callModule("shift", [x]);
  const second = graph.callModule("again", [first]);
  second.name = "renamed";
  second.meta.set("note", "text");
  const both = graph.callFunction(sum, [graph.getAttr("tied"), graph.getAttr("same")]);
  graph.output([second, both]);
  const gm = new GraphModule(new Root(), graph, "Saved").eval();
  gm.meta.set("author", "me");
  return gm;
}

function withMine(): GraphModule {
  const graph = new Graph();
  graph.output(graph.callModule("mine", [graph.placeholder("x")]));
  return new GraphModule({ mine: new Mine() }, graph);
}

function lists(outputs: unknown): unknown[] {
  return (outputs as Tensor[]).map((it) => it.toArray());
}

function reload(gm: GraphModule, classes: ModuleClasses = {}): GraphModule {
  return loadGraphModule(saveGraphModule(gm, { classes }), { classes });
}

/** A result in JSON, with arrays in the places of tensors. */
function inJson(value: unknown): string {
  return JSON.stringify(value, (_, it: unknown) => (it instanceof Tensor ? it.toArray() : it));
}

function selfHolding(): unknown[] {
  const res: unknown[] = [];
  res.push(res);
  return res;
}

/** A file whose module `shift` has this note. */
function noted(note: string): Uint8Array {
  const gm = new GraphModule();
  const inner = GraphModule.ofGraph(new Graph(), "Shift");
  inner.meta.set("tracefx.module", note);
  gm.addSubmodule("shift", inner);
  return encodeModule(gm).bytes;
}

describe("GM-07, GM-08: a graph module that was saved and loaded", () => {
  test("has the same graph, names, notes and code", () => {
    const gm = saved();
    const res = reload(gm);
    expect([`${res.graph}`, res.className, res.code]).toEqual([`${gm.graph}`, "Saved", gm.code]);
    expect([res.meta.get("author"), res.meta.size]).toEqual(["me", 1]);
    expect(res.graph.find("renamed")?.meta.get("note")).toBe("text");
    res.graph.lint();
  });

  test("gives the same", () => {
    const gm = saved();
    const x = tensor([1, 1], { dtype: "float32" });
    expect(lists(reload(gm).forward(x))).toEqual(lists(gm.forward(x)));
  });

  test("has modules of the same classes with their properties, made without constructors", () => {
    const shift = reload(saved()).getSubmodule("shift") as Shift;
    expect([shift.by, shift.odd, shift.act === plusOne, shift.training]).toEqual([2, new Shift().odd, true, false]);
    expect([shift.weight.constructor, shift.weight.requiresGrad, shift.weight.toArray()]).toEqual([
      Parameter,
      false,
      [1.5, 2],
    ]);
    expect(shift.attributes.get("count")).toMatchObject({ kind: "buffer", persistent: false });
  });

  test("has once what stands in several places", () => {
    const res = reload(saved());
    expect(res.getSubmodule("again")).toBe(res.getSubmodule("shift"));
    expect(res.getParameter("same") === res.getParameter("tied")).toBe(true);
    expect(res.getParameter("tied").requiresGrad).toBe(true);
  });

  test("has the elements that its tensors had in the engine", () => {
    const gm = saved();
    callOperator("aten.fill_", [gm.getTensor("tied"), 4]);
    expect(reload(gm).getTensor("tied").toArray()).toEqual([4, 4]);
  });

  test("is saved as it was saved before", () => {
    const file = saveGraphModule(saved());
    expect(saveGraphModule(loadGraphModule(file))).toEqual(file);
  });

  test("has the plain properties that it had", () => {
    const graph = new Graph();
    graph.output(graph.getAttr("settings"));
    const root = new (class extends Module {
      settings = { scale: [2, null] };
    })();
    const gm = new GraphModule(root, graph);
    Object.assign(gm, { later: "added" });
    const again = reload(gm);
    expect([again.forward(), Reflect.get(again, "later")]).toEqual([{ scale: [2, null] }, "added"]);
  });

  test("is the bytes of its graph modules and nothing else, where there are no others", () => {
    const graph = new Graph();
    graph.output(graph.callModule("inner", [graph.getAttr("w")]));
    const gm = new GraphModule({ inner: GraphModule.ofGraph(new Graph()), w: new Parameter(tensor([1.5])) }, graph);
    expect(saveGraphModule(gm)).toEqual(encodeModule(gm).bytes);
    expect(gm.graph.owningModule === gm).toBe(true);
  });
});

describe("a graph of nested inputs that was saved and loaded", () => {
  const nested = symbolicTrace(
    (t: { a: Tensor; b: Tensor[] }, rest: Tensor, { scale = 2 }: { scale?: number } = {}) => ({
      sum: torch.add(t.a, torch.mul(rest, scale)),
      list: tuple(t.b[0], t.b[1]),
    }),
    { concreteArgs: { t: { a: PH, b: [PH, PH] } } },
  );
  const [one, two] = [tensor([1]), tensor([2])];

  test("takes and gives them in the same structure", () => {
    const again = reload(nested);
    for (const more of [[], [{ scale: 5 }]]) {
      const given = [{ a: one, b: [one, two] }, two, ...more];
      expect(inJson(again.forward(...given))).toBe(inJson(nested.forward(...given)));
    }
    expect(inJson(again.forward({ a: one, b: [one, two] }, two, { scale: 5 }))).toBe('{"sum":[11],"list":[[1],[2]]}');
    expect(() => again.forward({ a: one, b: [one] }, two)).toThrow(expect.objectContaining({ kind: "InputStructure" }));
    expect(again.code).toBe(nested.code);
  });

  test("has outputs in their structure, in a tuple or not", () => {
    const { list } = reload(nested).forward({ a: one, b: [one, two] }, two) as { list: unknown };
    expect(list).toBeInstanceOf(ValueTuple);
  });
});

describe("modules of torch.nn", () => {
  class Net extends Module {
    conv = new nn.Conv2d(1, 2, 3, { padding: 1 });
    norm = new nn.BatchNorm2d(2);
    pool = new nn.AdaptiveAvgPool2d([2, null]);
    encoder = new nn.TransformerEncoderLayer(4, 2, { dimFeedforward: 8, batchFirst: true });
    lstm = new nn.LSTM(4, 3, { batchFirst: true });
    head = new nn.Sequential(new nn.Linear(3, 2), new nn.GELU({ approximate: "tanh" }), new nn.Dropout(0.5));

    override forward(x: Tensor): unknown {
      const pooled = this.pool.forward(this.norm.forward(this.conv.forward(x)).relu());
      const encoded = this.encoder.forward(pooled.flatten(0, 1));
      const [out] = this.lstm.forward(encoded);
      return this.head.forward(out);
    }
  }

  test("are saved and loaded as they are", () => {
    torch.manualSeed(0);
    const gm = symbolicTrace(new Net().eval());
    const x = torch.randn(1, 1, 4, 4);
    const again = reload(gm);
    expect(inJson(again.forward(x))).toBe(inJson(gm.forward(x)));
    expect([again.toString(), [...again.namedParameters().keys()]]).toEqual([
      gm.toString(),
      [...gm.namedParameters().keys()],
    ]);
    expect(inJson(gm.clone().forward(x))).toBe(inJson(gm.forward(x)));
  });
});

describe("classes of users", () => {
  test("are saved and loaded where they are named", () => {
    expect(reload(withMine(), { "my/Mine": Mine }).getSubmodule("mine")).toBeInstanceOf(Mine);
  });

  test("are refused by name otherwise", () => {
    expect(() => saveGraphModule(withMine())).toThrow(
      expect.objectContaining({
        reason: "the module `mine` is of the class Mine, which is none of torch.nn's, and cannot be saved",
      }),
    );
    const file = saveGraphModule(withMine(), { classes: { Mine } });
    expect(() => loadGraphModule(file)).toThrow(
      expect.objectContaining({ kind: "NotImplemented", help: "give the class: { classes: { Mine } }" }),
    );
  });
});

describe("what cannot be saved is refused by name", () => {
  test.each<[string, (shift: Shift, gm: GraphModule) => unknown]>([
    ["`shift` has hooks", (shift) => shift.registerForwardHook(() => undefined)],
    ["`shift` has the property `fn`", (shift) => Object.assign(shift, { fn: () => 1 })],
    ["`shift` has the property `date`", (shift) => Object.assign(shift, { date: new Date(0) })],
    ["`shift` has the property `loop`", (shift) => Object.assign(shift, { loop: selfHolding() })],
    [
      "the module has a code generator of its own",
      (_shift, gm) => gm.graph.setCodegen(new (class extends CodeGen {})()),
    ],
    ["the module has a code generator of its own", (_shift, gm) => gm.graph.onGenerateCode(() => (body) => body)],
  ])("%s", (text, change) => {
    const gm = saved();
    change(gm.getSubmodule("shift") as Shift, gm);
    expect(() => saveGraphModule(gm)).toThrow(text);
  });

  test("a module of a class that extends GraphModule", () => {
    expect(() => saveGraphModule(new (class Other extends GraphModule {})())).toThrow("is of the class Other");
  });
});

describe("a file that tracefx does not write is refused", () => {
  test.each([
    "",
    "[]",
    "null",
    '{"class":1}',
    '{"class":"Shift","more":1}',
    '{"class":"Shift","training":true}',
    '{"class":"Shift","frozen":[1]}',
    '{"class":"Shift","ties":{"a":1}}',
    '{"class":"Shift","fields":[]}',
    '{"class":"Shift","fields":{"forward":1}}',
    '{"class":"Shift","fields":{"constructor":1}}',
    '{"class":"Shift","fields":{"__proto__":{"a":1}}}',
    '{"class":"Shift","fields":{"attributes":{}}}',
    '{"class":"Shift","fields":{"a":{"$int":"1e9"}}}',
    '{"class":"Shift","fields":{"a":{"$function":"no.such"}}}',
    '{"class":"Shift","fields":{"a":{"$else":"x"}}}',
    '{"class":"Shift","fields":{"a":{"$number":5}}}',
    '{"class":"Shift","packing":{"inputs":[]}}',
    '{"packing":{}}',
    '{"packing":{"inputs":[{"kind":"else","name":"x","parts":[]}]}}',
    '{"packing":{"inputs":[{"kind":"single","name":"x","parts":[{"name":"x","spec":1,"isOptional":true}]}]}}',
    '{"packing":{"inputs":[{"kind":"single","name":"x","parts":[{"name":"x","spec":["dict",["a"]],"isOptional":true}]}]}}',
    '{"packing":{"inputs":[],"output":["dict",null,"*"]}}',
    '{"packing":{"inputs":[],"more":1}}',
    '{"same":"nowhere"}',
    '{"same":"shift"}',
  ])("%s", (note) => {
    expect(() => loadGraphModule(noted(note))).toThrow(expect.objectContaining({ kind: "WireMalformed" }));
  });

  test("with a class that is none", () => {
    for (const name of ["Object", "constructor", "__proto__", "Function"]) {
      expect(() => loadGraphModule(noted(JSON.stringify({ class: name })))).toThrow(
        expect.objectContaining({ kind: "NotImplemented" }),
      );
    }
  });
});

test("functions and notes are saved that the filters let through", () => {
  const gm = symbolicTrace((x: Tensor) => torch.relu(x));
  const relu = gm.graph.find("relu") as Node;
  relu.meta.set("kept", "a");
  relu.meta.set("dropped", "b");
  const bytes = saveGraphModule(gm, { opsFilter: () => true, nodeMetadataKeyFilter: (key) => key !== "dropped" });
  const again = loadGraphModule(bytes).graph.find("relu") as Node;
  expect([again.meta.get("kept"), again.meta.has("dropped")]).toEqual(["a", false]);
  expect([...relu.meta.keys()]).toEqual(expect.arrayContaining(["kept", "dropped"]));
  expect(() => saveGraphModule(gm, { opsFilter: (target) => target.startsWith("torch.ops.aten") })).toThrow(
    "Unable to pickle non-standard op: torch.relu",
  );
});
