import { describe, expect, test, vi } from "vitest";
import { defineFunction } from "../../src/functions/table.ts";
import { CodeGen } from "../../src/graph/codegen/codegen.ts";
import { GraphModule } from "../../src/fx/graphModule.ts";
import { float } from "../../src/base/values.ts";
import { tuple } from "../../src/graph/args.ts";
import { Interpreter } from "../../src/fx/interpreter.ts";
import { Transformer } from "../../src/trace/transformer.ts";
import { PH, PHBase } from "../../src/trace/placeholder.ts";
import { registerPytreeNode, treeFlatten, treeMap, treeUnflatten } from "../../src/trace/pytree.ts";
import { symbolicTrace, type Traceable } from "../../src/trace/tracer.ts";
import { thrown } from "../thrown.ts";

/** Concatenates, so that what reached a call, and in which order, can be read off its result. */
const join = defineFunction("test.inputs.join", (...parts: unknown[]): string => parts.map(String).join(" "));

class Point {
  readonly x: unknown;
  readonly y: unknown;
  constructor(x: unknown, y: unknown) {
    this.x = x;
    this.y = y;
  }
}
registerPytreeNode(Point, {
  flatten: ({ x, y }: Point) => [[x, y], "point"],
  unflatten: ([x, y]) => new Point(x, y),
});

const lines = (graph: { toString(): string }): string[] =>
  `${graph}`
    .split("\n")
    .slice(1)
    .map((it) => it.trim());

const placeholders = (gm: GraphModule): number => gm.graph.findNodes({ op: "placeholder" }).length;

const whereFlag = (x: string, flag: boolean): unknown => (flag ? x : null);

const withOptions = (x: string, { alpha, beta = float(2) }: { alpha: string; beta?: unknown }): unknown =>
  join(x, alpha, beta);

const withRest = (x: string, ...args: string[]): unknown => join(x, ...args);

describe("nested inputs", () => {
  let count = 0;
  const values = (tree: unknown): unknown => treeMap((it) => (it === PH ? `v${count++}` : it), tree);

  const structures: readonly (readonly [string, unknown, (x: never) => unknown])[] = [
    ["a leaf", PH, (x: string) => ({ out: join(x), same: x })],
    ["an empty list", [], (_x: string[]) => 1],
    ["a list", [PH, PH], ([a, b]: string[]) => [join(b, a), a]],
    ["a tuple", tuple<unknown[]>(PH, PH, PH), (x: string[]) => tuple<unknown[]>(join(x[2]), x[0])],
    ["an object", { a: PH, "b c": PH }, (x: { a: string; "b c": string }) => join(x["b c"], x.a)],
    ["a Map", new Map([[1, PH]]), (x: Map<number, string>) => [join(x.get(1))]],
    ["nested lists", [[PH], [[PH, PH]]], (x: [[string], [[string, string]]]) => join(x[1][0][1], x[0][0])],
    ["lists in objects", { a: [PH, { b: PH }] }, (x: { a: [string, { b: string }] }) => ({ c: [join(x.a[1].b)] })],
    ["a registered class", new Point(PH, [PH]), (p: Point) => new Point(join(p.x, (p.y as string[])[0]), p.x)],
    ["objects in tuples", tuple<unknown[]>({ a: PH }), (x: [{ a: string }]) => tuple<unknown[]>(x[0].a)],
    ["values that are fixed", [PH, 3, "mode"], (x: [string, number, string]) => join(x[0], x[1], x[2])],
    ["an empty object in a list", [{}, PH], (x: [object, string]) => join(x[1])],
  ];

  test.each(structures)("PT-01, PT-03: %s becomes a flat list, is put together again, and back", (_, tree, fn) => {
    const input = values(tree);
    const expected = (fn as (x: unknown) => unknown)(input);
    const flat = treeFlatten(tree)[0].length;
    const concreteArgs = [tree];
    const traced = symbolicTrace(fn as Traceable, { concreteArgs });
    const isNested = tree !== PH;
    // What is fixed is checked by torch._assert, which belongs to the eager functions.
    const run = (gm: GraphModule): unknown => gm.forward(input);
    const hasFixed = treeFlatten(tree)[0].some((it) => it !== PH);
    expect(placeholders(traced)).toBe(flat);
    expect(traced.code.includes("$inSpec.flatten")).toBe(isNested && flat > 0);
    if (hasFixed) return;
    expect(run(traced)).toEqual(expected);

    const bare = new GraphModule(traced, traced.graph.clone());
    bare.graph.setCodegen(new CodeGen());
    const outputs = bare.forward(...traced.graph.processInputs(input));
    expect(traced.graph.processOutputs(outputs)).toEqual(expected);

    expect(run(new Transformer(traced).transform())).toEqual(expected);
    if (tree instanceof Point) {
      expect(thrown(() => symbolicTrace(traced)).reason).toContain("is a traced value");
      return;
    }
    const [only, ...others] = symbolicTrace(traced).graph.findNodes({ op: "placeholder" });
    expect(others).toEqual([]);
    expect(only?.op).toBe("placeholder");
    expect(symbolicTrace(traced).code).not.toContain("$inSpec");
    expect(run(symbolicTrace(traced))).toEqual(expected);
    const again = symbolicTrace(traced, { concreteArgs });
    expect(placeholders(again)).toBe(flat);
    expect(run(again)).toEqual(expected);
  });

  test("PT-01: names and the code are FX's", () => {
    const gm = symbolicTrace((t: [{ a: string }, string[]]) => join(t[0].a, ...t[1]), {
      concreteArgs: { t: tuple<unknown[]>({ a: PH }, [PH, PH]) },
    });
    expect(lines(gm.graph)).toEqual([
      "%t_1 : [num_users=1] = placeholder[target=t_1]",
      "%t_2 : [num_users=1] = placeholder[target=t_2]",
      "%t_3 : [num_users=1] = placeholder[target=t_3]",
      "%join : [num_users=1] = call_function[target=test.inputs.join](args = (%t_1, %t_2, %t_3), kwargs = {})",
      "return [join]",
    ]);
    expect(gm.forward([{ a: "x" }, tuple<unknown[]>("y", "z")])).toBe("x y z");
    expect(thrown(() => gm.forward([{ b: "x" }, ["y", "z"]]))).toMatchObject({
      kind: "InputStructure",
      reason: expect.stringContaining("part 0 of `t`") as string,
    });
    expect(thrown(() => gm.forward([{ a: "x" }, ["y"]])).reason).toContain("one of 1 parts");
    expect(thrown(() => gm.forward()).kind).toBe("InputCount");
  });

  test("PT-02: values that are fixed are checked when the graph runs", () => {
    const warn = vi.spyOn(console, "warn").mockImplementation(() => undefined);
    const given = { flag: true, n: 3, scale: float(2), mode: "mean", none: null, fn: String };
    const gm = symbolicTrace(
      (x: string, flag: boolean, n: number, scale: number, mode: string, none = null, fn: unknown) =>
        join(x, flag ? "yes" : "no", n, scale, mode, none, typeof fn),
      { concreteArgs: given },
    );
    expect(lines(gm.graph)).toMatchInlineSnapshot(`
      [
        "%x : [num_users=1] = placeholder[target=x]",
        "%flag_1 : [num_users=1] = placeholder[target=flag_1]",
        "%eq : [num_users=1] = call_function[target=operator.eq](args = (%flag_1, True), kwargs = {})",
        "%_assert : [num_users=0] = call_function[target=torch._assert](args = (%eq, flag has been specialized to have value True but got another value), kwargs = {})",
        "%n_1 : [num_users=1] = placeholder[target=n_1]",
        "%eq_1 : [num_users=1] = call_function[target=operator.eq](args = (%n_1, 3), kwargs = {})",
        "%_assert_1 : [num_users=0] = call_function[target=torch._assert](args = (%eq_1, n has been specialized to have value 3 but got another value), kwargs = {})",
        "%scale_1 : [num_users=1] = placeholder[target=scale_1]",
        "%eq_2 : [num_users=1] = call_function[target=operator.eq](args = (%scale_1, 2.0), kwargs = {})",
        "%_assert_2 : [num_users=0] = call_function[target=torch._assert](args = (%eq_2, scale has been specialized to have value 2.0 but got another value), kwargs = {})",
        "%mode_1 : [num_users=1] = placeholder[target=mode_1]",
        "%eq_3 : [num_users=1] = call_function[target=operator.eq](args = (%mode_1, mean), kwargs = {})",
        "%_assert_3 : [num_users=0] = call_function[target=torch._assert](args = (%eq_3, mode has been specialized to have value mean but got another value), kwargs = {})",
        "%none_1 : [num_users=1] = placeholder[target=none_1](default=None)",
        "%_assert_is_none : [num_users=0] = call_function[target=torch.fx._symbolic_trace._assert_is_none](args = (%none_1, none has been specialized to have value None but got another value), kwargs = {})",
        "%fn_1 : [num_users=0] = placeholder[target=fn_1]",
        "%join : [num_users=1] = call_function[target=test.inputs.join](args = (%x, yes, 3, 2.0, mean, None, function), kwargs = {})",
        "return join",
      ]
    `);
    expect(warn).toHaveBeenCalledOnce();
    expect(warn.mock.calls[0]?.[0]).toContain("`fn`");
    warn.mockRestore();
    const onlyNone = symbolicTrace((x: string, val: string | null = null) => join(x, val), {
      concreteArgs: { val: null },
    });
    expect(onlyNone.forward("a")).toBe("a null");
    expect(thrown(() => onlyNone.forward("a", "b")).reason).toBe(
      "val has been specialized to have value None but got another value",
    );
  });

  test("PT-04: properties of a placeholder reach the node, and overwrite nothing", () => {
    class Tagged extends PHBase {
      readonly name = "mine";
      readonly tag = "left";
    }
    const gm = symbolicTrace((x: string[]) => join(...x), { concreteArgs: { x: [new Tagged(), PH] } });
    const [left, right] = gm.graph.findNodes({ op: "placeholder" });
    expect([Reflect.get(left ?? {}, "tag"), left?.name]).toEqual(["left", "x_1"]);
    expect(Reflect.has(right ?? {}, "tag")).toBe(false);
  });

  test("PT-04: concrete arguments in order must be as many as there are parameters", () => {
    expect(thrown(() => symbolicTrace(whereFlag, { concreteArgs: [true] })).reason).toBe(
      "Tracing expected 2 arguments but got 1 concrete arguments",
    );
    expect(lines(symbolicTrace(whereFlag, { concreteArgs: [PH, true] }).graph).at(-1)).toBe("return x");
    const error = thrown(() => symbolicTrace(whereFlag, { concreteArgs: { flagg: true } }));
    expect([error.kind, error.help]).toEqual(["InvalidOption", "its parameters are x, flag"]);
  });

  test("PT-05: the interpreter packs as the graph says, and its inner run does not", () => {
    const gm = symbolicTrace((x: { a: string; b: string }) => [join(x.b, x.a)], { concreteArgs: [{ a: PH, b: PH }] });
    expect(new Interpreter(gm).run({ b: "2", a: "1" })).toEqual(["2 1"]);
    expect(new Interpreter(gm).runWith(["1", "2"], { enableIoProcessing: false })).toEqual(["2 1"]);
    expect(new Interpreter(gm).boxedRun(["1", "2"])).toEqual(["2 1"]);
  });
});

describe("containers", () => {
  test("a structure is printed, compared and used again", () => {
    const tree = { a: [1, tuple<unknown[]>(2, null)], b: new Map([["k", new Point(3, 4)]]) };
    const [leaves, spec] = treeFlatten(tree);
    expect(leaves).toEqual([1, 2, null, 3, 4]);
    expect(`${spec}`).toBe('dict(["a","b"], list(*, tuple(*, *)), Map(["k"], Point("point", *, *)))');
    expect(treeUnflatten(leaves, spec)).toEqual(tree);
    expect(spec.equals(treeFlatten(tree)[1])).toBe(true);
    expect(spec.equals(treeFlatten({ ...tree, a: [] })[1])).toBe(false);
    expect(thrown(() => treeUnflatten([1], spec)).reason).toBe("the structure has 5 leaves, and there are 1");
    expect(treeFlatten([[1], 2], { isLeaf: (it) => Array.isArray(it) && it.length === 1 })[0]).toEqual([[1], 2]);
  });

  test("a class is registered once, and a container that holds itself is refused", () => {
    const type = { flatten: () => [[], 0] as const, unflatten: () => new Point(0, 0) };
    expect(thrown(() => registerPytreeNode(Point, type)).kind).toBe("InvalidOption");
    const endless: unknown[] = [];
    endless.push(endless);
    expect(thrown(() => treeFlatten(endless)).reason).toContain("500");
  });
});

describe("parameters", () => {
  test("TR-09: an options parameter becomes an input for each option, and the graph module takes it again", () => {
    const gm = symbolicTrace(withOptions as Traceable);
    expect(lines(gm.graph)).toEqual([
      "%x : [num_users=1] = placeholder[target=x]",
      "%alpha : [num_users=1] = placeholder[target=alpha]",
      "%beta : [num_users=1] = placeholder[target=beta](default=2.0)",
      "%join : [num_users=1] = call_function[target=test.inputs.join](args = (%x, %alpha, %beta), kwargs = {})",
      "return join",
    ]);
    expect(gm.forward("x", { beta: "b", alpha: "a" })).toBe("x a b");
    expect(thrown(() => gm.forward("x", { beta: "b" })).reason).toContain("parameter alpha");
    expect(thrown(() => gm.forward("x", { alpha: "a", gamma: 1 })).reason).toBe("there is no option `gamma`");
    expect(thrown(() => gm.forward("x", "a")).kind).toBe("InputStructure");
    expect(symbolicTrace(gm).forward("x", { alpha: "a", beta: "b" })).toBe("x a b");
    expect(`${symbolicTrace(gm).graph}`).toBe(`${gm.graph}`);
    const fixed = symbolicTrace(withOptions as Traceable, { concreteArgs: { beta: null } });
    expect(fixed.forward("x", { alpha: "a", beta: null })).toBe("x a null");
  });

  test("TR-09: any number of arguments is traced once it is said how many", () => {
    expect(thrown(() => symbolicTrace(withRest)).help).toContain("concreteArgs: { args: [PH, PH] }");
    const gm = symbolicTrace(withRest, { concreteArgs: { args: [PH, PH] } });
    expect(gm.graph.findNodes({ op: "placeholder" }).map(({ name }) => name)).toEqual(["x", "args_1", "args_2"]);
    expect(gm.forward("x", "a", "b")).toBe("x a b");
    expect(thrown(() => gm.forward("x", "a")).reason).toBe("...args was traced with 2 arguments, and there are 1");
    expect(symbolicTrace(gm).forward("x", "a", "b")).toBe("x a b");
  });

  test("TR-09: *args and **kwargs of a graph are inputs of a retrace", () => {
    const gm = symbolicTrace((x: string) => join(x));
    const [call] = gm.graph.findNodes({ op: "call_function", target: join });
    gm.graph.insertingBefore(call, () => {
      const rest = gm.graph.createNode("placeholder", "*args", [], {}, "args");
      const first = gm.graph.callFunction("test.inputs.join", [rest]);
      call?.insertArg(1, first);
    });
    expect(gm.forward("x", "a", "b")).toBe("x a,b");
    const again = symbolicTrace(gm);
    expect(again.graph.findNodes({ op: "placeholder" }).map(({ target }) => target)).toEqual(["x", "*args"]);
    expect(again.forward("x", "a", "b")).toBe("x a,b");
  });

  test("TR-09: types are given by name", () => {
    const gm = symbolicTrace((x: string) => join(x), { annotations: { x: "torch.Tensor", return: "str" } });
    expect([...gm.graph.nodes].map(({ type }) => type)).toEqual(["torch.Tensor", undefined, "str"]);
    expect([...symbolicTrace(gm).graph.nodes][0]?.type).toBe("torch.Tensor");
  });

  test("functions that cannot be traced say why", () => {
    expect(thrown(() => symbolicTrace(Math.max)).reason).toContain("native");
    expect(thrown(() => symbolicTrace(async (x: string) => Promise.resolve(x))).reason).toContain("async");
    expect(
      thrown(() =>
        symbolicTrace(function* parts(x: string) {
          yield x;
        }),
      ).reason,
    ).toContain("generator");
  });
});
