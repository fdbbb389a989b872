/**
 * Where the bytes of a tensor are.
 *
 * @module
 */
import type { DeviceArg } from "../base/values.ts";
import { hold, release, relieve } from "./pressure.ts";

/** The bytes of a tensor, row-major: in JavaScript's memory, behind a handle of the engine, or on a GPU. */
export interface TensorStorage {
  readonly byteLength: number;
  /** The device that the bytes are on, where that is not the CPU: they cannot be read at once then. */
  readonly device?: DeviceArg;
  /** How the elements lie in memory, where that is not row-major from the first byte on; in elements. */
  readonly layout?: { readonly strides: readonly number[]; readonly offset: number };
  /** Whether the memory outlives the JavaScript object unless it is freed, so that the garbage collector must be told. */
  readonly needsFree: boolean;
  /** The bytes, to be read only; they may be the storage's own, and are valid until it is freed. */
  bytes(): Uint8Array;
  /** Gives the memory back. Called once. */
  free(): void;
}

/** Bytes in JavaScript's memory. */
export class HostStorage implements TensorStorage {
  readonly needsFree = false;
  #bytes: Uint8Array;

  /** Takes the bytes over: nobody else may change them. */
  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get byteLength(): number {
    return this.#bytes.byteLength;
  }

  bytes(): Uint8Array {
    return this.#bytes;
  }

  free(): void {
    this.#bytes = new Uint8Array(0);
  }
}

/** Frees what tensors held that were never disposed. */
const net = new FinalizationRegistry<TensorStorage>((storage) => {
  release(undefined, storage);
  storage.free();
});

/**
 * Gives back what tensors held that nobody has any more, where there is much of it. No handle may be on its way to the
 * engine.
 */
export function relieveMemory(): void {
  relieve((storage) => {
    net.unregister(storage);
    storage.free();
  });
}

/** The place of elements that several tensors show whole: one that moves moves for all, and the last one frees it. */
export class SharedStorage {
  #storage: TensorStorage;
  #owners = 1;

  constructor(storage: TensorStorage) {
    this.#storage = storage;
    this.#guard();
  }

  /** Where the bytes are now. */
  get storage(): TensorStorage {
    return this.#storage;
  }

  /** The same for one more tensor. */
  share(): SharedStorage {
    this.#owners += 1;
    return this;
  }

  /** Puts the same elements into another place, and frees the place where they were. */
  move(storage: TensorStorage): void {
    this.#free();
    this.#storage = storage;
    this.#guard();
  }

  /** Takes one tensor away; the last one frees the place now. */
  release(): void {
    this.#owners -= 1;
    if (this.#owners === 0) this.#free();
  }

  #guard(): void {
    if (!this.#storage.needsFree) return;
    net.register(this, this.#storage, this.#storage);
    hold(this, this.#storage);
  }

  #free(): void {
    if (this.#storage.needsFree) {
      net.unregister(this.#storage);
      release(this, this.#storage);
    }
    this.#storage.free();
  }
}
