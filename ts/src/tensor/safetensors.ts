/**
 * `.safetensors` files: tensors by name, with nothing in them that runs.
 *
 * A file is the length of a JSON header as a 64-bit integer, the header, and the bytes of all tensors without gaps. What is
 * read is checked as the format's own library checks it, so a file that is accepted here is accepted there.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { tensorFromBytes } from "./construct.ts";
import { type Tensor, tensorBytes } from "./tensor.ts";

/** What a file holds. */
export interface SafetensorsFile {
  /** The tensors, in the order of their bytes. */
  readonly tensors: Map<string, Tensor>;
  /** The free-form texts of the header. */
  readonly metadata: Map<string, string>;
}

/** A tensor as the header describes it. */
interface Entry {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: number[];
  readonly begin: number;
  readonly end: number;
}

/** The format's names of dtypes, in the order in which its writers sort tensors, from the last to the first. */
const NAMES: readonly (readonly [name: string, dtype: DType])[] = [
  ["BOOL", "bool"],
  ["U8", "uint8"],
  ["I8", "int8"],
  ["F8_E5M2", "float8_e5m2"],
  ["F8_E4M3", "float8_e4m3fn"],
  ["F8_E8M0", "float8_e8m0fnu"],
  ["F8_E4M3FNUZ", "float8_e4m3fnuz"],
  ["F8_E5M2FNUZ", "float8_e5m2fnuz"],
  ["I16", "int16"],
  ["U16", "uint16"],
  ["F16", "float16"],
  ["BF16", "bfloat16"],
  ["I32", "int32"],
  ["U32", "uint32"],
  ["F32", "float32"],
  ["C64", "complex64"],
  ["F64", "float64"],
  ["I64", "int64"],
  ["U64", "uint64"],
];

const PREFIX = 8;
/** The format's own limit. */
const MAX_HEADER = 100_000_000;
const METADATA = "__metadata__";

/**
 * Reads a file. Every tensor is a copy, so the bytes may be dropped or changed afterwards.
 *
 * @example
 * ```ts
 * const { tensors } = readSafetensors(await readFile("model.safetensors"));
 * tensors.get("encoder.weight")?.shape;
 * ```
 */
export function readSafetensors(file: ArrayBufferLike | ArrayBufferView): SafetensorsFile {
  const bytes = ArrayBuffer.isView(file)
    ? new Uint8Array(file.buffer, file.byteOffset, file.byteLength)
    : new Uint8Array(file);
  const header = headerOf(bytes);
  const data = bytes.subarray(PREFIX + header.byteLength);
  const { entries, metadata } = parseHeader(header);
  const tensors = new Map<string, Tensor>();
  let at = 0;
  for (const { name, dtype, shape, begin, end } of entries) {
    if (begin !== at) throw malformed(`tensor \`${name}\` begins at byte ${begin} of the data, not at ${at}`);
    if (end > data.byteLength) throw malformed(`tensor \`${name}\` ends after the end of the file`);
    const size = shape.reduce((product, it) => product * it, DTYPES[dtype].size);
    if (end - begin !== size)
      throw malformed(`tensor \`${name}\` has ${end - begin} bytes, but its shape needs ${size}`);
    tensors.set(name, tensorFromBytes(data.subarray(begin, end), dtype, shape));
    at = end;
  }
  if (at !== data.byteLength) throw malformed(`${data.byteLength - at} bytes after the last tensor belong to none`);
  return { tensors, metadata };
}

/**
 * Writes a file, with the same bytes as the format's own library: tensors of the widest elements first, then by name.
 *
 * @example
 * ```ts
 * await writeFile("weights.safetensors", writeSafetensors({ weight, bias }, { format: "pt" }));
 * ```
 */
export function writeSafetensors(
  tensors: ReadonlyMap<string, Tensor> | Readonly<Record<string, Tensor>>,
  metadata: ReadonlyMap<string, string> | Readonly<Record<string, string>> = {},
): Uint8Array {
  const isDict = typeof tensors === "object" && tensors !== null;
  checkGiven("writeSafetensors", isDict, "a Map or an object of tensors by name");
  const sorted = entriesOf(tensors)
    .map(([name, tensor]) => ({ name, tensor, rank: rankOf(name, tensor.dtype) }))
    .toSorted((a, b) => b.rank - a.rank || (a.name < b.name ? -1 : 1));
  const notes = entriesOf(metadata).map(member);
  const members = notes.length === 0 ? [] : [`${JSON.stringify(METADATA)}:{${notes.join(",")}}`];
  let at = 0;
  for (const { name, tensor, rank } of sorted) {
    if (name === METADATA) throw fxError("InputValue", `a tensor cannot be named ${METADATA}`);
    const end = at + tensorBytes(tensor).byteLength;
    members.push(member([name, { dtype: NAMES[rank]?.[0], shape: tensor.shape, data_offsets: [at, end] }]));
    at = end;
  }
  const text = new TextEncoder().encode(`{${members.join(",")}}`);
  const length = Math.ceil(text.byteLength / PREFIX) * PREFIX;
  if (length > MAX_HEADER) throw fxError("LimitExceeded", `a header of ${length} bytes is over the format's limit`);
  const res = new Uint8Array(PREFIX + length + at).fill(0x20, PREFIX + text.byteLength, PREFIX + length);
  new DataView(res.buffer).setBigUint64(0, BigInt(length), true);
  res.set(text, PREFIX);
  at = PREFIX + length;
  for (const { tensor } of sorted) {
    const bytes = tensorBytes(tensor);
    res.set(bytes, at);
    at += bytes.byteLength;
  }
  return res;
}

function headerOf(bytes: Uint8Array): Uint8Array {
  if (bytes.byteLength < PREFIX) throw malformed(`${bytes.byteLength} bytes are too few for a safetensors file`);
  const length = new DataView(bytes.buffer, bytes.byteOffset, PREFIX).getBigUint64(0, true);
  if (length > BigInt(MAX_HEADER)) {
    throw fxError("LimitExceeded", `the header claims ${length} bytes, and the format's limit is ${MAX_HEADER}`, {
      help: "check that this is a safetensors file",
    });
  }
  if (Number(length) > bytes.byteLength - PREFIX) throw malformed("the header ends after the end of the file");
  return bytes.subarray(PREFIX, PREFIX + Number(length));
}

function parseHeader(header: Uint8Array): { entries: Entry[]; metadata: Map<string, string> } {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(header));
  } catch (error) {
    throw malformed("the header is not JSON", error);
  }
  const metadata = new Map<string, string>();
  const entries: Entry[] = [];
  for (const [name, value] of membersOf(json, "the header")) {
    if (name !== METADATA) {
      entries.push(parseEntry(name, value));
      continue;
    }
    for (const [key, text] of membersOf(value, METADATA)) {
      if (typeof text !== "string") throw malformed(`${METADATA} holds something other than a text at \`${key}\``);
      metadata.set(key, text);
    }
  }
  return { entries: entries.toSorted((a, b) => a.begin - b.begin || a.end - b.end), metadata };
}

function parseEntry(name: string, value: unknown): Entry {
  const members = new Map(membersOf(value, `tensor \`${name}\``));
  const shape = sizesOf(members.get("shape"));
  const offsets = sizesOf(members.get("data_offsets"));
  const [begin, end] = offsets ?? [];
  if (members.size !== 3 || shape === undefined || offsets?.length !== 2 || begin === undefined || end === undefined) {
    throw malformed(`tensor \`${name}\` needs a dtype, a shape and two data_offsets, and nothing else`);
  }
  const wanted = members.get("dtype");
  const dtype = NAMES.find(([it]) => it === wanted)?.[1];
  if (dtype === undefined) {
    throw fxError("NotImplemented", `the dtype ${JSON.stringify(wanted)} of tensor \`${name}\` is not implemented`);
  }
  return { name, dtype, shape, begin, end };
}

/** A list of sizes, if it is one. */
function sizesOf(value: unknown): number[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const sizes: unknown[] = value;
  return sizes.every((it): it is number => Number.isSafeInteger(it) && (it as number) >= 0) ? sizes : undefined;
}

function membersOf(value: unknown, what: string): [string, unknown][] {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return Object.entries(value);
  throw malformed(`${what} is not a JSON object`);
}

function entriesOf<T>(items: ReadonlyMap<string, T> | Readonly<Record<string, T>>): [string, T][] {
  return items instanceof Map ? [...(items as ReadonlyMap<string, T>)] : Object.entries(items);
}

function member([name, value]: readonly [string, unknown]): string {
  return `${JSON.stringify(name)}:${JSON.stringify(value)}`;
}

function rankOf(name: string, dtype: DType): number {
  const rank = NAMES.findIndex(([, it]) => it === dtype);
  if (rank >= 0) return rank;
  throw fxError("InputType", `safetensors has no name for ${dtype}, the dtype of \`${name}\``);
}

function malformed(reason: string, cause?: unknown): FxError {
  return fxError("ArchiveMalformed", reason, cause === undefined ? {} : { cause });
}
