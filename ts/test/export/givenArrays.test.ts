import { beforeAll, describe, expect, test } from "vitest";
import { Dim, exportProgram, init, Module, nn, type Tensor, tensor, torch, tuple } from "tracefx";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

class Net extends Module {
  readonly linear = new nn.Linear(3, 2);

  override forward(x: Tensor): Tensor {
    return this.linear.forward(x);
  }
}

class Twice extends Module {
  override forward(x: Tensor): Tensor {
    return x.add(x);
  }
}

const twice = (x: Tensor) => exportProgram(new Twice(), [x]).module();

describe("where a program takes a tensor, it takes", () => {
  test("nested arrays, which have the dtype of the input", () => {
    const model = exportProgram(new Net(), [torch.ones([2, 3])]).module();
    const rows = [
      [1, 2, 3],
      [0.5, -1, 4],
    ];
    expect((model(rows) as Tensor).toArray()).toEqual((model(tensor(rows)) as Tensor).toArray());
    expect(model.runFlat([rows.map((row) => row.map(Math.round))])[0]).toMatchObject({ dtype: "float32" });
  });

  test.each([
    ["float64", [0.1, 2]],
    ["float16", [1, 2]],
    ["int32", [1, 2]],
    ["complex64", [1, 0.5]],
  ] as const)("numbers for %s", (dtype, given) => {
    const wanted = tensor(given, { dtype });
    const found = twice(torch.zeros([2], { dtype }))(given) as Tensor;
    expect([found.dtype, found.toArray()]).toEqual([dtype, wanted.add(wanted).toArray()]);
  });

  test("truth values", () => {
    class Not extends Module {
      override forward(x: Tensor): Tensor {
        return x.logicalNot();
      }
    }
    const model = exportProgram(new Not(), [tensor([true, false])]).module();
    expect((model([false, false]) as Tensor).toArray()).toEqual([true, true]);
  });

  test("typed arrays, which have the sizes of the input", () => {
    const found = twice(torch.ones([2, 3]))(Float32Array.from([1, 2, 3, 4, 5, 6])) as Tensor;
    expect(found.toArray()).toEqual([
      [2, 4, 6],
      [8, 10, 12],
    ]);
    const ints = twice(torch.ones([2], { dtype: "int64" }))(BigInt64Array.from([1n, 2n])) as Tensor;
    expect((ints.toArray() as bigint[]).map(Number)).toEqual([2, 4]);
  });

  test("typed arrays, of which one size is found", () => {
    const model = exportProgram(
      new Net(),
      [torch.ones([2, 3])],
      {},
      { dynamicShapes: { x: { 0: Dim("batch") } } },
    ).module();
    expect((model(new Float32Array(12)) as Tensor).shape).toEqual([4, 2]);
    expect(thrown(() => model(new Float32Array(7)))).toMatchObject({ kind: "InputShape" });
  });

  test("arrays in containers and in keyword arguments", () => {
    class Pair extends Module {
      override forward([a, b]: readonly Tensor[], { scale }: { readonly scale: Tensor }): Tensor {
        return (a as Tensor).add(b as Tensor).mul(scale);
      }
    }
    const model = exportProgram(new Pair(), [tuple(torch.ones([2]), torch.ones([2]))], {
      scale: torch.ones([2]),
    }).module();
    const found = model(tuple([1, 2], new Float32Array([3, 4])), { scale: [10, 10] }) as Tensor;
    expect(found.toArray()).toEqual([40, 60]);
  });
});

describe("what would be another value is refused:", () => {
  test.each([
    ["fractions for whole numbers", "int64", [0.5, 1]],
    ["numbers for truth values", "bool", [1, 0]],
    ["truth values for numbers", "float32", [true, false]],
    ["an array of another dtype", "float32", new Float64Array(2)],
    ["whole numbers that are too large", "int8", [300, 1]],
  ] as const)("%s", (_, dtype, given) => {
    const model = twice(torch.zeros([2], { dtype: dtype === "bool" ? "bool" : dtype }));
    expect(thrown(() => model(given)).code).toMatch(/^FX/);
  });

  test("sizes that do not fit", () => {
    const model = twice(torch.ones([2, 3]));
    for (const given of [[1, 2], new Float32Array(5), [[1, 2]]]) {
      expect(thrown(() => model(given)).code).toMatch(/^FX/);
    }
  });

  test("a typed array for several sizes that are open", () => {
    const dynamicShapes = { x: { 0: Dim("a"), 1: Dim("b") } };
    const model = exportProgram(new Twice(), [torch.ones([2, 3])], {}, { dynamicShapes }).module();
    expect(thrown(() => model(new Float32Array(6)))).toMatchObject({
      kind: "InputShape",
      help: expect.stringContaining("shape: ["),
    });
    expect((model([[1, 2, 3]]) as Tensor).shape).toEqual([1, 3]);
  });

  test("an array where a number stands", () => {
    class Scaled extends Module {
      override forward(x: Tensor, by: number): Tensor {
        return x.mul(by);
      }
    }
    const model = exportProgram(new Scaled(), [torch.ones([2]), 2]).module();
    expect(thrown(() => model(torch.ones([2]), [2])).code).toMatch(/^FX/);
  });

  test("an array that the program would write to", () => {
    class Writes extends Module {
      override forward(x: Tensor): Tensor {
        x.add_(1);
        return x.mul(2);
      }
    }
    const model = exportProgram(new Writes(), [torch.ones([2])]).module();
    expect(thrown(() => model([1, 2]))).toMatchObject({ kind: "InputType", reason: expect.stringContaining("writes") });
  });
});

describe("exportProgram", () => {
  test("takes typed arrays as example inputs, and a list of numbers as a list, as PyTorch does", () => {
    const program = exportProgram(new Twice(), [Float32Array.from([1, 2])]);
    expect(program.graphSignature.userInputs).toEqual(["x"]);
    expect(program.graph.find("x")?.meta.get("val")).toMatchObject({ dtype: "float32", sizes: [2] });
    expect((program.module()(tensor([0.5, 1])) as Tensor).toArray()).toEqual([1, 2]);

    class Sum extends Module {
      override forward(x: Tensor, [a, b]: readonly number[]): Tensor {
        return x.add((a as number) + (b as number));
      }
    }
    const listed = exportProgram(new Sum(), [torch.ones([2]), [3, 4]]);
    expect(listed.graphSignature.inputSpecs.map(({ arg }) => arg.type)).toEqual(["tensor", "constant", "constant"]);
  });
});
