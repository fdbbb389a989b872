/**
 * `TENS` and `DATA`: tensors as views of storages, and the bytes of the storages, each once.
 *
 * A tensor in JavaScript's memory is row-major and has a storage of its own; one in the engine's may be any view. Where the
 * bytes are is not known here: a {@link LayoutOf} says how a tensor lies, and a {@link ViewTensor} makes one.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { WIDE_ALIGNMENT } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";
import { isContiguous } from "../tensor/layout.ts";
import { HostStorage } from "../tensor/storage.ts";
import type { LayoutOf, TensorLayout } from "../tensor/storageLayout.ts";
import { Tensor } from "../tensor/tensor.ts";
import { readDType } from "./arg.ts";
import type { Cursor } from "./cursor.ts";
import { alignUp } from "./file.ts";
import { DEFAULT_LIMITS } from "./options.ts";
import { WordWriter } from "./writer.ts";

/** Makes a tensor that looks at a storage which is not in the file; strides and offset are in elements. */
export type ViewTensor = (
  storage: number,
  dtype: DType,
  sizes: readonly number[],
  strides: readonly number[],
  offset: number,
) => Tensor;

/** Makes tensors of storages that are bytes in JavaScript's memory. */
export function hostViews(storages: readonly Uint8Array[], maxCopies: number = DEFAULT_LIMITS.copies): ViewTensor {
  const views = new HostViews(storages, maxCopies);
  return (storage, dtype, sizes, strides, offset) => views.view(storage, { dtype, sizes, strides, offset });
}

/** The tensors of a file that is being written. */
export class TensorWriter {
  readonly #layoutOf: LayoutOf;
  readonly #tensors: { readonly tensor: Tensor; readonly layout: TensorLayout }[] = [];
  readonly #storages = new Map<
    unknown,
    { readonly index: number; readonly tensor: Tensor; readonly layout: TensorLayout }
  >();

  constructor(layoutOf: LayoutOf) {
    this.#layoutOf = layoutOf;
  }

  /** Adds a tensor, and gives its index. */
  push(tensor: Tensor): number {
    const layout = this.#layoutOf(tensor);
    const index = this.#storages.size;
    if (!this.#storages.has(layout.storage)) this.#storages.set(layout.storage, { index, tensor, layout });
    return this.#tensors.push({ tensor, layout }) - 1;
  }

  /** The first tensors of the storages, in the order of first use. */
  storages(): Tensor[] {
    return Array.from(this.#storages.values(), (it) => it.tensor);
  }

  /** The index of storages and tensors, unless there are none. */
  index(): Uint8Array | undefined {
    if (this.#tensors.length === 0) return undefined;
    const words = new WordWriter();
    words.count(this.#storages.size);
    words.count(this.#tensors.length);
    for (const { layout } of this.#storages.values()) words.size(layout.byteLength);
    for (const { tensor, layout } of this.#tensors) {
      words.count(this.#storages.get(layout.storage)?.index as number);
      words.tagged(DTYPES[tensor.dtype].id, tensor.shape.length);
      for (const it of [...tensor.shape, ...layout.strides, layout.offset]) words.size(it);
    }
    return words.finish();
  }

  /** The bytes of the storages. */
  data(): Uint8Array[] {
    return Array.from(this.#storages.values(), ({ layout }) => {
      if (layout.bytes !== undefined) return layout.bytes();
      throw fxError("InvalidOption", "the bytes of a tensor in the engine cannot be in the file", {
        help: "let the engine write the file, or leave the weights beside it",
      });
    });
  }
}

/** The tensors of a file that is being read, each to be taken once and in order. */
export class Tensors {
  readonly #items: Tensor[] = [];
  #used = 0;

  /** Reads the index, and makes the tensors: of `data` or, where the file has none, by `viewOf`. */
  constructor(cursor: Cursor | undefined, data: Cursor | undefined, viewOf: ViewTensor | undefined, maxCopies: number) {
    if (cursor === undefined) {
      if (data !== undefined) throw data.fail("there are no tensors");
      return;
    }
    const [storageCount, tensorCount] = [cursor.word(), cursor.word()];
    cursor.checkCount(storageCount, 2, "storages");
    cursor.checkCount(tensorCount, 4, "tensors");
    if (tensorCount === 0) throw cursor.fail("the section is empty");
    const lengths = Array.from({ length: storageCount }, () => cursor.size());
    const make = data === undefined ? viewOf : hostViews(readStorages(data, lengths), maxCopies);
    if (make === undefined) {
      const reason = `the tensors are not in the file: it needs ${storageCount} storages beside it`;
      throw cursor.fail(reason, "give the storages, in the order of the file: hostViews(storages)");
    }
    let used = 0;
    for (let at = 0; at < tensorCount; at++) {
      const index = cursor.word();
      const length = lengths[index];
      if (length === undefined || index > used) {
        throw cursor.fail(`a tensor looks at storage ${index} before storage ${used}`);
      }
      used = Math.max(used, index + 1);
      const view = readView(cursor);
      checkView(cursor, view, length);
      this.#items.push(make(index, view.dtype, view.sizes, view.strides, view.offset));
    }
    cursor.finish();
    if (used < storageCount) throw cursor.fail(`no tensor looks at storage ${used}`);
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
  finish(): void {
    if (this.#used < this.#items.length) throw fxError("WireMalformed", `TENS: nothing refers to tensor ${this.#used}`);
  }
}

interface View {
  readonly dtype: DType;
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

function readView(cursor: Cursor): View {
  const word = cursor.word();
  const dtype = readDType(cursor, word & 0xff);
  const rank = cursor.checkCount(word >>> 8, 4, "dimensions");
  const sizes = Array.from({ length: rank }, () => cursor.size());
  const strides = Array.from({ length: rank }, () => cursor.size());
  return { dtype, sizes, strides, offset: cursor.size() };
}

/** Tensors of storages in JavaScript's memory. A tensor has a storage of its own there, so views are copied; equal views are one tensor. */
class HostViews {
  readonly #storages: readonly Uint8Array[];
  readonly #known = new Map<string, Tensor>();
  /** The bytes that may still be copied: a view that repeats elements can be larger than any file. */
  #left: number;

  constructor(storages: readonly Uint8Array[], maxCopies: number) {
    this.#storages = storages;
    this.#left = maxCopies;
  }

  view(index: number, view: View): Tensor {
    const storage = this.#storages[index];
    if (storage === undefined) {
      throw fxError("WireMalformed", `the file needs storage ${index}, and ${this.#storages.length} were given`);
    }
    checkView(undefined, view, storage.length);
    const key = JSON.stringify([index, view]);
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const tensor = new Tensor(view.dtype, view.sizes, new HostStorage(this.#copy(storage, view)));
    this.#known.set(key, tensor);
    return tensor;
  }

  #copy(storage: Uint8Array, view: View): Uint8Array {
    const { dtype, sizes, strides, offset } = view;
    if (sizes.includes(0)) return new Uint8Array(0);
    const length = sizes.reduce((product, size) => product * size, DTYPES[dtype].size);
    if (isContiguous(sizes, strides, "contiguous_format"))
      return storage.slice(offset * DTYPES[dtype].size, offset * DTYPES[dtype].size + length);
    if (length > this.#left) {
      throw fxError("LimitExceeded", `a tensor of sizes [${sizes.join(", ")}] is larger than what may be copied`);
    }
    this.#left -= length;
    return rowMajorCopy(storage, view, length);
  }
}

/** Refuses a view that leaves its storage. */
function checkView(cursor: Cursor | undefined, { dtype, sizes, strides, offset }: View, length: number): void {
  if (sizes.includes(0)) return;
  let span = BigInt(offset) + 1n;
  for (const [dim, size] of sizes.entries()) span += BigInt(size - 1) * BigInt(strides[dim] as number);
  if (span * BigInt(DTYPES[dtype].size) <= BigInt(length)) return;
  const what = `a ${dtype} view of sizes [${sizes.join(", ")}], strides [${strides.join(", ")}] and offset ${offset}`;
  throw fxError("ViewOutOfBounds", `${what} leaves its storage of ${length} bytes`, {
    notes: cursor === undefined ? [] : [cursor.fail("a tensor").reason],
    help: "the file is damaged, or the storages are of another one",
  });
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
