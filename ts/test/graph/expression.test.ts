import { describe, expect, test } from "vitest";
import { formatExpression } from "../../src/graph/expression.ts";
import { SymExpr } from "../../src/graph/val.ts";

const s0 = "Symbol('s0', positive=True, integer=True)";
const u1 = "Symbol('u1', integer=True)";

describe("expressions print as Python's str", () => {
  test.each([
    [s0, "s0"],
    ["Integer(-3)", "-3"],
    ["Float('1.5', precision=53)", "1.5"],
    ["Rational(1, 2)", "1/2"],
    ["true", "True"],
    [`Add(${s0}, Integer(1))`, "s0 + 1"],
    [`Add(Mul(Integer(2), ${s0}), Mul(Integer(-1), ${u1}), Integer(-1))`, "2*s0 - u1 - 1"],
    [`Mul(Integer(2), Add(${s0}, Integer(1)))`, "2*(s0 + 1)"],
    [`Mul(${s0}, ${u1})`, "s0*u1"],
    [`Mul(Integer(-1), ${s0})`, "-s0"],
    [`Pow(${s0}, Integer(2))`, "s0**2"],
    [`Pow(Add(${s0}, ${u1}), Integer(2))`, "(s0 + u1)**2"],
    [`FloorDiv(Add(${s0}, Integer(-1)), Integer(2))`, "((s0 - 1)//2)"],
    [`Add(FloorDiv(${s0}, Integer(2)), Integer(1))`, "(s0//2) + 1"],
    [`Mod(${s0}, Integer(2))`, "Mod(s0, 2)"],
    [`Max(Integer(1), ${s0})`, "Max(1, s0)"],
    [`GreaterThan(${s0}, Integer(2))`, "s0 >= 2"],
    [`Equality(Mod(${s0}, Integer(2)), Integer(0))`, "Eq(Mod(s0, 2), 0)"],
    ["Symbol('s1')", "s1"],
  ])("%s", (srepr, text) => {
    expect(formatExpression(new SymExpr(srepr))).toBe(text);
  });
});

test.each([
  "",
  "Add(",
  "Symbol(s0)",
  "Integer('x')",
  "Integer(1) Integer(2)",
  "s0",
  "__import__('os')",
  `${"Abs(".repeat(300)}Integer(1)${")".repeat(300)}`,
  "Symbol('s0', integer)",
])("what is no expression is refused: %s", (srepr) => {
  expect(() => formatExpression(new SymExpr(srepr))).toThrow(expect.objectContaining({ kind: "ExpressionMalformed" }));
});
