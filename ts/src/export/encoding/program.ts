/**
 * Exported programs in the byte format.
 *
 * `SIGN` holds what makes a module an exported program: one record with the fields of {@link ProgramParts} in a fixed order.
 *
 * @module
 */
import { CONSTANT, INPUT_KINDS, OUTPUT_KINDS } from "../../../../bindings/wire.ts";
import { fxError } from "../../base/errors.ts";
import type { Constant, ModuleCallEntry, ProgramParts, RangeConstraint, StateEntry } from "../program.ts";
import { GraphSignature, type InputSpec, type OutputSpec } from "../signature.ts";
import { numbered, readBool } from "../../wire/arg.ts";
import type { Encoded } from "../../wire/codec.ts";
import type { Cursor } from "../../wire/cursor.ts";
import { readExample, writeExample } from "./examples.ts";
import { CALL_OPTIONS, type EncodeOptions, type Limits } from "../../wire/options.ts";
import { SectionReader, SectionWriter } from "../../wire/sections.ts";
import type { Strings, StringWriter } from "../../wire/strings.ts";
import { readArgument, readCallSignature, writeArgument, writeCallSignature } from "./structure.ts";
import { hostLayout, type LayoutOf } from "../../tensor/storageLayout.ts";
import type { Tensors, TensorWriter, ViewTensor } from "../../wire/tensors.ts";
import type { WordWriter } from "../../wire/writer.ts";

/** Writes a program, as for a call of the engine unless the options say otherwise. */
export function encodeProgram(
  parts: ProgramParts,
  layoutOf: LayoutOf = hostLayout,
  options: EncodeOptions = CALL_OPTIONS,
): Encoded {
  const writer = new SectionWriter(options, layoutOf);
  writer.module(parts.graphModule);
  writer.section("SIGN", (words) => new SignWriter(words, writer).write(parts));
  return { bytes: writer.finish(), storages: writer.tensors.storages() };
}

/** Reads what {@link encodeProgram}, or the engine, wrote. `viewOf` makes tensors of storages that are not in the file. */
export function decodeProgram(file: Uint8Array, viewOf?: ViewTensor, limits: Limits = {}): ProgramParts {
  const reader = new SectionReader(file, viewOf, limits);
  const graphModule = reader.module();
  const cursor = reader.required("SIGN", "a module is read with decodeModule");
  const parts = { graphModule, ...new SignReader(cursor, reader).read() };
  reader.finish();
  return parts;
}

class SignWriter {
  readonly #words: WordWriter;
  readonly #strings: StringWriter;
  readonly #tensors: TensorWriter;

  constructor(words: WordWriter, { strings, tensors }: SectionWriter) {
    this.#words = words;
    this.#strings = strings;
    this.#tensors = tensors;
  }

  write(parts: ProgramParts): void {
    const words = this.#words;
    for (const it of parts.schemaVersion) words.int(checkInt(it, "schema version"));
    this.#text(parts.torchVersion);
    this.#list(parts.graphSignature.inputSpecs, (it) => this.#inputSpec(it));
    this.#list(parts.graphSignature.outputSpecs, (it) => this.#outputSpec(it));
    this.#map(parts.state, ({ tensor, isParameter, requiresGrad }) => {
      words.count(this.#tensors.push(tensor));
      words.word(Number(isParameter) | (Number(requiresGrad) << 1));
    });
    this.#map(parts.opaqueState, (bytes) => words.blob(bytes));
    this.#map(parts.constants, (it) => {
      if (it.kind === "tensor") return words.tagged(CONSTANT.TENSOR, this.#tensors.push(it.tensor));
      words.tagged(CONSTANT.CUSTOM_OBJ, 0);
      words.blob(it.bytes);
    });
    this.#list([...parts.rangeConstraints], ([name, range]) => this.#range(name, range));
    this.#list(parts.moduleCallGraph, ({ fqn, signature }) => {
      this.#text(fqn);
      words.word(Number(signature !== undefined));
      if (signature !== undefined) writeCallSignature(words, this.#strings, signature);
    });
    this.#list(parts.verifiers, (it) => this.#text(it));
    this.#list(parts.guards, (it) => this.#text(it));
    const examples = parts.exampleInputs;
    words.count(examples === undefined ? 0 : examples.length + 1);
    for (const it of examples ?? []) writeExample(words, this.#strings, this.#tensors, it, 0);
    this.#map(parts.opsetVersion, (version) => words.int(checkInt(version, "version of an operator set")));
    this.#map(parts.namedtupleFields, (fields) => this.#list(fields, (it) => this.#text(it)));
    this.#map(parts.extraFiles, (text) => this.#text(text));
  }

  #text(text: string): void {
    this.#strings.write(this.#words, text);
  }

  #list<T>(items: readonly T[], write: (item: T) => void): void {
    this.#words.count(items.length);
    for (const it of items) write(it);
  }

  #map<T>(entries: ReadonlyMap<string, T>, write: (value: T) => void): void {
    this.#list([...entries], ([key, value]) => {
      this.#text(key);
      write(value);
    });
  }

  #inputSpec({ kind, arg, target, persistent }: InputSpec): void {
    this.#words.count(INPUT_KINDS.indexOf(kind));
    writeArgument(this.#words, this.#strings, arg);
    this.#strings.writeOptional(this.#words, target);
    this.#words.word(persistent === undefined ? 0 : 1 + Number(persistent));
  }

  #outputSpec({ kind, arg, target }: OutputSpec): void {
    this.#words.count(OUTPUT_KINDS.indexOf(kind));
    writeArgument(this.#words, this.#strings, arg);
    this.#strings.writeOptional(this.#words, target);
  }

  #range(name: string, { assumptions, min, max }: RangeConstraint): void {
    const { integer, positive, nonnegative, real } = assumptions;
    const flags = [integer, positive, nonnegative, real, min !== undefined, max !== undefined];
    this.#text(name);
    this.#words.word(flags.reduce((word, flag, bit) => word | (Number(flag) << bit), 0));
    for (const bound of [min, max]) {
      if (bound !== undefined) this.#words.int(typeof bound === "bigint" ? bound : checkInt(bound, "bound of a range"));
    }
  }
}

class SignReader {
  readonly #cursor: Cursor;
  readonly #strings: Strings;
  readonly #tensors: Tensors;

  constructor(cursor: Cursor, { strings, tensors }: SectionReader) {
    this.#cursor = cursor;
    this.#strings = strings;
    this.#tensors = tensors;
  }

  read(): Omit<ProgramParts, "graphModule"> {
    const cursor = this.#cursor;
    const schemaVersion = [this.#safeInt("schema version"), this.#safeInt("schema version")] as const;
    const torchVersion = this.#text();
    const inputSpecs = this.#list(4, "inputs", () => this.#inputSpec());
    const outputSpecs = this.#list(3, "outputs", () => this.#outputSpec());
    const state = this.#map(3, "tensors", () => this.#stateEntry());
    const opaqueState = this.#map(2, "objects", () => cursor.blob());
    const constants = this.#map(2, "constants", () => this.#constant());
    const rangeConstraints = this.#map(2, "ranges", () => this.#range());
    const moduleCallGraph = this.#list(2, "modules", () => this.#callEntry());
    const verifiers = this.#list(1, "dialects", () => this.#text());
    const guards = this.#list(1, "guards", () => this.#text());
    const examples = cursor.word();
    const exampleInputs =
      examples === 0
        ? undefined
        : Array.from({ length: cursor.checkCount(examples - 1, 1, "inputs") }, () =>
            readExample(cursor, this.#strings, this.#tensors, 0),
          );
    const opsetVersion = this.#map(3, "operator sets", () => this.#safeInt("version of an operator set"));
    const namedtupleFields = this.#map(2, "named tuples", () => this.#list(1, "fields", () => this.#text()));
    const extraFiles = this.#map(2, "files", () => this.#text());
    cursor.finish();
    return {
      graphSignature: new GraphSignature(inputSpecs, outputSpecs),
      state,
      opaqueState,
      constants,
      rangeConstraints,
      moduleCallGraph,
      verifiers,
      guards,
      exampleInputs,
      opsetVersion,
      schemaVersion,
      torchVersion,
      namedtupleFields,
      extraFiles,
    };
  }

  #text(): string {
    return this.#strings.next(this.#cursor);
  }

  #safeInt(what: string): number {
    const value = this.#cursor.int();
    if (typeof value === "number") return value;
    throw this.#cursor.fail(`the ${what} ${value} does not fit this machine`);
  }

  #list<T>(words: number, what: string, read: () => T): T[] {
    const length = this.#cursor.count(words, what);
    return Array.from({ length }, read);
  }

  #map<T>(words: number, what: string, read: () => T): Map<string, T> {
    const entries = new Map<string, T>();
    const count = this.#cursor.count(words, what);
    for (let at = 0; at < count; at++) {
      const key = this.#text();
      this.#insert(entries, key, read(), what);
    }
    return entries;
  }

  #insert<T>(entries: Map<string, T>, key: string, value: T, what: string): void {
    if (entries.has(key)) throw this.#cursor.fail(`two of the ${what} have one name`);
    entries.set(key, value);
  }

  #inputSpec(): InputSpec {
    const kind = numbered(this.#cursor, INPUT_KINDS, this.#cursor.word(), "kind of input");
    const arg = readArgument(this.#cursor, this.#strings);
    const target = this.#strings.nextOptional(this.#cursor);
    const flag = this.#cursor.word();
    return { kind, arg, target, persistent: flag === 0 ? undefined : readBool(this.#cursor, flag - 1) };
  }

  #outputSpec(): OutputSpec {
    const kind = numbered(this.#cursor, OUTPUT_KINDS, this.#cursor.word(), "kind of output");
    const arg = readArgument(this.#cursor, this.#strings);
    return { kind, arg, target: this.#strings.nextOptional(this.#cursor) };
  }

  #stateEntry(): StateEntry {
    const tensor = this.#tensors.take(this.#cursor, this.#cursor.word());
    const flags = this.#cursor.word();
    if (flags > 3) throw this.#cursor.fail(`a tensor of the state has the flags ${flags}`);
    return { tensor, isParameter: (flags & 1) !== 0, requiresGrad: (flags & 2) !== 0 };
  }

  #constant(): Constant {
    const word = this.#cursor.word();
    if ((word & 0xff) === CONSTANT.TENSOR) {
      return { kind: "tensor", tensor: this.#tensors.take(this.#cursor, word >>> 8) };
    }
    if (word === CONSTANT.CUSTOM_OBJ) return { kind: "customObj", bytes: this.#cursor.blob() };
    throw this.#cursor.fail(`0x${word.toString(16)} begins no constant`);
  }

  #range(): RangeConstraint {
    const word = this.#cursor.word();
    if (word >= 1 << 6) throw this.#cursor.fail(`a range has the flags ${word}`);
    const has = (bit: number): boolean => (word & (1 << bit)) !== 0;
    const assumptions = { integer: has(0), positive: has(1), nonnegative: has(2), real: has(3) };
    const min = has(4) ? this.#cursor.int() : undefined;
    return { assumptions, min, max: has(5) ? this.#cursor.int() : undefined };
  }

  #callEntry(): ModuleCallEntry {
    const fqn = this.#text();
    const hasSignature = readBool(this.#cursor, this.#cursor.word());
    return { fqn, signature: hasSignature ? readCallSignature(this.#cursor, this.#strings) : undefined };
  }
}

function checkInt(value: number, what: string): number {
  if (Number.isSafeInteger(value)) return value;
  throw fxError("GraphArgument", `the ${what} ${value} is no exact int`);
}
