/**
 * Ranges, contexts, constraints and guards as texts, and what PyTorch 2.13 answers: `tests/oracle/gen_experimental.py` has the same programs.
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import { beforeAll, describe, expect, test } from "vitest";
import {
  Dim,
  type DimBounds,
  DimConstraints,
  DimDynamic,
  type DynamicShapes,
  type ExportedProgram,
  evaluateGuardsExpression,
  exportProgram,
  guard,
  init,
  insertDeferredRuntimeAsserts,
  makeFx,
  Module,
  operator,
  produceGuardsExpression,
  type SessionInput,
  ShapeSession,
  ShapesSpec,
  ShapeVar,
  StatelessSymbolicContext,
  type SymExpr,
  type SymInt,
  type Tensor,
  type TensorMeta,
  TensorSpec,
  torch,
  type Condition,
  type Size,
} from "../../src/index.ts";
import { experimental } from "../experimental.ts";
import { message, type Programs, type Say, text } from "../ported/said.ts";

beforeAll(() => init());

const ones = (...sizes: number[]): Tensor => torch.ones(sizes);
const sizesOf = (val: unknown): readonly SymInt[] => (val as TensorMeta).sizes;

class Two extends Module {
  readonly #forward: (x: Tensor, y: Tensor) => unknown;

  constructor(forward: (x: Tensor, y: Tensor) => unknown) {
    super();
    this.#forward = forward;
  }

  override forward(x: Tensor, y: Tensor): unknown {
    return this.#forward(x, y);
  }
}

interface Given {
  readonly dynamicShapes: DynamicShapes;
  readonly preferDeferredRuntimeAssertsOverGuards?: boolean;
}

function exported(
  forward: (x: Tensor, y: Tensor) => unknown,
  inputs: readonly Tensor[],
  given: Given,
): ExportedProgram {
  return exportProgram(new Two(forward), inputs, {}, { ...given, verify: false, checkSources: false });
}

const context = (...sizes: DimDynamic[]): StatelessSymbolicContext => new StatelessSymbolicContext(sizes);

/** What the program asserts. */
function checksOf({ graph }: ExportedProgram): string[] {
  const checks = graph.findNodes({ op: "call_function", target: "torch.ops.aten._assert_scalar.default" });
  return checks.map((it) => String(it.args[1]).replace(/ on node .*/, ""));
}

const programs: Programs = {
  bounds_of_expressions(say) {
    using shapes = new ShapeSession([{ source: "L['x']", value: ones(6, 5), dims: [Dim.DYNAMIC, Dim.DYNAMIC] }]);
    const [a, b] = sizesOf(shapes.values[0]);
    const call = (name: string, ...args: unknown[]): SymExpr => shapes.call(name, args) as SymExpr;
    shapes.decide(call("operator.le", a, 10));
    const u = shapes.createUnbackedSymint();
    shapes.check(call("operator.ge", u, 1));
    shapes.check(call("operator.le", u, 7));
    const product = call("operator.mul", a, b);
    const exprs = [
      a,
      b,
      u,
      call("operator.add", call("operator.mul", a, 2), 1),
      product,
      call("operator.mul", a, u),
      call("operator.floordiv", a, 2),
      call("operator.mod", call("operator.add", b, 3), 4),
      call("torch.sym_max", a, u),
      call("torch.sym_min", a, b),
      call("operator.sub", u, a),
      call("operator.sub", a, call("operator.mul", a, 3)),
      call("operator.floordiv", product, u),
      call("operator.neg", call("operator.floordiv", a, 3)),
      call("operator.mod", b, 2),
    ];
    const before = shapes.state();
    for (const it of exprs) {
      const { min = "-int_oo", max = "int_oo" } = shapes.boundSympy(it as SymExpr);
      say([min, max]);
    }
    expect(shapes.state()).toEqual(before);
  },
  symbolic_contexts(say) {
    const { DUCK, DYNAMIC, STATIC, UNBACKED } = DimDynamic;
    const matrix = (): Tensor => ones(4, 3);
    const spaced = (): Tensor => ones(8, 6).asStrided([4, 2], [12, 3]);
    const [both, shared, fixed] = [context(DYNAMIC, DYNAMIC), context(DUCK, DUCK), context(STATIC, STATIC)];
    const unbacked = context(UNBACKED, UNBACKED);
    const striding = (of: StatelessSymbolicContext, ...dynamicStrides: DimDynamic[]): StatelessSymbolicContext =>
      new StatelessSymbolicContext(of.dynamicSizes, { dynamicStrides });
    const inputs: [Tensor, StatelessSymbolicContext][] = [
      [matrix(), context(UNBACKED, STATIC)],
      [matrix(), context(UNBACKED, DYNAMIC)],
      [matrix(), context(STATIC, UNBACKED)],
      [ones(4, 4), shared],
      [ones(4, 1), unbacked],
      [ones(4, 5).t(), unbacked],
      [matrix(), striding(both, DYNAMIC, DYNAMIC)],
      [matrix(), striding(fixed, DYNAMIC, DYNAMIC)],
      [matrix(), striding(fixed, DUCK, DUCK)],
      [spaced(), both],
      [spaced(), striding(both, DUCK, DYNAMIC)],
      [spaced(), fixed],
      [ones(8, 6).asStrided([4, 6], [12, 1]), unbacked],
      [ones(20).asStrided([8], [1], 12), context(DYNAMIC)],
    ];
    using shapes = new ShapeSession(
      inputs.map(([value, symbolicContext], at): SessionInput => ({ source: `x${at}`, value, symbolicContext })),
    );
    const names = new Map<string, string>();
    const known = (name: string): string => {
      if (!names.has(name)) names.set(name, `s${names.size}`);
      return name.startsWith("u") ? name : (names.get(name) as string);
    };
    for (const it of shapes.values as TensorMeta[]) {
      const list = (of: readonly SymInt[]): string =>
        of.length === 1 ? `(${String(of[0])},)` : `(${of.map(String).join(", ")})`;
      say(`${list(it.sizes)} ${list(it.strides)} ${String(it.storageOffset)}`.replaceAll(/\bs\d+/g, known));
    }
    say(message(() => new StatelessSymbolicContext([STATIC], { dynamicStrides: [STATIC] })) !== "taken");
  },
  guards_as_text(say) {
    const f = (x: Tensor, y: Tensor): Tensor => (guard(operator.gt(x.size(0), 3)) ? x.sin() : x.cos()).add(y);
    const gm = makeFx(f, { tracingMode: "symbolic" })(ones(4, 3), ones(4, 1));
    const sizes = [
      [ones(5, 3), ones(5, 1)],
      [ones(2, 3), ones(2, 1)],
      [ones(5, 3), ones(6, 1)],
      [ones(5, 7), ones(5, 1)],
      [ones(5, 3), ones(5, 2)],
    ];
    for (const ignoreStatic of [true, false]) {
      const code = produceGuardsExpression(gm, { ignoreStatic }) as string;
      say(code);
      for (const args of sizes) say(evaluateGuardsExpression(code, args));
    }
    say(evaluateGuardsExpression("L['t0'].size()[0] % 2 == 0 or L['t1'] > 3", [ones(3), 4]));
  },
  solved_constraints(say) {
    const solved = (
      sizes: number[],
      conditions: (call: (name: string, ...args: unknown[]) => SymExpr, a: SymInt, b: SymInt) => unknown[],
    ): void => {
      using constraints = new DimConstraints([
        { source: "L['x']", value: torch.ones(sizes), dims: [Dim("dx"), Dim("dy")] },
      ]);
      const [a, b] = sizesOf(constraints.values[0]) as [SymExpr, SymExpr];
      const call = (name: string, ...args: unknown[]): SymExpr => constraints.call(`operator.${name}`, args) as SymExpr;
      say(conditions(call, a, b).map((it) => constraints.add(it as SymExpr)));
      constraints.solve();
      say(Array.from(constraints.forcedSpecializations(), ([name, value]) => `${name}: ${value}`));
      say(constraints.prettifyResults());
    };
    solved([6, 5], (call, a, b) => [call("ge", a, 4), call("le", a, 9), call("eq", b, 5)]);
    solved([6, 5], (call, a) => [call("eq", call("mod", a, 2), 0)]);
    solved([6, 5], (call, a, b) => [call("eq", call("add", call("mul", 2, a), b), 17), call("eq", b, 5)]);
    solved([7, 5], (call, a) => [call("eq", call("mod", call("add", a, 1), 4), 0), call("gt", a, 2)]);
    solved([6, 5], (call, a) => [call("gt", a, 0)]);
  },
  deferred_guards(say) {
    const told = (
      x: Tensor,
      y: Tensor,
      [first, second]: readonly unknown[],
      forward: (x: Tensor, y: Tensor) => unknown,
    ): void => {
      const given = {
        dynamicShapes: { x: { 0: first }, y: { 0: second } },
        preferDeferredRuntimeAssertsOverGuards: true,
      };
      let program: ExportedProgram;
      try {
        program = exported(forward, [x, y], given);
      } catch (error) {
        return say((error as { reason: string }).reason);
      }
      say(checksOf(program));
      say(Array.from(program.rangeConstraints.values(), ({ min, max }) => `${min} ${max ?? "int_oo"}`));
    };
    const [named, dynamic] = [
      [Dim("dx"), Dim("dy")],
      [Dim.DYNAMIC, Dim.DYNAMIC],
    ] as const;
    const [x, y] = [ones(4, 3), ones(4, 3)];
    const product = (a: Tensor, b: Tensor): unknown => operator.ne(operator.mul(a.size(0), b.size(0)), 5);
    told(ones(2, 3), ones(6), named, (a, b) => a.reshape([-1]).add(b));
    told(x, y, named, (a, b) => a.add(b));
    told(x, y, named, (a, b) => [guard(operator.gt(a.size(0), 3)) ? a.sin() : a, b]);
    told(x, y, dynamic, (a, b) => [guard(operator.gt(a.size(0), 3)) ? a.sin() : a, b]);
    told(x, y, named, (a, b) => [guard(operator.gt(operator.add(a.size(0), b.size(0)), 3)) ? a.sin() : a, b]);
    told(x, y, dynamic, (a, b) => [guard(product(a, b)) ? a.sin() : a, b]);
    told(x, y, named, (a, b) => [guard(product(a, b)) ? a.sin() : a, b]);
    told(x, y, named, (a, b) => [guard(operator.eq(operator.mod(a.size(0), 2), 0)) ? a.sin() : a, b]);
  },
};

describe("as PyTorch answers:", () => {
  test.each(Object.keys(programs))("%s", (name) => {
    const said: string[] = [];
    const say: Say = (it) => void said.push(text(it));
    programs[name]?.(say);
    expect(said).toEqual(experimental(name));
  });
});

describe("a size that only data tells", () => {
  const rows = (program: ExportedProgram): string =>
    String(sizesOf(program.graph.nodes.find((it) => it.op === "placeholder")?.meta.get("val"))[0]);

  test("is u0, and 0 and 1 are among its values", () => {
    const dynamicShapes = { x: { 0: Dim.UNBACKED.within({ max: 8 }) }, y: null };
    const program = exported((x, y) => x.sum().add(y), [ones(4, 3), ones(2)], { dynamicShapes });
    expect(rows(program)).toBe("u0");
    const module = program.module();
    expect([0, 1, 8].map((it) => ((module(ones(it, 3), ones(2)) as Tensor).toArray() as number[])[0])).toEqual([
      1, 4, 25,
    ]);
    expect(() => module(ones(9, 3), ones(2))).toThrow("x.size()[0] <= 8");
  });

  test("decides nothing", () => {
    const dynamicShapes = { x: { 0: Dim.UNBACKED }, y: null };
    const asks = (): unknown =>
      exported((x, y) => (guard(operator.eq(x.size(0), 7)) ? x : y), [ones(4, 3), ones(2)], { dynamicShapes });
    expect(asks).toThrow("Could not guard on data-dependent expression Eq(u0, 7)");
  });

  test("is asked for by variables, of which equal ones and assumptions are asserted", () => {
    const a = new ShapeVar("a", { max: 64 });
    const params = { x: new TensorSpec([a, null]), y: new TensorSpec([a, null]) };
    const assumptions = [operator.ge(a.mul(a), 4) as Condition];
    const dynamicShapes = new ShapesSpec(params, { unbacked: true, assumptions });
    const program = exported((x, y) => x.add(y).sum(), [ones(4, 3), ones(4, 3)], { dynamicShapes });
    expect(rows(program)).toBe("u0");
    expect(checksOf(program)).toContain("Runtime assertion failed for expression Eq(u1, u0)");
    const module = program.module();
    expect((module(ones(2, 3), ones(2, 3)) as Tensor).item()).toBe(12);
    expect(() => module(ones(1, 3), ones(1, 3))).toThrow("u0**2 >= 4");
    expect(() => module(ones(3, 3), ones(4, 3))).toThrow("Eq(u1, u0)");
  });

  test("is bounded and equal to others by its context", () => {
    const symbolicContext = new StatelessSymbolicContext([DimDynamic.UNBACKED, DimDynamic.UNBACKED], {
      shapeIds: { 0: "rows", 1: "rows" },
      unbackedBounds: { 0: { min: 2, max: 9 } },
    });
    using shapes = new ShapeSession([{ source: "L['x']", value: ones(4, 4), symbolicContext }]);
    const { assertions, rangeConstraints } = shapes.finish();
    expect(assertions.map(({ condition }) => String(condition))).toEqual(["u0 >= 2", "u0 <= 9", "Eq(u1, u0)"]);
    expect(rangeConstraints.get("u0")).toMatchObject({ min: 2, max: 9 });
  });

  test("has bounds that it can have", () => {
    const bounded = (unbackedBounds: Record<number, DimBounds>): string =>
      message(() => new StatelessSymbolicContext([DimDynamic.UNBACKED, DimDynamic.STATIC], { unbackedBounds }));
    expect(bounded({ 1: { min: 2 } })).toBe("unbackedBounds are for unbacked sizes, and dimension 1 is none");
    expect(bounded({ 7: { max: 2 } })).toBe("unbackedBounds are for unbacked sizes, and dimension 7 is none");
    expect(bounded({ 0: { min: 5, max: 2 } })).toBe("no size is between min=5 and max=2, which dimension 0 has");
    for (const min of [1.5, "2" as unknown as number]) expect(bounded({ 0: { min } })).toContain("takes whole numbers");
  });

  test("is refused of what has none", () => {
    const refused = (it: Omit<SessionInput, "source">): string =>
      message(() => new ShapeSession([{ source: "x", ...it }]));
    expect(refused({ value: ones(2, 2), symbolicContext: context(DimDynamic.STATIC) })).toBe(
      "x has 2 sizes, and something is said of 1",
    );
    expect(refused({ value: 1.5, symbolicContext: context(DimDynamic.UNBACKED) })).toBe(
      "tensors and ints have sizes, and x is neither",
    );
    const plain = { dynamicSizes: ["UNBACKED"] } as unknown as StatelessSymbolicContext;
    expect(refused({ value: ones(2), symbolicContext: plain })).toContain("a StatelessSymbolicContext");
  });
});

describe("an assertion", () => {
  test("is made of a symbol that stands in a derived size alone", () => {
    const a = new ShapeVar("a");
    const x = new TensorSpec([operator.add(a.mul(2), 1) as Size, null]);
    const program = exported((first, second) => first.sum().add(second), [ones(9, 3), ones(2)], {
      dynamicShapes: new ShapesSpec({ x }),
    });
    const { graphModule } = program;
    const [symbol] = [...String(sizesOf(graphModule.graph.nodes.at(0)?.meta.get("val"))[0]).matchAll(/[A-Za-z_]\w*/g)];
    const { skipped } = insertDeferredRuntimeAsserts(graphModule, { asserts: [`Ne(Mod(${symbol}, 3), 0)`] });
    expect(skipped).toEqual([]);
    const targets = graphModule.graph.nodes.map(({ target }) => target).filter((it) => it.startsWith("operator."));
    expect(targets).toEqual(["operator.sub", "operator.floordiv", "operator.mod", "operator.eq"]);
  });

  test("is skipped where nothing tells its symbol", () => {
    const program = exported((x, y) => x.add(y), [ones(3), ones(3)], {
      dynamicShapes: { x: { 0: Dim.AUTO }, y: { 0: Dim.AUTO } },
    });
    expect(insertDeferredRuntimeAsserts(program.graphModule, { asserts: ["u7 <= 4"] }).skipped).toEqual(["u7 <= 4"]);
  });
});

describe("a condition of guards", () => {
  test("knows floats", () => {
    expect(evaluateGuardsExpression("L['t0'] > 3", [3.5])).toBe(true);
    expect(evaluateGuardsExpression("L['t0'] == 3", [3.5])).toBe(false);
    expect(evaluateGuardsExpression("L['t0']*L['t1'].size()[0] < 0", [-0.5, ones(2)])).toBe(true);
  });

  test("refuses what is no finite number", () => {
    for (const it of [Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(message(() => evaluateGuardsExpression("L['t0'] > 3", [it]))).toContain(`cannot be asked of ${it}`);
    }
  });

  test("has no value where Python raises", () => {
    const problem = (code: string, ...args: (Tensor | number)[]): string =>
      message(() => evaluateGuardsExpression(code, args));
    expect(problem("3 // L['t0'] > 1", 0)).toContain("the condition has no value");
    expect(problem("L['t0'].size()[0] % L['t0'].size()[1] == 0", ones(2, 0))).toContain("divides by zero");
    expect(problem("L['t0'].size()[2] > 1", ones(2, 3))).toContain("the inputs have no t0.size()[2]");
    expect(problem("L['t0'].size()[0] > 3", 5)).toContain("the inputs have no t0.size()[0]");
    expect(problem("L['t0'] > 3", ones(2))).toContain("the inputs have no t0");
    // What is not evaluated raises nothing.
    expect(evaluateGuardsExpression("L['t0'] > 9 and 1 // 0 > 1", [5])).toBe(false);
    expect(evaluateGuardsExpression("L['t0'] > 3 or 1 // 0 > 1", [5])).toBe(true);
  });
});

describe("texts and constraints", () => {
  test("of something else are refused", () => {
    expect(() => evaluateGuardsExpression("__import__('os')", [])).toThrow("a guard does not know __import__");
    expect(() => evaluateGuardsExpression("L['t1'].size()[0] == 2", [ones(2)])).toThrow(
      "asks for L['t1'], and 1 inputs",
    );
    using constraints = new DimConstraints([{ source: "L['x']", value: ones(6), dims: [Dim("dx")] }]);
    expect(() => constraints.forcedSpecializations()).toThrow("call solve() before");
    expect(() => constraints.addEquality("L['y'].size()[0]", 3)).toThrow("no input has L['y'].size()[0]");
    constraints.addEquality("L['x'].size()[0]", 7);
    expect(() => constraints.solve()).toThrow("The following inconsistencies were found:\nEq(s77, 7) is inconsistent!");
  });
});
