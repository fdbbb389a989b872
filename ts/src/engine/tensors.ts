/**
 * Tensors in the engine's memory, and values on their way in and out of a call.
 *
 * @module
 */
import type { DType } from "../bindings/dtypes.ts";
import { fxError } from "../errors.ts";
import { Float } from "../graph/values.ts";
import type { TensorStorage } from "../tensor/storage.ts";
import { moveTensor, Tensor, tensorStorage } from "../tensor/tensor.ts";
import { hostLayout, type TensorLayout } from "../wire/tensors.ts";
import { call, type Engine } from "./engine.ts";

type EngineTensor = InstanceType<Engine["EngineTensor"]>;
type Values = InstanceType<Engine["Values"]>;
type Storages = InstanceType<Engine["Storages"]>;

/** A leaf of the inputs or outputs of a program. */
export type Leaf = Tensor | number | bigint | boolean | string | Float | null;

/** What the program says that an input is, where it says so. */
export type LeafKind = "tensor" | "int" | "float" | "bool" | "str" | "None";

/** Bytes behind a handle of the engine. */
class EngineStorage implements TensorStorage {
  readonly needsFree = true;
  readonly byteLength: number;
  readonly handle: EngineTensor;

  constructor(handle: EngineTensor, byteLength: number) {
    this.handle = handle;
    this.byteLength = byteLength;
  }

  bytes(): Uint8Array {
    return call(() => this.handle.read());
  }

  free(): void {
    this.handle.free();
  }
}

/** A tensor over a handle, which it takes over. */
export function wrapHandle(handle: EngineTensor): Tensor {
  const [dtype, shape, byteLength] = call(() => [handle.dtype() as DType, [...handle.sizes()], handle.byte_length()]);
  return new Tensor(dtype, shape, new EngineStorage(handle, byteLength));
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
  return wrapHandle(
    call(() => storages.view(index, dtype, Uint32Array.from(sizes), Uint32Array.from(strides), offset)),
  );
}

/** How a tensor lies in its storage; tensors of equal `storage` share it. */
export function layoutOf(tensor: Tensor): TensorLayout {
  const storage = tensorStorage(tensor);
  if (!(storage instanceof EngineStorage)) return hostLayout(tensor);
  const { handle } = storage;
  return call(() => ({
    storage: handle.storage_id(),
    byteLength: handle.storage_bytes(),
    strides: [...handle.strides()],
    offset: handle.offset(),
  }));
}

/** Appends the storage of a tensor: the engine's own, or a copy of the bytes in JavaScript's memory. */
export function pushStorage(storages: Storages, tensor: Tensor): void {
  const storage = tensorStorage(tensor);
  call(() => {
    if (storage instanceof EngineStorage) storages.push_tensor(storage.handle);
    else storages.push_bytes(storage.bytes());
  });
}

/** Runs `body` with a handle of the tensor; of one in JavaScript's memory, with a copy that is freed afterwards. */
export function withHandle<T>(tensor: Tensor, body: (handle: EngineTensor) => T): T {
  const storage = tensorStorage(tensor);
  if (storage instanceof EngineStorage) return body(storage.handle);
  const handle = upload(tensor, storage);
  try {
    return body(handle);
  } finally {
    handle.free();
  }
}

/** Moves the elements of a tensor into the engine's memory, so that it sees what a program writes to it. */
export function moveToEngine(tensor: Tensor): void {
  const storage = tensorStorage(tensor);
  if (storage instanceof EngineStorage) return;
  moveTensor(tensor, new EngineStorage(upload(tensor, storage), storage.byteLength));
}

/** Runs `body` with these leaves as values of the engine; `kinds` decides what a number is. */
export function withValues<T>(
  leaves: readonly unknown[],
  kinds: readonly (LeafKind | undefined)[],
  body: (values: Values) => T,
): T {
  return call((engine) => {
    const values = new engine.Values();
    try {
      leaves.forEach((leaf, at) => push(values, leaf, kinds[at], at));
      return body(values);
    } finally {
      values.free();
    }
  });
}

/** The values as leaves; frees the list. */
export function takeLeaves(values: Values): Leaf[] {
  return call(() => {
    try {
      return Array.from({ length: values.len() }, (_, at) => leafAt(values, at));
    } finally {
      values.free();
    }
  });
}

function upload(tensor: Tensor, storage: TensorStorage): EngineTensor {
  return call((engine) => new engine.EngineTensor(tensor.dtype, Uint32Array.from(tensor.shape), storage.bytes()));
}

function push(values: Values, leaf: unknown, kind: LeafKind | undefined, at: number): void {
  if (leaf instanceof Tensor) return withHandle(leaf, (handle) => values.push_tensor(handle));
  if (leaf instanceof Float) return values.push_float(leaf.value);
  switch (typeof leaf) {
    case "undefined":
      return values.push_none();
    case "boolean":
      return values.push_bool(leaf);
    case "string":
      return values.push_str(leaf);
    case "bigint":
      if (BigInt.asIntN(64, leaf) !== leaf) throw fxError("InputType", `input ${at} does not fit 64 bits: ${leaf}`);
      return values.push_int(leaf);
    case "number":
      // A whole number is an int unless the program wants a float there.
      if (kind !== "float" && Number.isSafeInteger(leaf) && !Object.is(leaf, -0)) return values.push_int(BigInt(leaf));
      return values.push_float(leaf);
    default:
      if (leaf === null) return values.push_none();
      throw fxError(
        "InputType",
        `input ${at} is ${Array.isArray(leaf) ? "an array" : `a ${typeof leaf}`}, not a tensor or a number`,
        {
          help: "make a tensor of it: tensor([[1, 2], [3, 4]])",
        },
      );
  }
}

function leafAt(values: Values, at: number): Leaf {
  const kind = values.kind(at);
  switch (kind) {
    case "Tensor":
      return wrapHandle(values.tensor(at));
    case "int": {
      const value = values.int(at);
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : value;
    }
    case "float":
      return values.float(at);
    case "bool":
      return values.bool(at);
    case "str":
      return values.str(at);
    case "None":
      return null;
    default:
      throw fxError("NotImplemented", `output ${at} is a ${kind}, which has no counterpart in JavaScript yet`);
  }
}
