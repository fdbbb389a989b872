/**
 * `STRS`, and `SYMS` whose texts are expressions: every text once, in the order of first use.
 *
 * @module
 */
import type { SectionName } from "../../../bindings/wire.ts";
import { fxError } from "../base/errors.ts";
import type { Namespace } from "../graph/namespace.ts";
import type { Cursor } from "./cursor.ts";
import { WordWriter } from "./writer.ts";

const ENCODER = new TextEncoder();

const MAX_SEARCHES = 10;

/** The strings of a file that is being written. */
export class StringWriter {
  /** Where each text is, but for names of nodes that only a search could tell from the others. */
  readonly #indices = new Map<string, number>();
  readonly #texts: string[] = [];
  /** How many texts are all in the map. */
  #mapped = 0;
  #searches = 0;
  /** The namespace of the names that may not be there. */
  #names: Namespace | undefined;

  /** The number of strings. */
  get size(): number {
    return this.#texts.length;
  }

  /** The index of a string. */
  index(text: string): number {
    const known = this.#indices.get(text) ?? (this.#names?.isUsed(text) === true ? this.#search(text) : undefined);
    if (known !== undefined) return known;
    const index = this.#push(text);
    this.#indices.set(text, index);
    return index;
  }

  /** Writes the index of the name of a node. No other node of these names has it, so it takes no place in the map. */
  writeName(words: WordWriter, name: string, names: Namespace): void {
    if (this.#names !== names) {
      this.#mapAll();
      this.#names = names;
    }
    words.word(this.#indices.get(name) ?? this.#push(name));
  }

  /** Writes the index of a string. */
  write(words: WordWriter, text: string): void {
    words.count(this.index(text));
  }

  /** Writes one more than the index of a string, or zero where there is none. */
  writeOptional(words: WordWriter, text: string | undefined): void {
    words.count(text === undefined ? 0 : this.index(text) + 1);
  }

  #push(text: string): number {
    if (!isWellFormed(text)) {
      throw fxError("GraphArgument", `the string ${JSON.stringify(text)} has half of a character`, {
        help: "text.toWellFormed() replaces what is no character",
      });
    }
    return this.#texts.push(text) - 1;
  }

  /** The index of what may be a name: a few are looked for one by one, and for more the names are put into the map. */
  #search(text: string): number | undefined {
    if (this.#searches++ > MAX_SEARCHES) this.#mapAll();
    const found = this.#indices.get(text) ?? this.#texts.indexOf(text, this.#mapped);
    if (found < 0) return undefined;
    this.#indices.set(text, found);
    return found;
  }

  #mapAll(): void {
    for (; this.#mapped < this.#texts.length; this.#mapped++) {
      this.#indices.set(this.#texts[this.#mapped] as string, this.#mapped);
    }
  }

  /** The section. */
  finish(): Uint8Array {
    const words = new WordWriter();
    words.count(this.#texts.length);
    const all = this.#texts.join("");
    const bytes = ENCODER.encode(all);
    // Where every character is one byte, which is nearly always, the lengths of the texts are those of their bytes.
    const lengthOf = bytes.length === all.length ? lengthIn : byteLengthOf;
    let end = 0;
    for (const text of this.#texts) words.count((end += lengthOf(text)));
    words.padded(bytes);
    return words.finish();
  }
}

const lengthIn = (text: string): number => text.length;

const byteLengthOf = (text: string): number => ENCODER.encode(text).length;

/** Whether the text has no half of a character. Older hosts have no function for it. */
const isWellFormed: (text: string) => boolean =
  "isWellFormed" in String.prototype
    ? (text) => (text as unknown as { isWellFormed(): boolean }).isWellFormed()
    : (text) => !/\p{Surrogate}/u.test(text);

/** The strings of a file that is being read. */
export class Strings {
  readonly #items: string[] = [];
  /** How many were used. The first use of each must come in order, so that a file has one spelling. */
  #used = 0;

  constructor(cursor?: Cursor) {
    if (cursor === undefined) return;
    const count = cursor.count(1, "strings");
    const ends: number[] = [];
    let last = 0;
    for (let at = 0; at < count; at++) {
      const end = cursor.word();
      if (end < last) throw cursor.fail(`a string ends at ${end}, and the one before at ${last}`);
      ends.push((last = end));
    }
    const bytes = cursor.bytes(last);
    const padding = cursor.bytes((4 - (last % 4)) % 4);
    if (padding.some((it) => it !== 0)) throw cursor.fail("the bytes after the last string are not zero");
    cursor.finish();
    const seen = new Set<string>();
    let start = 0;
    const text = textReader(cursor, bytes);
    for (const end of ends) {
      const it = text(start, end, seen.size);
      if (seen.has(it)) throw cursor.fail(`string ${seen.size} is there twice`);
      seen.add(it);
      this.#items.push(it);
      start = end;
    }
  }

  /** The number of strings. */
  get size(): number {
    return this.#items.length;
  }

  /** Lets the strings be used in any order, by what reads a part of a file alone. */
  inAnyOrder(): this {
    this.#used = this.size;
    return this;
  }

  /** The string of an index that the cursor just read. */
  get(cursor: Cursor, index: number): string {
    if (index > this.#used) throw cursor.fail(`string ${index} is used before string ${this.#used}`);
    const text = this.#items[index];
    if (text === undefined) throw cursor.fail(`there is no string ${index}`);
    this.#used = Math.max(this.#used, index + 1);
    return text;
  }

  /** The string whose index is the next word. */
  next(cursor: Cursor): string {
    return this.get(cursor, cursor.word());
  }

  /** The string whose index is one less than the next word, or none where that is zero. */
  nextOptional(cursor: Cursor): string | undefined {
    const word = cursor.word();
    return word === 0 ? undefined : this.get(cursor, word - 1);
  }

  /** Refuses strings that nothing uses. */
  finish(tag: SectionName): void {
    if (this.#used < this.size) throw fxError("WireMalformed", `${tag}: nothing uses string ${this.#used}`);
  }
}

/** Gives the text of some of these bytes. Where all of them are ASCII they are decoded at once, which is much faster. */
function textReader(cursor: Cursor, bytes: Uint8Array): (start: number, end: number, index: number) => string {
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  if (bytes.every((it) => it < 0x80)) {
    const all = decoder.decode(bytes.slice());
    return (start, end) => all.slice(start, end);
  }
  return (start, end, index) => {
    try {
      return decoder.decode(bytes.slice(start, end));
    } catch {
      throw cursor.fail(`string ${index} is not UTF-8`);
    }
  };
}
