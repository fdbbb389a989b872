import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test, vi } from "vitest";
import {
  Dim,
  type DimSpec,
  type DimVar,
  type DType,
  Graph,
  GraphModule,
  init,
  insertDeferredRuntimeAsserts,
  type SessionInput,
  ShapeSession,
  SymExpr,
  TensorMeta,
  type Val,
  torch,
} from "../../src/index.ts";
import { EngineShapes } from "../../src/engine/shapes.ts";
import { formatSymInt } from "../../src/graph/shapes.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

interface RecordedDim {
  readonly hint?: "AUTO" | "DYNAMIC" | "STATIC";
  readonly name: string;
  readonly min: number | null;
  readonly max: number | null;
  readonly factor?: number;
  readonly offset?: number;
}

type Step =
  | { readonly infer: string; readonly args: readonly unknown[]; readonly out: string }
  | { readonly decide: string; readonly answer: boolean }
  | { readonly check: string; readonly message: string | null };

interface Case {
  readonly case: string;
  readonly inputs: readonly {
    readonly name: string;
    readonly sizes: readonly number[] | null;
    readonly value: number | null;
    readonly dtype: DType;
    readonly dims: readonly (RecordedDim | number | null)[];
  }[];
  readonly steps: readonly Step[];
  readonly error?: string;
  readonly message?: string;
  readonly sizes: readonly (readonly string[])[];
  readonly ranges: Readonly<Record<string, readonly [number | null, number | null]>>;
}

const file = new URL("../../../tests/fixtures/shapes/dynamic_shapes.jsonl", import.meta.url);
const cases = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  // PyTorch's greatest int is no number of JavaScript, and stands for what it is in one.
  .map((it) => JSON.parse(it.replaceAll("9223372036854775807", '"end"')) as Case);

/** PyTorch's `view` makes more guards than the one that it needs, each of which it tells. */
const MORE_GUARDS = ["a_multiple", "a_multiple_within_a_range"];

function specOf(dim: RecordedDim | number | null): DimSpec {
  if (dim === null || typeof dim === "number") return dim;
  const bounds = { ...(dim.min !== null && { min: dim.min }), ...(dim.max !== null && { max: dim.max }) };
  if (dim.hint !== undefined) return dim.hint === "STATIC" ? Dim.STATIC : Dim[dim.hint].within(bounds);
  const { factor = 1, offset = 0 } = dim;
  let res: DimVar = Dim(dim.name, bounds);
  if (factor !== 1) res = res.mul(factor);
  return offset === 0 ? res : res.add(offset);
}

function run(recorded: Case): { sizes: string[][]; ranges: object } {
  const inputs = recorded.inputs.map(({ name, sizes, value, dtype, dims }): SessionInput => {
    const example = sizes === null ? (value as number) : torch.zeros([...sizes], { dtype });
    return { source: `L['${name}']`, value: example, dims: dims.map(specOf) };
  });
  using shapes = new ShapeSession(inputs);
  const known = new Map<string, unknown>(recorded.inputs.map(({ name }, at) => [name, shapes.values[at]]));
  const argument = (it: unknown): unknown => {
    if (Array.isArray(it)) return it.map(argument);
    if (it === "end") return 2n ** 63n - 1n;
    if (typeof it === "string") return known.get(it.slice(1));
    return typeof it === "object" && it !== null ? new SymExpr((it as { expr: string }).expr) : it;
  };
  for (const step of recorded.steps) {
    if ("infer" in step) known.set(step.out, shapes.infer(step.infer, step.args.map(argument)));
    else if ("decide" in step) expect(shapes.decide(new SymExpr(step.decide))).toBe(step.answer);
    else shapes.check(new SymExpr(step.check), step.message ?? undefined);
  }
  const { rangeConstraints, replace } = shapes.finish();
  const sizesOf = (value: Val): string[] =>
    (value instanceof TensorMeta ? value.sizes : [value as number]).map((it) => formatSymInt(replace(it)));
  const ranges = [...rangeConstraints].map(([name, { min, max }]) => [name, [min ?? null, max ?? null]] as const);
  return { sizes: shapes.values.map(sizesOf), ranges: Object.fromEntries(ranges) };
}

/** What PyTorch reports, without the advice to try something else and what it says beyond the first sentence of data. */
function messageOf({ error, message = "" }: Case): string {
  const [text = ""] = message.split("\n\nThe error above occurred");
  return error === "GuardOnDataDependentSymNode" ? (text.split(".  (")[0] ?? "") : text.trimEnd();
}

describe("what PyTorch recorded", () => {
  test.each(cases.filter((it) => !MORE_GUARDS.includes(it.case)))("$case", (recorded) => {
    if (recorded.error !== undefined) expect(thrown(() => run(recorded)).reason).toBe(messageOf(recorded));
    else expect(run(recorded)).toEqual({ sizes: recorded.sizes, ranges: recorded.ranges });
  });
});

const batch = (name: string, dim: DimSpec): SessionInput => ({
  source: `L['${name}']`,
  value: torch.zeros([5]),
  dims: [dim],
});

test("a violation says where the code asked", () => {
  using shapes = new ShapeSession([batch("x", Dim("a")), batch("y", Dim("b"))]);
  shapes.infer("aten.add.Tensor", [...shapes.values], {}, "model.ts:3");
  const refusal = thrown(() => shapes.finish());
  expect(refusal.code).toBe("FX1101");
  expect(refusal.notes).toEqual(["L['x'].size()[0] == L['y'].size()[0] is asked at model.ts:3"]);
});

test("scalar functions work on sizes", () => {
  using shapes = new ShapeSession([batch("x", Dim.AUTO)]);
  const [size] = (shapes.values[0] as TensorMeta).sizes;
  const half = shapes.call("operator.floordiv", [size, 2]) as SymExpr;
  expect([formatSymInt(half), shapes.hint(half)]).toEqual(["(s77//2)", 2]);
  expect(shapes.decide(shapes.call("operator.le", [half, 8]) as SymExpr)).toBe(true);
  expect(shapes.finish().guards).toEqual(["(L['x'].size()[0] // 2) <= 8"]);
});

test("what a program has to assert goes to the pass that inserts assertions", () => {
  using shapes = new ShapeSession([{ source: "L['x']", value: torch.zeros([], { dtype: "int64" }) }]);
  const item = shapes.infer("aten.item", [shapes.values[0]]) as SymExpr;
  shapes.check(shapes.call("operator.le", [item, 7]) as SymExpr, "at most seven");
  const { assertions, runtimeAsserts } = shapes.finish();
  expect(assertions.map((it) => it.message)).toEqual(["at most seven"]);

  const graph = new Graph();
  const node = graph.callFunction("torch.ops.aten.item.default", [graph.placeholder("x")]);
  node.meta.set("val", item);
  graph.output(node);
  const module = new GraphModule({}, graph);
  expect(insertDeferredRuntimeAsserts(module, runtimeAsserts).modified).toBe(true);
  expect(String(module.graph)).toContain("Runtime assertion failed for expression u0 <= 7");
});

test("a session that was disposed answers nothing", () => {
  const shapes = new ShapeSession([batch("x", Dim.AUTO)]);
  shapes[Symbol.dispose]();
  shapes[Symbol.dispose]();
  expect(thrown(() => shapes.finish()).code).toBe("FX0701");
});

test("a session closes the copies that it makes", () => {
  using shapes = new ShapeSession([batch("x", Dim("n"))], { preferDeferredRuntimeAssertsOverGuards: true });
  const opened = vi.spyOn(EngineShapes.prototype, "values");
  const closed = vi.spyOn(EngineShapes.prototype, Symbol.dispose);
  shapes.suppressGuards(() => undefined);
  const open = opened.mock.contexts.filter((it) => !closed.mock.contexts.includes(it));
  expect([opened.mock.calls.length, open]).toEqual([2, []]);
  vi.restoreAllMocks();
});
