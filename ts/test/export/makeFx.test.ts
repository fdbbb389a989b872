/**
 * Programs that are traced below autograd, and what PyTorch 2.13 answers to them.
 */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import { exportProgram, func, init, Module, Parameter, tensor, type Tensor, torch } from "../../src/index.ts";
import { text } from "../ported/said.ts";
import { programs } from "./makeFxPrograms.ts";

beforeAll(() => init());

const recorded = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/make-fx/programs.json", import.meta.url), "utf8"),
) as Readonly<Record<string, readonly string[]>>;

/** Where lines differ, by their place: ours, or how it is made of PyTorch's. `docs/compat.md` tells why. */
const DIFFERENT: Readonly<Record<string, Readonly<Record<number, string | ((line: string) => string)>>>> = {
  // Nothing is kept for a way back that nobody goes.
  a_module: {
    0: (line) => line.replace(/\n.*%detach.*/, "").replace("%relu : [num_users=2]", "%relu : [num_users=1]"),
  },
  // The same product, by one operator.
  einsum: {
    0: [
      "graph():",
      "    %x_1 : [num_users=1] = placeholder[target=x_1]",
      "    %y_1 : [num_users=1] = placeholder[target=y_1]",
      "    %unsqueeze : [num_users=1] = call_function[target=torch.ops.aten.unsqueeze.default](args = (%x_1, 1), kwargs = {})",
      "    %permute : [num_users=1] = call_function[target=torch.ops.aten.permute.default](args = (%y_1, [1, 0]), kwargs = {})",
      "    %unsqueeze_1 : [num_users=1] = call_function[target=torch.ops.aten.unsqueeze.default](args = (%permute, 0), kwargs = {})",
      "    %permute_1 : [num_users=1] = call_function[target=torch.ops.aten.permute.default](args = (%unsqueeze, [0, 2, 1]), kwargs = {})",
      "    %view : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%permute_1, [1, 2, 3]), kwargs = {})",
      "    %permute_2 : [num_users=1] = call_function[target=torch.ops.aten.permute.default](args = (%unsqueeze_1, [2, 1, 0]), kwargs = {})",
      "    %view_1 : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%permute_2, [1, 3, 2]), kwargs = {})",
      "    %bmm : [num_users=1] = call_function[target=torch.ops.aten.bmm.default](args = (%view, %view_1), kwargs = {})",
      "    %view_2 : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%bmm, [2, 1, 2]), kwargs = {})",
      "    %permute_3 : [num_users=1] = call_function[target=torch.ops.aten.permute.default](args = (%view_2, [0, 2, 1]), kwargs = {})",
      "    %sum_1 : [num_users=1] = call_function[target=torch.ops.aten.sum.dim_IntList](args = (%permute_3, [2], True), kwargs = {})",
      "    %view_3 : [num_users=1] = call_function[target=torch.ops.aten.view.default](args = (%sum_1, [2, 2]), kwargs = {})",
      "    return view_3",
    ].join("\n"),
  },
  // Memory that PyTorch makes and does not use.
  decomposition_interpreter: {
    1: (line) =>
      line
        .replace(/\n.*%(?:empty_strided|empty_strided_1|detach) .*/g, "")
        .replace("%reciprocal : [num_users=2]", "%reciprocal : [num_users=1]"),
  },
  data_decides: { 1: (line) => line.replace(/\. {2}\(Size-like.*/, "") },
  // A number stays one.
  vmap_nested: {
    0: (line) =>
      line
        .replace(/\n.*%select .*\n.*%_to_copy .*/, "")
        .replace("%_to_copy", "1")
        .replace("%cos : [num_users=2]", "%cos : [num_users=1]"),
  },
  // Messages say what there is in JavaScript.
  refusals_of_vmap: {
    0: (line) => line.replace("TreeSpec(tuple, None, [*,", "list(*, *) but inputs has structure list(*)."),
    2: ofType,
    3: ofType,
    5: ofType,
    6: (line) => line.replace("TreeSpec(tuple, None, [*,", "list(*, *) but outputs has structure *."),
  },
  refusals_of_grad: {
    1: ofType,
    3: ofType,
    6: (line) =>
      line.replace("TreeSpec(tuple, None, [*])", "list(*)").replace("TreeSpec(tuple, None, [*,", "list(*, *)"),
  },
  // PyTorch asks for the first tensor before it asks whether there is one.
  refusals_of_associative_scan: { 2: "Expected at least 1 xs leaf", 3: ofType },
};

function ofType(line: string): string {
  return line.replace(/<class '(?:int|float)'>/, "number").replace("<class 'NoneType'>", "null");
}

describe("as make_fx answers:", () => {
  test.each(Object.keys(recorded))("%s", (name) => {
    const said: string[] = [];
    programs[name]?.((it) => void said.push(text(it)));
    const expected = recorded[name]?.map((line, at) => {
      const ours = DIFFERENT[name]?.[at] ?? line;
      return typeof ours === "function" ? ours(line) : ours;
    });
    expect(said).toEqual(expected);
  });

  test("every program is recorded", () => {
    expect(Object.keys(programs).toSorted()).toEqual(Object.keys(recorded).toSorted());
  });
});

test("gradients and vmap are recorded in a program, too", () => {
  class M extends Module {
    weight = new Parameter(tensor([1, 2, 3], { dtype: "float32" }));
    override forward(x: Tensor): unknown {
      const gradient = func.grad((it: Tensor) => it.mul(this.weight).sin().sum())(x) as Tensor;
      return func.vmap((it: Tensor) => it.mul(2))(gradient);
    }
  }
  const x = tensor([0.5, 1, -1], { dtype: "float32" });
  const [model, program] = [new M(), exportProgram(new M(), [x])];
  expect(String(program.module()(x))).toBe(String(model.forward(x)));
  expect(String(program.graph)).toContain("torch.ops.aten.cos.default");
});

test("what nothing depends on has a gradient of zeros", () => {
  const x = tensor([1, 2], { dtype: "float32" });
  const both = func.grad((a: Tensor, _b: Tensor) => a.sum(), { argnums: [0, 1] })(x, x) as Tensor[];
  expect(both.map((it) => it.toArray())).toEqual([
    [1, 1],
    [0, 0],
  ]);
  const none = func.grad((() => tensor(3.5)) as (it: Tensor) => unknown)(x) as Tensor;
  expect(none.toArray()).toEqual([0, 0]);
});

test("results of sizes that the data decides are pulled back within another gradient", () => {
  const mask = tensor([true, false, true]);
  const squares = (x: Tensor): unknown => torch.maskedSelect(x.mul(x), mask);
  const twice = func.grad((x: Tensor) => {
    const [y, pullBack] = func.vjp(squares, [x]);
    return (pullBack(y)[0] as Tensor).sum();
  });
  // The sum of 2x³ where the mask is set.
  const result = twice(tensor([1, 2, 3], { dtype: "float32" })) as Tensor;
  expect(result.toArray()).toEqual([6, 0, 54]);
  const [y, pullBack] = func.vjp(squares, [tensor([1, 2, 3], { dtype: "float32" })]);
  expect(String(y)).toBe("tensor([1., 9.])");
  expect(() => pullBack(torch.ones([3]))).toThrow("grad_output[0] has a shape of torch.Size([3])");
});

const noisy = (it: Tensor): unknown => it.add(torch.rand([8]));

test("random numbers are refused within vmap, or drawn for each example", () => {
  const x = torch.zeros([4, 8]);
  expect(() => func.vmap(noisy)(x)).toThrow("random operation");
  const rows = (func.vmap(noisy, { randomness: "different" })(x) as Tensor).toArray() as number[][];
  expect(new Set(rows.map(String)).size).toBe(4);
});
