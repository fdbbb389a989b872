/**
 * Writing one section.
 *
 * @module
 */
import { MAX_PAYLOAD } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";

const MAX_INT = 2n ** 63n;

/** The words of a section that is being written. */
export class WordWriter {
  #bytes = new Uint8Array(256);
  #view = new DataView(this.#bytes.buffer);
  #length = 0;

  /** The number of words. */
  get words(): number {
    return this.#length / 4;
  }

  word(word: number): void {
    if (this.#length + 4 > this.#bytes.length) this.#grow();
    this.#view.setUint32(this.#length, word, true);
    this.#length += 4;
  }

  /** The number of things that follow. */
  count(count: number): void {
    if (count > 0xffffffff) throw tooLarge(count, 0xffffffff);
    this.word(count);
  }

  /** A word with a tag in its lower 8 bits and a number in the others. */
  tagged(tag: number, payload: number): void {
    this.word(tagged(tag, payload));
  }

  /** A number that is not negative and exact, as two words, the lower one first. */
  size(value: number): void {
    if (!Number.isSafeInteger(value)) throw fxError("LimitExceeded", `sizes are below 2^53, and ${value} is not`);
    this.word(value >>> 0);
    this.word(Math.floor(value / 2 ** 32));
  }

  /** An int of 64 bits as two words, the lower one first. */
  int(value: number | bigint): void {
    if (typeof value === "bigint") {
      if (value < -MAX_INT || value >= MAX_INT) throw fxError("GraphArgument", `the int ${value} does not fit 64 bits`);
      this.bits(BigInt.asUintN(64, value));
    } else {
      // Both conversions are modulo 2^32, which gives two's complement.
      this.word(value >>> 0);
      this.word(Math.floor(value / 2 ** 32) >>> 0);
    }
  }

  /** 64 bits as two words, the lower one first. */
  bits(bits: bigint): void {
    this.word(Number(bits & 0xffffffffn));
    this.word(Number((bits >> 32n) & 0xffffffffn));
  }

  /** A float as the two words of its bits; the bits of a NaN that says more than `NaN` come beside it. */
  float(value: number, nanBits?: bigint): void {
    if (nanBits !== undefined) this.bits(nanBits);
    else if (Number.isNaN(value)) this.bits(0x7ff8000000000000n);
    else {
      if (this.#length + 8 > this.#bytes.length) this.#grow();
      this.#view.setFloat64(this.#length, value, true);
      this.#length += 8;
    }
  }

  /** Overwrites a word that was written before, to announce a length that is known only now. */
  patch(at: number, word: number): void {
    this.#view.setUint32(4 * at, word, true);
  }

  /** A length and that many bytes, with zeros up to a whole word. */
  blob(bytes: Uint8Array): void {
    this.count(bytes.length);
    this.padded(bytes);
  }

  /** Bytes, and zeros up to a whole word. */
  padded(bytes: Uint8Array): void {
    while (this.#length + bytes.length + 4 > this.#bytes.length) this.#grow();
    this.#bytes.set(bytes, this.#length);
    this.#length = Math.ceil((this.#length + bytes.length) / 4) * 4;
  }

  /** What was written. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  #grow(): void {
    const bytes = new Uint8Array(2 * this.#bytes.length);
    bytes.set(this.#bytes);
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer);
  }
}

/** A word with a tag in its lower 8 bits and a number in the others. */
export function tagged(tag: number, payload: number): number {
  if (payload > MAX_PAYLOAD) throw tooLarge(payload, MAX_PAYLOAD);
  return ((payload << 8) | tag) >>> 0;
}

function tooLarge(count: number, limit: number) {
  return fxError("LimitExceeded", `the format counts to ${limit}, and there are ${count}`);
}
