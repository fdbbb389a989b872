import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { LAYOUTS, MAX_DEPTH, MEMORY_FORMATS } from "../../../bindings/wire.ts";
import { type ArgInput, slice, tuple } from "../../src/graph/args.ts";
import type { CallSignature, ProgramParts, TreeSpec } from "../../src/export/program.ts";
import { type Argument, type ConstantValue, GraphSignature, type InputSpec } from "../../src/export/signature.ts";
import { Graph } from "../../src/graph/graph.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { SymExpr, TensorMeta, ValSequence } from "../../src/graph/val.ts";
import {
  Complex,
  complex,
  device,
  dtype,
  Ellipsis,
  Float,
  float,
  layout,
  memoryFormat,
  op,
} from "../../src/base/values.ts";
import { tensor, tensorFromBytes } from "../../src/tensor/construct.ts";
import { CALL_OPTIONS, type EncodeOptions } from "../../src/wire/options.ts";

/** A golden file, made by the API: the same as the case of this name in `crates/wire/tests/cases`. */
export interface Case {
  readonly name: string;
  readonly content: Graph | GraphModule | { readonly program: ProgramParts };
  readonly options: EncodeOptions;
}

/** Every golden file that TypeScript can make: all but the modules whose tensors are views. */
export function cases(): Case[] {
  return [
    { name: "empty", content: new Graph(), options: {} },
    { name: "args", content: args(), options: {} },
    { name: "nan", content: nan(), options: {} },
    { name: "deep", content: deep(MAX_DEPTH), options: {} },
    { name: "names", content: names(), options: CALL_OPTIONS },
    { name: "names_forgotten", content: names(), options: {} },
    { name: "meta", content: meta(), options: {} },
    { name: "module_dense", content: denseModule(), options: {} },
    { name: "program", content: { program: program() }, options: {} },
    { name: "program_beside", content: { program: program() }, options: CALL_OPTIONS },
  ];
}

function args(): Graph {
  const graph = new Graph();
  const x = graph.placeholder("x", "torch.Tensor");
  const withDefault = graph.placeholder("scale", undefined, float(1));
  const weight = graph.getAttr("layer.weight");
  const safe = Number.MAX_SAFE_INTEGER;
  graph.callFunction("ints", [0, 1, -1, safe, 2n ** 53n, -(2n ** 53n) - 1n, 2n ** 63n - 1n, -(2n ** 63n)]);
  const [small, large] = [Number.MIN_VALUE, Number.MAX_VALUE];
  graph.callFunction("floats", [float(0), -0, float(1), 0.1, small, float(large), Infinity, -Infinity, NaN]);
  graph.callFunction("complex", [complex(1, -0), complex(NaN, Infinity)]);
  graph.callFunction("flags", [null, Ellipsis, true, false]);
  graph.callFunction(
    "dtypes",
    Object.keys(DTYPES).map((it) => dtype(it as DType)),
  );
  graph.callFunction("layouts", LAYOUTS.map(layout));
  graph.callFunction("memory_formats", MEMORY_FORMATS.map(memoryFormat));
  graph.callFunction("devices", ["cpu", "cuda:1", "meta", "cuda:0"].map(device));
  graph.callFunction("texts", ["", "x", "\0\n\"'\\", "größe", "重み", "😀", "\u{2028}", "__proto__"]);
  graph.callFunction("containers", [
    [],
    tuple(),
    {},
    [x, tuple(weight)],
    new Map<string, ArgInput>([
      ["__proto__", 1],
      ["constructor", withDefault],
      ["10", 2],
      ["9", null],
      ["", op("torch.ops.aten.add.Tensor")],
    ]),
    slice(null, x, -1),
  ]);
  const kwargs = new Map<string, ArgInput>([
    ["toString", null],
    ["__proto__", x],
    ["größe", 1],
  ]);
  graph.callFunction("torch.ops.aten.add.Tensor", [x, x], kwargs);
  graph.callMethod("relu_", [x]);
  graph.callModule("layer", [x]);
  const unicode = graph.createNamedNode("call_function", "f", [], {}, "größe.😀");
  graph.createNamedNode("call_function", "f", [unicode], {}, "__proto__");
  graph.output(tuple(unicode, null), "tuple[Tensor, None]");
  return graph;
}

function nan(): Graph {
  const bits = [0x7ff8000000000000n, 0xfff8000000000000n, 0x7ff800000000beefn, 0x7ff0000000000001n, 2n ** 64n - 1n];
  const graph = new Graph();
  const half = 0x3fe0000000000000n;
  graph.callFunction("floats", [...bits.map(Float.ofBits), Complex.ofBits(bits[2] as bigint, half)]);
  return graph;
}

/** An argument that is nested to this depth. */
export function deep(levels: number): Graph {
  let arg: ArgInput = 1;
  for (let level = 1; level < levels; level++)
    arg = level % 3 === 0 ? [arg] : level % 3 === 1 ? tuple(arg) : { k: arg };
  const graph = new Graph();
  graph.callFunction("f", [arg]);
  return graph;
}

/** A graph that remembers the names of nodes that were erased, and names that were asked for. */
export function names(): Graph {
  const graph = new Graph();
  const x = graph.placeholder("x");
  for (const name of ["add", "add", "add_7", "add", "Ünïcode", "z", "a"]) {
    graph.createNode("call_function", "f", [x], {}, name);
  }
  graph.createNamedNode("call_function", "f", [], {}, "\u{ff5e}");
  graph.createNamedNode("call_function", "f", [], {}, "😀");
  for (const name of ["add_1", "z", "a", "\u{ff5e}", "😀"]) {
    const node = graph.find(name);
    if (node !== undefined) graph.eraseNode(node);
  }
  graph.insertingAfter(x, () => graph.callFunction("torch.ops.aten.add.Tensor", [x]));
  return graph;
}

function expr(srepr: string): SymExpr {
  return new SymExpr(srepr);
}

function meta(): Graph {
  const graph = new Graph();
  const s0 = "Symbol('s0', positive=True, integer=True)";
  const x = graph.placeholder("x");
  // Neither is written: JavaScript values stay with their graph.
  x.meta.set("function", () => 1);
  x.meta.set("stack_trace", 'File "m.py", line 3, in forward\n');
  x.meta.set("custom", "");
  const last = expr(`Add(Mul(Integer(2), ${s0}), Integer(1))`);
  x.meta.set(
    "val",
    new TensorMeta({
      dtype: "float32",
      sizes: [expr(s0), 3, last],
      strides: [expr(`Add(Mul(Integer(6), ${s0}), Integer(3))`), last, 1],
      storageOffset: 0,
      device: device("cpu"),
      layout: layout("strided"),
      requiresGrad: false,
    }),
  );
  const plain = graph.callFunction("f", [x]);
  plain.meta.set("val", new Date(0));
  const noted = graph.callFunction("f", [plain]);
  const strided = new TensorMeta({
    dtype: "bfloat16",
    sizes: [expr(s0), 2n ** 63n - 1n],
    strides: [-1, expr(s0)],
    storageOffset: expr(`FloorDiv(${s0}, Integer(2))`),
    device: device("cuda:1"),
    layout: layout("sparse_csr"),
    requiresGrad: true,
  });
  const items = [
    null,
    strided,
    7,
    expr(`Add(${s0}, Integer(1))`),
    -0,
    expr("Rational(1, 2)"),
    true,
    expr(`StrictGreaterThan(${s0}, Integer(4))`),
    new ValSequence("tuple", []),
  ];
  noted.meta.set("val", new ValSequence("list", items));
  noted.meta.set("custom", "");
  noted.meta.set("__proto__", "größe");
  noted.meta.set("stack_trace", 'File "m.py", line 3, in forward\n');
  graph.output(noted);
  return graph;
}

function denseModule(): GraphModule {
  const graph = new Graph();
  graph.output(graph.getAttr("weight"));
  const module = GraphModule.ofGraph(graph, "Dense");
  // The second element is a NaN with a payload, which only its bytes keep.
  const bits = Uint32Array.of(0x3f800000, 0x7fc0beef, 0x80000000);
  const weight = tensorFromBytes(bits, "float32", [1, 3]);
  module.attributes.set("weight", { kind: "parameter", tensor: weight });
  module.attributes.set("tied", { kind: "parameter", tensor: weight });
  module.attributes.set("empty", { kind: "buffer", tensor: tensor(new Float64Array(0), { shape: [2, 0] }) });
  module.attributes.set("steps", { kind: "constant", tensor: tensor(2n ** 63n - 1n) });
  return module;
}

const LEAF: TreeSpec = { type: undefined, context: undefined, children: [] };

function container(type: string, children: readonly TreeSpec[], context = "null"): TreeSpec {
  return { type: `builtins.${type}`, context, children };
}

/** A program with something in every field. */
function program(): ProgramParts {
  const weight = tensor([1, 2, 3], { dtype: "float32" });
  const flag = tensor(7);
  const integer = { integer: true, positive: false, nonnegative: false, real: false };
  const inSpec = container("tuple", [
    container("tuple", [LEAF]),
    container("dict", [LEAF, container("list", [])], '["größe"]'),
  ]);
  const signature: CallSignature = {
    inputs: [{ type: "tensor", name: "x" }],
    outputs: [],
    inSpec,
    outSpec: LEAF,
    forwardArgNames: ["x"],
  };
  return {
    graphModule: GraphModule.ofGraph(programGraph()),
    graphSignature: new GraphSignature(inputSpecs(), [
      { kind: "BUFFER_MUTATION", arg: { type: "tensor", name: "add" }, target: "steps" },
      { kind: "USER_OUTPUT", arg: { type: "tensor", name: "mul" }, target: undefined },
      { kind: "USER_OUTPUT", arg: { type: "constant", name: "", value: { type: "None" } }, target: undefined },
    ]),
    state: new Map([
      ["weight", { tensor: weight, isParameter: true, requiresGrad: true }],
      ["tied", { tensor: weight, isParameter: true, requiresGrad: false }],
      ["steps", { tensor: flag, isParameter: false, requiresGrad: false }],
    ]),
    opaqueState: new Map([["subclass", Uint8Array.of(0x80, 2, 0x7d, 0x71, 0, 0x2e)]]),
    constants: new Map([
      ["lifted", { kind: "tensor" as const, tensor: tensor([0.5], { dtype: "float64" }) }],
      ["object", { kind: "customObj" as const, bytes: Uint8Array.of(0x80, 2, 0x2e) }],
      ["nothing", { kind: "customObj" as const, bytes: new Uint8Array() }],
    ]),
    rangeConstraints: new Map([
      ["s0", { assumptions: { ...integer, positive: true }, min: 2, max: 2n ** 63n - 1n }],
      ["u0", { assumptions: integer, min: undefined, max: -1 }],
      ["s77 + 1", { assumptions: integer, min: 3, max: undefined }],
      ["zf1", { assumptions: { ...integer, integer: false, real: true }, min: undefined, max: undefined }],
    ]),
    moduleCallGraph: [
      { fqn: "", signature },
      { fqn: "layer", signature: undefined },
      { fqn: "layer.inner@1", signature: { ...signature, forwardArgNames: undefined } },
    ],
    verifiers: ["TRAINING", "ATEN"],
    guards: ["L['args'][0][0].size()[0] <= 64"],
    exampleInputs: [
      flag,
      [weight, null, -(2n ** 63n)],
      true,
      Float.ofBits(0x7ff800000000beefn),
      complex(-0, 1),
      "größe",
      dtype("float8_e5m2"),
      device("cuda:1"),
      layout("jagged"),
      memoryFormat("preserve_format"),
    ],
    opsetVersion: new Map([
      ["aten", 10],
      ["prims", -1],
    ]),
    schemaVersion: [8, 15],
    torchVersion: "2.9.0+cpu",
    namedtupleFields: new Map([
      ["Point", ["x", "y"]],
      ["Empty", []],
    ]),
    extraFiles: new Map([["notes.txt", "größe\n"]]),
  };
}

function programGraph(): Graph {
  const graph = new Graph();
  const weight = graph.placeholder("p_weight");
  const x = graph.placeholder("x");
  x.meta.set(
    "val",
    new TensorMeta({
      dtype: "float32",
      sizes: [expr("Symbol('s0', positive=True, integer=True)"), 3],
      strides: [3, 1],
      storageOffset: 0,
      device: device("cpu"),
      layout: layout("strided"),
      requiresGrad: false,
    }),
  );
  graph.output(tuple(graph.callFunction("torch.ops.aten.mul.Tensor", [x, weight])));
  return graph;
}

function input(kind: InputSpec["kind"], arg: Argument, target?: string, persistent?: boolean): InputSpec {
  return { kind, arg, target, persistent };
}

function inputSpecs(): InputSpec[] {
  const user = (arg: Argument): InputSpec => input("USER_INPUT", arg);
  const fixed = (name: string, value: ConstantValue): InputSpec => user({ type: "constant", name, value });
  return [
    input("PARAMETER", { type: "tensor", name: "p_weight" }, "weight"),
    input("BUFFER", { type: "tensor", name: "b_steps" }, "steps", true),
    input("BUFFER", { type: "tensor", name: "b_mask" }, "mask", false),
    input("CONSTANT_TENSOR", { type: "tensor", name: "c_lifted" }, "lifted"),
    input("CUSTOM_OBJ", { type: "customObj", name: "obj", classFqn: "my.Class" }, "object"),
    input("TOKEN", { type: "token", name: "token" }),
    user({ type: "tensor", name: "x" }),
    user({ type: "symInt", name: "n" }),
    user({ type: "symFloat", name: "f" }),
    user({ type: "symBool", name: "b" }),
    fixed("none", { type: "None" }),
    fixed("int", { type: "int", value: 2n ** 60n }),
    fixed("float", { type: "float", value: 1 }),
    fixed("nan", { type: "float", value: NaN }),
    fixed("bool", { type: "bool", value: false }),
    fixed("text", { type: "str", value: "größe" }),
  ];
}
