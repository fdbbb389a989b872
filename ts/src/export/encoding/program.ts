/**
 * Exported programs in the byte format.
 *
 * `SIGN` holds what makes a module an exported program: one record with the fields of {@link ProgramParts} in a fixed order.
 *
 * @module
 */
import { CONSTANT, INPUT_KINDS, OUTPUT_KINDS } from "../../../../bindings/wire.ts";
import { fxError } from "../../base/errors.ts";
import type { ProgramParts, RangeConstraint } from "../program.ts";
import { GraphSignature, type InputSpec, type OutputSpec } from "../signature.ts";
import type { Encoded } from "../../wire/codec.ts";
import { writeExample } from "./examples.ts";
import { CALL_OPTIONS, type EncodeOptions, type Limits } from "../../wire/options.ts";
import { SectionReader, SectionWriter } from "../../wire/sections.ts";
import { SignReader } from "./signReader.ts";
import type { StringWriter } from "../../wire/strings.ts";
import { writeArgument, writeCallSignature } from "./structure.ts";
import { hostLayout, type LayoutOf } from "../../tensor/storageLayout.ts";
import type { TensorWriter, ViewTensor } from "../../wire/tensors.ts";
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
  const { inputSpecs, outputSpecs, ...signed } = new SignReader(cursor, reader).read();
  const parts = { graphModule, graphSignature: new GraphSignature(inputSpecs, outputSpecs), ...signed };
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

function checkInt(value: number, what: string): number {
  if (Number.isSafeInteger(value)) return value;
  throw fxError("GraphArgument", `the ${what} ${value} is no exact int`);
}
