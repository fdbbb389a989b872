import { describe, expect, test } from "vitest";
import { normalizedArguments, normalizeFunction, normalizeModule } from "../../src/fx/normalize.ts";
import { recordsOf } from "../../src/base/records.ts";
import { schemasOf, typeMatches } from "../../src/functions/schemas.ts";
import { defineFunction } from "../../src/functions/table.ts";
import { SCHEMAS } from "../../../bindings/schemas.ts";
import { Graph } from "../../src/graph/graph.ts";
import { repr } from "../../src/graph/print.ts";
import { markBuiltin } from "../../src/nn/builtin.ts";
import { Module } from "../../src/nn/module.ts";

describe("schemas", () => {
  test("are all understood", () => {
    const lines = recordsOf(SCHEMAS);
    for (const line of lines) {
      const name = line.slice(0, line.search(/[.(]/));
      const schema = schemasOf(name).find((it) => it.text === line);
      for (const it of schema?.parameters ?? []) {
        expect(it.name, line).toMatch(/^\w+$/);
        expect(it.type, line).toMatch(/^\w+(\[\d*\])?\??(\[\d*\])?\??$/);
      }
      const count = line.includes("()") ? 0 : line.replace(/\[[^\]]*\]|\([a-z!|]+\)/g, "").split(",").length;
      expect(schema?.parameters.length, line).toBe(count - Number(line.includes("*,")));
    }
    expect(lines.length).toBeGreaterThan(800);
    expect(schemasOf("constructor")).toEqual([]);
  });

  test("have parameters as Python does", () => {
    const [tensor] = schemasOf("add");
    expect(tensor).toMatchObject({
      overload: "Tensor",
      parameters: [
        { name: "input", kind: "positional-or-keyword", type: "Tensor", default: undefined },
        { name: "other", kind: "positional-or-keyword", type: "Tensor", default: undefined },
        { name: "alpha", kind: "keyword", type: "Scalar", default: 1 },
      ],
    });
    const [conv] = schemasOf("conv2d");
    const defaults = conv?.parameters.map((it) => (it.default === undefined ? "" : repr(it.default)));
    expect(defaults).toEqual(["", "", "None", "[1, 1]", "[0, 0]", "[1, 1]", "1"]);
  });
});

describe("types of arguments", () => {
  test.each([
    ["Tensor", "Tensor", true],
    ["Tensor", "int", false],
    ["Tensor?", "None", true],
    ["Tensor?", "Tensor", true],
    ["Tensor", "None", false],
    ["Scalar", "float", true],
    ["Scalar", "str", false],
    ["float", "int", false],
    ["int", "bool", true],
    ["SymInt[2]", "int", true],
    ["SymInt[2]", "int[]", true],
    ["int[1]?", "None", true],
    ["int[1]?", "int", true],
    ["Tensor[]", "Tensor[]", true],
    ["Tensor[]", "Tensor", false],
    ["Tensor?[]", "Tensor[]", false],
    ["float[]", "int", false],
    ["ScalarType?", "dtype", true],
    ["Generator?", "int", false],
  ] as const)("%s takes %s: %s", (type, argument, wanted) => {
    expect(typeMatches(type, argument)).toBe(wanted);
  });
});

describe("arguments of functions", () => {
  defineFunction("my.scale", (x: unknown) => x, { signature: "(input, by=2, *, eps=1e-05)" });
  defineFunction("my.any", (x: unknown) => x, { signature: "(*input)" });

  test("follow the parameters that a function was defined with", () => {
    const call = { args: ["x"], kwargs: { eps: 1 } };
    expect(normalizeFunction("my.scale", call)).toEqual({ args: ["x"], kwargs: { by: 2, eps: 1 } });
    const all = normalizeFunction({ target: "my.scale" }, call, { normalizeToOnlyUseKwargs: true });
    expect(Object.entries(all?.kwargs ?? {})).toEqual([
      ["input", "x"],
      ["by", 2],
      ["eps", 1],
    ]);
    expect(() => normalizeFunction("my.scale", { args: [], kwargs: {} })).toThrow(
      "missing 1 required positional argument",
    );
  });

  test("are not known where they have no names", () => {
    expect(normalizeFunction("my.any", { args: [1], kwargs: {} })).toBe(undefined);
    expect(normalizeFunction("my.unknown", { args: [1], kwargs: {} })).toBe(undefined);
    expect(normalizeFunction("torch.nn.relu", { args: [1], kwargs: {} })).toBe(undefined);
    expect(normalizeFunction("torch.relu", { args: [], kwargs: {} })).toBe(undefined);
  });

  test("choose among overloads by their types", () => {
    const call = { args: ["x", 1], kwargs: {} };
    expect(() => normalizeFunction("torch.clamp", call)).toThrow(
      expect.objectContaining({
        kind: "SchemaMismatch",
        notes: [expect.stringContaining("clamp("), expect.stringContaining("clamp.Tensor(")],
      }),
    );
    const wanted = { args: ["x", 1], kwargs: { max: null } };
    expect(normalizeFunction("torch.clamp", call, { argTypes: ["Tensor", "int"] })).toEqual(wanted);
    expect(normalizeFunction("torch.clamp", call, { argTypes: ["Tensor", "str"] })).toBe(undefined);
    expect(normalizeFunction("torch.ops.aten.clamp.Tensor", call)).toEqual(wanted);
    const named = { args: ["x"], kwargs: { max: 1 } };
    expect(normalizeFunction("torch.clamp", named, { argTypes: ["Tensor"], kwargTypes: { max: "float" } })).toEqual({
      args: ["x"],
      kwargs: { min: null, max: 1 },
    });
  });

  test("may be given by position only where `from` is a parameter", () => {
    const call = { args: ["x", 0, 1], kwargs: {} };
    expect(normalizeFunction("torch.ops.aten.uniform.default", call)).toEqual({ ...call, kwargs: { generator: null } });
  });
});

describe("arguments of modules", () => {
  class Bilinear extends Module {
    static override readonly forwardSignature: string = "(input1, input2)";
    override forward(): void {}
  }
  class Relu extends Module {
    override forward(): void {}
  }
  markBuiltin({ Bilinear, Relu });
  class Own extends Relu {
    override forward(): void {}
  }

  test("follow PyTorch's forward, of torch.nn's own modules", () => {
    const root = new Module();
    root.addModule("pair", new Bilinear());
    root.addModule("act", new Relu());
    root.addModule("own", new Own());
    const options = { normalizeToOnlyUseKwargs: true };
    expect(normalizeModule(root, "pair", { args: [1, 2], kwargs: {} }, options)?.kwargs).toEqual({
      input1: 1,
      input2: 2,
    });
    expect(normalizeModule(root, "act", { args: [1], kwargs: {} }, options)?.kwargs).toEqual({ input: 1 });
    expect(normalizeModule(root, "own", { args: [1], kwargs: {} })).toBe(undefined);
    expect(() => normalizeModule(root, "none", { args: [], kwargs: {} })).toThrow("root did not have that target");
  });

  test("of nodes are those of what they call", () => {
    const root = new Module();
    root.addModule("act", new Relu());
    const graph = new Graph();
    const x = graph.placeholder("x");
    const call = graph.callModule("act", [x]);
    const add = graph.callFunction("torch.ops.aten.add.Tensor", [x], { other: 1 });
    expect(normalizedArguments(call, root, { normalizeToOnlyUseKwargs: true })?.kwargs).toEqual({ input: x });
    expect(normalizedArguments(add, root)?.kwargs).toEqual({ other: 1, alpha: 1 });
    expect(normalizedArguments(graph.callMethod("relu", [x]), root)).toBe(undefined);
  });
});
