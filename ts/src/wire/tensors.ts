/**
 * `TENS` and `DATA`: tensors as views of storages, and the bytes of the storages, each once.
 *
 * A tensor is row-major in JavaScript and has a storage of its own: what is written is that. What is read may be any view,
 * of which a row-major copy is made; views that are equal are one tensor.
 *
 * @module
 */
import { DTYPES } from "../bindings/dtypes.ts";
import { WIDE_ALIGNMENT } from "../bindings/wire.ts";
import { fxError } from "../errors.ts";
import { HostStorage } from "../tensor/storage.ts";
import { Tensor, tensorBytes } from "../tensor/tensor.ts";
import { readDType } from "./arg.ts";
import type { Cursor } from "./cursor.ts";
import { alignUp } from "./file.ts";
import { WordWriter } from "./writer.ts";

/** The tensors of a file that is being written. */
export class TensorWriter {
  readonly #tensors: Tensor[] = [];
  readonly #storages = new Map<Tensor, number>();

  /** Adds a tensor, and gives its index. */
  push(tensor: Tensor): number {
    if (!this.#storages.has(tensor)) this.#storages.set(tensor, this.#storages.size);
    return this.#tensors.push(tensor) - 1;
  }

  /** The tensors that have the storages, each once, in the order of first use. */
  storages(): Tensor[] {
    return [...this.#storages.keys()];
  }

  /** The index of storages and tensors, unless there are none. */
  index(): Uint8Array | undefined {
    if (this.#tensors.length === 0) return undefined;
    const words = new WordWriter();
    words.count(this.#storages.size);
    words.count(this.#tensors.length);
    for (const tensor of this.#storages.keys()) words.size(tensorBytes(tensor).length);
    for (const tensor of this.#tensors) {
      words.count(this.#storages.get(tensor) as number);
      words.tagged(DTYPES[tensor.dtype].id, tensor.shape.length);
      for (const size of tensor.shape) words.size(size);
      for (const stride of contiguousStrides(tensor.shape)) words.size(stride);
      words.size(0);
    }
    return words.finish();
  }

  /** The bytes of the storages. */
  data(): Uint8Array[] {
    return Array.from(this.#storages.keys(), tensorBytes);
  }
}

/** The tensors of a file that is being read, each to be taken once and in order. */
export class Tensors {
  readonly #items: Tensor[] = [];
  #used = 0;

  /** Reads the index, and the storages from `data` or, where the file has none, from those that were brought. */
  constructor(cursor: Cursor | undefined, data: Cursor | undefined, beside: readonly Uint8Array[], maxCopies: number) {
    if (cursor === undefined) {
      if (data !== undefined) throw data.fail("there are no tensors");
      return;
    }
    const [storageCount, tensorCount] = [cursor.word(), cursor.word()];
    cursor.checkCount(storageCount, 2, "storages");
    cursor.checkCount(tensorCount, 4, "tensors");
    if (tensorCount === 0) throw cursor.fail("the section is empty");
    const lengths = Array.from({ length: storageCount }, () => cursor.size());
    const storages = data === undefined ? takeStorages(cursor, lengths, beside) : readStorages(data, lengths);
    const known = new Map<string, Tensor>();
    const copies = { left: maxCopies };
    let used = 0;
    for (let at = 0; at < tensorCount; at++) {
      const index = cursor.word();
      const storage = storages[index];
      if (storage === undefined || index > used) {
        throw cursor.fail(`a tensor looks at storage ${index} before storage ${used}`);
      }
      used = Math.max(used, index + 1);
      const view = readView(cursor);
      const key = JSON.stringify([index, view]);
      let tensor = known.get(key);
      if (tensor === undefined) {
        tensor = makeTensor(cursor, storage, view, copies);
        known.set(key, tensor);
      }
      this.#items.push(tensor);
    }
    cursor.finish();
    if (used < storages.length) throw cursor.fail(`no tensor looks at storage ${used}`);
  }

  /** The tensor of an index that the cursor just read; they come in order. */
  take(cursor: Cursor, index: number): Tensor {
    if (index !== this.#used) {
      throw cursor.fail(`tensor ${index} stands where tensor ${this.#used} was expected`);
    }
    const tensor = this.#items[this.#used++];
    if (tensor === undefined) throw cursor.fail(`there is no tensor ${index}`);
    return tensor;
  }

  /** Refuses tensors that nothing refers to. */
  finish(cursor: Cursor): void {
    if (this.#used < this.#items.length) throw cursor.fail(`nothing refers to tensor ${this.#used}`);
  }
}

interface View {
  readonly dtype: Tensor["dtype"];
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;
}

function readStorages(data: Cursor, lengths: readonly number[]): Uint8Array[] {
  const total = data.rest;
  const storages = lengths.map((length) => {
    const end = total - data.rest;
    if (data.bytes(alignUp(end, WIDE_ALIGNMENT) - end).some((it) => it !== 0)) {
      throw data.fail("the bytes between two storages are not zero");
    }
    return data.bytes(length);
  });
  data.finish();
  return storages;
}

function takeStorages(cursor: Cursor, lengths: readonly number[], beside: readonly Uint8Array[]) {
  if (lengths.length !== beside.length) {
    const reason = `the tensors are not in the file: it needs ${lengths.length} storages, not ${beside.length}`;
    throw cursor.fail(reason, "give the storages beside it, in the order of the file");
  }
  for (const [at, bytes] of beside.entries()) {
    if (bytes.length !== lengths[at]) {
      throw cursor.fail(`storage ${at} has ${bytes.length} bytes, and the file needs ${lengths[at]}`);
    }
  }
  return beside;
}

function readView(cursor: Cursor): View {
  const word = cursor.word();
  const dtype = readDType(cursor, word & 0xff);
  const rank = cursor.checkCount(word >>> 8, 4, "dimensions");
  const sizes = Array.from({ length: rank }, () => cursor.size());
  const strides = Array.from({ length: rank }, () => cursor.size());
  return { dtype, sizes, strides, offset: cursor.size() };
}

function makeTensor(cursor: Cursor, storage: Uint8Array, view: View, copies: { left: number }): Tensor {
  const { dtype, sizes, strides, offset } = view;
  const itemSize = DTYPES[dtype].size;
  const isEmpty = sizes.includes(0);
  let span = BigInt(offset) + 1n;
  let numel = 1n;
  for (const [dim, size] of sizes.entries()) {
    span += BigInt(Math.max(0, size - 1)) * BigInt(strides[dim] as number);
    numel *= BigInt(size);
  }
  if (!isEmpty && span * BigInt(itemSize) > BigInt(storage.length)) {
    const what = `a ${dtype} view of sizes [${sizes}], strides [${strides}] and offset ${offset}`;
    throw fxError("ViewOutOfBounds", `${what} leaves its storage of ${storage.length} bytes`, {
      notes: [cursor.fail("a tensor").reason],
      help: "the file is damaged or was not written by PyTorch; export the program again",
    });
  }
  if (numel * BigInt(itemSize) > BigInt(copies.left)) {
    throw cursor.exceeds(`a tensor of sizes [${sizes}] is larger than what may be copied`);
  }
  const length = Number(numel) * itemSize;
  if (isEmpty || isRowMajor(sizes, strides)) {
    const start = isEmpty ? 0 : offset * itemSize;
    return new Tensor(dtype, sizes, new HostStorage(storage.slice(start, start + length)));
  }
  copies.left -= length;
  return new Tensor(dtype, sizes, new HostStorage(rowMajorCopy(storage, view, length)));
}

function rowMajorCopy(storage: Uint8Array, { dtype, sizes, strides, offset }: View, length: number): Uint8Array {
  const copy = new Uint8Array(length);
  const itemSize = DTYPES[dtype].size;
  const index = sizes.map(() => 0);
  let from = offset;
  for (let at = 0; at < length; at += itemSize) {
    for (let byte = 0; byte < itemSize; byte++) copy[at + byte] = storage[from * itemSize + byte] as number;
    for (let dim = sizes.length - 1; dim >= 0; dim--) {
      const [size, stride] = [sizes[dim] as number, strides[dim] as number];
      from += stride;
      index[dim] = (index[dim] as number) + 1;
      if ((index[dim] as number) < size) break;
      from -= stride * size;
      index[dim] = 0;
    }
  }
  return copy;
}

function contiguousStrides(sizes: readonly number[]): number[] {
  const strides = sizes.map(() => 1);
  for (let dim = sizes.length - 1; dim > 0; dim--) {
    strides[dim - 1] = (strides[dim] as number) * Math.max(1, sizes[dim] as number);
  }
  return strides;
}

function isRowMajor(sizes: readonly number[], strides: readonly number[]): boolean {
  const wanted = contiguousStrides(sizes);
  return sizes.every((size, dim) => size === 1 || strides[dim] === wanted[dim]);
}
