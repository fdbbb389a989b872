/**
 * Reading one section: every read is checked, and every refusal names the section and the byte.
 *
 * @module
 */
import type { SectionName } from "../../../bindings/wire.ts";
import { fxError, type FxError } from "../base/errors.ts";

/** A position in the words of a section. */
export class Cursor {
  readonly #tag: SectionName;
  /** Where the section begins in the file. */
  readonly #base: number;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #length: number;
  #at = 0;

  constructor(tag: SectionName, base: number, bytes: Uint8Array) {
    this.#tag = tag;
    this.#base = base;
    this.#bytes = bytes;
    this.#length = bytes.length;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** The number of bytes that were not read yet. */
  get rest(): number {
    return this.#length - this.#at;
  }

  /** The next word. */
  word(): number {
    if (this.#at + 4 > this.#length) throw this.#endsEarly();
    const word = this.#view.getUint32(this.#at, true);
    this.#at += 4;
    return word;
  }

  /** The next word, which stays there to be read. */
  peek(): number {
    if (this.rest < 4) throw this.#endsEarly();
    return this.#view.getUint32(this.#at, true);
  }

  /** The next two words, the lower one first, as an int. */
  int(): number | bigint {
    const [low, high] = [this.word(), this.word() | 0];
    const int = high * 2 ** 32 + low;
    return Number.isSafeInteger(int) ? int : (BigInt(high) << 32n) | BigInt(low);
  }

  /** The next two words, the lower one first. */
  bits(): bigint {
    const [low, high] = [this.word(), this.word()];
    return (BigInt(high) << 32n) | BigInt(low);
  }

  /** The next two words as a float; of a NaN it may not have all bits, which {@link bits} then gives. */
  peekFloat(): number {
    if (this.rest < 8) throw this.#endsEarly();
    return this.#view.getFloat64(this.#at, true);
  }

  /** The next two words as a number that is not negative, and exact. */
  size(): number {
    const [low, high] = [this.word(), this.word()];
    const size = high * 2 ** 32 + low;
    if (!Number.isSafeInteger(size)) throw this.fail(`${size} does not fit this machine`);
    return size;
  }

  /** A number of things that take at least `words` words each: refused unless that much is there. */
  count(words: number, what: string): number {
    return this.checkCount(this.word(), words, what);
  }

  /** The same, of a count that was read already. */
  checkCount(count: number, words: number, what: string): number {
    const room = Math.floor(this.rest / (4 * words));
    if (count > room) throw this.fail(`${count} ${what} are announced, and there is room for ${room}`);
    return count;
  }

  /** The next words as a section of their own. */
  split(words: number): Cursor {
    const base = this.#base + this.#at;
    return new Cursor(this.#tag, base, this.bytes(4 * words));
  }

  /** The next bytes, without a copy. */
  bytes(length: number): Uint8Array {
    if (length > this.rest) throw this.#endsEarly();
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  /** A length, a copy of that many bytes, and zeros up to a whole word. */
  blob(): Uint8Array {
    const length = this.word();
    if (Math.ceil(length / 4) * 4 > this.rest) {
      throw this.fail(`${length} bytes are announced, and there are ${this.rest}`);
    }
    const bytes = this.bytes(length).slice();
    if (this.bytes(Math.ceil(length / 4) * 4 - length).some((it) => it !== 0)) {
      throw this.fail("the bytes after the last one are not zero");
    }
    return bytes;
  }

  /** Refuses what is left over. */
  finish(): void {
    if (this.rest > 0) throw this.fail(`${this.rest} bytes are left over`);
  }

  /** A refusal of the word before this position. */
  fail(what: string, help?: string): FxError {
    return this.#error("WireMalformed", what, help);
  }

  /** A refusal because of a limit. */
  exceeds(what: string): FxError {
    return this.#error("LimitExceeded", what);
  }

  #endsEarly(): FxError {
    return this.fail("the section ends early");
  }

  #error(kind: "WireMalformed" | "LimitExceeded", what: string, help?: string): FxError {
    const at = this.#base + Math.max(0, this.#at - 4);
    return fxError(kind, `${this.#tag} at byte ${at}: ${what}`, help === undefined ? {} : { help });
  }
}
