/**
 * The Python values that JavaScript has no type for: floats that are whole, tuples, slices, dtypes…
 *
 * All of them are immutable. The containers (`List`, `Tuple`, `Dict`) are what a node holds; to pass one, write an array,
 * {@link tuple} or an object, and the node freezes a copy.
 *
 * @module
 */
import { checkGiven, checkText } from "./given.ts";
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { LAYOUTS, MEMORY_FORMATS } from "../../../bindings/wire.ts";
import { fxError, type FxError } from "./errors.ts";
import type { Arg } from "../graph/args.ts";

/** The bits of the NaN that JavaScript's `NaN` stands for. */
const PLAIN_NAN = 0x7ff8000000000000n;

/** The bits of a NaN that says more than `NaN`; JavaScript does not promise to keep them in a number. */
function extraNanBits(bits: bigint): bigint | undefined {
  const isNan = (bits & 0x7fffffffffffffffn) > 0x7ff0000000000000n;
  return isNan && bits !== PLAIN_NAN ? bits : undefined;
}

function numberOfBits(bits: bigint): number {
  return new Float64Array(new BigUint64Array([bits]).buffer)[0] as number;
}

/** A Python float whose value is whole, such as `1.0`, or whose bits a number may lose; see {@link float}. */
export class Float {
  readonly value: number;
  /** The bits of a NaN with a sign or a payload. */
  readonly nanBits: bigint | undefined;

  constructor(value: number, nanBits?: bigint) {
    this.value = value;
    this.nanBits = nanBits;
    Object.freeze(this);
  }

  /** The number, so that JavaScript computes with it. */
  valueOf(): number {
    return this.value;
  }

  /** The float of these 64 bits. */
  static ofBits(bits: bigint): Float {
    return new Float(numberOfBits(bits), extraNanBits(bits));
  }
}

/** A Python complex number; see {@link complex}. */
export class Complex {
  readonly re: number;
  readonly im: number;
  /** The bits of parts that are NaNs with a sign or a payload. */
  readonly nanBits: readonly [re: bigint | undefined, im: bigint | undefined];

  constructor(re: number, im: number, nanBits: readonly [bigint | undefined, bigint | undefined] = NO_BITS) {
    this.re = re;
    this.im = im;
    this.nanBits = nanBits;
    Object.freeze(this);
  }

  /** The complex number whose parts have these 64 bits. */
  static ofBits(re: bigint, im: bigint): Complex {
    return new Complex(numberOfBits(re), numberOfBits(im), [extraNanBits(re), extraNanBits(im)]);
  }
}

const NO_BITS: readonly [undefined, undefined] = [undefined, undefined];

/** The class of {@link Ellipsis}. */
export class EllipsisType {
  readonly name = "Ellipsis";
}

/** Python's `...`. */
export const Ellipsis: EllipsisType = Object.freeze(new EllipsisType());

/** A dtype as an argument; see {@link dtype}. */
export class DTypeArg {
  readonly name: DType;

  constructor(name: DType) {
    this.name = name;
    Object.freeze(this);
  }

  /** PyTorch's `str(dtype)`, such as `torch.float32`. */
  toString(): string {
    return `torch.${this.name}`;
  }
}

/** The name of a dtype that is given by its name or as `torch.float32`. */
export function dtypeName<T>(it: T | DTypeArg): T | DType {
  return it instanceof DTypeArg ? it.name : it;
}

/** A device as an argument; see {@link device}. */
export class DeviceArg {
  readonly type: string;
  readonly index: number | undefined;

  constructor(type: string, index?: number) {
    this.type = type;
    this.index = index;
    Object.freeze(this);
  }

  /** PyTorch's `str(device)`, such as `cuda:1`. */
  toString(): string {
    return this.index === undefined ? this.type : `${this.type}:${this.index}`;
  }
}

/** The name of a `torch.layout`. */
export type LayoutName = (typeof LAYOUTS)[number];
/** The name of a `torch.memory_format`. */
export type MemoryFormatName = (typeof MEMORY_FORMATS)[number];

/** A layout as an argument; see {@link layout}. */
export class LayoutArg {
  readonly name: LayoutName;

  constructor(name: LayoutName) {
    this.name = name;
    Object.freeze(this);
  }

  /** PyTorch's `str(layout)`, such as `torch.strided`. */
  toString(): string {
    return `torch.${this.name}`;
  }
}

/** A memory format as an argument; see {@link memoryFormat}. */
export class MemoryFormatArg {
  readonly name: MemoryFormatName;

  constructor(name: MemoryFormatName) {
    this.name = name;
    Object.freeze(this);
  }

  /** PyTorch's `str(memory_format)`, such as `torch.channels_last`. */
  toString(): string {
    return `torch.${this.name}`;
  }
}

/** An operator passed as a value, by its qualified name; see {@link op}. */
export class OpArg {
  readonly name: string;

  constructor(name: string) {
    this.name = name;
    Object.freeze(this);
  }
}

/** A Python slice; see {@link slice}. */
export class Slice {
  readonly start: Arg;
  readonly stop: Arg;
  readonly step: Arg;

  constructor(start: Arg, stop: Arg, step: Arg) {
    this.start = start;
    this.stop = stop;
    this.step = step;
    Object.freeze(this);
  }
}

function immutable(what: string): FxError {
  return fxError("GraphArgument", `the ${what} of a node's arguments does not support mutation`, {
    help: "copy it, change the copy and assign that: node.args = [...node.args.slice(0, 1), newArg]",
  });
}

/** An array that refuses to be changed; what `map`, `slice` and the like give is an ordinary array. */
class FrozenArray extends Array<Arg> {
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }

  override push(): never {
    throw immutable("array");
  }
  override pop(): never {
    throw immutable("array");
  }
  override shift(): never {
    throw immutable("array");
  }
  override unshift(): never {
    throw immutable("array");
  }
  override splice(): never {
    throw immutable("array");
  }
  override sort(): never {
    throw immutable("array");
  }
  override reverse(): never {
    throw immutable("array");
  }
  override fill(): never {
    throw immutable("array");
  }
  override copyWithin(): never {
    throw immutable("array");
  }
}

function filled<T extends FrozenArray>(target: T, items: readonly Arg[]): T {
  for (let at = 0; at < items.length; at++) target[at] = items[at] as Arg;
  return Object.freeze(target) as T;
}

/** A frozen Python list. */
export class List extends FrozenArray {
  get kind(): "list" {
    return "list";
  }

  /** A list of values that are frozen already. */
  static frozen(items: readonly Arg[]): List {
    return filled(new List(items.length), items);
  }
}

/** A frozen Python tuple; see {@link tuple}. */
export class Tuple extends FrozenArray {
  get kind(): "tuple" {
    return "tuple";
  }

  /** A tuple of values that are frozen already. */
  static frozen(items: readonly Arg[]): Tuple {
    return filled(new Tuple(items.length), items);
  }
}

/** A tuple of what a function that runs or is traced returns: tensors and traced values among constants; see {@link tuple}. */
export class ValueTuple<T> extends Array<T> {
  get kind(): "tuple" {
    return "tuple";
  }

  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }

  /** A tuple of these items. */
  static frozen<T>(items: readonly T[]): ValueTuple<T> {
    const res = new ValueTuple<T>();
    res.push(...items);
    return Object.freeze(res) as ValueTuple<T>;
  }
}

/** A frozen Python dict with string keys, in insertion order. */
export class Dict extends Map<string, Arg> {
  #isFrozen = false;

  constructor(entries?: Iterable<readonly [string, Arg]> | null) {
    const isNone = entries === undefined || entries === null;
    const isIterable = typeof entries === "object" && entries !== null && Symbol.iterator in entries;
    checkGiven("Dict", isNone || isIterable, "pairs, or a Map");
    const pairs = [...(entries ?? [])];
    checkGiven("Dict", pairs.every(Array.isArray), "pairs, or a Map");
    super();
    for (const [key, value] of pairs) this.set(key, value);
  }

  /** A dict of values that are frozen already. */
  static frozen(entries: Iterable<readonly [string, Arg]>): Dict {
    const res = new Dict();
    for (const [key, value] of entries) res.set(key, value);
    res.#isFrozen = true;
    return res;
  }

  override set(key: string, value: Arg): this {
    if (this.#isFrozen) throw immutable("dict");
    checkText("Dict", "a key", key);
    return super.set(key, value);
  }
  override delete(): never {
    throw immutable("dict");
  }
  override clear(): never {
    throw immutable("dict");
  }
}

/**
 * The float of this value. Only whole values need it: `1.5` is a float anyway, `1` is an int and `float(1)` is `1.0`.
 *
 * @example
 * ```ts
 * graph.callMethod("clamp", [x], { min: float(0), max: 1.5 });
 * ```
 */
export function float(value: number): Float {
  return new Float(value);
}

/** The complex number `re + im j`. */
export function complex(re: number, im: number): Complex {
  return new Complex(re, im);
}

/** A dtype as an argument: `dtype("float32")` is `torch.float32`. */
export function dtype(name: DType): DTypeArg {
  return new DTypeArg(known("dtype", Object.keys(DTYPES) as DType[], name));
}

/** A device as an argument: `device("cuda:1")`. */
export function device(text: string): DeviceArg {
  const match = /^([A-Za-z0-9_]+)(?::(\d{1,9}))?$/.exec(text);
  if (match === null) throw fxError("GraphArgument", `\`${text}\` is not a device`, { help: "write cpu or cuda:1" });
  return new DeviceArg(match[1] as string, match[2] === undefined ? undefined : Number(match[2]));
}

/** A layout as an argument: `layout("strided")` is `torch.strided`. */
export function layout(name: LayoutName): LayoutArg {
  return new LayoutArg(known("layout", LAYOUTS, name));
}

/** A memory format as an argument: `memoryFormat("channels_last")` is `torch.channels_last`. */
export function memoryFormat(name: MemoryFormatName): MemoryFormatArg {
  return new MemoryFormatArg(known("memory format", MEMORY_FORMATS, name));
}

/** An operator as an argument of another: `op("torch.ops.aten.add.Tensor")`. */
export function op(qualifiedName: string): OpArg {
  return new OpArg(qualifiedName);
}

function known<T extends string>(what: string, names: readonly T[], name: T): T {
  if (names.includes(name)) return name;
  throw fxError("GraphArgument", `there is no ${what} \`${name}\``, { help: `one of ${names.join(", ")}` });
}
