/**
 * What a page and a worker with the engine tell each other. Values are packed as what a message can hold; the bytes of tensors go over
 * without being copied again.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import type { ErrorName } from "../../../bindings/errors.ts";
import { type ErrorDetails, FxError, fxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import { ValueTuple } from "../base/values.ts";
import type { Bytes } from "../base/bytes.ts";
import type { PartSources } from "../engine/parts.ts";
import type { PartName, Variant } from "../engine/variant.ts";
import type { LoadModuleOptions } from "../export/loadModule.ts";
import { HostStorage } from "../tensor/storage.ts";
import { Tensor, tensorBytes, tensorStorage } from "../tensor/tensor.ts";

/** What a message can hold of the options of `loadModule`. */
export type SentOptions = Omit<LoadModuleOptions, "signal" | "progress">;

/** A program, as a message can hold where it is. */
export type SentSource = Uint8Array | string | Blob;

/** The engine, as a message can hold it or where it is. */
export type SentWasm = string | BufferSource | WebAssembly.Module;

/** The engine's parts, in the same way. */
export type SentParts = PartSources<PartName, SentWasm>;

/** What a message can hold of the options of `init`. */
export interface SentInit {
  readonly wasm?: SentWasm;
  readonly parts: SentParts;
  readonly threads?: number;
  readonly variant?: Variant;
}

/** What a run gave. */
export interface RunResult {
  readonly value: Packed;
  /** The inputs that the run wrote to, by their places among the tensors that were packed. */
  readonly written: readonly (readonly [at: number, bytes: Bytes])[];
  /** Whether this run, or one before, has changed tensors of the program's own. */
  readonly hasChanged: boolean;
}

/** What the worker is asked to do. `id` is that of the answer. */
export type Request =
  | { readonly do: "init"; readonly id: number; readonly options: SentInit }
  | {
      readonly do: "load";
      readonly id: number;
      readonly source: SentSource;
      readonly options: SentOptions;
      readonly progress: boolean;
    }
  | {
      readonly do: "run";
      readonly id: number;
      readonly model: number;
      readonly args: readonly Packed[];
      readonly progress: boolean;
      /** A word that is no zero where the run is to stop; undefined where memory cannot be shared. */
      readonly stop: Int32Array | undefined;
    }
  | { readonly do: "abort"; readonly id: number }
  | { readonly do: "dispose"; readonly id: number; readonly model: number };

/** What the worker says to a request. */
export type Answer =
  | { readonly id: number; readonly is: "done"; readonly value: number | RunResult | undefined }
  | { readonly id: number; readonly is: "progress"; readonly done: number; readonly total: number | undefined }
  | { readonly id: number; readonly is: "failed"; readonly error: PackedError; readonly isLast: boolean };

/** A value as a message holds it. */
export type Packed =
  | { readonly is: "plain"; readonly value: unknown }
  | { readonly is: "tensor"; readonly dtype: DType; readonly shape: readonly number[]; readonly bytes: Bytes }
  | { readonly is: "list" | "tuple"; readonly items: readonly Packed[] }
  | { readonly is: "object" | "map"; readonly entries: readonly (readonly [key: unknown, value: Packed])[] };

/** An error as a message holds it. */
export interface PackedError {
  /** The kind of an error of this package. */
  readonly kind: ErrorName | undefined;
  readonly reason: string;
  readonly details: ErrorDetails;
}

/**
 * Packs a value; buffers that go over are put into `transfers`. Does `after` with each tensor once its bytes are taken. What is packed is a copy:
 * the value may be changed as soon as this returns.
 */
export function pack(value: unknown, transfers: ArrayBuffer[], after?: (tensor: Tensor) => void): Packed {
  const packAll = (items: readonly unknown[]): Packed[] => items.map((it) => pack(it, transfers, after));
  const packEntries = (entries: Iterable<[unknown, unknown]>): [unknown, Packed][] =>
    Array.from(entries, ([key, it]) => {
      if (isPlain(key)) return [key, pack(it, transfers, after)];
      throw unsendable("the key of a Map is no number and no text", "use numbers or texts as keys");
    });
  if (value instanceof Tensor) {
    const { dtype, shape, device } = value;
    if (device.type !== "cpu") {
      throw unsendable("a tensor on a GPU stays in the thread that it is made in", "give it as await x.cpu()");
    }
    const bytes = bytesToSend(value);
    transfers.push(bytes.buffer);
    after?.(value);
    return { is: "tensor", dtype, shape, bytes };
  }
  if (value instanceof ValueTuple) return { is: "tuple", items: packAll(value) };
  if (Array.isArray(value)) return { is: "list", items: packAll(value) };
  if (value instanceof Map) return { is: "map", entries: packEntries(value) };
  if (isOptions(value)) return { is: "object", entries: packEntries(Object.entries(value)) };
  if (isTypedArray(value)) {
    const copy = copyOf(value);
    transfers.push(copy.buffer as ArrayBuffer);
    return { is: "plain", value: copy };
  }
  if (isPlain(value)) return { is: "plain", value };
  throw unsendable(
    "a worker takes tensors, numbers, texts and containers of them",
    "turn instances of classes into objects or lists before the call",
  );
}

function unsendable(reason: string, help: string): Error {
  return fxError("InputType", reason, { help });
}

/** Bytes that nobody else has: those that come from the engine are a copy already. */
function bytesToSend(tensor: Tensor): Bytes {
  const bytes = tensorBytes(tensor);
  return (tensorStorage(tensor).needsFree ? bytes : bytes.slice()) as Bytes;
}

/** Whether a message holds a value as it is, and nobody can change it. */
function isPlain(value: unknown): boolean {
  return value === null || !["object", "function", "symbol"].includes(typeof value);
}

/** Elements in memory of their own. The method of Node's `Buffer` that is called `slice` copies nothing. */
function copyOf(array: Uint8Array): Uint8Array {
  return Uint8Array.prototype.slice.call(array);
}

/** Whether this has elements that may be changed. */
function isTypedArray(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && !(value instanceof DataView);
}

/** The value that was packed. Does `made` with each of its tensors, in the order in which they were packed. */
export function unpack(packed: Packed, made?: (tensor: Tensor, bytes: Bytes) => void): unknown {
  const unpackAll = (items: readonly Packed[]): unknown[] => items.map((it) => unpack(it, made));
  switch (packed.is) {
    case "plain":
      return packed.value;
    case "tensor": {
      const tensor = new Tensor(packed.dtype, packed.shape, new HostStorage(packed.bytes));
      made?.(tensor, packed.bytes);
      return tensor;
    }
    case "list":
      return unpackAll(packed.items);
    case "tuple":
      return ValueTuple.frozen(unpackAll(packed.items));
    case "object":
      return Object.fromEntries(packed.entries.map(([key, value]) => [key, unpack(value, made)]));
    case "map":
      return new Map(packed.entries.map(([key, value]) => [key, unpack(value, made)]));
    default:
      return packed satisfies never;
  }
}

/** Packs an error. */
export function packError(error: unknown): PackedError {
  if (error instanceof FxError) {
    const { kind, reason, node, op, notes, help } = error;
    return { kind, reason, details: { node, op, notes, help } };
  }
  return { kind: undefined, reason: error instanceof Error ? error.message : String(error), details: {} };
}

/** The error that was packed. */
export function unpackError({ kind, reason, details }: PackedError): Error {
  return kind === undefined ? new Error(reason) : fxError(kind, reason, details);
}
