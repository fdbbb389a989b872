/**
 * Places of signatures, and the structure of nested inputs and outputs.
 *
 * @module
 */
import { ARGUMENT, MAX_DEPTH } from "../../../../bindings/wire.ts";
import type { CallSignature, TreeSpec } from "../program.ts";
import type { Argument, ConstantValue } from "../signature.ts";
import { fxError } from "../../base/errors.ts";
import { type Arg, isInt } from "../../graph/args.ts";
import { Float } from "../../base/values.ts";
import { checkDepth, readArg, writeArg } from "../../wire/arg.ts";
import type { Cursor } from "../../wire/cursor.ts";
import type { Strings, StringWriter } from "../../wire/strings.ts";
import type { WordWriter } from "../../wire/writer.ts";

/** Writes a place of a signature. */
export function writeArgument(words: WordWriter, strings: StringWriter, place: Argument): void {
  const name = strings.index(place.name);
  switch (place.type) {
    case "tensor":
      return words.tagged(ARGUMENT.TENSOR, name);
    case "symInt":
      return words.tagged(ARGUMENT.SYM_INT, name);
    case "symFloat":
      return words.tagged(ARGUMENT.SYM_FLOAT, name);
    case "symBool":
      return words.tagged(ARGUMENT.SYM_BOOL, name);
    case "token":
      return words.tagged(ARGUMENT.TOKEN, name);
    case "customObj":
      words.tagged(ARGUMENT.CUSTOM_OBJ, name);
      return strings.write(words, place.classFqn);
    case "constant":
      words.tagged(ARGUMENT.CONSTANT, name);
      return writeArg(words, strings, argOf(place.value), 0, noNode);
  }
}

/** The position of a node where there are none. */
export function noNode(): never {
  throw fxError("GraphArgument", "a node stands where only a value may");
}

function argOf(constant: ConstantValue): Arg {
  switch (constant.type) {
    case "None":
      return null;
    case "float":
      return new Float(constant.value);
    case "int":
      if (typeof constant.value === "bigint" || Number.isSafeInteger(constant.value)) return constant.value;
      throw fxError("GraphArgument", `the constant ${constant.value} is no exact int`, { help: "give it as a bigint" });
    case "bool":
    case "str":
      return constant.value;
  }
}

/** Reads a place of a signature. */
export function readArgument(cursor: Cursor, strings: Strings): Argument {
  const word = cursor.word();
  const name = strings.get(cursor, word >>> 8);
  switch (word & 0xff) {
    case ARGUMENT.TENSOR:
      return { type: "tensor", name };
    case ARGUMENT.SYM_INT:
      return { type: "symInt", name };
    case ARGUMENT.SYM_FLOAT:
      return { type: "symFloat", name };
    case ARGUMENT.SYM_BOOL:
      return { type: "symBool", name };
    case ARGUMENT.CUSTOM_OBJ:
      return { type: "customObj", name, classFqn: strings.next(cursor) };
    case ARGUMENT.TOKEN:
      return { type: "token", name };
    case ARGUMENT.CONSTANT:
      return { type: "constant", name, value: readConstant(cursor, strings) };
    default:
      throw cursor.fail(`there is no place of kind ${word & 0xff}`);
  }
}

function readConstant(cursor: Cursor, strings: Strings): ConstantValue {
  const value = readArg(cursor, strings, [], 0);
  if (value === null) return { type: "None" };
  if (typeof value === "boolean") return { type: "bool", value };
  if (typeof value === "string") return { type: "str", value };
  if (typeof value === "bigint" || (typeof value === "number" && isInt(value))) return { type: "int", value };
  if (typeof value === "number") return { type: "float", value };
  if (value instanceof Float && value.nanBits === undefined) return { type: "float", value: value.value };
  throw cursor.fail("an input or output cannot be fixed to a value of this kind");
}

/** Writes the signature of a module whose calls are kept. */
export function writeCallSignature(words: WordWriter, strings: StringWriter, signature: CallSignature): void {
  for (const places of [signature.inputs, signature.outputs]) {
    words.count(places.length);
    for (const it of places) writeArgument(words, strings, it);
  }
  writeTree(words, strings, signature.inSpec, 0);
  writeTree(words, strings, signature.outSpec, 0);
  const names = signature.forwardArgNames;
  words.count(names === undefined ? 0 : names.length + 1);
  for (const it of names ?? []) strings.write(words, it);
}

/** Reads the signature of a module whose calls are kept. */
export function readCallSignature(cursor: Cursor, strings: Strings): CallSignature {
  const places = (): Argument[] => {
    const count = cursor.count(1, "places");
    return Array.from({ length: count }, () => readArgument(cursor, strings));
  };
  const inputs = places();
  const outputs = places();
  const inSpec = readTree(cursor, strings, 0);
  const outSpec = readTree(cursor, strings, 0);
  const count = cursor.word();
  if (count === 0) return { inputs, outputs, inSpec, outSpec, forwardArgNames: undefined };
  const length = cursor.checkCount(count - 1, 1, "names");
  const forwardArgNames = Array.from({ length }, () => strings.next(cursor));
  return { inputs, outputs, inSpec, outSpec, forwardArgNames };
}

function writeTree(words: WordWriter, strings: StringWriter, spec: TreeSpec, depth: number): void {
  checkDepth(depth);
  strings.writeOptional(words, spec.type);
  strings.writeOptional(words, spec.context);
  words.count(spec.children.length);
  for (const it of spec.children) writeTree(words, strings, it, depth + 1);
}

function readTree(cursor: Cursor, strings: Strings, depth: number): TreeSpec {
  if (depth >= MAX_DEPTH) throw cursor.exceeds(`a structure is nested deeper than ${MAX_DEPTH} levels`);
  const type = strings.nextOptional(cursor);
  const context = strings.nextOptional(cursor);
  const count = cursor.count(3, "children");
  const children: TreeSpec[] = [];
  for (let at = 0; at < count; at++) children.push(readTree(cursor, strings, depth + 1));
  return { type, context, children };
}
