/**
 * Values as words: how the arguments and results of a call cross to the engine, all of them at once. The words are
 * those of `crates/wasm/src/values.rs`; tensors cross as the numbers of their handles.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { ARG, LAYOUTS, MEMORY_FORMATS } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";
import { isInt } from "../graph/args.ts";
import { SymExpr, type SymInt, TensorMeta } from "../graph/val.ts";
import { Complex, device, DeviceArg, DTypeArg, Float, layout, LayoutArg, MemoryFormatArg } from "../base/values.ts";
import { Tensor } from "../tensor/tensor.ts";

/** A value that crosses. */
export type EngineValue =
  | Tensor
  | number
  | bigint
  | boolean
  | string
  | null
  | Float
  | Complex
  | DTypeArg
  | DeviceArg
  | LayoutArg
  | MemoryFormatArg
  | TensorMeta
  | SymExpr
  | readonly EngineValue[];

/** What the engine tells of a tensor. */
export interface HandleView {
  readonly handle: number;
  readonly dtype: DType;
  readonly shape: readonly number[];
  /** In elements. */
  readonly strides: readonly number[];
  /** The position of the first element in the storage, in elements. */
  readonly offset: number;
  /** Two views of equal `storage` share it. */
  readonly storage: number;
}

export const DTYPE_NAMES = Object.keys(DTYPES) as DType[];
/** The tag of a tensor that is followed by its description. */
const DESCRIBED = ARG.TENSOR | (1 << 8);
/** The tag of a tensor without data. */
const KNOWN = ARG.TENSOR | (2 << 8);
/** The tag of a number that is not known. */
const SYMBOLIC = ARG.STR | (1 << 8);
/** Values nested deeper than this hold themselves. */
const MAX_DEPTH = 64;

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const bits = new DataView(new ArrayBuffer(8));

/** Words of a call that is being written. */
export class ValueWriter {
  #words = new Uint32Array(64);
  #length = 0;
  readonly #handleOf: (tensor: Tensor) => number;

  /** `handleOf` gives the handle by which a tensor crosses. */
  constructor(handleOf: (tensor: Tensor) => number) {
    this.#handleOf = handleOf;
  }

  /** Forgets the words, so that the next call is written into the same memory. */
  clear(): void {
    this.#length = 0;
  }

  /** The words, valid until the next call is written. */
  finish(): Uint32Array {
    return this.#words.subarray(0, this.#length);
  }

  /** A number of values. */
  values(values: readonly unknown[], place: (at: number) => string): void {
    this.word(values.length);
    for (let at = 0; at < values.length; at++) this.value(values[at], () => place(at));
  }

  /** A value; `place` says in errors which one it is. */
  value(value: unknown, place: () => string, depth = 0): void {
    switch (typeof value) {
      case "number":
        if (!isInt(value)) return this.float(value);
        if (value >= 2 ** 63 || value < -(2 ** 63)) {
          throw fxError("InputType", `${place()} does not fit 64 bits: ${value}`, {
            help: "write a whole float as float(1e300)",
          });
        }
        return this.#int(value);
      case "boolean":
        this.word(ARG.BOOL);
        return this.word(value ? 1 : 0);
      case "undefined":
        return this.word(ARG.NONE);
      case "string":
        this.word(ARG.STR);
        return this.text(value);
      case "bigint":
        if (BigInt.asIntN(64, value) !== value) throw fxError("InputType", `${place()} does not fit 64 bits: ${value}`);
        return this.#wideInt(value);
      case "object":
        if (value === null) return this.word(ARG.NONE);
        return this.#object(value, place, depth);
      default:
        throw unsupported(value, place());
    }
  }

  /** A float, whole or not. */
  float(value: number): void {
    this.word(ARG.FLOAT);
    this.#float(value);
  }

  /** A count of bytes, and the bytes. */
  text(text: string): void {
    const bytes = encoder.encode(text);
    this.word(bytes.length);
    for (let at = 0; at < bytes.length; at += 4) {
      this.word(
        (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24),
      );
    }
  }

  /** A word as it is. */
  word(word: number): void {
    if (this.#length === this.#words.length) {
      const words = new Uint32Array(2 * this.#length);
      words.set(this.#words);
      this.#words = words;
    }
    this.#words[this.#length++] = word;
  }

  #object(value: object, place: () => string, depth: number): void {
    if (value instanceof Tensor) {
      this.word(ARG.TENSOR);
      return this.word(this.#handleOf(value));
    }
    if (Array.isArray(value)) {
      if (depth >= MAX_DEPTH) throw fxError("InputStructure", `${place()} is nested deeper than ${MAX_DEPTH} arrays`);
      this.word(ARG.LIST);
      this.word(value.length);
      for (let at = 0; at < value.length; at++) this.value(value[at], () => `${place()}[${at}]`, depth + 1);
      return;
    }
    if (value instanceof TensorMeta) {
      this.word(KNOWN);
      this.word(DTYPES[value.dtype].id);
      this.word(value.sizes.length);
      for (const dim of [...value.sizes, ...value.strides, value.storageOffset]) this.value(dim, place, depth);
      return;
    }
    if (value instanceof SymExpr) {
      this.word(SYMBOLIC);
      return this.text(value.srepr);
    }
    if (value instanceof Float) {
      this.word(ARG.FLOAT);
      return value.nanBits === undefined ? this.#float(value.value) : this.#wide(value.nanBits);
    }
    if (value instanceof Complex) {
      this.word(ARG.COMPLEX);
      this.#float(value.re);
      return this.#float(value.im);
    }
    if (value instanceof DTypeArg) {
      this.word(ARG.DTYPE);
      return this.word(DTYPES[value.name].id);
    }
    if (value instanceof DeviceArg) {
      this.word(ARG.DEVICE);
      return this.text(String(value));
    }
    if (value instanceof LayoutArg) {
      this.word(ARG.LAYOUT);
      return this.word(LAYOUTS.indexOf(value.name));
    }
    if (value instanceof MemoryFormatArg) {
      this.word(ARG.MEMORY_FORMAT);
      return this.word(MEMORY_FORMATS.indexOf(value.name));
    }
    throw unsupported(value, place());
  }

  #int(value: number): void {
    this.word(ARG.INT);
    this.word(value);
    this.word(Math.floor(value / 2 ** 32));
  }

  #wideInt(value: bigint): void {
    this.word(ARG.INT);
    this.#wide(value);
  }

  #wide(value: bigint): void {
    this.word(Number(BigInt.asUintN(32, value)));
    this.word(Number(BigInt.asUintN(32, value >> 32n)));
  }

  #float(value: number): void {
    bits.setFloat64(0, value, true);
    this.word(bits.getUint32(0, true));
    this.word(bits.getUint32(4, true));
  }
}

/** Words that the engine gave, to be taken in order. */
export class ValueReader {
  readonly #words: Uint32Array;
  #at = 0;
  readonly #wrap: (view: HandleView) => Tensor;
  readonly #placed: (place: number) => Tensor;

  /**
   * `wrap` makes a tensor over a handle, which it takes over. `placed` gives the tensor of a number that the caller sent in
   * its place.
   */
  constructor(
    words: Uint32Array,
    wrap: (view: HandleView) => Tensor,
    placed: (place: number) => Tensor = () => {
      throw fxError("Internal", "the engine gave a tensor without a handle");
    },
  ) {
    this.#words = words;
    this.#wrap = wrap;
    this.#placed = placed;
  }

  /** Whether all words were taken. */
  get isDone(): boolean {
    return this.#at === this.#words.length;
  }

  /** The next word as it is. */
  word(): number {
    return this.#words[this.#at++] as number;
  }

  /** The next value. */
  value(): EngineValue {
    const tag = this.word();
    switch (tag) {
      case DESCRIBED:
        return this.#wrap(this.view());
      case ARG.TENSOR:
        return this.#placed(this.word());
      case ARG.NONE:
        return null;
      case ARG.BOOL:
        return this.word() !== 0;
      case ARG.INT:
        return this.#int();
      case ARG.FLOAT: {
        const value = this.#float();
        // A float that is whole is a float all the same, and makes tensors of floats.
        return isInt(value) ? new Float(value) : value;
      }
      case ARG.COMPLEX:
        return new Complex(this.#float(), this.#float());
      case ARG.STR:
        return this.#text();
      case ARG.DTYPE:
        return new DTypeArg(DTYPE_NAMES[this.word()] as DType);
      case ARG.DEVICE:
        return device(this.#text());
      case ARG.LAYOUT:
        return new LayoutArg(LAYOUTS[this.word()] as LayoutArg["name"]);
      case ARG.MEMORY_FORMAT:
        return new MemoryFormatArg(MEMORY_FORMATS[this.word()] as MemoryFormatArg["name"]);
      case KNOWN:
        return this.#known();
      case SYMBOLIC:
        return new SymExpr(this.#text());
      case ARG.LIST: {
        const length = this.word();
        return Array.from({ length }, () => this.value());
      }
      default:
        throw fxError("Internal", `the engine gave a value of tag ${tag}`);
    }
  }

  /** The next value, which must be a tensor, without making one. */
  tensorView(): HandleView {
    const tag = this.word();
    if (tag === DESCRIBED) return this.view();
    throw fxError("Internal", `the engine gave a value of tag ${tag} where a tensor was expected`);
  }

  private view(): HandleView {
    const handle = this.word();
    const dtype = DTYPE_NAMES[this.word()] as DType;
    const offset = this.word();
    const storage = this.word();
    const rank = this.word();
    return { handle, dtype, shape: this.#dims(rank), strides: this.#dims(rank), offset, storage };
  }

  #known(): TensorMeta {
    const dtype = DTYPE_NAMES[this.word()] as DType;
    const rank = this.word();
    const dims = (): SymInt[] => Array.from({ length: rank }, () => this.value() as SymInt);
    const [sizes, strides] = [dims(), dims()];
    const storageOffset = this.value() as SymInt;
    const [home, form] = [device("cpu"), layout("strided")];
    return new TensorMeta({ dtype, sizes, strides, storageOffset, device: home, layout: form, requiresGrad: false });
  }

  #dims(rank: number): readonly number[] {
    // `Array.from` takes longer to begin than most operators to run.
    const res: number[] = [];
    for (let dim = 0; dim < rank; dim++) res.push(this.word());
    return Object.freeze(res);
  }

  #int(): number | bigint {
    const [low, high] = [this.word(), this.word() | 0];
    const value = high * 2 ** 32 + low;
    return Number.isSafeInteger(value) ? value : (BigInt(high) << 32n) | BigInt(low);
  }

  #float(): number {
    bits.setUint32(0, this.word(), true);
    bits.setUint32(4, this.word(), true);
    return bits.getFloat64(0, true);
  }

  #text(): string {
    const length = this.word();
    const words = this.#words.slice(this.#at, this.#at + Math.ceil(length / 4));
    this.#at += words.length;
    return decoder.decode(new Uint8Array(words.buffer, 0, length));
  }
}

function unsupported(value: unknown, place: string) {
  const what =
    typeof value === "object" && value !== null
      ? `a ${value.constructor?.name ?? "plain object"}`
      : `a ${typeof value}`;
  return fxError("InputType", `${place} is ${what}, which no operator takes`, {
    help: "operators take tensors, numbers, booleans, strings, null, dtypes, devices, and arrays of them",
  });
}
