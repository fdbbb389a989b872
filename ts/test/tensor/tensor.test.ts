import { describe, expect, test } from "vitest";
import type { DType } from "../../../bindings/dtypes.ts";
import { type Complex, complex, float } from "../../src/base/values.ts";
import { tensor, tensorFromBytes, type TensorInput } from "../../src/tensor/construct.ts";
import type { TensorStorage } from "../../src/tensor/storage.ts";
import { Tensor, tensorBytes } from "../../src/tensor/tensor.ts";
import { cases } from "./corpus.ts";

interface Case {
  readonly data: TensorInput;
  readonly dtype?: DType;
  readonly result?: { readonly dtype: DType; readonly shape: number[]; readonly bytes: string };
}

/** Where PyTorch wraps a negative number around instead of refusing it. */
const REFUSED_HERE = new Set(["[-1] uint8"]);

function base64(it: Tensor): string {
  return Buffer.from(tensorBytes(it)).toString("base64");
}

describe("tensors as torch.tensor makes them", () => {
  const named = cases<Case>("infer").map((it) => ({
    ...it,
    label: `${JSON.stringify(it.data)} ${it.dtype ?? ""}`.trim(),
  }));
  test.each(named)("$label", ({ data, dtype, result, label }) => {
    const make = (): Tensor => tensor(data, dtype === undefined ? {} : { dtype });
    if (result === undefined || REFUSED_HERE.has(label)) {
      expect(make).toThrow(expect.objectContaining({ name: "InputError" }));
    } else {
      const made = make();
      expect({ dtype: made.dtype, shape: made.shape, bytes: base64(made) }).toEqual(result);
    }
  });
});

describe("a tensor of nested arrays", () => {
  test("tells floats from ints by their value or by float()", () => {
    expect(tensor([1, 2]).dtype).toBe("int64");
    expect(tensor([1, float(2)]).dtype).toBe("float32");
    expect(tensor([1, -0]).dtype).toBe("float32");
    expect(tensor([1, Number.NaN]).dtype).toBe("float32");
    expect(tensor([1, complex(0, 1)]).dtype).toBe("complex64");
    expect(tensor([1n, 2]).dtype).toBe("int64");
  });

  test("keeps every bit of a large int, and refuses a number that is not exact", () => {
    expect(tensor([2n ** 63n - 1n]).data).toEqual(new BigInt64Array([2n ** 63n - 1n]));
    expect(tensor([2n ** 63n - 1n, 1]).toArray()).toEqual([2n ** 63n - 1n, 1]);
    expect(() => tensor([2 ** 60])).toThrow(expect.objectContaining({ kind: "InputValue" }));
    expect(() => tensor([2n ** 63n])).toThrow(expect.objectContaining({ kind: "InputValue" }));
    expect(tensor([2 ** 60], { dtype: "float64" }).item()).toBe(2 ** 60);
  });

  test.each([
    [[[1, 2], [3]], "at [1]: expected 2 elements, not 1"],
    [[[1], 2], "at [1]: expected an array of 1 elements, not a single value"],
    [[[[1]], [[1], [2]]], "at [1]: expected 1 elements, not 2"],
    [[1, [2]], "at [1]: expected a single value, not an array"],
    [
      [
        [[1], [2]],
        [[3], [4, 5]],
      ],
      "at [1][1]: expected 1 elements, not 2",
    ],
  ])("that is ragged names the place: %j", (data, reason) => {
    expect(() => tensor(data)).toThrow(expect.objectContaining({ kind: "InputStructure", reason }));
  });

  test.each([
    [[1, "2"], "a value of type string at [1] is not a number"],
    [[[1, undefined]], "a value of type undefined at [0][1] is not a number"],
    [[null], "null at [0] is not a number"],
    [[new Float32Array(2)], "a typed array at [0] is not a number"],
    ["abc", "a value of type string at the outermost level is not a number"],
  ])("of something else names the place: %j", (data, reason) => {
    expect(() => tensor(data as TensorInput)).toThrow(expect.objectContaining({ kind: "InputType", reason }));
  });

  test("that holds itself is refused", () => {
    const data: TensorInput[] = [];
    data.push(data);
    expect(() => tensor(data)).toThrow(expect.objectContaining({ kind: "InputStructure" }));
  });

  test("refuses what it does not know", () => {
    expect(() => tensor(1, { dtype: "float" as DType })).toThrow(expect.objectContaining({ kind: "InputType" }));
    expect(() => tensor(1, { requireGrad: true } as object)).toThrow(
      expect.objectContaining({ kind: "InvalidOption" }),
    );
    expect(() => tensor([1, 2], { shape: [3] })).toThrow(expect.objectContaining({ kind: "InputShape" }));
    expect(() => tensor([complex(1, 1)], { dtype: "float32" })).toThrow(expect.objectContaining({ kind: "InputType" }));
  });
});

describe("a tensor of a typed array", () => {
  test.each([
    [new Int8Array([1, -2]), "int8"],
    [new Uint8Array([1, 2]), "uint8"],
    [new Uint8ClampedArray([1, 2]), "uint8"],
    [Buffer.from([1, 2]), "uint8"],
    [new Int16Array([1, -2]), "int16"],
    [new Uint16Array([1, 2]), "uint16"],
    [new Int32Array([1, -2]), "int32"],
    [new Uint32Array([1, 2]), "uint32"],
    [new BigInt64Array([1n, -2n]), "int64"],
    [new BigUint64Array([1n, 2n]), "uint64"],
    [new Float32Array([1, -2]), "float32"],
    [new Float64Array([1, -2]), "float64"],
  ] as const)("has its dtype: %o", (array, dtype) => {
    const made = tensor(array, { shape: [2, 1] });
    expect([made.dtype, made.shape, made.toArray()]).toEqual([
      dtype,
      [2, 1],
      Array.from<number | bigint, number[]>(array, (it) => [Number(it)]),
    ]);
  });

  test("is a copy, and neither side sees the other change", () => {
    const array = new Float32Array([1, 2, 3]);
    const made = tensor(array);
    array[0] = 9;
    made.data[1] = 9;
    expect(made.toArray()).toEqual([1, 2, 3]);
    expect(array.length).toBe(3);
  });

  test("is read where it starts, not where its buffer does", () => {
    const floats = new Float32Array([0, 1, 2, 3]);
    expect(tensor(floats.subarray(1, 3)).toArray()).toEqual([1, 2]);
    const bytes = Buffer.from(floats.buffer).subarray(4, 12);
    expect(tensorFromBytes(bytes, "float32", [2]).toArray()).toEqual([1, 2]);
    const unaligned = new Uint8Array(9);
    unaligned.set(bytes, 1);
    expect(tensorFromBytes(unaligned.subarray(1), "float32", [2]).toArray()).toEqual([1, 2]);
    expect(tensorFromBytes(new DataView(floats.buffer, 12), "float32", []).item()).toBe(3);
  });

  test("holds bits where JavaScript has no array of the dtype, and converts to any other", () => {
    const bits = new Uint16Array([0x3c00, 0xc000]);
    expect(tensor(bits, { dtype: "float16" }).toFloat32Array()).toEqual(new Float32Array([1, -2]));
    expect(tensor(new Uint16Array([0x3f80]), { dtype: "bfloat16" }).item()).toBe(1);
    expect(tensor(new Uint8Array([0x38]), { dtype: "float8_e4m3fn" }).item()).toBe(1);
    expect(tensor(bits, { dtype: "float16" }).data).toEqual(bits);
    expect(tensor(new Float32Array([1, 2.5]), { dtype: "float16" }).data).toEqual(new Uint16Array([0x3c00, 0x4100]));
    expect(tensor(new Float64Array([1.9, -1.9]), { dtype: "int32" }).toArray()).toEqual([1, -1]);
    expect(tensor(new Uint8Array([0, 7]), { dtype: "bool" }).data).toEqual(new Uint8Array([0, 1]));
  });

  test("refuses a shape of another size", () => {
    const refusal = expect.objectContaining({ kind: "InputShape" });
    expect(() => tensor(new Float32Array(5), { shape: [2, 3] })).toThrow(refusal);
    expect(() => tensor(new Float32Array(6), { shape: [2, -3] })).toThrow(refusal);
    expect(() => tensor(new Float32Array(6), { shape: [1.5, 4] })).toThrow(refusal);
    expect(() => tensor(new Float64Array(6), { shape: [5], dtype: "float32" })).toThrow(refusal);
    expect(() => tensorFromBytes(new Uint8Array(8), "float32", [3])).toThrow(refusal);
    expect(() => tensorFromBytes(new Uint8Array(0), "float32", [2 ** 40, 2 ** 40])).toThrow(refusal);
    expect(() => tensor(new Float32Array(0), { shape: [2 ** 32, 0] })).toThrow(refusal);
  });

  test("reads bytes of bools as bools, whatever the bytes are", () => {
    expect(tensorFromBytes(new Uint8Array([0, 2, 255]), "bool", [3]).data).toEqual(new Uint8Array([0, 1, 1]));
  });
});

describe("a tensor", () => {
  test("gives its elements as JavaScript values", () => {
    expect(
      tensor([
        [1, 2],
        [3, 4],
      ]).toArray(),
    ).toEqual([
      [1, 2],
      [3, 4],
    ]);
    expect(tensor([[true], [false]]).toArray()).toEqual([[true], [false]]);
    expect(tensor([]).toArray()).toEqual([]);
    expect(tensor(2.5).toArray()).toBe(2.5);
    const [made] = tensor([complex(1, -2)]).toArray() as [Complex];
    expect([made.re, made.im]).toEqual([1, -2]);
    expect(
      tensor([
        [1, 2],
        [3, 4],
      ]).numel(),
    ).toBe(4);
    expect(tensor(7).numel()).toBe(1);
  });

  test("has an item only where it has one element", () => {
    expect(tensor([[[5]]]).item()).toBe(5);
    expect(tensor(2n ** 62n).item()).toBe(2n ** 62n);
    expect(() => tensor([1, 2]).item()).toThrow(expect.objectContaining({ kind: "InputShape" }));
    expect(() => tensor([]).item()).toThrow(expect.objectContaining({ kind: "InputShape" }));
  });

  test("has no real elements where they are complex", () => {
    expect(() => tensor([complex(1, 1)]).toFloat32Array()).toThrow(expect.objectContaining({ kind: "InputType" }));
    expect(tensor([complex(1, 2)]).data).toEqual(new Float32Array([1, 2]));
  });

  test("refuses every use after its disposal, and a second disposal is nothing", () => {
    const disposed = tensor([1]);
    disposed.dispose();
    disposed[Symbol.dispose]();
    expect([disposed.isDisposed, disposed.dtype, disposed.shape]).toEqual([true, "int64", [1]]);
    const refusal = expect.objectContaining({ code: "FX0701" });
    for (const use of [
      () => disposed.data,
      () => disposed.toArray(),
      () => disposed.item(),
      () => disposed.toString(),
      () => disposed.toFloat32Array(),
    ]) {
      expect(use).toThrow(refusal);
    }
  });

  test("frees its storage once, whatever the storage is", () => {
    let freed = 0;
    const storage: TensorStorage = {
      byteLength: 4,
      needsFree: true,
      bytes: () => new Uint8Array(4),
      free: () => void (freed += 1),
    };
    {
      using held = new Tensor("float32", [1], storage);
      expect(held.item()).toBe(0);
    }
    expect(freed).toBe(1);
  });

  test("refuses a storage of another size", () => {
    expect(() => new Tensor("float32", [2], { byteLength: 4, needsFree: false } as TensorStorage)).toThrow(
      expect.objectContaining({ kind: "InputShape" }),
    );
  });
});
