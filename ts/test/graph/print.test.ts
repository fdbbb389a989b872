import { inspect } from "node:util";
import { expect, test } from "vitest";
import { Graph } from "../../src/graph/graph.ts";
import { formatArg, formatTabular, repr } from "../../src/graph/print.ts";
import { SymExpr, TensorMeta } from "../../src/graph/val.ts";
import { pythonFloat } from "../../src/graph/python.ts";
import { slice, tuple } from "../../src/graph/args.ts";
import {
  complex,
  device,
  dtype,
  Ellipsis,
  float,
  layout,
  memoryFormat,
  op,
  type Tuple,
} from "../../src/base/values.ts";

test("values print as Python's repr", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  const args = [
    tuple(x),
    tuple(),
    [tuple(x, 1), "it's"],
    new Map([["a b", [float(1), -0, 0.1]]]),
    slice(x, null, -1),
    Ellipsis,
    complex(0, -2),
    complex(-0, 1.5),
    complex(1, Number.NaN),
    dtype("float32"),
    device("cuda:1"),
    device("cpu"),
    layout("strided"),
    memoryFormat("channels_last"),
    op("torch.ops.aten.add.Tensor"),
    2n ** 62n,
    'say "hi"\n\u0007\u2028é\u200b\ud800',
    "e\u0301 \u{10ffff}\u00a0",
  ];
  expect(Array.from(graph.output(tuple(...args)).args[0] as Tuple, repr)).toEqual([
    "(x,)",
    "()",
    `[(x, 1), "it's"]`,
    "{'a b': [1.0, -0.0, 0.1]}",
    "slice(x, None, -1)",
    "Ellipsis",
    "-2j",
    "(-0+1.5j)",
    "(1+nanj)",
    "torch.float32",
    "device(type='cuda', index=1)",
    "device(type='cpu')",
    "torch.strided",
    "torch.channels_last",
    "<OpOverload(op='aten.add', overload='Tensor')>",
    "4611686018427387904",
    `'say "hi"\\n\\x07\\u2028é\\u200b\\ud800'`,
    "'e\u0301 \\U0010ffff\\xa0'",
  ]);
  expect(formatArg(x)).toBe("%x");
});

test("consoles show a node by its name, and nothing of what the graph keeps in it", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  expect(inspect([x, graph.callFunction("torch.relu", [x])])).toBe("[ x, relu ]");
});

test.each([
  [1, "1.0"],
  [-0, "-0.0"],
  [0.1, "0.1"],
  [1e15, "1000000000000000.0"],
  [123456789012345680, "1.2345678901234568e+17"],
  [1e16, "1e+16"],
  [1e-4, "0.0001"],
  [1.5e-5, "1.5e-05"],
  [-2.5e-300, "-2.5e-300"],
  [100.25, "100.25"],
  [Number.NaN, "nan"],
  [-Infinity, "-inf"],
])("the float %d prints as %s", (value, text) => {
  expect(pythonFloat(value)).toBe(text);
});

test("GR-25: a call prints what is known of its tensor on request", () => {
  const graph = new Graph();
  const x = graph.placeholder("x", "int");
  const val = new TensorMeta({
    dtype: "float32",
    sizes: [2, new SymExpr("Symbol('s0')")],
    strides: [new SymExpr("Symbol('s0')"), 1],
    storageOffset: 0,
    device: device("cuda:0"),
    layout: layout("strided"),
    requiresGrad: false,
  });
  x.meta.set("val", val);
  const neg = graph.callFunction("torch.neg", [x], {}, "Tensor");
  expect(neg.formatNode({ includeTensorMetadata: true })).toContain("%neg : Tensor [num_users=0]");
  neg.meta.set("val", val);
  expect(neg.formatNode({ includeTensorMetadata: true })).toContain(
    '%neg : Tensor "f32[2, s0][s0, 1]cuda:0"[num_users=0]',
  );
  expect(neg.formatNode()).toContain("%neg : Tensor [num_users=0]");
  expect(x.formatNode({ includeTensorMetadata: true })).toContain("%x : int [num_users=1]");
});

test("GR-25: the table has the columns of print_tabular", () => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  graph.output(graph.callFunction("torch.ops.aten.add.Tensor", [x, 1], { alpha: 2 }));
  expect(formatTabular(graph)).toMatchInlineSnapshot(`
    "opcode         name        target           args           kwargs
    -------------  ----------  ---------------  -------------  ------------
    placeholder    x           x                ()             {}
    call_function  add_tensor  aten.add.Tensor  (x, 1)         {'alpha': 2}
    output         output      output           (add_tensor,)  {}"
  `);
});
