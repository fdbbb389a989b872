import { describe, expect, test } from "vitest";
import { formatExpression } from "../../src/graph/expression.ts";
import { Graph } from "../../src/graph/graph.ts";
import { isNode } from "../../src/graph/args.ts";
import type { Node } from "../../src/graph/node.ts";
import { SymExpr, type SymInt, TensorMeta, ValSequence } from "../../src/graph/val.ts";
import { device, LayoutArg } from "../../src/base/values.ts";

const symbol = (name: string): string => `Symbol('${name}', positive=True, integer=True)`;
const [a, b, c] = ["a", "b", "c"].map(symbol) as [string, string, string];

function meta(sizes: SymInt[], strides: SymInt[]): TensorMeta {
  return new TensorMeta({
    dtype: "float32",
    sizes,
    strides,
    storageOffset: new SymExpr(a),
    device: device("cpu"),
    layout: new LayoutArg("strided"),
    requiresGrad: false,
  });
}

/** An input that is the symbol `a`, and one with the sizes `b`, `2*c` and 4. */
function example(): { graph: Graph; x: Node } {
  const graph = new Graph();
  graph.placeholder("n").meta.set("val", new SymExpr(a));
  const x = graph.placeholder("x");
  const sizes = [new SymExpr(b), new SymExpr(`Mul(Integer(2), ${c})`), 4];
  x.meta.set("val", meta(sizes, [new SymExpr(`Mul(Integer(8), ${c})`), 4, 1]));
  return { graph, x };
}

function text(value: unknown): string {
  return value instanceof SymExpr ? formatExpression(value) : String(value);
}

describe("GR-24: sizes, strides and offsets", () => {
  test("of a tensor are nodes with what is known", () => {
    const { graph, x } = example();
    const nodes = [
      graph.createSizeNode(x, 0),
      graph.createSizeNode(x, -1),
      graph.createStrideNode(x, 0),
      graph.createStorageOffsetNode(x),
    ];
    expect(nodes.map((it) => [it.target, ...it.args.slice(1), text(it.meta.get("val"))])).toEqual([
      ["torch.ops.aten.sym_size.int", 0, "b"],
      ["torch.ops.aten.sym_size.int", -1, "4"],
      ["torch.ops.aten.sym_stride.int", 0, "8*c"],
      ["torch.ops.aten.sym_storage_offset.default", "a"],
    ]);
    for (const dim of [3, -4, 0.5]) {
      expect(() => graph.createSizeNode(x, dim)).toThrow(expect.objectContaining({ kind: "IndexOutOfRange" }));
    }
  });

  test("are noted as the tensor is, or not at all", () => {
    const graph = new Graph();
    const [x, y] = [graph.placeholder("x"), graph.placeholder("y")];
    x.meta.set("example_value", meta([2], [1]));
    expect([...graph.createSizeNode(x, 0).meta]).toEqual([["example_value", 2]]);
    expect([...graph.createStrideNode(y, 5).meta, ...graph.createStorageOffsetNode(y).meta]).toEqual([]);
  });
});

describe("GR-24: symbols are materialized as PyTorch does", () => {
  test.each<[values: (string | number)[], results: string, lines: string[]]>([
    [[a], "n", []],
    [[7, a, 3], "7 n 3", []],
    [[b], "sym_size_int", ["sym_size_int = sym_size.int(%x, 0): b"]],
    [[c], "floordiv", ["sym_size_int = sym_size.int(%x, 1): 2*c", "floordiv = floordiv(%sym_size_int, 2): c"]],
    [
      [`Add(Mul(Integer(2), ${a}), Integer(1))`, `Add(${b}, Mul(Integer(2), ${a}))`],
      "add add_1",
      [
        "mul = mul(2, %n): 2*a",
        "add = add(1, %mul): 2*a + 1",
        "sym_size_int = sym_size.int(%x, 0): b",
        "add_1 = add(%sym_size_int, %mul): b + 2*a",
      ],
    ],
    [
      [`Mul(${c}, ${b}, ${a})`],
      "mul_1",
      [
        "sym_size_int = sym_size.int(%x, 1): 2*c",
        "floordiv = floordiv(%sym_size_int, 2): c",
        "sym_size_int_1 = sym_size.int(%x, 0): b",
        "mul = mul(%floordiv, %sym_size_int_1): undefined",
        "mul_1 = mul(%mul, %n): c*b*a",
      ],
    ],
    [
      [`FloorDiv(${a}, Integer(2))`, `Mod(${a}, Integer(3))`],
      "floordiv mod",
      ["floordiv = floordiv(%n, 2): (a//2)", "mod = mod(%n, 3): Mod(a, 3)"],
    ],
    [[`Add(${a}, Integer(-1))`], "add", ["add = add(-1, %n): a - 1"]],
    [[`Pow(${a}, Integer(2))`], "pow_1", ["pow_1 = pow(%n, 2): a**2"]],
    [[`Min(Integer(3), ${a})`], "sym_min", ["sym_min = sym_min(3, %n): Min(3, a)"]],
  ])("%s", (values, results, lines) => {
    const { graph, x } = example();
    const made = graph.materializeSymints(values.map((it) => (typeof it === "string" ? new SymExpr(it) : it)));
    expect(made.map((it) => (isNode(it) ? it.name : String(it))).join(" ")).toBe(results);
    const after = [...graph.nodes].slice(2).map((it) => {
      const args = it.formatNode().replace(/.*args = \((.*?),?\), kwargs.*/, "$1");
      return `${it.name} = ${it.target.replace(/^torch\.ops\.aten\.|^operator\.|^torch\./, "")}(${args}): ${text(it.meta.get("val"))}`;
    });
    expect(after).toEqual(lines);
    expect(x.graph.problems()).toEqual([]);
  });

  test("from other nodes where no input has them, and from the items of what they give", () => {
    const graph = new Graph();
    const item = graph.callFunction("torch.ops.aten.item.default", [graph.placeholder("x")]);
    item.meta.set("val", new SymExpr("Symbol('u0', integer=True)"));
    const pair = graph.callFunction("my.pair");
    pair.meta.set("val", new ValSequence("tuple", [1, new SymExpr("Symbol('u1', integer=True)")]));
    const [u0, u1] = graph.materializeSymints([
      new SymExpr("Symbol('u0', integer=True)"),
      new SymExpr("Symbol('u1', integer=True)"),
    ]) as [Node, Node];
    expect(u0 === item).toBe(true);
    expect(u1.formatNode()).toContain("operator.getitem](args = (%pair, 1)");
  });

  test.each([
    ["Symbol('missing')", "GraphInvalid"],
    [`Piecewise(${a}, ${b})`, "NotImplemented"],
    [`Mul(Float('0.5'), ${a})`, "NotImplemented"],
    ["Add()", "ExpressionMalformed"],
    ["Add(", "ExpressionMalformed"],
  ])("or refused: %s", (srepr, kind) => {
    expect(() => example().graph.materializeSymints([new SymExpr(srepr)])).toThrow(expect.objectContaining({ kind }));
  });
});
