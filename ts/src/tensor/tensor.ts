/**
 * Tensors: a dtype, a shape and elements.
 *
 * @module
 */
import { DTYPES, type DType } from "../bindings/dtypes.ts";
import { fxError } from "../errors.ts";
import { elementAt, entriesPerElement, realAt, viewElements } from "./elements.ts";
import type { Element, ElementArray } from "./elements.ts";
import { formatTensor } from "./format.ts";
import { guard, release, type TensorStorage } from "./storage.ts";

/** Elements in nested arrays, as deep as the tensor has dimensions. */
export type NestedElements = Element | NestedElements[];

let liveStorage: (tensor: Tensor) => TensorStorage;
let replaceStorage: (tensor: Tensor, shape: readonly number[], storage: TensorStorage) => void;

/** Where the bytes of a tensor are. */
export function tensorStorage(tensor: Tensor): TensorStorage {
  return liveStorage(tensor);
}

/** The bytes of a tensor without a copy, to be read only. */
export function tensorBytes(tensor: Tensor): Uint8Array {
  return liveStorage(tensor).bytes();
}

/** Gives a tensor elements in another place, and frees the place where they were. */
export function moveTensor(tensor: Tensor, shape: readonly number[], storage: TensorStorage): void {
  replaceStorage(tensor, shape, storage);
}

/**
 * A tensor: an immutable value of a dtype and a shape, row-major. {@link tensor} makes one.
 *
 * @example
 * ```ts
 * using weights = tensor([[1.5, 2], [3, 4]]);
 * weights.shape; // [2, 2]
 * weights.data; // Float32Array [1.5, 2, 3, 4]
 * ```
 */
export class Tensor implements Disposable {
  static {
    liveStorage = (tensor) => tensor.#live();
    replaceStorage = (tensor, shape, storage) => {
      release(tensor.#live());
      tensor.#storage = storage;
      tensor.#shape = shape;
      guard(tensor, storage);
    };
  }

  /** The dtype, by PyTorch's name without `torch.`. */
  readonly dtype: DType;
  #shape: readonly number[];
  #storage: TensorStorage | undefined;

  /** A tensor of bytes that it takes over; {@link tensor} and `tensorFromBytes` copy what they are given. */
  constructor(dtype: DType, shape: readonly number[], storage: TensorStorage) {
    const wanted = checkShape(shape) * DTYPES[dtype].size;
    if (storage.byteLength !== wanted) {
      const reason = `a ${dtype} tensor of shape [${shape.join(", ")}] has ${wanted} bytes, not ${storage.byteLength}`;
      throw fxError("InputShape", reason);
    }
    this.dtype = dtype;
    this.#shape = Object.freeze([...shape]);
    this.#storage = storage;
    guard(this, storage);
  }

  /** The sizes. */
  get shape(): readonly number[] {
    return this.#shape;
  }

  /** The number of elements. */
  get numel(): number {
    return this.shape.reduce((product, size) => product * size, 1);
  }

  /** Whether the tensor was disposed; everything but its dtype and shape is gone then. */
  get isDisposed(): boolean {
    return this.#storage === undefined;
  }

  /**
   * A copy of the elements in order. `float16`, `bfloat16` and the 8-bit floats come as bits, bools as 0 and 1, complex
   * numbers as real and imaginary parts in turn. Each read copies; keep what it gives.
   */
  get data(): ElementArray {
    return viewElements(this.dtype, tensorBytes(this).slice());
  }

  /** The elements as float32, converted from any real dtype. */
  toFloat32Array(): Float32Array {
    if (entriesPerElement(this.dtype) === 2) {
      throw fxError("InputType", `${this.dtype} elements are not real numbers`, { help: "read data: pairs of parts" });
    }
    const elements = this.#elements();
    const res = new Float32Array(this.numel);
    for (let at = 0; at < res.length; at++) res[at] = realAt(this.dtype, elements, at);
    return res;
  }

  /** The elements in nested arrays; of a tensor without dimensions, the element alone. */
  toArray(): NestedElements {
    const elements = this.#elements();
    let at = 0;
    const nest = (dim: number): NestedElements => {
      if (dim === this.shape.length) return elementAt(this.dtype, elements, at++);
      return Array.from({ length: this.shape[dim] as number }, () => nest(dim + 1));
    };
    return nest(0);
  }

  /** The only element. */
  item(): Element {
    if (this.numel !== 1) {
      throw fxError("InputShape", `a tensor with ${this.numel} elements cannot be converted to a single value`, {
        help: "toArray gives all of them",
      });
    }
    return elementAt(this.dtype, this.#elements(), 0);
  }

  /** PyTorch's `str(tensor)`. */
  toString(): string {
    return formatTensor(this.dtype, this.shape, this.#elements());
  }

  /** Gives the memory back. What the engine holds is not freed otherwise until the tensor is garbage-collected. */
  dispose(): void {
    const storage = this.#storage;
    this.#storage = undefined;
    if (storage !== undefined) release(storage);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #elements(): ElementArray {
    return viewElements(this.dtype, tensorBytes(this));
  }

  #live(): TensorStorage {
    if (this.#storage !== undefined) return this.#storage;
    throw fxError("Disposed", "the tensor was disposed", { help: "read what you need before you dispose it" });
  }
}

/** The number of elements of this shape; throws where it is not a shape. */
export function checkShape(shape: readonly number[]): number {
  let product = 1;
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0) throw fxError("InputShape", `[${shape.join(", ")}] is not a shape`);
    product *= size;
  }
  if (!Number.isSafeInteger(product * 16)) throw fxError("InputShape", `[${shape.join(", ")}] has too many elements`);
  return product;
}
