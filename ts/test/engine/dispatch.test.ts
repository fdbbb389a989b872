import { beforeAll, describe, expect, it } from "vitest";
import { callOperator } from "../../src/engine/dispatch.ts";
import { init, restart } from "../../src/engine/engine.ts";
import { tuple } from "../../src/graph/args.ts";
import { complex, device, dtype, Ellipsis, float, layout, memoryFormat } from "../../src/base/values.ts";
import { tensor } from "../../src/tensor/construct.ts";
import { Tensor } from "../../src/tensor/tensor.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

function run(name: string, args: readonly unknown[], kwargs?: Readonly<Record<string, unknown>>): Tensor {
  const result = callOperator(name, args, kwargs);
  if (result instanceof Tensor) return result;
  throw new Error(`${name} gave ${String(result)}`);
}

describe("values that cross", () => {
  it("are tensors, numbers and everything that operators take", () => {
    const x = tensor([
      [1.5, -2],
      [3, 4],
    ]);
    expect(run("aten.add", [x, x], { alpha: 2 }).toArray()).toEqual([
      [4.5, -6],
      [9, 12],
    ]);
    expect(run("aten.full", [[2], 7]).dtype).toBe("int64");
    expect(run("aten.full", [[2], float(7)]).dtype).toBe("float32");
    expect(run("aten.full", [tuple(1, 2), true]).toArray()).toEqual([[true, true]]);
    expect(run("aten.full", [[], 0.1], { dtype: "float64" }).item()).toBe(0.1);
    expect(run("aten.full", [[1], -0]).toString()).toBe("tensor([-0.])");
    expect(run("aten.full", [[1], 9223372036854775807n]).toArray()).toEqual([9223372036854775807n]);
    expect(run("aten.full", [[1], -9007199254740991]).item()).toBe(-9007199254740991);
    expect(run("aten.full", [[1], -(2 ** 40)]).item()).toBe(-(2 ** 40));
    expect(run("aten.full", [[1], complex(1, -2)]).toArray()).toEqual([complex(1, -2)]);
    expect(
      run("aten.zeros", [[2]], { dtype: dtype("int8"), device: device("cpu"), layout: layout("strided") }).dtype,
    ).toBe("int8");
    expect(run("aten.clone", [x], { memory_format: memoryFormat("contiguous_format") }).toArray()).toEqual(x.toArray());
    expect(run("aten.einsum", ["ij->ji", [x]]).toArray()).toEqual([
      [1.5, 3],
      [-2, 4],
    ]);
    expect(run("aten.div", [x, 2], { rounding_mode: "floor" }).toArray()).toEqual([
      [0, -1],
      [1, 2],
    ]);
    expect(run("aten.clamp", [x, null, 2]).toArray()).toEqual([
      [1.5, -2],
      [2, 2],
    ]);
    expect(run("aten.clamp", [x], { min: undefined, max: 2 }).toArray()).toEqual([
      [1.5, -2],
      [2, 2],
    ]);
  });

  it("are refused where a whole number is no int of 64 bits", () => {
    expect(run("aten.full", [[1], -(2 ** 63)]).toArray()).toEqual([-(2n ** 63n)]);
    for (const value of [2 ** 63, -(2 ** 64), -Number.MAX_VALUE]) {
      const { code, message } = thrown(() => run("aten.full", [[1], value]));
      expect([code, message]).toEqual(["FX0602", expect.stringContaining("does not fit 64 bits")]);
      expect(run("aten.full", [[1], float(value)], { dtype: "float64" }).item()).toBe(value);
    }
  });

  it("come back as they are: one alone, several in an array, none as null", () => {
    const x = tensor([
      [1.5, 2],
      [4, 3],
    ]);
    expect(callOperator("aten.item", [tensor([2.5])])).toBe(2.5);
    // A whole float stays a float, so that what is made of it holds floats too.
    expect(callOperator("aten.item", [tensor([float(2)])])).toEqual(float(2));
    expect(callOperator("aten.item", [tensor(9007199254740993n)])).toBe(9007199254740993n);
    expect(callOperator("aten.item", [tensor(true)])).toBe(true);
    expect(callOperator("aten.sym_size.int", [x, 1])).toBe(2);
    const [values, indices] = callOperator("aten.max", [x, 1]) as [Tensor, Tensor];
    expect([values.toArray(), indices.toArray()]).toEqual([
      [2, 4],
      [1, 0],
    ]);
    expect((callOperator("aten.unbind", [x]) as Tensor[]).map((result) => result.toArray())).toEqual([
      [1.5, 2],
      [4, 3],
    ]);
    expect(callOperator("aten._assert_async", [tensor(true)])).toBeNull();
  });

  it("are refused by place where no operator takes them", () => {
    const x = tensor([1.5]);
    expect(thrown(() => callOperator("aten.add", [x, {}])).reason).toBe(
      "argument 1 of aten.add is a Object, which no operator takes",
    );
    expect(thrown(() => callOperator("aten.cat", [[x, [Ellipsis]]])).reason).toContain("argument 0 of aten.cat[1][0]");
    expect(thrown(() => callOperator("aten.add", [x], { other: 1n << 64n })).reason).toContain(
      "`other` of aten.add does not fit",
    );
    const endless: unknown[] = [];
    endless.push(endless);
    expect(thrown(() => callOperator("aten.cat", [endless])).kind).toBe("InputStructure");
    expect(thrown(() => callOperator("aten.cat", [() => x])).kind).toBe("InputType");
  });
});

describe("identity", () => {
  it("of what works in place is that of its argument, whatever was given", () => {
    const x = tensor([-1.5, 2]);
    expect(callOperator("aten.relu_", [x])).toBe(x);
    expect(callOperator("aten.add_", [], { input: x, other: 1 })).toBe(x);
    expect(x.toArray()).toEqual([1, 3]);
  });

  it("of what has nothing to do is that of its argument, and a view is a tensor of its own", () => {
    const x = tensor([[1.5, 2]]);
    expect(callOperator("aten.contiguous", [x])).toBe(x);
    expect(callOperator("aten.to.dtype", [x, dtype("float32")])).toBe(x);
    expect(callOperator("aten.view", [x, [1, 2]])).not.toBe(x);
    expect(callOperator("aten.detach", [x])).not.toBe(x);
  });

  it("of what writes to out is that of out, which is resized", () => {
    const x = tensor([1.5, 2]);
    const out = tensor([], { dtype: "float64" });
    expect(callOperator("aten.add", [x, 1], { out })).toBe(out);
    expect([out.shape, out.toArray()]).toEqual([[2], [2.5, 3]]);
    const both = [tensor([0.5]), tensor([0])];
    expect(callOperator("aten.max", [tensor([[1.5, 2]]), 1], { out: both })).toEqual(both);
    expect(both.map((result) => result.toArray())).toEqual([[2], [1]]);
    const refusal = thrown(() => callOperator("aten.add", [x, 1], { out: tensor([1, 2]) }));
    expect(refusal.reason).toBe("result type float32 can't be cast to the desired output type int64");
    expect(thrown(() => callOperator("aten.add", [x, 1], { out: [out, out] })).reason).toBe(
      "add gives 1 results, and out has 2",
    );
  });

  it("of a storage is kept: writes are seen through every view", () => {
    const x = tensor([
      [1.5, 2],
      [3, 4],
    ]);
    const row = run("aten.select", [x, 0, 1]);
    run("aten.mul_", [row, 10]);
    expect(x.toArray()).toEqual([
      [1.5, 2],
      [30, 40],
    ]);
    expect(run("aten.t", [x]).toArray()).toEqual([
      [1.5, 30],
      [2, 40],
    ]);
  });
});

describe("refusals", () => {
  it("are those of PyTorch's argument parser", () => {
    const x = tensor([1.5]);
    expect(thrown(() => callOperator("aten.relu", [3])).reason).toBe(
      "relu(): argument 'input' (position 1) must be Tensor, not int",
    );
    const refusal = thrown(() => callOperator("aten.max", [x, "a"]));
    expect(refusal.reason).toBe(
      "max() received an invalid combination of arguments - got (Tensor, str), but expected one of:",
    );
    expect(refusal.notes[0]).toBe("(Tensor input)");
    expect(refusal.notes).toHaveLength(3);
  });

  it("name operators that are not there", () => {
    const refusal = thrown(() => callOperator("aten.no_such_thing", []));
    expect([refusal.kind, refusal.op]).toEqual(["NotImplemented", "aten.no_such_thing"]);
  });

  it("leave the engine as it was: no handle is lost and the next call works", () => {
    const x = tensor([1.5]);
    for (let round = 0; round < 100; round++) thrown(() => callOperator("aten.add", [x, x, { a: 1 }]));
    expect(run("aten.add", [x, 1]).item()).toBe(2.5);
    x.dispose();
    expect(thrown(() => callOperator("aten.add", [x, 1])).kind).toBe("Disposed");
  });
});

describe("an engine that is made anew", () => {
  it("has lost its tensors, which say so, and gives handles to others", () => {
    const host = tensor([1.5]);
    const lost = run("aten.add", [tensor([1.5]), 1]);
    restart();
    const made = run("aten.add", [host, 1]);
    for (const use of [() => lost.toArray(), () => callOperator("aten.add", [lost, 1])]) {
      expect(thrown(use).reason).toBe("the tensor was lost when the engine was made anew");
    }
    lost.dispose();
    expect(made.item()).toBe(2.5);
  });
});
