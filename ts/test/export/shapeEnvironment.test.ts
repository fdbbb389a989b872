/**
 * Guards, contexts and events of sessions of shapes, and what PyTorch 2.13 answers: `tests/oracle/gen_experimental.py` has the same
 * programs.
 */
// oxlint-disable unicorn/consistent-function-scoping -- each program is read by itself
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  bindSymbols,
  builtins,
  CallMethodKey,
  checkConsistent,
  computeUnbackedBindings,
  ConvertIntKey,
  Dim,
  DivideByKey,
  evalGuards,
  type ExportedProgram,
  exportProgram,
  guard,
  init,
  keyGet,
  type KeyPath,
  makeFx,
  Module,
  type Node,
  operator,
  replaceCallSignatureUses,
  replayShapeEnvEvents,
  ShapeEnvEvent,
  ShapeSession,
  symbolicTrace,
  type SymbolSource,
  type SymExpr,
  tensor,
  type Tensor,
  type TensorMeta,
  torch,
  type TracedNumber,
  unsafeRemoveAutoFunctionalizedPass,
} from "../../src/index.ts";
import { experimental } from "../experimental.ts";
import { openProgram } from "../../src/export/exportedProgram.ts";
import { message, type Programs, text } from "../ported/said.ts";

const FIXTURES = new URL("../../../tests/fixtures/fx/", import.meta.url);

beforeAll(() => init());

function program(forward: (x: Tensor) => unknown, example: Tensor): ExportedProgram {
  class M extends Module {
    override forward(x: Tensor): unknown {
      return forward(x);
    }
  }
  const dynamicShapes = example.ndim > 0 ? { x: { 0: Dim.AUTO } } : null;
  return exportProgram(new M(), [example], {}, { dynamicShapes, verify: false, checkSources: false });
}

/** A session of one tensor with a dynamic size, and that size. */
function environment(): { shapes: ShapeSession; size: SymExpr } {
  const shapes = new ShapeSession([{ source: "L['x']", value: torch.ones(4), dims: [Dim.DYNAMIC] }]);
  return { shapes, size: (shapes.values[0] as TensorMeta).sizes[0] as SymExpr };
}

const pathText = (path: KeyPath): string =>
  path.map((it) => (typeof it === "number" ? `[${it}]` : String(it))).join("");

const programs: Programs = {
  guards_of_make_fx(say) {
    const f = (x: Tensor, y: Tensor): Tensor => (guard(operator.gt(x.size(0), 3)) ? x.sin().add(y) : x.cos().add(y));
    const gm = makeFx(f, { tracingMode: "symbolic" })(torch.ones(4, 3), torch.ones(4, 1));
    const sizes: [number[], number[]][] = [
      [
        [5, 3],
        [5, 1],
      ],
      [
        [2, 3],
        [2, 1],
      ],
      [
        [5, 3],
        [6, 1],
      ],
      [
        [5, 7],
        [5, 1],
      ],
      [
        [5, 3],
        [5, 2],
      ],
    ];
    for (const [a, b] of sizes) {
      const args = [torch.ones(a), torch.ones(b)];
      say([evalGuards(gm, args), evalGuards(gm, args, { ignoreStatic: false })]);
    }
    say([...bindSymbols(gm, [torch.ones(5, 3), torch.ones(5, 1)]).values()].toSorted((a, b) => a - b));
    say(message(() => bindSymbols(gm, [torch.ones(5, 3), torch.ones(6, 1)])) !== "taken");
  },
  bindings_of_data(say) {
    const told = (forward: (x: Tensor) => unknown, x: Tensor): void => {
      const known = new Set<string>();
      for (const node of program(forward, x).graph.nodes) {
        if (node.op !== "call_function") continue;
        const bindings = computeUnbackedBindings(node.meta.get("val") as SymbolSource, known);
        for (const it of bindings.keys()) known.add(it);
        if (bindings.size > 0) say([Array.from(bindings.values(), pathText)]);
      }
    };
    told((x) => x.nonzero(), tensor([1, 0], { dtype: "float32" }));
    told((x) => torch.zeros([x.item() as number]), tensor(3));
    told((x) => torch.unique(x, { returnInverse: true }), tensor([1, 1], { dtype: "float32" }));
    say([new CallMethodKey("size"), new ConvertIntKey(), new DivideByKey(3), new DivideByKey(3).get(7)].map(String));
    say(keyGet(torch.ones(2, 3), [new CallMethodKey("size")]));
  },
  functions_of_sizes(say) {
    const forward = (x: Tensor): unknown => {
      const n = x.size(0) as unknown as TracedNumber;
      const half = n.truediv(2);
      return [
        x.sum().add(n.mul(0) as number),
        builtins.abs(operator.sub(3, n)),
        n.lshift(2),
        operator.rshift(n, 1),
        builtins.round(half),
        torch.symSum([n, n, 3] as unknown as number[]),
        n.bitwiseAnd(6),
        operator.or_(5, n),
        n.bitwiseXor(3),
        operator.and_(n, -3),
        n.bitwiseAnd(0b110101),
      ];
    };
    const module = program(forward, torch.ones(5)).module();
    for (const size of [2, 3, 5, 7, 8, 61]) say((module(torch.ones(size)) as unknown[]).slice(1).map(Number));
  },
  contexts(say) {
    const { shapes, size } = environment();
    const gt = (than: number): SymExpr => shapes.call("operator.gt", [size, than]) as SymExpr;
    const lt = (than: number): SymExpr => shapes.call("operator.lt", [size, than]) as SymExpr;
    const guards = (): string => shapes.state().guards;
    const first = guards();
    say(shapes.suppressGuards(() => shapes.decide(gt(3))));
    say(guards() === first ? 0 : 1);
    say(shapes.decide(gt(3)));
    const second = guards();
    say(second === first ? 0 : 1);
    const attempt = (): boolean => shapes.errorOnNewGuards(() => shapes.decide(gt(3)) && shapes.decide(lt(9)));
    say(message(attempt) !== "taken");
    say(guards() === second ? 1 : 2);
    shapes.freeze();
    say(shapes.decide(lt(9)));
    const u = shapes.createUnbackedSymint();
    say([shapes.isUnbackedSymint(u), shapes.isUnbackedSymint(size)]);
    const kinds = { float: "SymFloat" } as const;
    say(
      [u, shapes.createUnbackedSymbool(), String(shapes.createUnbackedSymfloat()).startsWith("zuf") && kinds.float].map(
        String,
      ),
    );
    expect(guards()).not.toBe(second);
    expect(JSON.stringify(shapes.finish().guards)).not.toContain("< 9");
  },
  events(say) {
    const { shapes, size } = environment();
    shapes.decide(shapes.call("operator.gt", [size, 3]) as SymExpr);
    const again = replayShapeEnvEvents(shapes.events);
    say(message(() => again.checkEqual(shapes)));
    shapes.decide(shapes.call("operator.lt", [size, 9]) as SymExpr);
    say(`${message(() => again.checkEqual(shapes))}:`);
  },
  writes_of_programs(say) {
    torch.library.define("fxtest::accum_", "(Tensor(a!) acc, Tensor x) -> ()");
    torch.library.impl("fxtest::accum_", "cpu", (acc: Tensor, x: Tensor) => void acc.add_(x));
    torch.library.define("fxtest::count_", "(Tensor(a!) acc, Tensor x) -> Tensor");
    torch.library.impl("fxtest::count_", "cpu", (acc: Tensor, x: Tensor) => acc.add_(x).sum());
    torch.library.registerFake("fxtest::accum_", () => undefined);
    torch.library.registerFake("fxtest::count_", (acc: Tensor) => acc.newEmpty([]));
    const { accum_ } = torch.ops["fxtest"] as unknown as Record<"accum_" | "count_", (a: Tensor, b: Tensor) => Tensor>;
    class M extends Module {
      declare b: Tensor;
      constructor() {
        super();
        this.registerBuffer("b", torch.zeros(3));
      }
      override forward(x: Tensor): Tensor {
        const y = x.clone();
        accum_(y, x);
        accum_(this.b, x.select(0, 0));
        return y.mul(2);
      }
    }
    const x = torch.ones(2, 3);
    const viewed = openProgram(new Uint8Array(readFileSync(new URL("functional.pt2", FIXTURES))), {});
    for (const functional of [exportProgram(new M(), [x]).runDecompositions(new Set()), viewed]) {
      const expected = (functional.module()(x) as Tensor).toArray();
      const written = unsafeRemoveAutoFunctionalizedPass(functional);
      const calls = written.graph.nodes.filter((it) => it.op === "call_function");
      say(calls.map((it) => it.target.replace("torch.ops.", "")));
      say(written.graphSignature.outputSpecs.map(({ kind, target }) => [kind, target]));
      expect((written.module()(x) as Tensor).toArray()).toEqual(expected);
    }
  },
};

describe("as PyTorch answers:", () => {
  test.each(Object.keys(programs))("%s", (name) => {
    const said: string[] = [];
    programs[name]?.((it) => void said.push(text(it)));
    expect(said).toEqual(experimental(name));
  });
});

test("sizes are summed one by one, too", () => {
  expect([torch.symSum(1, 2, 3), torch.symSum([1, 2.5]), torch.symSum([]), torch.symSum(4)]).toEqual([6, 3.5, 0, 4]);
  const module = program(
    (x) => torch.zeros([torch.symSum(x.size(0), x.size(1), 1) as number]),
    torch.ones(5, 2),
  ).module();
  expect((module(torch.ones(3, 2)) as Tensor).shape).toEqual([6]);
  const traced = symbolicTrace((x: Tensor, y: Tensor) => torch.symSum(x.size(0), y.size(0)));
  expect(String(traced.graph)).toContain("call_function[target=torch.sym_sum](args = (%size, %size_1), kwargs = {})");
});

describe("a session", () => {
  test("tells its calls", () => {
    const { shapes, size } = environment();
    shapes.decide(shapes.call("operator.gt", [size, 3]) as SymExpr);
    expect(shapes.events.map(String)).toEqual([
      "event: ShapeSession ([{source: L['x'], value: f32[4], dims: [DimHint(DYNAMIC)]}])",
      "event: infer (operator.gt, [s77, 3], {})",
      "event: decide (s77 > 3)",
    ]);
    const [made, computed, decided] = shapes.events;
    expect([made?.isCreateFxCallFunction(), computed?.isCreateFxCallFunction()]).toEqual([false, true]);
    expect([computed?.isEvaluateExpr(), decided?.isEvaluateExpr()]).toEqual([false, true]);
    expect(() => decided?.run()).toThrow("ShapeEnvEvent.run takes a ShapeSession");
    expect(() => replayShapeEnvEvents(shapes.events.slice(1))).toThrow("the first of which makes a session");
  });

  test("asserts what is said of data when it is frozen, too", () => {
    const { shapes, size } = environment();
    const less = (it: SymExpr): SymExpr => shapes.call("operator.lt", [it, 5]) as SymExpr;
    shapes.check(less(shapes.createUnbackedSymint()));
    shapes.freeze();
    expect(shapes.decide(less(size))).toBe(true);
    shapes.check(less(shapes.createUnbackedSymint()));
    const { assertions, guards } = shapes.finish();
    expect(assertions.map(({ condition }) => String(condition))).toEqual(["u0 < 5", "u1 < 5"]);
    expect(guards).toEqual([]);
  });

  test("gives each number of data a symbol once it is frozen", () => {
    const { shapes } = environment();
    shapes.freeze();
    const first = shapes.createUnbackedSymint();
    const inside = shapes.suppressGuards(() => shapes.createUnbackedSymint());
    expect([first, inside, shapes.createUnbackedSymint()].map(String)).toEqual(["u0", "u1", "u1"]);
  });

  test("keeps nothing of what was suppressed when it is frozen there", () => {
    const { shapes, size } = environment();
    shapes.suppressGuards(() => {
      shapes.decide(shapes.call("operator.gt", [size, 3]) as SymExpr);
      shapes.freeze();
    });
    expect(shapes.finish().guards).toEqual([]);
    expect(shapes.decide(shapes.call("operator.lt", [size, 9]) as SymExpr)).toBe(true);
    expect(shapes.finish().guards).toEqual([]);
  });

  test("refuses assertions on data where new guards are refused", () => {
    const { shapes } = environment();
    const u = shapes.createUnbackedSymint();
    const attempt = (): void => shapes.check(shapes.call("operator.lt", [u, 5]) as SymExpr);
    expect(() => shapes.errorOnNewGuards(attempt)).toThrow("a guard was attempted by check");
    expect(shapes.finish().assertions).toEqual([]);
    attempt();
    expect(shapes.finish().assertions).toHaveLength(1);
    expect(() => shapes.errorOnNewGuards(attempt)).not.toThrow();
  });

  test("refuses bodies that are not done when they return, and events of other names", async () => {
    const { shapes } = environment();
    const later = async (): Promise<void> => {};
    expect(() => shapes.suppressGuards(later)).toThrow("a function that is done when it returns");
    expect(() => shapes.errorOnNewGuards(later)).toThrow("a function that is done when it returns");
    expect(() => new ShapeEnvEvent("dispose" as never, [])).toThrow("one of ShapeSession, infer, decide, check");
    expect(() => replayShapeEnvEvents([...shapes.events, {} as never])).toThrow("takes events");
  });

  test("knows that a condition of data is 0 or 1", () => {
    const { shapes } = environment();
    shapes.createUnbackedSymbool();
    expect(shapes.finish().runtimeAsserts.ranges["u0"]).toEqual([0, 1]);
  });

  test("keeps the numbers that were made while guards were refused", () => {
    const { shapes } = environment();
    const u = shapes.errorOnNewGuards(() => shapes.createUnbackedSymint());
    expect([u, shapes.createUnbackedSymint()].map(String)).toEqual(["u0", "u1"]);
  });
});

describe("the guards of makeFx", () => {
  const next = makeFx((x: Tensor) => x.add(1), { tracingMode: "symbolic" });

  test.each([
    ["another size", torch.ones, [5, 3], true],
    ["a size of 1", torch.ones, [1, 3], false],
    ["a size of 0", torch.ones, [0, 3], false],
    ["another layout", (size: number[]) => torch.ones(size).t(), [3, 5], false],
    ["another dtype", (size: number[]) => torch.ones(size, { dtype: "int64" }), [5, 3], true],
    ["another rank", torch.ones, [5], false],
  ] as const)("%s", (_, make, sizes, holds) => {
    const given = (make as (size: readonly number[]) => Tensor)(sizes);
    expect(evalGuards(next(torch.ones(4, 3)), [given])).toBe(holds);
  });

  test("say that sizes are equal that were, of ints, too", () => {
    const gm = next(torch.ones(4, 4));
    expect([evalGuards(gm, [torch.ones(5, 5)]), evalGuards(gm, [torch.ones(5, 6)])]).toEqual([true, false]);
    const val = gm.graph.nodes.at(0)?.meta.get("val") as TensorMeta | undefined;
    const [first, second] = val?.sizes.map(String) ?? [];
    expect([first === second, first]).toEqual([true, expect.stringMatching(/^s/)]);
    const scaled = makeFx((x: Tensor, n: number) => x.mul(n), { tracingMode: "symbolic" })(torch.ones(4, 3), 4);
    const holds = (rows: number, n: number): boolean => evalGuards(scaled, [torch.ones(rows, 3), n]);
    expect([holds(5, 5), holds(5, 6), holds(6, 6)]).toEqual([true, false, true]);
    expect([...bindSymbols(scaled, [torch.ones(5, 3), 5]).values()]).toEqual([5, 3]);
    expect(() => evalGuards(scaled, [5, torch.ones(5, 3)])).toThrow("input 0 is a tensor");
  });

  test("static sizes are compared where that is asked for", () => {
    const gm = next(torch.ones(4, 1));
    const holds = (sizes: number[], ignoreStatic: boolean): boolean =>
      evalGuards(gm, [torch.ones(sizes)], { ignoreStatic });
    expect([holds([5, 3], true), holds([5, 3], false), holds([5, 1], false)]).toEqual([true, false, true]);
  });

  test("a size that the function decided is no static one", () => {
    const f = (x: Tensor): Tensor => (guard(operator.eq(x.size(0), 4)) ? x.sin() : x.cos());
    const gm = makeFx(f, { tracingMode: "symbolic" })(torch.ones(4, 3));
    expect([evalGuards(gm, [torch.ones(4, 5)]), evalGuards(gm, [torch.ones(5, 3)])]).toEqual([true, false]);
  });
});

describe("functions of numbers that are not known", () => {
  const count = (x: Tensor): TracedNumber => x.item() as unknown as TracedNumber;

  test("refuse shifts by a negative count", () => {
    expect(() => program((x) => x.add(operator.lshift(x.size(0), -1) as number), torch.ones(4))).toThrow(
      "negative shift count",
    );
    expect(() => program((x) => x.add(operator.rshift(x.size(0), -1) as number), torch.ones(4))).toThrow(
      "negative shift count",
    );
    const module = program((x) => torch.zeros([operator.lshift(1, count(x)) as number]).sum(), tensor(2)).module();
    expect(() => module(tensor(-1))).toThrow("Runtime assertion failed for expression u0 >= 0");
    expect((module(tensor(3)) as Tensor).item()).toBe(0);
  });

  test("refuse bits of two of them, and digits", () => {
    const both = (x: Tensor): unknown => x.add(operator.and_(x.size(0), x.size(1)) as number);
    const f = (run: (x: Tensor) => unknown) => () => makeFx(run, { tracingMode: "symbolic" })(torch.ones(4, 3));
    expect(f(both)).toThrow("bits of two ints that are not known");
    expect(f((x) => x.add(operator.or_(x.size(0), x.size(1)) as number))).toThrow("bits of two ints");
    const digits = (x: Tensor): unknown => builtins.round(operator.truediv(x.size(0), 3) as number, 1);
    expect(f((x) => x.add(digits(x) as number))).toThrow("takes no digits");
  });
});

test("checkConsistent takes sizes to be equal", () => {
  const forward = (x: Tensor): Tensor => {
    const nonzero = x.nonzero().size(0);
    checkConsistent(nonzero, 2);
    checkConsistent(x, torch.ones(3));
    checkConsistent("what is no number", 3);
    return x.mul(nonzero);
  };
  const module = program(forward, tensor([1, 0, 2], { dtype: "float32" })).module();
  expect((module(tensor([1, 3, 0], { dtype: "float32" })) as Tensor).toArray()).toEqual([2, 6, 0]);
  expect(() => module(torch.ones(3))).toThrow("Runtime assertion failed for expression u0 <= 2");
  expect(() => checkConsistent(torch.ones(2), torch.ones(3))).toThrow("[3] != [2] (old != new)");
  expect(() => checkConsistent(2, torch.ones(3))).toThrow("checkConsistent takes a number behind a number");
});

test("the signature of a call names another node", () => {
  const { graph } = program((x) => x.relu().mul(2), torch.ones(2));
  const [x, relu, mul] = graph.nodes as unknown as [Node, Node, Node];
  const signature = {
    inputs: [{ type: "tensor", name: x.name }],
    outputs: [{ type: "tensor", name: relu.name }],
  } as const;
  expect(replaceCallSignatureUses(signature, relu, mul).outputs).toEqual([{ type: "tensor", name: "mul" }]);
  expect(replaceCallSignatureUses(signature, relu, mul).inputs).toEqual(signature.inputs);
});

test("keys of bindings compute with numbers that are not known, and every symbol is found", () => {
  const taken: unknown[] = [];
  program((x) => {
    const n = x.nonzero().size(0) as unknown as TracedNumber;
    taken.push(keyGet([n.mul(6)], [0, new DivideByKey(3)]), keyGet(n.gt(2), [new ConvertIntKey()]));
    return x.mul(2);
  }, torch.ones(3));
  expect((taken[0] as TracedNumber).text).toBe("2*u0");
  expect((taken[1] as TracedNumber).kind).toBe("int");
  const { shapes } = environment();
  const sum = shapes.call("operator.add", [shapes.createUnbackedSymint(), shapes.createUnbackedSymint()]) as SymExpr;
  expect(() => computeUnbackedBindings(sum)).toThrow("Pending unbacked symbols {u0, u1} not in returned outputs");
  expect(computeUnbackedBindings(sum, ["u0", "u1"]).size).toBe(0);
});

test("keys of bindings refuse what they are not for", () => {
  expect(new ConvertIntKey().get(true)).toBe(1);
  expect(() => new DivideByKey(0)).toThrow("an int other than 0");
  expect(() => new CallMethodKey("size").get(3)).toThrow("what has a method `size`");
  expect(() => evalGuards(makeFx((x: Tensor) => x)(torch.ones(2)), [torch.ones(2)])).toThrow("with symbolic sizes");
});
