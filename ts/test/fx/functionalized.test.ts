/** Operators that write to arguments, in graphs without writes: what the engine's interpreter gives for them. */
import { beforeAll, describe, expect, test } from "vitest";
import { Graph, GraphModule, init, Interpreter, op, type Tensor, tensor, torch } from "../../src/index.ts";
import { largestDifference, open, tensorsOf } from "../export/fixtures.ts";
import { thrown } from "../thrown.ts";

const FILL = "torch.ops.functionalized.fill.default";

function fill(xs: Tensor[], y: Tensor | null, value: number): Tensor {
  for (const it of y === null ? xs : [...xs, y]) it.fill_(value);
  return tensor([7]);
}

function accumulate(acc: Tensor, x: Tensor): void {
  acc.add_(x);
}

beforeAll(async () => {
  await init();
  const schema = "(Tensor(a!)[] xs, Tensor(b!)? y, *, float value) -> Tensor";
  torch.library.customOp("functionalized::fill", fill, { schema });
  torch.library.customOp("fxtest::accum_", accumulate, { schema: "(Tensor(a!) acc, Tensor x) -> ()" });
});

/** What a graph gives that calls an operator with these arguments, of which `base` is the input. */
function run(
  kwargs: (base: never) => Readonly<Record<string, unknown>>,
  base: Tensor = tensor([1, 2, 3, 4]),
  operator = FILL,
  name = "auto_functionalized_v2",
): unknown[] {
  const graph = new Graph();
  const input = graph.placeholder("base");
  const named = kwargs(input as never) as never;
  graph.output(graph.callFunction(`torch.ops.higher_order.${name}`, [op(operator)], named));
  return new Interpreter(GraphModule.ofGraph(graph)).run(base) as unknown[];
}

const values = (results: readonly unknown[]): unknown[] =>
  results.map((it) => (it as Tensor | null)?.toArray() ?? null);

describe("an operator that writes to arguments", () => {
  test("writes to views of copies, which are given behind its results", () => {
    const given = tensor([1, 2, 3, 4]);
    const results = run(
      (base) => ({
        value: 5,
        _xs_length: 2,
        _xs_0_base_index: 0,
        _xs_0_slice_dim: 0,
        _xs_0_slice_start: 1,
        _xs_0_slice_end: 2,
        _xs_1_base_index: 0,
        _xs_1_size: [1],
        _xs_1_stride: [1],
        _xs_1_storage_offset: 3,
        _y_base_index: null,
        _all_bases: [base],
      }),
      given,
    );
    expect(values(results)).toEqual([[7], [1, 5, 3, 5]]);
    expect(given.toArray()).toEqual([1, 2, 3, 4]);
  });

  test("may have no results, and copies of its arguments in the first version", () => {
    const accumulated = run(
      (base) => ({ acc: base, x: base }),
      undefined,
      "fxtest.accum_.default",
      "auto_functionalized",
    );
    expect(values(accumulated)).toEqual([null, [2, 4, 6, 8]]);
    const filled = run((base) => ({ xs: [base], y: null, value: 5 }), undefined, FILL, "auto_functionalized");
    expect((filled[1] as Tensor[]).map((it) => it.toArray())).toEqual([[5, 5, 5, 5]]);
    expect([values(filled.slice(0, 1)), filled[2]]).toEqual([[[7]], null]);
  });

  test("runs in PyTorch's programs", async () => {
    const program = await open("custom_op_mutating__core");
    const input = tensorsOf("custom_op_mutating/inputs.safetensors").get("in0") as Tensor;
    const want = tensorsOf("custom_op_mutating/expected.safetensors");
    const state = program.graphSignature.inputSpecs.map((it) => program.stateDict.get(it.target ?? "") ?? input);
    const [written, output] = new Interpreter(program.graphModule).run(...state) as Tensor[];
    expect(largestDifference(output as Tensor, want.get("out0") as Tensor)).toBeLessThan(1e-5);
    expect(largestDifference(written as Tensor, want.get("buffer.b") as Tensor)).toBeLessThan(1e-6);
  });

  const refused: readonly (readonly [string, (base: never) => Readonly<Record<string, unknown>>])[] = [
    ["the argument `_all_bases` is missing", () => ({})],
    ["`_all_bases` should be a list and is a Tensor", (base) => ({ _all_bases: base })],
    ["the argument `_xs_length` is missing", (base) => ({ _all_bases: [base] })],
    ["an int should be known and is a Tensor", (base) => ({ _all_bases: [base], _xs_length: base })],
    ["`_y_base_index` is 1, which is no base", (base) => ({ _all_bases: [base], _xs_length: 0, _y_base_index: 1 })],
    ["a number cannot be written to", () => ({ _all_bases: [1] })],
  ];
  test.each(refused)("is refused: %s", (reason, kwargs) => {
    const { code, reason: said, op: place } = thrown(() => run(kwargs));
    expect([code, said, place]).toEqual(["FX0303", reason, "higher_order.auto_functionalized_v2"]);
  });

  test("is refused where it is not defined", () => {
    const { kind, op: place } = thrown(() =>
      run((base) => ({ _all_bases: [base] }), undefined, "mylib.missing.default"),
    );
    expect([kind, place]).toEqual(["NotImplemented", "mylib.missing.default"]);
  });
});
