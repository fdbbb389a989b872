/**
 * Tensors in the engine's memory, and values on their way in and out of a call.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import type { TensorStorage } from "../tensor/storage.ts";
import { moveTensor, retarget, Tensor, tensorStorage } from "../tensor/tensor.ts";
import { hostLayout, type TensorLayout } from "../tensor/storageLayout.ts";
import { call, type Engine, generation, lostWithEngine } from "./engine.ts";
import { type EngineValue, type HandleView, ValueReader, ValueWriter } from "./values.ts";

type Storages = InstanceType<Engine["Storages"]>;

/** What the program says that an input is, where it says so. */
export type LeafKind = "tensor" | "int" | "float" | "bool" | "str" | "None";

/** Bytes behind a handle of the engine. */
class EngineStorage implements TensorStorage {
  readonly needsFree = true;
  readonly byteLength: number;
  readonly view: HandleView;
  /** Which of the engine's lives the handle belongs to. */
  readonly #generation = generation();

  constructor(view: HandleView) {
    this.view = view;
    this.byteLength = view.shape.reduce((product, size) => product * size, DTYPES[view.dtype].size);
  }

  get layout(): HandleView {
    return this.view;
  }

  get handle(): number {
    if (this.#generation === generation()) return this.view.handle;
    throw lostWithEngine("the tensor", "make it again after restart()");
  }

  bytes(): Uint8Array {
    return call((engine) => engine.read_tensor(this.handle));
  }

  free(): void {
    if (this.#generation === generation()) call((engine) => engine.free_tensor(this.view.handle));
  }
}

/** A tensor over a handle, which it takes over. */
export function wrapHandle(view: HandleView): Tensor {
  return new Tensor(view.dtype, view.shape, new EngineStorage(view));
}

/** A tensor of the words that the engine gave. */
export function wrapWords(words: Uint32Array): Tensor {
  return wrapHandle(readerOf(words).tensorView());
}

/** Reads words that the engine gave; `placed` gives the tensors that the caller sent as numbers. */
export function readerOf(words: Uint32Array, placed?: (place: number) => Tensor): ValueReader {
  return new ValueReader(words, wrapHandle, placed);
}

/** A tensor that looks at one of these storages. */
export function viewHandle(
  storages: Storages,
  index: number,
  dtype: DType,
  sizes: readonly number[],
  strides: readonly number[],
  offset: number,
): Tensor {
  const [ofSizes, ofStrides] = [Uint32Array.from(sizes), Uint32Array.from(strides)];
  return wrapWords(call(() => storages.view(index, DTYPES[dtype].id, ofSizes, ofStrides, offset)));
}

/** How a tensor lies in memory, in elements. */
export interface TensorView {
  readonly dtype: DType;
  readonly shape: readonly number[];
  readonly strides: readonly number[];
  readonly offset: number;
}

/** A tensor of the engine that lies so in the memory of another one. */
export function viewOn(memory: Tensor, { dtype, shape, strides, offset }: TensorView): Tensor {
  moveToEngine(memory);
  const storages = call((engine) => new engine.Storages());
  try {
    pushStorage(storages, memory);
    return viewHandle(storages, 0, dtype, shape, strides, offset);
  } finally {
    storages.free();
  }
}

/** How a tensor lies in its storage; tensors of equal `storage` share it. */
export function layoutOf(tensor: Tensor): TensorLayout {
  const storage = tensorStorage(tensor);
  if (!(storage instanceof EngineStorage)) return hostLayout(tensor);
  const { handle } = storage;
  const { strides, offset, storage: id } = storage.view;
  return { storage: id, byteLength: call((engine) => engine.storage_length(handle)), strides, offset };
}

/** Appends the storage of a tensor: the engine's own, or a copy of the bytes in JavaScript's memory. */
export function pushStorage(storages: Storages, tensor: Tensor): void {
  const storage = tensorStorage(tensor);
  call(() => {
    if (storage instanceof EngineStorage) storages.push_tensor(storage.handle);
    else storages.push_bytes(storage.bytes());
  });
}

/** Moves the elements of a tensor into the engine's memory, where operators see them, and gives its handle. */
export function moveToEngine(tensor: Tensor): number {
  const storage = tensorStorage(tensor);
  if (storage instanceof EngineStorage) return storage.handle;
  const moved = new EngineStorage(upload(tensor, storage));
  moveTensor(tensor, moved);
  return moved.handle;
}

/** Makes a tensor look at what `view` says, whose handle it takes over: what an operator did to it in place. */
export function updateTensor(tensor: Tensor, view: HandleView): void {
  const storage = tensorStorage(tensor);
  if (storage instanceof EngineStorage && isSameView(storage.view, view)) {
    call((engine) => engine.free_tensor(view.handle));
  } else {
    retarget(tensor, view.shape, new EngineStorage(view));
  }
}

/** Makes a tensor show other sizes of the same memory, which grows where it is too short: `resize_`. */
export function resizeTensor(tensor: Tensor, sizes: readonly number[]): void {
  const handle = moveToEngine(tensor);
  const words = call((engine) => engine.resize_tensor(handle, Uint32Array.from(sizes)));
  updateTensor(tensor, readerOf(words).tensorView());
}

/** Runs `body` with these leaves as words; `kinds` decides what a number is. */
export function withLeaves<T>(
  leaves: readonly unknown[],
  kinds: readonly (LeafKind | undefined)[],
  body: (words: Uint32Array) => T,
): T {
  // Tensors in JavaScript's memory are copied for as long as the call runs, and stay where they are.
  const copies: number[] = [];
  const handleOf = (tensor: Tensor): number => {
    const storage = tensorStorage(tensor);
    if (storage instanceof EngineStorage) return storage.handle;
    const { handle } = upload(tensor, storage);
    copies.push(handle);
    return handle;
  };
  try {
    const writer = new ValueWriter(handleOf);
    leaves.forEach((leaf, at) => {
      if (typeof leaf === "number" && kinds[at] === "float") writer.float(leaf);
      else writer.value(leaf, () => `input ${at}`);
    });
    return body(writer.finish());
  } finally {
    for (const handle of copies) call((engine) => engine.free_tensor(handle));
  }
}

/** The values of words that the engine gave; `placed` gives the tensors that the caller sent as numbers. */
export function takeLeaves(words: Uint32Array, placed?: (place: number) => Tensor): EngineValue[] {
  const reader = readerOf(words, placed);
  const leaves: EngineValue[] = [];
  while (!reader.isDone) leaves.push(reader.value());
  return leaves;
}

function upload(tensor: Tensor, storage: TensorStorage): HandleView {
  const sizes = Uint32Array.from(tensor.shape);
  const words = call((engine) => engine.new_tensor(DTYPES[tensor.dtype].id, sizes, storage.bytes()));
  return readerOf(words).tensorView();
}

function isSameView(a: HandleView, b: HandleView): boolean {
  return (
    a.storage === b.storage &&
    a.offset === b.offset &&
    a.dtype === b.dtype &&
    isSameList(a.shape, b.shape) &&
    isSameList(a.strides, b.strides)
  );
}

function isSameList(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((it, at) => it === b[at]);
}
