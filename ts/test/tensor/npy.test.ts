/** Arrays of NumPy: what it wrote is read, and written again with the same bytes. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { readNpz } from "../../src/export/npz.ts";
import { zipOf } from "../../src/export/zip.ts";
import { tensor, tensorFromBytes } from "../../src/tensor/construct.ts";
import { readNpy, writeNpy } from "../../src/tensor/npy.ts";
import { type Tensor, tensorBytes } from "../../src/tensor/tensor.ts";

interface Told {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly elements: string;
}

const { arrays, archives, refused } = JSON.parse(
  readFileSync(new URL("../../../tests/fixtures/tensors/npy.json", import.meta.url), "utf8"),
) as {
  readonly arrays: Readonly<Record<string, Told & { readonly file: string }>>;
  readonly archives: Readonly<
    Record<string, { readonly file: string; readonly arrays: Readonly<Record<string, Told>> }>
  >;
  readonly refused: Readonly<Record<string, string>>;
};

const decoded = (text: string) => Buffer.from(text, "base64");
const told = (read: Tensor): Told => ({
  dtype: read.dtype,
  shape: read.shape,
  elements: Buffer.from(tensorBytes(read)).toString("base64"),
});

const withShape = (text: string) => {
  const header = `{'descr': '<f4', 'fortran_order': True, 'shape': (${text}`;
  const file = Buffer.from(`\u0093NUMPY\u0002\u0000\0\0\0\0${header}`, "latin1");
  file.writeUInt32LE(header.length, 8);
  return file;
};

describe("a .npy file", () => {
  it.each(Object.entries(arrays))("of NumPy is read: %s", (_, { file, ...wanted }) => {
    expect(told(readNpy(decoded(file)))).toEqual(wanted);
  });

  it("has the bytes that NumPy writes", () => {
    const others = ["fortran", "big-endian", "big-endian complex", "version 2", "version 3"];
    const same = Object.entries(arrays).filter(([name]) => !others.includes(name));
    expect(same.length).toBeGreaterThan(15);
    for (const [name, { file }] of same)
      expect(Buffer.from(writeNpy(readNpy(decoded(file)))).toString("base64"), name).toBe(file);
    expect(() => writeNpy(tensorFromBytes(new Uint8Array(2), "bfloat16", [1]))).toThrow(
      /no name for bfloat16.*float32/s,
    );
  });

  it.each(Object.entries(refused))("with %s is refused", (_, file) => {
    expect(() => readNpy(decoded(file))).toThrow(/not implemented in \.npy files/);
  });

  it("that is cut short, or that lies, is refused", () => {
    const whole = writeNpy(tensor([1, 2, 3]));
    for (let n = 0; n < whole.length; n++) expect(() => readNpy(whole.subarray(0, n))).toThrow(/no \.npy file/);
    const lying = Buffer.from(whole);
    lying.write("9", lying.indexOf("(3,)") + 1);
    expect(() => readNpy(lying)).toThrow(/its elements have 24 bytes, and its shape needs 72/);
    const code = Buffer.from(whole);
    code.write("f()", code.indexOf("'<i8'"));
    expect(() => readNpy(code)).toThrow(/the header is not one of NumPy/);
  });

  it("with a header of spaces, or of dimensions that no array has, is refused at once", () => {
    expect(() => readNpy(withShape(`3,)${" ".repeat(1_000_000)}`))).toThrow(/the header is not one of NumPy/);
    expect(() => readNpy(withShape(`0,${"1,".repeat(64)})}`))).toThrow(/65 dimensions, and 64 are the most/);
    expect(readNpy(withShape(`0,${"1,".repeat(63)})}`)).shape.length).toBe(64);
  });

  it("has NumPy's room for a longer first dimension", () => {
    // `numpy.lib.format`: 21 digits less those of the first size, a newline, and then up to the next multiple of 64.
    const starts = [0, 1, 14, 15, 28].map((ndim) => {
      const sizes = Array.from({ length: ndim }, () => 1);
      return writeNpy(tensorFromBytes(new Uint8Array(4), "float32", sizes)).length - 4;
    });
    expect(starts).toEqual([128, 128, 128, 192, 192]);
  });
});

describe("a .npz file", () => {
  it.each(Object.entries(archives))("of NumPy is read: %s", async (_, { file, arrays: wanted }) => {
    const found = await readNpz(decoded(file));
    expect(Object.fromEntries([...found].map(([name, read]) => [name, told(read)]))).toEqual(wanted);
  });

  it("whose bytes were changed, or which unpacks to more than it says, is refused", async () => {
    for (const { file } of Object.values(archives)) {
      const bytes = decoded(file);
      bytes[200] = (bytes[200] as number) ^ 1;
      await expect(readNpz(bytes)).rejects.toThrow(/no \.npz file/);
    }
    const bytes = decoded(archives["compressed"]?.file ?? "");
    const directory = bytes.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    bytes.writeUInt32LE(100, directory + 24);
    await expect(readNpz(bytes)).rejects.toThrow(/not as long as the archive says/);
    await expect(readNpz(new Uint8Array(30))).rejects.toThrow(/no directory/);
  });

  it("that unpacks to more than the limit is refused before it is unpacked", async () => {
    const bytes = decoded(archives["compressed"]?.file ?? "");
    const nBytes = [...(await readNpz(bytes)).values()].reduce((n, array) => n + writeNpy(array).length, 0);
    await expect(readNpz(bytes, { limits: { inflated_bytes: nBytes } })).resolves.toBeDefined();
    const read = readNpz(bytes, { limits: { inflated_bytes: nBytes - 1 } });
    await expect(read).rejects.toThrow(
      `the limit \`inflated_bytes\` is ${nBytes - 1}, but the file asks for ${nBytes}`,
    );
    // By default a GiB: a directory may say what it likes.
    const directory = bytes.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    bytes.writeUInt32LE(2 ** 30 + 1, directory + 24);
    await expect(readNpz(bytes)).rejects.toThrow(/FX0104/);
    await expect(readNpz(bytes, { limits: { inflated_bytes: NaN } })).rejects.toThrow(/a number of bytes/);
    // @ts-expect-error: there is no such limit
    await expect(readNpz(bytes, { limits: { bytes: 1 } })).rejects.toThrow(/bytes/);
  });

  it("whose entries are the same bytes is refused", async () => {
    const [many, one] = [writeNpy(tensor(new Float32Array(500))), writeNpy(tensor([1]))];
    const archive = Buffer.from(zipOf(new Map(Object.entries({ "a.npy": many, "b.npy": one, "c.npy": one }))));
    expect([...(await readNpz(archive)).keys()]).toEqual(["a", "b", "c"]);
    const first = archive.indexOf(Buffer.from([0x50, 0x4b, 1, 2]));
    // Checksum, sizes and place of the first, in entries of 46 bytes and a name of five.
    for (const at of [first + 51, first + 102]) {
      archive.copy(archive, at + 16, first + 16, first + 28);
      archive.copy(archive, at + 42, first + 42, first + 46);
    }
    await expect(readNpz(archive)).rejects.toThrow(/its entries overlap/);
  });
});
