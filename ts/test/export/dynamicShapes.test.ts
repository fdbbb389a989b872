import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  AdditionalInputs,
  Dim,
  dims,
  draftExport,
  type DynamicShapes,
  exportProgram,
  init,
  Module,
  refineDynamicShapesFromSuggestedFixes,
  resolveDynamicShapes,
  ShapesCollection,
  type Tensor,
  torch,
} from "../../src/index.ts";
import { fixesInTypeScript } from "../../src/export/refineShapes.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

interface Case {
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly shapes: unknown;
  readonly message: string;
}

const file = new URL("../../../tests/fixtures/shapes/structure.jsonl", import.meta.url);
const cases = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((it) => JSON.parse(it) as Case);

/** A tensor, a dimension, or what they are in; keys of dimensions begin with #. */
function decode(it: unknown): unknown {
  if (Array.isArray(it)) return it.map(decode);
  if (typeof it !== "object" || it === null) return it;
  const { tensor, hint, name, min, max } = it as {
    tensor?: number[];
    hint?: "AUTO";
    name?: string;
    min?: number;
    max?: number;
  };
  if (tensor !== undefined) return torch.zeros(tensor);
  if (hint !== undefined) return Dim[hint];
  if (name !== undefined) return Dim(name, { ...(min !== undefined && { min }), ...(max !== undefined && { max }) });
  return Object.fromEntries(Object.entries(it).map(([key, value]) => [key.replace("#", ""), decode(value)]));
}

describe("what PyTorch refuses of the structure", () => {
  test.each(cases.map((it) => [it.message.slice(0, 120), it] as const))("%s", (_, { inputs, shapes, message }) => {
    const values = Object.values(inputs).map(decode);
    const refusal = thrown(() => resolveDynamicShapes(Object.keys(inputs), values, decode(shapes) as DynamicShapes));
    const [expected = ""] = message.replace("  but", " but").split(" For more information about this error");
    expect([refusal.code, refusal.reason]).toEqual(["FX1103", expected]);
  });
});

test("leaves have their sources and what was said of them", () => {
  const [x, y] = [torch.zeros([4, 3]), torch.zeros([2])];
  const batch = Dim("batch");
  const resolved = resolveDynamicShapes(["args", "n"], [[x, { key: y }], 3], {
    args: [{ 0: batch }, { key: [Dim.AUTO] }],
    n: Dim.DYNAMIC,
  });
  expect(resolved.map((it) => [it.source, it.dims])).toEqual([
    ["L['args'][0]", [batch, null]],
    ["L['args'][1]['key']", [Dim.AUTO]],
    ["L['n']", [Dim.DYNAMIC]],
  ]);
});

test("nothing said is nothing dynamic", () => {
  expect(resolveDynamicShapes(["x"], [torch.zeros([4])]).map((it) => it.dims)).toEqual([undefined]);
});

test("a collection says it by tensors", () => {
  const [x, y] = [torch.zeros([4, 3]), torch.zeros([2])];
  const shapes = new ShapesCollection().set(y, [Dim.AUTO]);
  const resolved = resolveDynamicShapes(["x", "rest"], [x, [y]], shapes);
  expect(resolved.map((it) => it.dims)).toEqual([undefined, [Dim.AUTO]]);
  expect(thrown(() => shapes.set(y, [Dim.STATIC])).reason).toBe(
    "Shapes assigned to input do not match: expected [DimHint(AUTO)], got [DimHint(STATIC)]",
  );
  expect(thrown(() => resolveDynamicShapes(["x"], [x], shapes)).reason).toContain("were not found in args");
});

test("further inputs say it by what differs", () => {
  const others = new AdditionalInputs().add([torch.zeros([5, 3]), 2]).add([torch.zeros([6, 3])], { n: 2 });
  const resolved = resolveDynamicShapes(["x", "n"], [torch.zeros([4, 3]), 2], others);
  expect(resolved.map((it) => it.dims)).toEqual([[Dim.DYNAMIC, null], undefined]);
  others.add([torch.zeros([4, 3]), "two"]);
  expect(thrown(() => resolveDynamicShapes(["x", "n"], [torch.zeros([4, 3]), 2], others)).reason).toContain(
    "differing types, so they cannot be marked as dynamic",
  );
});

test("dimensions derive of each other", () => {
  const [a, b] = dims("a", "b", { max: 16 });
  expect(String(b)).toBe("Dim('b', min=0, max=16)");
  const derived = a?.mul(2).add(1);
  expect([String(derived), derived?.min, derived?.max]).toEqual(["2*a + 1", 1, 33]);
  expect(String(derived?.sub(3))).toBe("2*a - 2");
  expect(thrown(() => a?.mul(0)).reason).toBe(
    "Attempted to multiply 0 with a, where a positive integer was expected. " +
      "(Only increasing linear operations with integer coefficients are supported.)",
  );
  expect(thrown(() => Dim("no name")).reason).toBe("Dim name must be a valid identifier, got no name");
  expect(String(Dim.AUTO.within({ max: 8 }))).toBe("DimHint(AUTO, max=8)");
});

test("suggested fixes are taken over", () => {
  const [a, b, c, d] = [Dim("a"), Dim("b"), Dim("c"), Dim("d")];
  const message =
    "Suggested fixes:\n  a = Dim('a', min=3, max=16)\n  b = 2*a + 1\n  c = 4\n  _d = Dim('_d', min=1, max=oo)\n  d = 4*_d";
  const fixed = refineDynamicShapesFromSuggestedFixes(message, { x: [a, b], y: { 0: c, 1: c.add(1) }, z: [d, null] });
  const shown = [fixed.x, Object.values(fixed.y), fixed.z].flat().map(String);
  expect(shown).toEqual(["Dim('a', min=3, max=16)", "2*a + 1", "4", "5", "4*_d", "null"]);
  expect(fixed.x[1]?.max).toBe(33);
  expect(thrown(() => refineDynamicShapesFromSuggestedFixes("nothing", {})).code).toBe("FX0702");
});

test("fixes are told in TypeScript, by errors and drafts of exports", () => {
  class Paired extends Module {
    override forward(x: Tensor, y: Tensor): Tensor {
      return x
        .view(-1, 2)
        .sum()
        .add(y.narrow(0, 3, 1));
    }
  }
  const inputs = [torch.ones(4), torch.ones(5)];
  const dynamicShapes = { x: [Dim("n")], y: [Dim("m")] };
  const error = thrown(() => exportProgram(new Paired(), inputs, {}, { dynamicShapes }));
  expect(error.reason).toContain("  n = 2*_n");
  const fixes = 'm = Dim("m", { min: 4 }); _n = Dim("_n", { min: 1 }); n = _n.mul(2)';
  expect(error.help).toBe(`say of the dynamic sizes: ${fixes}; or change the code that asks for more than that`);
  const { failures } = draftExport(new Paired(), inputs, {}, { dynamicShapes }).report;
  expect(failures.map((it) => it.data.fix)).toContain(`say so: ${fixes}`);

  const lines =
    "Suggested fixes:\n  b = a\n  c = 3*a - 1\n  d = a + 2\n  e = 4\n  f = Dim('f', max=8)\n  g = Dim('g', max=oo)\n  h = 10 - a";
  expect(fixesInTypeScript(lines)).toEqual([
    "b = a",
    "c = a.mul(3).sub(1)",
    "d = a.add(2)",
    "e = 4",
    'f = Dim("f", { max: 8 })',
    'g = Dim("g")',
    // No dimension says it.
    "h = 10 - a",
  ]);
});

test("a violation that no dimension mends is told", () => {
  class Joined extends Module {
    override forward(x: Tensor, y: Tensor): Tensor {
      return torch.cat([x, y]).add(torch.ones(10));
    }
  }
  const dynamicShapes = { x: [Dim("n")], y: [Dim("m")] };
  const error = thrown(() => exportProgram(new Joined(), [torch.ones(4), torch.ones(6)], {}, { dynamicShapes }));
  expect(error.kind).toBe("ConstraintViolation");
  expect(error.help).toContain('n = Dim("n", { max: 8 }); m = 10 - n');
});
