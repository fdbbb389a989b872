import { describe, expect, test } from "vitest";
import type { Arg } from "../../../src/graph/args.ts";
import { BoxedCodeGen, CodeGen } from "../../../src/graph/codegen/codegen.ts";
import { PyTreeCodeGen } from "../../../src/graph/codegen/pytree.ts";
import { Graph } from "../../../src/graph/graph.ts";
import { slice, tuple } from "../../../src/graph/args.ts";
import { GraphModule } from "../../../src/fx/graphModule.ts";
import { complex, device, dtype, Ellipsis, Float, float, layout, memoryFormat, op } from "../../../src/base/values.ts";
import { tensor } from "../../../src/tensor/construct.ts";

function codeOf(fill: (graph: Graph) => void, owner?: (graph: Graph) => void): string {
  const graph = new Graph();
  fill(graph);
  owner?.(graph);
  const code = graph.generateCode();
  expect(graph.generateCode(), "generating again").toEqual(code);
  return code.source;
}

/** Makes a module with names that have dots, or that every object has, the owner of a graph. */
function own(graph: Graph): void {
  const gm = GraphModule.ofGraph(graph);
  const inner = new GraphModule();
  inner.attributes.set("b.c", { kind: "buffer", tensor: tensor([1]) });
  gm.attributes.set("a", { kind: "module", module: inner });
  gm.attributes.set("constructor", { kind: "module", module: inner });
}

/** The expression of the last statement before the output. */
function expressionOf(make: (graph: Graph) => void): string {
  const source = codeOf(make);
  return /let [\w$]+ = (.*?);(?: {2}|\n\})/.exec(source.slice(source.lastIndexOf("let ")))?.[1] ?? source;
}

describe("CG-02, CG-03: expressions", () => {
  test.each<[wanted: string, make: (graph: Graph) => void]>([
    ["torch.logSoftmax(1, { dim: 0 })", (g) => g.callFunction("torch.log_softmax", [1], { dim: 0 })],
    ["F.layerNorm([2])", (g) => g.callFunction("torch.nn.functional.layer_norm", [[2]])],
    ["torch.ops.aten.add.Tensor(1)", (g) => g.callFunction("torch.ops.aten.add.Tensor", [1])],
    ["my_module_f(1)", (g) => g.callFunction("my.module.f", [1])],
    ["torch._C._nn.gelu(1)", (g) => g.callFunction("torch._C._nn.gelu", [1])],
    ["torch.linalg.vectorNorm(1)", (g) => g.callFunction("torch._C._linalg.linalg_vector_norm", [1])],
    ["torch.ops.aten.relu.default(1)", (g) => g.callFunction("torch.ops.aten.relu.default", [1])],
    ["aten_relu(1)", (g) => g.callFunction("torch.ops.aten.relu", [1])],
    ["prims_iota_default(1)", (g) => g.callFunction("torch.ops.prims.iota.default", [1])],
    ["aten_constructor_default(1)", (g) => g.callFunction("torch.ops.aten.constructor.default", [1])],
    ["torch._assert(1)", (g) => g.callFunction("torch._assert", [1])],
    ["torch_nn_functional__threshold(1)", (g) => g.callFunction("torch.nn.functional._threshold", [1])],
    ["torch.symMax(1)", (g) => g.callFunction("torch.sym_max", [1])],
    ["operator.and_(1, 2)", (g) => g.callFunction("operator.and_", [1, 2])],
    ["math.sqrt(2)", (g) => g.callFunction("math.sqrt", [2])],
    ["(-1).abs()", (g) => g.callMethod("abs", [-1])],
    ['("a").requiresGrad', (g) => g.callFunction("builtins.getattr", ["a", "requires_grad"])],
    ['builtins.getattr("a", "values")', (g) => g.callFunction("builtins.getattr", ["a", "values"])],
    ['builtins.getattr(1, "constructor")', (g) => g.callFunction("builtins.getattr", [1, "constructor"])],
    ['builtins.getattr(1, "T", { default: 2 })', (g) => g.callFunction("builtins.getattr", [1, "T"], { default: 2 })],
    ["(null).memoryFormat({ memoryFormat: 1 })", (g) => g.callMethod("memory_format", [null], { memory_format: 1 })],
    ['(1)["a-b"](2)', (g) => g.callMethod("a-b", [1, 2])],
    ['builtins.getattr(1, "__proto__")(2)', (g) => g.callMethod("__proto__", [1, 2])],
    ["torch_constructor(1)", (g) => g.callFunction("torch.constructor", [1])],
    ["this.a.b.forward(1, { c: 2 })", (g) => g.callModule("a.b", [1], { c: 2 })],
    ['this.a["0"].weight', (g) => g.getAttr("a.0.weight")],
    ['this.getTensor("constructor.constructor")', (g) => g.getAttr("constructor.constructor")],
    ['this.getSubmodule("__proto__").forward()', (g) => g.callModule("__proto__")],
    ["my_f({ a_b: 1, aB: 2 })", (g) => g.callFunction("my.f", [], { a_b: 1, aB: 2 })],
    [
      'my_f({ ["__proto__"]: 1, "x y": 2 })',
      (g) =>
        g.callFunction(
          "my.f",
          [],
          new Map([
            ["__proto__", 1],
            ["x y", 2],
          ]),
        ),
    ],
    ["my_f(1, { a: 1 })", (g) => g.callFunction("my.f", [1, { a: 1 }])],
    ["my_f({ a: 1 }, 2)", (g) => g.callFunction("my.f", [{ a: 1 }, 2])],
  ])("%s", (wanted, make) => {
    expect(expressionOf(make)).toBe(wanted);
  });

  test("of paths follow names that have dots themselves", () => {
    const source = codeOf((graph) => {
      graph.getAttr("a.b.c");
      graph.getAttr("constructor");
      graph.getAttr("not.there");
      graph.callModule("a", [], { my_key: 1 });
      graph.callModule("other", [], { my_key: 1 });
    }, own);
    expect(source).toContain('= this.a["b.c"];');
    expect(source).toContain('= this.getSubmodule("constructor");');
    expect(source).toContain("= this.not.there;");
    expect(source).toContain("= this.a.forward({ my_key: 1 });");
    expect(source).toContain("= this.other.forward({ myKey: 1 });");
  });
});

test("CG-05: constants are what they were", () => {
  const values: readonly (readonly [Parameters<Graph["output"]>[0], string])[] = [
    [Infinity, "Infinity"],
    [-Infinity, "-Infinity"],
    [Number.NaN, "NaN"],
    [-0, "-0"],
    [float(-0), "-0"],
    [float(3), "float(3)"],
    [float(1e300), "float(1e+300)"],
    [Float.ofBits(0x7ff8000000000001n), "Float.ofBits(0x7ff8000000000001n)"],
    [2n ** 62n, "4611686018427387904n"],
    [complex(-0, 1.5), "complex(-0, 1.5)"],
    [complex(Number.NaN, -Infinity), "complex(NaN, -Infinity)"],
    [slice(null, 2), "slice(null, 2, null)"],
    [Ellipsis, "Ellipsis"],
    [dtype("float16"), "torch.float16"],
    [device("cuda:1"), 'device("cuda:1")'],
    [layout("strided"), 'layout("strided")'],
    [memoryFormat("channels_last"), 'memoryFormat("channels_last")'],
    [op("torch.ops.aten.add.Tensor"), 'op("torch.ops.aten.add.Tensor")'],
    [tuple(), "tuple()"],
    [tuple(1, [true, null]), "tuple(1, [true, null])"],
    [{}, "{}"],
    [{ a: [], "b c": {} }, '{ a: [], "b c": {} }'],
    [
      'it\'s "quoted" \\ \n \u2028 \u202e é \ud800 </script> `${x}`',
      '"it\'s \\"quoted\\" \\\\ \\n \\u2028 \\u202e é \\ud800 \\u003c/script> `${x}`"',
    ],
  ];
  const graph = new Graph();
  graph.output(values.map(([value]) => value));
  expect(graph.generateCode().source).toBe(
    `function forward() {\n  return [${values.map(([, text]) => text).join(", ")}];\n}\n`,
  );
});

test("CG-06: an empty graph gives None", () => {
  expect(codeOf(() => undefined)).toBe("function forward() {\n  return null;\n}\n");
});

describe("NM-06: variables", () => {
  test("hide nothing that the code refers to, and are no words of JavaScript", () => {
    const graph = new Graph();
    const names = ["torch", "tuple", "function", "this", "F", "arguments", "a b", "my_relu", "let"];
    const inputs = names.map((name) => graph.createNamedNode("placeholder", name, [], {}, name));
    graph.output(tuple(graph.callFunction("my.relu", inputs), graph.callFunction("torch.relu", [])));
    const { source, globals } = graph.generateCode();
    expect(source).toBe(`function forward(torch_1, tuple_1, function_1, this_1, F_1, arguments_1, a_b, my_relu, let_1) {
  let relu = my_relu_1(torch_1, tuple_1, function_1, this_1, F_1, arguments_1, a_b, my_relu, let_1);  torch_1 = tuple_1 = function_1 = this_1 = F_1 = arguments_1 = a_b = my_relu = let_1 = null;
  let relu_1 = torch.relu();
  return tuple(relu, relu_1);
}
`);
    expect([...globals]).toEqual([
      ["my_relu_1", { kind: "function", target: "my.relu" }],
      ["torch", { kind: "export" }],
      ["tuple", { kind: "export" }],
    ]);
  });
});

describe("CG-04: inputs", () => {
  test("behind `*rest` have what the interpreter gives them, or are refused", () => {
    const graph = new Graph();
    graph.placeholder("*rest");
    graph.placeholder("**options");
    graph.placeholder("scale", "float", 0.5);
    expect(graph.generateCode().source).toBe(
      "function forward(..._rest) {\n  let _options = {};\n  let scale /* float */ = 0.5;\n  return null;\n}\n",
    );
    graph.placeholder("late");
    expect(() => graph.generateCode()).toThrow(expect.objectContaining({ kind: "GraphInvalid", node: "late" }));
  });

  test("of a method are those of a function", () => {
    const graph = new Graph();
    graph.output(graph.placeholder("**options"));
    expect(graph.generateCode({ form: "method" }).source).toBe("forward(_options = {}) {\n  return _options;\n}\n");
  });
});

describe("CG-07: onGenerateCode", () => {
  test("changes the body, chains, and is undone; lines still lead to their nodes", () => {
    const graph = new Graph();
    const x = graph.placeholder("x");
    const neg = graph.callFunction("torch.neg", [x]);
    graph.output(neg);
    const plain = graph.generateCode().source;
    const insert = (text: string): Disposable =>
      graph.onGenerateCode((current) => (body) => [{ text }, ...(current?.(body) ?? body)]);
    const first = insert("one();");
    {
      using _second = insert("two();");
      const { source, lineMap } = graph.generateCode();
      expect(source.split("\n").slice(1, 4)).toEqual(["  two();", "  one();", "  let neg = torch.neg(x);  x = null;"]);
      expect(Array.from(lineMap, ([line, node]) => [line, node.name])).toEqual([
        [4, "neg"],
        [5, "output"],
      ]);
    }
    expect(graph.generateCode().source).toContain("{\n  one();\n  let");
    first[Symbol.dispose]();
    expect(graph.generateCode().source).toBe(plain);
    const copy = graph.clone();
    graph.onGenerateCode(() => () => [{ text: "return 1;" }]);
    expect(copy.generateCode().source, "a copy has its own").toBe(plain);
    expect(graph.clone().generateCode().source).toBe("function forward(x) {\n  return 1;\n}\n");
    expect(graph.generateCode().source).toBe("function forward(x) {\n  return 1;\n}\n");
  });
});

describe("PT-05: the function around the body", () => {
  const graph = new Graph();
  const [x, y] = [graph.placeholder("inputs", "int"), graph.placeholder("y", undefined, 1)];
  graph.output(tuple(x, y));

  test("may take one array and empty it", () => {
    graph.setCodegen(new BoxedCodeGen());
    expect(graph.generateCode().source).toBe(`function forward(inputs_1) {
  let [inputs /* int */, y = 1] = inputs_1;
  inputs_1.length = 0;
  return tuple(inputs, y);
}
`);
    const inputs = [1, 2];
    expect([graph.processInputs(inputs), inputs, graph.processOutputs(3)]).toEqual([[1, 2], [], 3]);
  });

  test("may take nested values", () => {
    const inSpec = { flatten: ([pair]: readonly unknown[]) => pair as unknown[] };
    const outSpec = { unflatten: (leaves: readonly unknown[]) => ({ leaves }) };
    graph.setCodegen(new PyTreeCodeGen({ origArgs: ["torch", "*rest"], inSpec, outSpec }));
    const { source, globals } = graph.generateCode();
    expect(source).toBe(`function forward(torch_1, ...rest) {
  let [inputs /* int */, y = 1] = $inSpec.flatten([torch_1, ...rest]);
  return $outSpec.unflatten([inputs, y]);
}
`);
    expect(globals.get("$inSpec")).toEqual({ kind: "value", value: inSpec });
    expect(graph.processInputs([1, 2])).toEqual([1, 2]);
    expect(graph.processOutputs([1, 2])).toEqual({ leaves: [1, 2] });
    expect(graph.processOutputs(1)).toEqual({ leaves: [1] });
  });

  test("may be anything, and goes with copies of the graph", () => {
    class Doubled extends CodeGen {
      override get functionName(): string {
        return "twice";
      }
      override generateOutput(output: Arg, write: (arg: Arg) => string): string {
        return `return double(${write(output)});`;
      }
      override additionalGlobals(): Iterable<readonly [string, unknown]> {
        return [["double", this.processOutputs]];
      }
      override processOutputs(output: unknown): unknown {
        return [output, output];
      }
    }
    graph.setCodegen(new Doubled());
    const copy = graph.clone();
    expect(copy.generateCode().source).toContain("function twice(inputs /* int */, y = 1) {\n  return double(tuple(");
    expect(copy.processOutputs(1)).toEqual([1, 1]);
  });

  test.each(["a b", "torch", "if", "1x"])("cannot refer to a global called %s", (name) => {
    class Bad extends CodeGen {
      override additionalGlobals(): Iterable<readonly [string, unknown]> {
        return [[name, 1]];
      }
    }
    graph.setCodegen(new Bad());
    expect(() => graph.generateCode()).toThrow(expect.objectContaining({ kind: "InvalidOption" }));
  });

  test("cannot have a name that is none", () => {
    class Bad extends CodeGen {
      override get functionName(): string {
        return "f() {} evil";
      }
    }
    graph.setCodegen(new Bad());
    expect(() => graph.generateCode()).toThrow(expect.objectContaining({ kind: "InvalidOption" }));
  });
});

test("CG-11: code is that of the graph as it is now", () => {
  const graph = new Graph();
  const gm = GraphModule.ofGraph(graph);
  const neg = graph.callFunction("torch.neg", [graph.placeholder("x")]);
  graph.output(neg);
  expect(gm.code).toContain("torch.neg(x)");
  neg.target = "torch.abs";
  expect(gm.code).toContain("torch.abs(x)");
  gm.graph = new Graph();
  expect(gm.code).toBe("function forward() {\n  return null;\n}\n");
});
