/**
 * The header and the section table.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import {
  ALIGNMENT,
  CHECKSUM_AT,
  CRITICAL,
  ENTRY_LENGTH,
  HAS_CHECKSUM,
  HEADER_LENGTH,
  MAGIC,
  MAJOR,
  MINOR,
  type SectionName,
  SECTIONS,
  WIDE,
  WIDE_ALIGNMENT,
} from "../../../bindings/wire.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { crc32 } from "./crc32.ts";
import { Cursor } from "./cursor.ts";

const NAMES = Object.keys(SECTIONS) as SectionName[];

/** The sections of a file that is being written. Each is a list of parts, each of which begins at the alignment. */
export class FileWriter {
  readonly #sections: { readonly name: SectionName; readonly parts: readonly Uint8Array[] }[] = [];

  /** Adds a section; those of one name stay in order. */
  section(name: SectionName, ...parts: readonly Uint8Array[]): void {
    this.#sections.push({ name, parts });
  }

  /** The file. */
  finish(hasChecksum: boolean): Bytes {
    const sections = this.#sections.toSorted((a, b) => NAMES.indexOf(a.name) - NAMES.indexOf(b.name));
    let end = HEADER_LENGTH + ENTRY_LENGTH * sections.length;
    const placed = sections.map(({ name, parts }) => {
      const alignment = alignmentOf(SECTIONS[name].flags);
      const start = alignUp(end, alignment);
      end = start;
      const offsets = parts.map((part) => {
        const offset = alignUp(end, alignment);
        end = offset + part.length;
        return offset;
      });
      return { name, parts, offsets, start, length: end - start };
    });
    const file = new Uint8Array(end);
    const view = new DataView(file.buffer);
    const size = (at: number, value: number): void => view.setBigUint64(at, BigInt(value), true);
    view.setUint32(0, MAGIC, true);
    view.setUint16(4, MAJOR, true);
    view.setUint16(6, MINOR, true);
    view.setUint32(8, sections.length, true);
    view.setUint32(12, hasChecksum ? HAS_CHECKSUM : 0, true);
    size(16, end);
    for (const [index, { name, parts, offsets, start, length }] of placed.entries()) {
      const at = HEADER_LENGTH + ENTRY_LENGTH * index;
      view.setUint32(at, SECTIONS[name].code, true);
      view.setUint32(at + 4, SECTIONS[name].flags, true);
      size(at + 8, start);
      size(at + 16, length);
      for (const [part, bytes] of parts.entries()) file.set(bytes, offsets[part] as number);
    }
    if (hasChecksum) view.setUint32(CHECKSUM_AT, crc32(file), true);
    return file;
  }
}

/** What the section table says of one section. */
export interface Section {
  /** The four letters. */
  readonly name: string;
  readonly flags: number;
  /** Where it begins. */
  readonly offset: number;
  /** Its length in bytes. */
  readonly length: number;
}

/** The header and the section table of a file, checked: what can be said of a file without decoding it. */
export interface Outline {
  /** Major and minor version of the writer. */
  readonly version: readonly [major: number, minor: number];
  readonly hasChecksum: boolean;
  /** The sections in order. Unknown ones are among them, and none of them is critical. */
  readonly sections: readonly Section[];
}

/**
 * Reads and checks the header, the section table, the bytes between the sections and the checksum.
 *
 * @example
 * ```ts
 * readOutline(bytes).sections.map((it) => it.name); // ["STRS", "GRPH"]
 * ```
 */
export function readOutline(file: Uint8Array, maxBytes = Number.MAX_SAFE_INTEGER): Outline {
  if (file.length > maxBytes) {
    throw fxError("LimitExceeded", `the file has ${file.length} bytes, and ${maxBytes} are allowed`);
  }
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  if (file.length < 4 || view.getUint32(0, true) !== MAGIC) {
    throw malformed(
      0,
      "the bytes are not in the tracefx format",
      "give the bytes of an .fxg file: `tracefx compile` writes one of a .pt2 file",
    );
  }
  if (file.length < HEADER_LENGTH) throw malformed(file.length, "the file ends early");
  const word = (at: number): number => view.getUint32(at, true);
  const size = (at: number): number => word(at) + word(at + 4) * 2 ** 32;
  const version = [word(4) & 0xffff, word(4) >>> 16] as const;
  if (version[0] !== MAJOR) {
    const reason = `the file is in version ${version.join(".")} of the format, and this reads ${MAJOR}`;
    throw fxError("WireVersion", reason, { help: "update tracefx, or save the file again" });
  }
  const flags = word(12);
  if ((flags & ~HAS_CHECKSUM) !== 0) throw fxError("WireVersion", `header at byte 12: unknown flags ${flags}`);
  const hasChecksum = (flags & HAS_CHECKSUM) !== 0;
  if (word(28) !== 0 || (!hasChecksum && word(CHECKSUM_AT) !== 0)) {
    throw malformed(CHECKSUM_AT, "unused words are not zero");
  }
  if (size(16) !== file.length) {
    throw malformed(16, `the file says that it has ${size(16)} bytes, and there are ${file.length}`);
  }
  const count = word(8);
  if (count > Math.floor((file.length - HEADER_LENGTH) / ENTRY_LENGTH)) {
    throw malformed(8, `${count} sections do not fit the file`);
  }
  if (hasChecksum && word(CHECKSUM_AT) !== checksumOf(file)) {
    throw malformed(CHECKSUM_AT, "the checksum does not agree with the bytes: the file is damaged");
  }
  return { version, hasChecksum, sections: readTable(file, count, word, size) };
}

function readTable(
  file: Uint8Array,
  count: number,
  word: (at: number) => number,
  size: (at: number) => number,
): Section[] {
  const sections: Section[] = [];
  let end = HEADER_LENGTH + ENTRY_LENGTH * count;
  let last = -1;
  for (let index = 0; index < count; index++) {
    const at = HEADER_LENGTH + ENTRY_LENGTH * index;
    const [code, flags] = [word(at), word(at + 4)];
    const place = checkFlags(at, code, flags);
    const name = place < 0 ? lettersOf(code) : (NAMES[place] as SectionName);
    if (place >= 0) {
      if (last > place || (last === place && name !== "GRPH")) {
        throw malformed(at, `section ${name} is there twice or in a wrong place`);
      }
      last = place;
    }
    // Sections follow each other without holes, so that none overlaps and no bytes are hidden between them.
    const start = alignUp(end, alignmentOf(flags));
    const [offset, length] = [size(at + 8), size(at + 16)];
    if (offset !== start) throw malformed(at + 8, `a section begins at ${offset}, and ${start} was expected`);
    if (start > file.length) throw malformed(at + 8, "a section begins after the file");
    if (file.subarray(end, start).some((it) => it !== 0)) {
      throw malformed(end, "the bytes between two sections are not zero");
    }
    if (length > file.length - start) {
      const room = file.length - start;
      throw malformed(at + 16, `a section has ${length} bytes, and there are ${room} after its beginning`);
    }
    end = start + length;
    sections.push({ name, flags, offset, length });
  }
  if (end !== file.length) throw malformed(end, `${file.length - end} bytes follow the last section`);
  return sections;
}

/** The sections of a name. */
export function cursorsOf(file: Uint8Array, outline: Outline, name: SectionName): Cursor[] {
  const found = outline.sections.filter((it) => it.name === name);
  return found.map((it) => new Cursor(name, it.offset, file.subarray(it.offset, it.offset + it.length)));
}

/** Whether there are sections that this version does not know. */
export function hasUnknown(outline: Outline): boolean {
  return outline.sections.some((it) => !(NAMES as string[]).includes(it.name));
}

/** The place of a section in file order, or -1 for one that is unknown and may be skipped. */
function checkFlags(at: number, code: number, flags: number): number {
  const place = NAMES.findIndex((it) => SECTIONS[it].code === code);
  const name = NAMES[place];
  if (name !== undefined) {
    if (flags !== SECTIONS[name].flags) throw malformed(at + 4, `section ${name} has the flags ${flags}`);
    return place;
  }
  if ((flags & ~WIDE) === 0) return -1;
  const letters = lettersOf(code);
  const reason =
    flags & CRITICAL
      ? `the file needs section ${letters}, which this version does not know`
      : `section ${letters} has unknown flags ${flags}`;
  throw fxError("WireVersion", reason, { help: "update tracefx" });
}

function lettersOf(code: number): string {
  return String.fromCharCode(code & 0xff, (code >>> 8) & 0xff, (code >>> 16) & 0xff, code >>> 24);
}

function alignmentOf(flags: number): number {
  return flags & WIDE ? WIDE_ALIGNMENT : ALIGNMENT;
}

/** The next multiple of an alignment. */
export function alignUp(value: number, alignment: number): number {
  return Math.ceil(value / alignment) * alignment;
}

/** The checksum of a file, in which its own four bytes count as zeros. */
function checksumOf(file: Uint8Array): number {
  const before = crc32(new Uint8Array(4), crc32(file.subarray(0, CHECKSUM_AT)));
  return crc32(file.subarray(CHECKSUM_AT + 4), before);
}

function malformed(at: number, what: string, help?: string): FxError {
  return fxError("WireMalformed", `header at byte ${at}: ${what}`, help === undefined ? {} : { help });
}
