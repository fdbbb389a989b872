/**
 * `SIGN`, read: what makes a module an exported program, one record with fields in a fixed order.
 *
 * @module
 */
import { CONSTANT, INPUT_KINDS, OUTPUT_KINDS } from "../../../../bindings/wire.ts";
import type { Constant, ModuleCallEntry, ProgramParts, RangeConstraint, StateEntry } from "../program.ts";
import type { GraphSignature, InputSpec, OutputSpec } from "../signature.ts";
import { numbered, readBool } from "../../wire/arg.ts";
import type { Cursor } from "../../wire/cursor.ts";
import type { Strings } from "../../wire/strings.ts";
import type { Tensors } from "../../wire/tensors.ts";
import { readExample } from "./examples.ts";
import { readArgument, readCallSignature } from "./structure.ts";

/** Where the tensors are that a record refers to. */
export type TensorSource = Pick<Tensors, "take">;

/** The tables that a record refers to. */
export interface Tables {
  readonly strings: Strings;
  readonly tensors: TensorSource;
}

/** What the section says. */
export type Signed = Omit<ProgramParts, "graphModule" | "graphSignature"> &
  Readonly<Pick<GraphSignature, "inputSpecs" | "outputSpecs">>;

/** Reads `SIGN`. */
export class SignReader {
  readonly #cursor: Cursor;
  readonly #strings: Strings;
  readonly #tensors: TensorSource;

  constructor(cursor: Cursor, { strings, tensors }: Tables) {
    this.#cursor = cursor;
    this.#strings = strings;
    this.#tensors = tensors;
  }

  read(): Signed {
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
      inputSpecs,
      outputSpecs,
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
