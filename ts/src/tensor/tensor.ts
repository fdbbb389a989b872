// Users whose compiler has an older library see the types of `using` too.
/// <reference lib="esnext.disposable" preserve="true" />
/**
 * Tensors: a dtype, a shape and elements.
 *
 * What needs the engine (operators, views, indexing) is put on the prototype by `functions/tensorMembers.ts`; everything in
 * this folder works without it.
 *
 * @module
 */
import { showThemselves } from "../base/inspect.ts";
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import type { TensorMethods } from "../../../bindings/methods.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { DeviceArg, LayoutArg, type MemoryFormatArg, type MemoryFormatName } from "../base/values.ts";
import { elementAt, entriesPerElement, realAt, viewElements } from "./elements.ts";
import type { Element, ElementArray } from "./elements.ts";
import { formatTensor } from "./format.ts";
import type { TensorMembers } from "../functions/tensorMembers.ts";
import type { ComposedMethods } from "../torch/composed.ts";
import { contiguousStrides, isContiguous } from "./layout.ts";
import { SharedStorage, type TensorStorage } from "./storage.ts";
import { noteMade } from "./tidy.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

/** Elements in nested arrays, as deep as the tensor has dimensions. */
export type NestedElements = Element | NestedElements[];

let sharedOf: (tensor: Tensor) => SharedStorage;
let lookAt: (tensor: Tensor, shape: readonly number[], storage: TensorStorage) => void;

/** Where the bytes of a tensor are. */
export function tensorStorage(tensor: Tensor): TensorStorage {
  return sharedOf(tensor).storage;
}

/** The bytes of a tensor without a copy, to be read only. */
export function tensorBytes(tensor: Tensor): Uint8Array {
  return tensorStorage(tensor).bytes();
}

/** The place of a tensor's elements, for another tensor that shows the same. */
export function shareStorage(tensor: Tensor): SharedStorage {
  return sharedOf(tensor).share();
}

/** Gives a tensor, and all that share its elements, the same elements in another place. */
export function moveTensor(tensor: Tensor, storage: TensorStorage): void {
  sharedOf(tensor).move(storage);
}

/** Makes a tensor show other elements, of the same dtype: what an operator did to its shape in place. */
export function retarget(tensor: Tensor, shape: readonly number[], storage: TensorStorage): void {
  lookAt(tensor, shape, storage);
}

/** Where tensors are unless their storage says otherwise. */
const CPU = new DeviceArg("cpu");
const STRIDED = new LayoutArg("strided");

/**
 * A tensor: a dtype, a shape and elements, perhaps shared with other tensors. {@link tensor} makes one.
 *
 * @example
 * ```ts
 * using weights = tensor([[1.5, 2], [3, 4]]);
 * weights.shape; // [2, 2]
 * weights.data; // Float32Array [1.5, 2, 3, 4]
 * ```
 */
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- the members are put on the prototype
export interface Tensor extends TensorMembers, TensorMethods, ComposedMethods {}

// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- as above
export class Tensor implements Disposable {
  static {
    sharedOf = (tensor) => tensor.#live();
    lookAt = (tensor, shape, storage) => {
      tensor.#live().release();
      tensor.#shared = new SharedStorage(storage);
      tensor.#shape = shape;
    };
  }

  /** The dtype, by PyTorch's name without `torch.`. */
  readonly dtype: DType;
  #shape: readonly number[];
  #shared: SharedStorage | undefined;
  #requiresGrad = false;
  #grad: Tensor | null = null;

  /** A tensor of bytes that it takes over; {@link tensor} and `tensorFromBytes` copy what they are given. */
  constructor(dtype: DType, shape: readonly number[], storage: TensorStorage | SharedStorage) {
    const isRight =
      Array.isArray(shape) && Object.hasOwn(DTYPES, dtype) && typeof storage === "object" && storage !== null;
    checkGiven("Tensor", isRight, "a dtype, a shape and a storage", "tensor([[1, 2]]) makes a tensor of numbers");
    const shared = storage instanceof SharedStorage ? storage : new SharedStorage(storage);
    const wanted = checkShape(shape) * DTYPES[dtype].size;
    if (shared.storage.byteLength !== wanted) {
      const given = shared.storage.byteLength;
      throw fxError("InputShape", `a ${dtype} tensor of shape [${shape.join(", ")}] has ${wanted} bytes, not ${given}`);
    }
    this.dtype = dtype;
    this.#shape = Object.isFrozen(shape) ? shape : Object.freeze([...shape]);
    this.#shared = shared;
    noteMade(this);
  }

  /** The sizes. */
  get shape(): readonly number[] {
    return this.#shape;
  }

  /** The number of dimensions. */
  get ndim(): number {
    return this.shape.length;
  }

  /** The device: the CPU, which the engine runs on; a {@link GpuTensor} is on the device `gpu`. */
  get device(): DeviceArg {
    return this.#shared?.storage.device ?? CPU;
  }

  /** The layout: strided. */
  get layout(): LayoutArg {
    return STRIDED;
  }

  /** Whether gradients are wanted. It is noted, and printed with the graph; nothing here computes gradients. */
  get requiresGrad(): boolean {
    return this.#requiresGrad;
  }

  set requiresGrad(wanted: boolean) {
    if (wanted && !this.isFloatingPoint() && !this.isComplex()) {
      throw fxError("InputType", `a tensor of ${this.dtype} cannot require gradients`, {
        help: "only floating-point and complex tensors can: x.float()",
      });
    }
    this.#requiresGrad = wanted;
  }

  /** The gradient that a training step left here, or that was put here; what an optimizer reads. */
  get grad(): Tensor | null {
    return this.#grad;
  }

  set grad(gradient: Tensor | null) {
    if (gradient !== null && `${gradient.shape}` !== `${this.#shape}`) {
      throw fxError(
        "InputShape",
        `assigned grad has data of a different size: [${gradient.shape}] for [${this.#shape}]`,
      );
    }
    if (gradient !== null && gradient.dtype !== this.dtype) {
      throw fxError("InputType", `assigned grad has data of a different type: ${gradient.dtype} for ${this.dtype}`);
    }
    this.#grad = gradient;
  }

  /** The bytes of one element. */
  get itemsize(): number {
    return DTYPES[this.dtype].size;
  }

  /** The bytes of all elements. */
  get nbytes(): number {
    return this.numel() * this.itemsize;
  }

  /** Whether the tensor was disposed; everything but its dtype and shape is gone then. */
  get isDisposed(): boolean {
    return this.#shared === undefined;
  }

  /**
   * A copy of the elements in order. `float16`, `bfloat16` and the 8-bit floats come as bits, bools as 0 and 1, complex
   * numbers as real and imaginary parts in turn. Each read copies; keep what it gives.
   */
  get data(): ElementArray {
    return viewElements(this.dtype, tensorBytes(this).slice());
  }

  /** The number of elements. */
  numel(): number {
    return this.shape.reduce((product, size) => product * size, 1);
  }

  /** The number of elements. */
  nelement(): number {
    return this.numel();
  }

  /** The number of dimensions. */
  dim(): number {
    return this.ndim;
  }

  /** The number of dimensions. */
  ndimension(): number {
    return this.ndim;
  }

  /** The sizes, or the size of one dimension; negative dimensions count from the end. */
  size(): readonly number[];
  size(dim: number): number;
  size(dim?: number): readonly number[] | number {
    return dim === undefined ? this.shape : (this.shape[this.#dim(dim)] as number);
  }

  /** How far the elements of a dimension lie apart in memory, in elements. */
  stride(): readonly number[];
  stride(dim: number): number;
  stride(dim?: number): readonly number[] | number {
    const strides = this.#live().storage.layout?.strides ?? contiguousStrides(this.#shape);
    return dim === undefined ? strides : (strides[this.#dim(dim)] as number);
  }

  /** The position of the first element in the memory that the tensor shows, in elements. */
  storageOffset(): number {
    return this.#live().storage.layout?.offset ?? 0;
  }

  /** Whether the elements lie row-major without gaps, or in the order of another memory format. */
  isContiguous(options: { memoryFormat?: MemoryFormatArg | MemoryFormatName } = {}): boolean {
    checkOptions("isContiguous", options, ["memoryFormat"]);
    const format = options.memoryFormat ?? "contiguous_format";
    return isContiguous(this.shape, this.stride(), typeof format === "string" ? format : format.name);
  }

  /** Whether the dtype is one of the floats. */
  isFloatingPoint(): boolean {
    return DTYPES[this.dtype].kind === "float";
  }

  /** Whether the dtype is one of the complex ones. */
  isComplex(): boolean {
    return DTYPES[this.dtype].kind === "complex";
  }

  /** Whether the dtype has negative numbers. */
  isSigned(): boolean {
    return this.dtype !== "bool" && !this.dtype.startsWith("uint");
  }

  /** The bytes of one element. */
  elementSize(): number {
    return this.itemsize;
  }

  /** Notes whether gradients are wanted, and gives the tensor back. */
  requiresGrad_(wanted = true): this {
    this.requiresGrad = wanted;
    return this;
  }

  /** Refused: gradients are not computed here. */
  backward(): never {
    throw fxError("NotImplemented", "backward() is not there: gradients are not computed", {
      help: "derive the joint program of a loss and its gradients: program.exportForwardBackward()",
    });
  }

  /** The elements as float32, converted from any real dtype. */
  toFloat32Array(): Float32Array {
    if (entriesPerElement(this.dtype) === 2) {
      throw fxError("InputType", `${this.dtype} elements are not real numbers`, { help: "read data: pairs of parts" });
    }
    const elements = this.#elements();
    // Element by element, a large tensor takes longer than the model that computed it.
    if (elements instanceof Float32Array) return elements.slice();
    const res = new Float32Array(this.numel());
    for (let at = 0; at < res.length; at++) res[at] = realAt(this.dtype, elements, at);
    return res;
  }

  /** The elements in nested arrays; of a tensor without dimensions, the element alone. */
  toArray(): NestedElements {
    const elements = this.#elements();
    let at = 0;
    const nest = (dim: number): NestedElements => {
      if (dim === this.#shape.length) return elementAt(this.dtype, elements, at++);
      return Array.from({ length: this.#shape[dim] as number }, () => nest(dim + 1));
    };
    return nest(0);
  }

  /** The elements in nested arrays: {@link Tensor.toArray} by PyTorch's name. */
  tolist(): NestedElements {
    return this.toArray();
  }

  /** The only element. */
  item(): Element {
    if (this.numel() !== 1) {
      throw fxError("InputShape", `a tensor with ${this.numel()} elements cannot be converted to a single value`, {
        help: "toArray gives all of them",
      });
    }
    return elementAt(this.dtype, this.#elements(), 0);
  }

  /** PyTorch's `str(tensor)`. */
  toString(): string {
    return formatTensor(this.dtype, this.#shape, this.#elements(), this.#requiresGrad);
  }

  /** Text, where text is wanted; a number never: JavaScript's operators do not know tensors. */
  [Symbol.toPrimitive](hint: string): string {
    if (hint === "string") return this.toString();
    throw fxError("InputType", "a tensor is not a number: JavaScript's operators and comparisons do not work on it", {
      help: "write x.add(y) for x + y, x.lt(y) for x < y, x.eq(y) for x == y, and x.item() for the only element",
    });
  }

  /** What Node's console shows. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.isDisposed ? `Tensor(${this.dtype}, [${this.#shape.join(", ")}], disposed)` : this.toString();
  }

  /** Gives the memory back. What the engine holds is not freed otherwise until the tensor is garbage-collected. */
  dispose(): void {
    const shared = this.#shared;
    this.#shared = undefined;
    shared?.release();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  #dim(dim: number): number {
    const rank = Math.max(this.ndim, 1);
    if (Number.isInteger(dim) && dim >= -rank && dim < rank && this.ndim > 0) return dim < 0 ? dim + rank : dim;
    throw this.#badDim(dim, rank);
  }

  #badDim(dim: number, rank: number): FxError {
    if (this.ndim === 0) return fxError("IndexOutOfRange", `dimension ${dim} of a tensor without dimensions`);
    return fxError(
      "IndexOutOfRange",
      `Dimension out of range (expected to be in range of [${-rank}, ${rank - 1}], but got ${dim})`,
    );
  }

  #elements(): ElementArray {
    return viewElements(this.dtype, tensorBytes(this));
  }

  #live(): SharedStorage {
    if (this.#shared !== undefined) return this.#shared;
    throw fxError("Disposed", "the tensor was disposed", { help: "read what you need before you dispose it" });
  }
}

showThemselves(Tensor);

/** The largest size of a dimension. */
const MAX_SIZE = 2 ** 32 - 1;

/** The number of elements of this shape; throws where it is not a shape. */
export function checkShape(shape: readonly number[]): number {
  let product = 1;
  for (const size of shape) {
    // The engine's sizes have 32 bits, and a larger one would arrive there as another.
    if (!Number.isSafeInteger(size) || size < 0 || size > MAX_SIZE) {
      throw fxError("InputShape", `[${shape.join(", ")}] is not a shape`);
    }
    product *= size;
  }
  if (!Number.isSafeInteger(product * 16)) throw fxError("InputShape", `[${shape.join(", ")}] has too many elements`);
  return product;
}
