/**
 * `.npy` files: one array of NumPy, with nothing in them that runs.
 *
 * A file is a magic number, the version, the length of a header, the header, and the elements. The header is a dictionary as Python writes
 * it; it has a grammar of its own here, and is not evaluated.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { type FxError, fxError } from "../base/errors.ts";
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { tensorFromBytes } from "./construct.ts";
import { Tensor, tensorBytes } from "./tensor.ts";

const MAGIC = "\u0093NUMPY";
/** Magic number and version. */
const PREFIX = 8;
/** The elements begin at a multiple of this. */
const ALIGNMENT = 64;
/** As many dimensions as arrays of NumPy have. */
const MAX_DIMS = 64;
/** NumPy leaves room for a first dimension of this many digits, so that a file can grow in place. */
const GROWTH_DIGITS = 21;

/** NumPy's names of dtypes, without the order of their bytes. */
const NAMES: readonly (readonly [name: string, dtype: DType])[] = [
  ["b1", "bool"],
  ["i1", "int8"],
  ["i2", "int16"],
  ["i4", "int32"],
  ["i8", "int64"],
  ["u1", "uint8"],
  ["u2", "uint16"],
  ["u4", "uint32"],
  ["u8", "uint64"],
  ["f2", "float16"],
  ["f4", "float32"],
  ["f8", "float64"],
  ["c8", "complex64"],
  ["c16", "complex128"],
];

/** The header of versions 1 to 3, whose keys NumPy sorts. No two runs of spaces meet in it: matching takes time linear in the header. */
const HEADER =
  /^\{\s*'descr'\s*:\s*'([<>|=])([\w[\]]+)'\s*,\s*'fortran_order'\s*:\s*(True|False)\s*,\s*'shape'\s*:\s*\(([\d\s,]*)\)(?:\s*,)?\s*\}\s*$/;

/**
 * Reads the array of a `.npy` file, as `numpy.save` writes it. The tensor is a copy, row-major and little-endian.
 *
 * @example
 * ```ts
 * const x = readNpy(await readFile("x.npy"));
 * ```
 *
 * @throws `ArchiveError` where this is no such file; `NotImplemented` for dtypes that tensors do not have, such as objects and texts.
 */
export function readNpy(file: ArrayBufferLike | ArrayBufferView): Tensor {
  const bytes = ArrayBuffer.isView(file)
    ? new Uint8Array(file.buffer, file.byteOffset, file.byteLength)
    : new Uint8Array(file);
  const [header, data] = partsOf(bytes);
  const [, order, name = "", fortran, sizes = ""] = HEADER.exec(header) ?? [];
  if (order === undefined) {
    if (header.includes("'descr': [")) throw notImplemented("structured arrays are");
    throw malformed("the header is not one of NumPy");
  }
  const dtype = NAMES.find(([it]) => it === name)?.[1];
  if (dtype === undefined) throw notImplemented(`the dtype ${name} is`);
  const shape = (sizes.match(/\d+/g) ?? []).map(Number);
  if (shape.length > MAX_DIMS) throw malformed(`it has ${shape.length} dimensions, and ${MAX_DIMS} are the most`);
  const { size } = DTYPES[dtype];
  const wanted = shape.reduce((product, it) => product * it, size);
  if (wanted !== data.length) throw malformed(`its elements have ${data.length} bytes, and its shape needs ${wanted}`);
  let elements = data;
  if (order === ">") elements = reversed(elements, DTYPES[dtype].kind === "complex" ? size / 2 : size);
  if (fortran === "True") elements = rowMajor(elements, shape, size);
  return tensorFromBytes(elements, dtype, shape);
}

/**
 * Writes a tensor as a `.npy` file, with the same bytes as `numpy.save`.
 *
 * @example
 * ```ts
 * await writeFile("x.npy", writeNpy(x));
 * ```
 */
export function writeNpy(tensor: Tensor): Uint8Array {
  checkGiven("writeNpy", (tensor as unknown) instanceof Tensor, "a tensor");
  const name = NAMES.find(([, it]) => it === tensor.dtype)?.[0];
  if (name === undefined) {
    throw fxError("InputType", `NumPy has no name for ${tensor.dtype}`, { help: 'tensor.to("float32")' });
  }
  const { shape } = tensor;
  const order = DTYPES[tensor.dtype].size === 1 ? "|" : "<";
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(", ");
  const text = `{'descr': '${order}${name}', 'fortran_order': False, 'shape': (${sizes}), }`;
  const room = shape.length === 0 ? 0 : GROWTH_DIGITS - String(shape[0]).length;
  // As NumPy does, a whole block is added where the header is aligned already.
  const start = (Math.floor((PREFIX + 2 + text.length + room + 1) / ALIGNMENT) + 1) * ALIGNMENT;
  const elements = tensorBytes(tensor);
  const res = new Uint8Array(start + elements.byteLength).fill(0x20, PREFIX, start);
  res.set(bytesOfText(`${MAGIC}\u0001\u0000`));
  new DataView(res.buffer).setUint16(PREFIX, start - PREFIX - 2, true);
  res.set(bytesOfText(text), PREFIX + 2);
  res[start - 1] = 0x0a;
  res.set(elements, start);
  return res;
}

/** The header, and the bytes of the elements. */
function partsOf(bytes: Uint8Array): [header: string, data: Uint8Array] {
  const begin = String.fromCodePoint(...bytes.subarray(0, PREFIX));
  if (bytes.length < PREFIX || !begin.startsWith(MAGIC)) throw malformed("it does not begin as one of NumPy does");
  const version = begin.codePointAt(MAGIC.length) ?? 0;
  if (version < 1 || version > 3) throw notImplemented(`version ${version} of the format is`);
  const width = version === 1 ? 2 : 4;
  if (bytes.length < PREFIX + width) throw malformed("it ends before its header");
  const view = new DataView(bytes.buffer, bytes.byteOffset + PREFIX, width);
  const start = PREFIX + width + (width === 2 ? view.getUint16(0, true) : view.getUint32(0, true));
  if (start > bytes.length) throw malformed("the header ends after the end of the file");
  return [new TextDecoder().decode(bytes.subarray(PREFIX + width, start)), bytes.subarray(start)];
}

/** The same elements with the bytes of each number in the other order. */
function reversed(data: Uint8Array, size: number): Uint8Array {
  const res = new Uint8Array(data);
  for (let at = 0; at < res.length; at += size) res.subarray(at, at + size).reverse();
  return res;
}

/** The elements of an array whose first dimension is the innermost, in the order of one whose last is. */
function rowMajor(data: Uint8Array, shape: readonly number[], size: number): Uint8Array {
  const strides: number[] = [];
  let stride = size;
  for (const it of shape) {
    strides.push(stride);
    stride *= it;
  }
  const res = new Uint8Array(data.length);
  const place = shape.map(() => 0);
  let from = 0;
  for (let to = 0; to < res.length; to += size) {
    for (let byte = 0; byte < size; byte++) res[to + byte] = data[from + byte] as number;
    for (let dim = shape.length - 1; dim >= 0; dim--) {
      from += strides[dim] as number;
      place[dim] = (place[dim] as number) + 1;
      if (place[dim] !== shape[dim]) break;
      from -= (strides[dim] as number) * (shape[dim] as number);
      place[dim] = 0;
    }
  }
  return res;
}

function bytesOfText(text: string): Uint8Array {
  return Uint8Array.from(text, (it) => it.codePointAt(0) ?? 0);
}

function notImplemented(what: string): FxError {
  return fxError("NotImplemented", `${what} not implemented in .npy files`, {
    help: 'save numbers or booleans: numpy.save("x.npy", x.astype("float32"))',
  });
}

function malformed(why: string): FxError {
  return fxError("ArchiveMalformed", `the bytes are no .npy file: ${why}`);
}
