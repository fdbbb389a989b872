/**
 * Example inputs: values as arguments, but that they may be tensors.
 *
 * @module
 */
import { ARG, MAX_DEPTH } from "../../../../bindings/wire.ts";
import type { ExampleInput } from "../program.ts";
import { freezeArg } from "../../graph/args.ts";
import { Complex, DeviceArg, DTypeArg, Float, LayoutArg, MemoryFormatArg } from "../../base/values.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { checkDepth, readArg, writeArg } from "../../wire/arg.ts";
import type { Cursor } from "../../wire/cursor.ts";
import type { Strings, StringWriter } from "../../wire/strings.ts";
import { noNode } from "./structure.ts";
import type { Tensors, TensorWriter } from "../../wire/tensors.ts";
import type { WordWriter } from "../../wire/writer.ts";

/** Writes an example input. */
export function writeExample(
  words: WordWriter,
  strings: StringWriter,
  tensors: TensorWriter,
  value: ExampleInput,
  depth: number,
): void {
  checkDepth(depth);
  if (value instanceof Tensor) words.tagged(ARG.TENSOR, tensors.push(value));
  else if (isList(value)) {
    words.tagged(ARG.LIST, value.length);
    for (const it of value) writeExample(words, strings, tensors, it, depth + 1);
  } else writeArg(words, strings, freezeArg(value), depth, noNode);
}

/** Reads an example input. */
export function readExample(
  cursor: Cursor,
  strings: Strings,
  tensors: Pick<Tensors, "take">,
  depth: number,
): ExampleInput {
  if (depth >= MAX_DEPTH) throw cursor.exceeds(`an example input is nested deeper than ${MAX_DEPTH} levels`);
  const head = cursor.peek();
  switch (head & 0xff) {
    case ARG.TENSOR:
      cursor.word();
      return tensors.take(cursor, head >>> 8);
    case ARG.LIST: {
      cursor.word();
      const count = cursor.checkCount(head >>> 8, 1, "items");
      const items: ExampleInput[] = [];
      for (let at = 0; at < count; at++) items.push(readExample(cursor, strings, tensors, depth + 1));
      return items;
    }
    default: {
      const value = readArg(cursor, strings, [], depth);
      if (value === null || typeof value !== "object") return value;
      if (value instanceof Float || value instanceof Complex || value instanceof DTypeArg) return value;
      if (value instanceof DeviceArg || value instanceof LayoutArg || value instanceof MemoryFormatArg) return value;
      throw cursor.fail("an example input cannot be of this kind");
    }
  }
}

function isList(value: ExampleInput): value is readonly ExampleInput[] {
  return Array.isArray(value);
}
