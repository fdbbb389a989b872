import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { tensor, tensorFromBytes } from "../../src/tensor/construct.ts";
import { readSafetensors, writeSafetensors } from "../../src/tensor/safetensors.ts";
import type { Tensor } from "../../src/tensor/tensor.ts";

/** A file of this header and this many bytes of data. */
function file(header: unknown, dataLength = 0): Uint8Array {
  const text = typeof header === "string" ? header : JSON.stringify(header);
  const bytes = Buffer.alloc(8 + Buffer.byteLength(text) + dataLength);
  bytes.writeBigUInt64LE(BigInt(Buffer.byteLength(text)));
  bytes.write(text, 8);
  return bytes;
}

const fixtures = fileURLToPath(new URL("../../../tests/fixtures", import.meta.url));

describe("files that PyTorch's users wrote", () => {
  const files = readdirSync(fixtures, { recursive: true, encoding: "utf8" }).filter((it) =>
    it.endsWith(".safetensors"),
  );

  test("are there", () => {
    expect(files.length).toBeGreaterThan(100);
  });

  test("are read, and written again with the same bytes", () => {
    for (const name of files) {
      const bytes = readFileSync(`${fixtures}/${name}`);
      const { tensors, metadata } = readSafetensors(bytes);
      expect(Buffer.from(writeSafetensors(tensors, metadata)).equals(bytes), name).toBe(true);
    }
  });
});

describe("a file that was written here", () => {
  test("holds every dtype that the format names, texts and odd names", () => {
    const dtypes = (Object.keys(DTYPES) as DType[]).filter((it) => it !== "complex32" && it !== "complex128");
    const tensors = new Map<string, Tensor>(
      dtypes.map((dtype) => [dtype, tensorFromBytes(new Uint8Array(2 * DTYPES[dtype].size).fill(1), dtype, [2, 1])]),
    );
    for (const name of ["__proto__", "constructor", "10", "9", 'a"\\\n', "é"]) tensors.set(name, tensor([]));
    tensors.set("scalar", tensor(1.5));
    const read = readSafetensors(writeSafetensors(tensors, new Map([["__proto__", "text"]])));
    expect(new Set(read.tensors.keys())).toEqual(new Set(tensors.keys()));
    for (const [name, it] of read.tensors) {
      const wanted = tensors.get(name) as Tensor;
      expect([it.dtype, it.shape, it.data]).toEqual([wanted.dtype, wanted.shape, wanted.data]);
    }
    expect([...read.metadata]).toEqual([["__proto__", "text"]]);
  });

  test("begins its data at a multiple of eight bytes", () => {
    const bytes = writeSafetensors({ a: tensor([1]), b: tensor([0.5]) });
    expect(new DataView(bytes.buffer).getUint32(0, true) % 8).toBe(0);
    expect([...readSafetensors(bytes).tensors.keys()]).toEqual(["a", "b"]);
  });

  test("is read from the middle of a buffer, and keeps nothing of it", () => {
    const bytes = writeSafetensors({ a: tensor([1, 2]) });
    const buffer = new Uint8Array(bytes.length + 3);
    buffer.set(bytes, 3);
    const { tensors } = readSafetensors(buffer.subarray(3));
    buffer.fill(0);
    expect(tensors.get("a")?.toArray()).toEqual([1, 2]);
  });

  test("refuses what the format has no name for", () => {
    expect(() => writeSafetensors({ a: tensorFromBytes(new Uint8Array(16), "complex128", [1]) })).toThrow(
      expect.objectContaining({ kind: "InputType" }),
    );
    expect(() => writeSafetensors({ __metadata__: tensor(1) })).toThrow(
      expect.objectContaining({ kind: "InputValue" }),
    );
  });
});

describe("a malformed file is refused", () => {
  const one = { dtype: "F32", shape: [1], data_offsets: [0, 4] };
  test.each([
    ["no bytes", new Uint8Array(0)],
    ["a part of the length", new Uint8Array(7)],
    ["a header beyond the end", file({}).subarray(0, 9)],
    ["a header that is not JSON", file("{a")],
    ["a header that is not UTF-8", file("{}").map((it) => (it === 0x7b ? 0xff : it))],
    ["a header that is a list", file([])],
    ["a header that is null", file(null)],
    ["a tensor that is a number", file({ a: 1 })],
    ["a tensor without a shape", file({ a: { dtype: "F32", data_offsets: [0, 4] } }, 4)],
    ["a tensor with something else", file({ a: { ...one, more: 1 } }, 4)],
    ["a negative size", file({ a: { ...one, shape: [-1] } }, 4)],
    ["a size with a fraction", file({ a: { ...one, shape: [0.5] } }, 4)],
    ["a size that is not exact", file('{"a":{"dtype":"F32","shape":[9007199254740993],"data_offsets":[0,4]}}', 4)],
    ["a shape of texts", file({ a: { ...one, shape: ["1"] } }, 4)],
    ["three offsets", file({ a: { ...one, data_offsets: [0, 4, 8] } }, 8)],
    ["offsets the wrong way round", file({ a: { ...one, data_offsets: [4, 0] } }, 4)],
    ["offsets beyond the end", file({ a: one }, 3)],
    ["offsets that do not fit the shape", file({ a: { ...one, shape: [2] } }, 4)],
    ["sizes whose product is not exact", file({ a: { ...one, shape: [2 ** 52, 2 ** 52, 0.25 * 2 ** 2] } }, 4)],
    ["tensors that overlap", file({ a: one, b: one }, 4)],
    ["a gap between tensors", file({ a: one, b: { ...one, data_offsets: [5, 9] } }, 9)],
    ["bytes after the last tensor", file({ a: one }, 5)],
    [
      "the same name twice",
      file(
        '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}',
        8,
      ),
    ],
    ["metadata that is not text", file({ __metadata__: { a: 1 } })],
    ["metadata that is a list", file({ __metadata__: [] })],
  ])("%s", (_, bytes) => {
    expect(() => readSafetensors(bytes)).toThrow(expect.objectContaining({ code: "FX0101" }));
  });

  test("a header over the limit, without reading it", () => {
    const bytes = file({});
    new DataView(bytes.buffer, bytes.byteOffset).setBigUint64(0, 2n ** 63n, true);
    expect(() => readSafetensors(bytes)).toThrow(expect.objectContaining({ kind: "LimitExceeded" }));
  });

  test("a dtype that is not known, by its name", () => {
    expect(() => readSafetensors(file({ a: { dtype: "F4", shape: [2], data_offsets: [0, 1] } }, 1))).toThrow(
      expect.objectContaining({ kind: "NotImplemented", reason: expect.stringContaining('"F4"') }),
    );
  });

  test("any file with a changed byte, or it is read as another valid file", () => {
    const bytes = writeSafetensors({ a: tensor([[1, 2]]), b: tensor([true, false, true]) }, { note: "text" });
    const headerEnd = bytes.length - 19;
    for (let at = 0; at < headerEnd; at++) {
      for (const change of [1, 0x20, 0x80]) {
        const changed = bytes.slice();
        changed[at] = (changed[at] as number) ^ change;
        try {
          const { tensors } = readSafetensors(changed);
          for (const it of tensors.values()) expect(it.numel() * DTYPES[it.dtype].size).toBeLessThanOrEqual(19);
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^FX/) });
        }
      }
    }
  });
});
