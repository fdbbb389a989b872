/**
 * Where the bytes of a tensor are.
 *
 * @module
 */

/** The bytes of a tensor, row-major: in JavaScript's memory, or behind a handle of the engine. */
export interface TensorStorage {
  readonly byteLength: number;
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

/** Frees what a tensor held that was never disposed. */
const net = new FinalizationRegistry<TensorStorage>((storage) => storage.free());

/** Frees the storage when `owner` is collected, unless {@link release} comes first. */
export function guard(owner: object, storage: TensorStorage): void {
  if (storage.needsFree) net.register(owner, storage, storage);
}

/** Frees the storage now. */
export function release(storage: TensorStorage): void {
  if (storage.needsFree) net.unregister(storage);
  storage.free();
}
