/**
 * `.npz` files: several arrays of NumPy in an archive.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import { type FxError, fxError } from "../base/errors.ts";
import { checkGiven, checkOptions } from "../base/given.ts";
import { readNpy } from "../tensor/npy.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { crc32 } from "../wire/crc32.ts";
import { zipMembers } from "./zip.ts";

const SUFFIX = ".npy";
/** The method of an entry that is compressed as `numpy.savez_compressed` does it. */
const DEFLATED = 8;

/** Bytes of all arrays that were compressed, after unpacking, unless `limits` has another `inflated_bytes`. */
const INFLATED_BYTES = 2 ** 30;

/** How to read a `.npz` file. */
export interface NpzOptions {
  /** Bounds on what an untrusted file may ask for: `inflated_bytes` of all compressed arrays together, 1 GiB by default. */
  readonly limits?: { readonly inflated_bytes?: number };
}

/**
 * Reads the arrays of a `.npz` file by name, as `numpy.savez` and `numpy.savez_compressed` write them; arrays without a name are
 * `arr_0`, `arr_1` and so on.
 *
 * @example
 * ```ts
 * const arrays = await readNpz(await readFile("inputs.npz"));
 * arrays.get("x")?.shape;
 * ```
 *
 * @throws `ArchiveError` where this is no such file, or its arrays are larger than the limit; nothing is unpacked then.
 */
export async function readNpz(
  file: ArrayBuffer | ArrayBufferView,
  options: NpzOptions = {},
): Promise<Map<string, Tensor>> {
  checkOptions("readNpz", options, ["limits"]);
  const { limits = {} } = options;
  checkOptions("the limits of readNpz", limits, ["inflated_bytes"]);
  const { inflated_bytes: limit = INFLATED_BYTES } = limits;
  checkGiven("readNpz", Number.isSafeInteger(limit) && limit >= 0, "a number of bytes as the limit inflated_bytes");
  const isBytes = ArrayBuffer.isView(file) || file instanceof ArrayBuffer;
  checkGiven("readNpz", isBytes, "the bytes of a file");
  const bytes = ArrayBuffer.isView(file)
    ? new Uint8Array(file.buffer as ArrayBuffer, file.byteOffset, file.byteLength)
    : new Uint8Array(file);
  const res = new Map<string, Tensor>();
  const members = zipMembers(bytes).filter((it) => it.name.endsWith(SUFFIX));
  const asked = members.reduce((n, { method, size }) => n + (method === DEFLATED ? size : 0), 0);
  if (asked > limit) {
    throw fxError("LimitExceeded", `the limit \`inflated_bytes\` is ${limit}, but the file asks for ${asked}`, {
      help: "if you trust the file, read it with a larger limit: { limits: { inflated_bytes: … } }",
    });
  }
  let taken = 0;
  for (const { name, method, stored, nStored, size, checksum } of members) {
    // A small file could have the same bytes unpacked tens of thousands of times.
    taken += nStored;
    if (taken > bytes.length) throw malformed("its entries overlap");
    if (method !== 0 && method !== DEFLATED) throw malformed(`\`${name}\` is compressed in an unknown way`);
    const data = method === 0 ? stored() : await inflated(stored(), size, name);
    if (data.length !== size) throw malformed(`\`${name}\` is not as long as the archive says`);
    if (crc32(data) !== checksum) {
      throw fxError("ArchiveChecksum", `the bytes are no .npz file: the checksum of \`${name}\` is wrong`);
    }
    res.set(name.slice(0, -SUFFIX.length), readNpy(data));
  }
  return res;
}

/** What was compressed, or the beginning of it where that is more than the archive says: its length tells. */
async function inflated(stored: Bytes, size: number, name: string): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let n = 0;
  try {
    const reader = new Blob([stored]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      parts.push(read.value);
      n += read.value.length;
      if (n > size) {
        await reader.cancel();
        break;
      }
    }
  } catch (error) {
    throw malformed(`\`${name}\` cannot be unpacked`, error);
  }
  const res = new Uint8Array(n);
  let at = 0;
  for (const it of parts) {
    res.set(it, at);
    at += it.length;
  }
  return res;
}

function malformed(why: string, cause?: unknown): FxError {
  return fxError("ArchiveMalformed", `the bytes are no .npz file: ${why}`, cause === undefined ? {} : { cause });
}
