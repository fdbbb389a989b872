/**
 * Tensors of numbers, nested arrays, typed arrays and bytes.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import { isInt } from "../graph/args.ts";
import { Complex, type DTypeArg, dtypeName, Float } from "../base/values.ts";
import { bytesOf, entriesPerElement, viewElements, type Element, type ElementArray } from "./elements.ts";
import { encodeFloat, type SmallFloat } from "./floats.ts";
import { literal } from "./literal.ts";
import { HostStorage } from "./storage.ts";
import { checkShape, Tensor } from "./tensor.ts";
import { checkList, checkOptions } from "../base/given.ts";

/** What {@link tensor} makes a tensor of. */
export type TensorInput = Element | Float | readonly TensorInput[] | ElementArray | Uint8ClampedArray;

/** How {@link tensor} makes a tensor. */
export interface TensorOptions {
  /** The dtype; without it, what PyTorch infers. */
  readonly dtype?: DType | DTypeArg;
  /** Whether gradients are wanted; it is noted. */
  readonly requiresGrad?: boolean;
  /** The sizes of a tensor of a typed array, which has one dimension otherwise. */
  readonly shape?: readonly number[];
}

type Leaf = Element | Float;

/** PyTorch's limit is 64 dimensions; arrays nested deeper hold themselves. */
const MAX_DIMS = 64;

/**
 * A tensor with a copy of the data, with PyTorch's dtypes: whole numbers make `int64`, any other number `float32`,
 * booleans `bool`. A typed array keeps its dtype; of a `Uint16Array` as `float16` or `bfloat16`, and of a `Uint8Array` as
 * an 8-bit float, the entries are the bits.
 *
 * @example
 * ```ts
 * tensor([[1, 2], [3, 4]]); // int64
 * tensor([0.5, 1], { dtype: "float64" });
 * tensor(new Float32Array(6), { shape: [2, 3] });
 * ```
 */
export function tensor(data: TensorInput, options: TensorOptions = {}): Tensor {
  checkOptions("tensor", options, ["dtype", "requiresGrad", "shape"]);
  const { requiresGrad = false, ...given } = options;
  const made = literal(tensorOf(data, given));
  return requiresGrad ? made.requiresGrad_() : made;
}

/** {@link tensor} of numbers that the user did not write. */
export function tensorOf(data: TensorInput, options: Omit<TensorOptions, "requiresGrad"> = {}): Tensor {
  return construct(data, { ...options, dtype: dtypeOf(options) });
}

/** Options whose dtype is a name, where there is one. */
interface Plain {
  readonly dtype: DType | undefined;
  readonly shape?: readonly number[];
}

function construct(data: TensorInput, options: Plain): Tensor {
  if (ArrayBuffer.isView(data)) return fromTypedArray(data, options);
  const shape: number[] = [];
  const leaves: Leaf[] = [];
  collect(data, [], shape, leaves);
  if (options.shape !== undefined && options.shape.join() !== shape.join()) {
    throw fxError("InputShape", `the arrays have shape [${shape.join(", ")}], not [${options.shape.join(", ")}]`);
  }
  return fromLeaves(leaves, shape, options.dtype ?? inferred(leaves));
}

/**
 * A tensor of the bytes as they are in memory, little-endian and row-major: of a Node `Buffer`, an `ArrayBuffer`, or any
 * view of one. The bytes are copied.
 *
 * @example
 * ```ts
 * tensorFromBytes(await readFile("weights.bin"), "float16", [256, 64]);
 * ```
 */
export function tensorFromBytes(
  bytes: ArrayBufferLike | ArrayBufferView,
  dtype: DType,
  shape: readonly number[],
): Tensor {
  dtypeOf({ dtype });
  checkList("tensorFromBytes", "shape", shape);
  const view = ArrayBuffer.isView(bytes) ? bytesOf(bytes) : new Uint8Array(bytes);
  const wanted = checkShape(shape) * DTYPES[dtype].size;
  if (view.byteLength !== wanted) {
    const reason = `a ${dtype} tensor of shape [${shape.join(", ")}] has ${wanted} bytes, not ${view.byteLength}`;
    throw fxError("InputShape", reason);
  }
  const copy = new Uint8Array(view);
  if (dtype === "bool") for (let at = 0; at < copy.length; at++) copy[at] = copy[at] === 0 ? 0 : 1;
  return new Tensor(dtype, shape, new HostStorage(copy));
}

/** The dtypes of typed arrays, by the name of their class. */
const DTYPE_OF_ARRAY: ReadonlyMap<string, DType> = new Map<string, DType>([
  ["Int8Array", "int8"],
  ["Uint8Array", "uint8"],
  ["Uint8ClampedArray", "uint8"],
  ["Int16Array", "int16"],
  ["Uint16Array", "uint16"],
  ["Int32Array", "int32"],
  ["Uint32Array", "uint32"],
  ["BigInt64Array", "int64"],
  ["BigUint64Array", "uint64"],
  ["Float16Array", "float16"],
  ["Float32Array", "float32"],
  ["Float64Array", "float64"],
]);

function fromTypedArray(data: ArrayBufferView, { dtype, shape }: Plain): Tensor {
  // The tag tells the class even of a Buffer, which is a Uint8Array, and of arrays of another realm.
  const tag = Object.prototype.toString.call(data).slice("[object ".length, -1);
  const own = DTYPE_OF_ARRAY.get(tag);
  if (own === undefined) {
    throw fxError("InputType", `a ${tag} has no dtype`, { help: "use tensorFromBytes, which takes a dtype" });
  }
  const bytes = bytesOf(data);
  const wanted = dtype ?? own;
  const length = bytes.byteLength / DTYPES[own].size;
  if (wanted === own || holdsBits(own, wanted)) return tensorFromBytes(bytes, wanted, shape ?? [length]);
  const elements = viewElements(own, bytes);
  const source = own === "float16" ? tensorFromBytes(bytes, own, [length]).toFloat32Array() : elements;
  if (shape !== undefined && checkShape(shape) !== length) {
    throw fxError("InputShape", `${length} elements do not make the shape [${shape.join(", ")}]`);
  }
  // A float array's whole numbers are floats all the same.
  const leaves = Array.from<number | bigint, Leaf>(source, (it) =>
    DTYPES[own].kind === "float" ? new Float(it as number) : it,
  );
  return fromLeaves(leaves, shape ?? [length], wanted);
}

/** Whether the entries of an array of dtype `own` are the bits of `wanted`, which JavaScript has no array for. */
export function holdsBits(own: DType, wanted: DType): boolean {
  if (own === "uint16") return wanted === "float16" || wanted === "bfloat16";
  return own === "uint8" && wanted.startsWith("float8_");
}

/** Walks nested arrays; checks that they are as long as their first siblings and names the place where they are not. */
function collect(data: TensorInput, place: readonly number[], shape: number[], leaves: Leaf[]): void {
  const dim = place.length;
  if (!Array.isArray(data)) {
    if (shape.length > dim) throw ragged(place, `expected an array of ${shape[dim]} elements, not a single value`);
    leaves.push(checkLeaf(data as Leaf, place));
    return;
  }
  if (dim >= MAX_DIMS) throw fxError("InputStructure", `arrays are nested deeper than ${MAX_DIMS} dimensions`);
  if (shape.length === dim) {
    if (leaves.length > 0) throw ragged(place, "expected a single value, not an array");
    shape.push(data.length);
  }
  if (shape[dim] !== data.length) throw ragged(place, `expected ${shape[dim]} elements, not ${data.length}`);
  for (let at = 0; at < data.length; at++) collect(data[at] as TensorInput, [...place, at], shape, leaves);
}

function checkLeaf(value: Leaf, place: readonly number[]): Leaf {
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean") return value;
  if (value instanceof Float || value instanceof Complex) return value;
  const what = ArrayBuffer.isView(value)
    ? "a typed array"
    : value === null
      ? "null"
      : `a value of type ${typeof value}`;
  throw fxError("InputType", `${what} at ${path(place)} is not a number`, {
    help: "nested arrays hold numbers, bigints and booleans; a typed array is a tensor of its own, with a shape",
  });
}

function ragged(place: readonly number[], what: string) {
  return fxError("InputStructure", `at ${path(place)}: ${what}`, { help: "all arrays of one depth have one length" });
}

function path(place: readonly number[]): string {
  return place.length === 0 ? "the outermost level" : place.map((it) => `[${it}]`).join("");
}

/** The dtype that `torch.tensor` infers: the highest kind of any element. */
function inferred(leaves: readonly Leaf[]): DType {
  if (leaves.some((it) => it instanceof Complex)) return "complex64";
  if (leaves.length === 0 || leaves.some(isFloat)) return "float32";
  return leaves.every((it) => typeof it === "boolean") ? "bool" : "int64";
}

function isFloat(leaf: Leaf): boolean {
  return leaf instanceof Float || (typeof leaf === "number" && !isInt(leaf));
}

function fromLeaves(leaves: readonly Leaf[], shape: readonly number[], dtype: DType): Tensor {
  const bytes = new Uint8Array(leaves.length * DTYPES[dtype].size);
  const entries = viewElements(dtype, bytes);
  for (const [at, leaf] of leaves.entries()) write(dtype, entries, at, leaf);
  return new Tensor(dtype, shape, new HostStorage(bytes));
}

function write(dtype: DType, entries: ElementArray, at: number, leaf: Leaf): void {
  switch (DTYPES[dtype].kind) {
    case "bool":
      entries[at] =
        leaf instanceof Complex ? Number(leaf.re !== 0 || leaf.im !== 0) : Number(Boolean(plain(leaf, dtype)));
      return;
    case "int":
      writeInt(dtype, entries, at, plain(leaf, dtype));
      return;
    case "float":
      entries[at] = floatEntry(dtype, Number(plain(leaf, dtype)));
      return;
    case "complex": {
      const [re, im] = leaf instanceof Complex ? [leaf.re, leaf.im] : [Number(plain(leaf, dtype)), 0];
      entries[entriesPerElement(dtype) * at] = floatEntry(dtype, re);
      entries[entriesPerElement(dtype) * at + 1] = floatEntry(dtype, im);
    }
  }
}

function plain(leaf: Leaf, dtype: DType): number | bigint | boolean {
  if (leaf instanceof Float) return leaf.value;
  if (!(leaf instanceof Complex)) return leaf;
  throw fxError("InputType", `a complex number cannot be converted to ${dtype}`);
}

function floatEntry(dtype: DType, value: number): number {
  switch (dtype) {
    case "float16":
    case "bfloat16":
    case "float8_e4m3fn":
    case "float8_e5m2":
    case "float8_e4m3fnuz":
    case "float8_e5m2fnuz":
    case "float8_e8m0fnu":
      return encodeFloat(dtype satisfies SmallFloat, value);
    case "complex32":
      return encodeFloat("float16", value);
    default:
      return value;
  }
}

/** Writes an int exactly or not at all; floats are cut off towards zero, as in PyTorch. */
function writeInt(dtype: DType, entries: ElementArray, at: number, value: number | bigint | boolean): void {
  const whole = typeof value === "number" ? Math.trunc(value) : value;
  if (typeof whole === "number" && !Number.isSafeInteger(whole)) {
    throw fxError("InputValue", `${value} cannot be converted to ${dtype} exactly`, {
      help: "give large ints as bigints, or a float dtype",
    });
  }
  const exact = BigInt(whole);
  entries[at] = entries instanceof BigInt64Array || entries instanceof BigUint64Array ? exact : Number(exact);
  if (BigInt(entries[at] as number | bigint) !== exact) {
    throw fxError("InputValue", `${value} cannot be converted to ${dtype} without overflow`);
  }
}

/** Refuses options that there are not, and gives the name of the dtype. */
function dtypeOf(options: TensorOptions): DType | undefined {
  const dtype = dtypeName(options.dtype);
  if (dtype === undefined || Object.hasOwn(DTYPES, dtype)) return dtype;
  throw fxError("InputType", `there is no dtype \`${dtype}\``, { help: `one of ${Object.keys(DTYPES).join(", ")}` });
}
