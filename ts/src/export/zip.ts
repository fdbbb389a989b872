/**
 * Archives in the zip format: those of stored entries, which PyTorch writes, and the directory of any.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import { type FxError, fxError } from "../base/errors.ts";
import { crc32 } from "../wire/crc32.ts";

const LOCAL = 0x04034b50;
const CENTRAL = 0x02014b50;
const END = 0x06054b50;

/** Data begins at a multiple of this, so that tensors may be read where they lie. */
const ALIGNMENT = 64;

/** The extra field that fills up to there: `FB`, as in PyTorch's files. */
const PADDING = 0x4246;

/** Sizes and places are numbers of four bytes. */
const LIMIT = 0xffffffff;

/** Entries are counted, and names measured, in two. */
const SHORT_LIMIT = 0xffff;

/** The entries of an archive by name, in their order. Nothing is copied; checksums are compared when an entry is read. */
export function zipEntries(archive: Bytes): Map<string, () => Bytes> {
  const res = new Map<string, () => Bytes>();
  for (const { name, method, stored, nStored, size, checksum } of zipMembers(archive)) {
    if (method !== 0 || nStored !== size) {
      throw fxError("ArchiveCompressed", `\`${name}\` is compressed, which PyTorch never does`);
    }
    res.set(name, () => {
      const data = stored();
      if (crc32(data) !== checksum) throw fxError("ArchiveChecksum", `the checksum of \`${name}\` is wrong`);
      return data;
    });
  }
  return res;
}

/** What the directory of an archive says of an entry. */
export interface ZipMember {
  readonly name: string;
  /** How it is compressed; 0 is not at all. */
  readonly method: number;
  readonly nStored: number;
  /** The bytes as they lie in the archive. */
  readonly stored: () => Bytes;
  /** The length and the checksum of what was stored. */
  readonly size: number;
  readonly checksum: number;
}

/** What the directory of an archive says, in its order. Nothing is copied. */
export function zipMembers(archive: Bytes): ZipMember[] {
  const view = new DataView(archive.buffer, archive.byteOffset, archive.byteLength);
  const end = endOf(view);
  const count = view.getUint16(end + 10, true);
  let at = view.getUint32(end + 16, true);
  const res = new Map<string, ZipMember>();
  for (let index = 0; index < count; index++) {
    if (at + 46 > archive.length || view.getUint32(at, true) !== CENTRAL) throw malformed("its directory is cut short");
    const [method, checksum] = [view.getUint16(at + 10, true), view.getUint32(at + 16, true)];
    const [nStored, size] = [view.getUint32(at + 20, true), view.getUint32(at + 24, true)];
    const [nameLength, extra, comment] = [28, 30, 32].map((it) => view.getUint16(at + it, true)) as [
      number,
      number,
      number,
    ];
    const header = view.getUint32(at + 42, true);
    const name = nameIn(archive.subarray(at + 46, at + 46 + nameLength));
    if (res.has(name)) throw malformed(`\`${name}\` is there twice`);
    const stored = (): Bytes => storedAt(archive, view, { name, header, nStored });
    res.set(name, { name, method, nStored, stored, size, checksum });
    at += 46 + nameLength + extra + comment;
  }
  return [...res.values()];
}

interface Place {
  readonly name: string;
  readonly header: number;
  readonly nStored: number;
}

function storedAt(archive: Bytes, view: DataView, { name, header, nStored }: Place): Bytes {
  if (header + 30 > archive.length || view.getUint32(header, true) !== LOCAL)
    throw malformed(`\`${name}\` is not there`);
  const start = header + 30 + view.getUint16(header + 26, true) + view.getUint16(header + 28, true);
  if (start + nStored > archive.length) throw malformed(`\`${name}\` goes beyond its end`);
  return archive.subarray(start, start + nStored);
}

/** Where the directory is told of: at the end, behind which there may be a comment. */
function endOf(view: DataView): number {
  for (let at = view.byteLength - 22; at >= Math.max(0, view.byteLength - 22 - 0xffff); at--) {
    if (view.getUint32(at, true) === END) return at;
  }
  throw malformed("it has no directory");
}

function nameIn(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw malformed("a name in it is not UTF-8");
  }
}

function malformed(why: string): FxError {
  return fxError("ArchiveMalformed", `the bytes are no zip archive: ${why}`);
}

/** The bytes of an archive with these entries. */
export function zipOf(entries: ReadonlyMap<string, Uint8Array>): Bytes {
  if (entries.size > SHORT_LIMIT) {
    throw fxError("LimitExceeded", `an archive of several programs has ${SHORT_LIMIT} entries at most`);
  }
  const locals: Uint8Array[] = [];
  const centrals: Uint8Array[] = [];
  let at = 0;
  for (const [name, data] of entries) {
    const text = new TextEncoder().encode(name);
    if (text.length > SHORT_LIMIT) throw fxError("LimitExceeded", "the name of an entry is too long");
    const checksum = crc32(data);
    const padding = (ALIGNMENT - ((at + 30 + text.length + 4) % ALIGNMENT)) % ALIGNMENT;
    const local = new Uint8Array(30 + text.length + 4 + padding);
    const head = new DataView(local.buffer);
    head.setUint32(0, LOCAL, true);
    common(head, 4, { checksum, size: data.length, nameLength: text.length, extra: 4 + padding });
    local.set(text, 30);
    head.setUint16(30 + text.length, PADDING, true);
    head.setUint16(32 + text.length, padding, true);
    const central = new Uint8Array(46 + text.length);
    const entry = new DataView(central.buffer);
    entry.setUint32(0, CENTRAL, true);
    common(entry, 6, { checksum, size: data.length, nameLength: text.length, extra: 0 });
    entry.setUint32(42, at, true);
    central.set(text, 46);
    locals.push(local, data);
    centrals.push(central);
    at += local.length + data.length;
    if (at > LIMIT) throw fxError("LimitExceeded", "an archive of several programs has 4 GiB at most");
  }
  const directory = centrals.reduce((sum, it) => sum + it.length, 0);
  const end = new Uint8Array(22);
  const tail = new DataView(end.buffer);
  tail.setUint32(0, END, true);
  tail.setUint16(8, entries.size, true);
  tail.setUint16(10, entries.size, true);
  tail.setUint32(12, directory, true);
  tail.setUint32(16, at, true);
  const res = new Uint8Array(at + directory + end.length);
  let to = 0;
  for (const it of [...locals, ...centrals, end]) {
    res.set(it, to);
    to += it.length;
  }
  return res;
}

/** What a local header and the directory say alike, from the version on. */
function common(
  view: DataView,
  at: number,
  { checksum, size, nameLength, extra }: Record<"checksum" | "size" | "nameLength" | "extra", number>,
): void {
  view.setUint16(at, 20, true);
  // Names are UTF-8.
  view.setUint16(at + 2, 0x0800, true);
  view.setUint16(at + 8, 0x0021, true);
  view.setUint32(at + 10, checksum, true);
  view.setUint32(at + 14, size, true);
  view.setUint32(at + 18, size, true);
  view.setUint16(at + 22, nameLength, true);
  view.setUint16(at + 24, extra, true);
}
