import { inspect } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { callOperator } from "../../src/engine/dispatch.ts";
import { device, dtype, float, init, memoryFormat, type Tensor, tensor } from "../../src/index.ts";
import { Parameter } from "../../src/nn/parameter.ts";
import { thrown } from "../thrown.ts";

beforeAll(() => init());

function view(name: string, ...args: readonly unknown[]): Tensor {
  return callOperator(name, args) as Tensor;
}

describe("how a tensor lies in memory", () => {
  test("is row-major, or as the operator that made the view says", () => {
    const x = tensor([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    expect([x.stride(), x.stride(-2), x.storageOffset(), x.isContiguous()]).toEqual([[3, 1], 3, 0, true]);
    const t = view("aten.t", x);
    expect([t.shape, t.stride(), t.isContiguous()]).toEqual([[3, 2], [1, 3], false]);
    const row = x.get(1);
    expect([row.stride(), row.storageOffset()]).toEqual([[1], 3]);
    expect(view("aten.contiguous", t).isContiguous()).toBe(true);
    expect(tensor([]).isContiguous()).toBe(true);
  });

  test("knows the memory formats", () => {
    const x = view("aten.zeros", [2, 3, 4, 5]);
    const last = x.to({ memoryFormat: "channels_last" });
    expect([last.stride(), last.isContiguous()]).toEqual([[60, 1, 15, 3], false]);
    expect(last.isContiguous({ memoryFormat: memoryFormat("channels_last") })).toBe(true);
    expect(x.isContiguous({ memoryFormat: "channels_last" })).toBe(false);
    expect(tensor([1]).isContiguous({ memoryFormat: "channels_last" })).toBe(false);
  });

  test("has sizes by dimension", () => {
    const x = tensor([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    expect([x.size(), x.size(0), x.size(-1), x.dim(), x.ndim, x.numel()]).toEqual([[2, 3], 2, 3, 2, 2, 6]);
    expect(thrown(() => x.size(2)).reason).toBe(
      "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    );
    expect(thrown(() => tensor(1).stride(0)).kind).toBe("IndexOutOfRange");
    expect([x.itemsize, x.nbytes, x.elementSize(), String(x.device), String(x.layout)]).toEqual([
      8,
      48,
      8,
      "cpu",
      "torch.strided",
    ]);
  });
});

describe("changes in place", () => {
  test("are seen by all that share the memory, and by no clone", () => {
    const x = tensor([
      [0, 1],
      [2, 3],
    ]);
    const [row, clone] = [x.get(1), view("aten.clone", x)];
    x.set(0, 9);
    callOperator("aten.add_", [row, 10]);
    expect([x.toArray(), clone.toArray()]).toEqual([
      [
        [9, 9],
        [12, 13],
      ],
      [
        [0, 1],
        [2, 3],
      ],
    ]);
    expect(callOperator("aten.copy_", [x, clone])).toBe(x);
    expect(row.toArray()).toEqual([2, 3]);
  });

  test("of the shape are of the tensor alone", () => {
    const x = tensor([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    const other = view("aten.alias", x);
    expect(x.unsqueeze_(0)).toBe(x);
    expect([x.shape, other.shape]).toEqual([
      [1, 2, 3],
      [2, 3],
    ]);
    expect(x.transpose_(1, 2).shape).toEqual([1, 3, 2]);
    expect(x.squeeze_().shape).toEqual([3, 2]);
    expect(x.t_().toArray()).toEqual([
      [0, 1, 2],
      [3, 4, 5],
    ]);
    expect(x.swapaxes_(0, 1).swapdims_(0, 1).shape).toEqual([2, 3]);
    expect(x.asStrided_([2], [2], 1).toArray()).toEqual([1, 3]);
    callOperator("aten.zero_", [x]);
    expect(other.toArray()).toEqual([
      [0, 0, 2],
      [0, 4, 5],
    ]);
  });

  test("resize_ keeps the elements and lets the memory grow under every view", () => {
    const x = tensor([1, 2, 3, 4]);
    const whole = view("aten.alias", x);
    expect(x.resize_(2, 2).toArray()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(x.resize_([3]).toArray()).toEqual([1, 2, 3]);
    expect(x.resize_(2, 3).toArray()).toEqual([
      [1, 2, 3],
      [4, 0, 0],
    ]);
    callOperator("aten.fill_", [x, 7]);
    expect(whole.toArray()).toEqual([7, 7, 7, 7]);
    expect(x.resizeAs_(tensor([1])).shape).toEqual([1]);
    for (const size of [-1, 1.5, 2 ** 32, 2 ** 32 + 1]) {
      expect(thrown(() => x.resize_(size)).kind).toBe("InputShape");
      expect(thrown(() => x.resize_(0, size)).kind).toBe("InputShape");
    }
    const late = tensor([1, 2, 3, 4]).get(2);
    expect(late.resize_(3).toArray()).toEqual([3, 4, 0]);
  });

  test("are seen through a parameter, wherever the elements are", () => {
    const data = tensor([1.5, 2]);
    const parameter = new Parameter(data);
    expect(parameter.requiresGrad).toBe(true);
    callOperator("aten.mul_", [data, 2]);
    expect(parameter.toArray()).toEqual([3, 4]);
    const again = new Parameter(data, { requiresGrad: false });
    callOperator("aten.mul_", [again, 2]);
    expect(data.toArray()).toEqual([6, 8]);
    data.dispose();
    expect([parameter.toArray(), again.toArray()]).toEqual([
      [6, 8],
      [6, 8],
    ]);
    expect(String(parameter)).toBe("Parameter containing:\ntensor([6., 8.], requires_grad=True)");
  });
});

describe("conversions", () => {
  test("give the tensor itself where there is nothing to do", () => {
    const x = tensor([1.5, -2]);
    expect(x.float()).toBe(x);
    expect(x.to("float32")).toBe(x);
    expect(x.to(device("cpu"))).toBe(x);
    expect(x.cpu()).toBe(x);
    expect([x.to({ copy: true }) === x, x.to("float32", { copy: true }) === x]).toEqual([false, false]);
  });

  test("are PyTorch's", () => {
    const x = tensor([1.5, -2]);
    expect([x.long().toArray(), x.bool().toArray(), x.double().dtype]).toEqual([[1, -2], [true, true], "float64"]);
    expect(
      [x.half(), x.bfloat16(), x.int(), x.short(), x.char(), x.byte(), x.cfloat(), x.cdouble()].map((it) => it.dtype),
    ).toEqual(["float16", "bfloat16", "int32", "int16", "int8", "uint8", "complex64", "complex128"]);
    expect(x.to(dtype("int64")).dtype).toBe("int64");
    expect(x.to("cpu", "int8").dtype).toBe("int8");
    expect(x.to(tensor([1])).dtype).toBe("int64");
    expect(x.to({ dtype: "float64", device: "cpu" }).dtype).toBe("float64");
  });

  test("refuse what is not there by name", () => {
    const x = tensor([1.5]);
    expect(thrown(() => x.to("cuda")).reason).toBe("there is no device cuda");
    expect(thrown(() => x.to({ devise: "cpu" } as object)).reason).toContain("`devise`");
    expect(thrown(() => x.to(3 as unknown as "cpu")).kind).toBe("InputType");
  });
});

describe("gradients", () => {
  test("can be wanted, and are not computed", () => {
    const x = tensor([1.5]);
    expect([x.requiresGrad, x.grad]).toEqual([false, null]);
    expect(x.requiresGrad_()).toBe(x);
    expect(String(x)).toBe("tensor([1.5000], requires_grad=True)");
    expect(thrown(() => x.backward()).kind).toBe("NotImplemented");
    expect(thrown(() => tensor([1]).requiresGrad_()).reason).toBe("a tensor of int64 cannot require gradients");
  });
});

describe("JavaScript's coercions", () => {
  test("give text where text is wanted, and teach where a number is", () => {
    const x = tensor([1.5]);
    expect(`${x}`).toBe("tensor([1.5000])");
    expect(inspect(x)).toBe("tensor([1.5000])");
    const loose = x as unknown as number;
    for (const coerce of [
      () => loose + 1,
      () => loose * 2,
      () => loose < 2,
      () => -loose,
      () => loose + "a",
      () => Number(loose),
    ]) {
      expect(thrown(coerce).help).toContain("x.add(y)");
    }
    x.dispose();
    expect(inspect(x)).toBe("Tensor(float32, [1], disposed)");
  });
});

describe("a whole float", () => {
  test("is one, where PyTorch would have a float", () => {
    expect(view("aten.full", [1], float(2)).dtype).toBe("float32");
  });
});
