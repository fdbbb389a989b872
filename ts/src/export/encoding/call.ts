/**
 * What a call of a program needs to know of it, of the bytes that the engine tells it in. Graphs, state and notes are passed over:
 * what runs a program needs none of them in JavaScript.
 *
 * @module
 */
import { fxError } from "../../base/errors.ts";
import { HostStorage } from "../../tensor/storage.ts";
import { Tensor } from "../../tensor/tensor.ts";
import type { Cursor } from "../../wire/cursor.ts";
import { cursorsOf, readOutline } from "../../wire/file.ts";
import { readRecord } from "../../wire/meta.ts";
import { Strings } from "../../wire/strings.ts";
import { Exprs } from "../../wire/symbols.ts";
import { type CallParts, callPartsOf } from "../callParts.ts";
import type { InputSpec } from "../signature.ts";
import { SignReader, type TensorSource } from "./signReader.ts";

/** Reads what calls need to know of an outline that the engine wrote. */
export function decodeCall(outline: Uint8Array): CallParts {
  const sections = readOutline(outline);
  const section = (name: "STRS" | "SYMS" | "META" | "SIGN"): Cursor | undefined =>
    cursorsOf(outline, sections, name).pop();
  const [texts, sign] = [section("STRS"), section("SIGN")];
  if (texts === undefined || sign === undefined) throw fxError("WireMalformed", "the outline is of no program");
  // The first uses of strings and expressions are in sections that are passed over.
  const strings = new Strings(texts).inAnyOrder();
  const exprs = new Exprs(section("SYMS")).inAnyOrder();
  const signed = new SignReader(sign, { strings, tensors: PASSED_OVER }).read();

  return callPartsOf({ ...signed, graphSignature: signed }, valsOf(section("META"), signed.inputSpecs, strings, exprs));
}

/** What is noted of the values of inputs, by name: placeholders come first in the first graph, in the order of the signature. */
function valsOf(
  meta: Cursor | undefined,
  inputs: readonly InputSpec[],
  strings: Strings,
  exprs: Exprs,
): ReadonlyMap<string, unknown> {
  const vals = new Map<string, unknown>();
  if (meta === undefined) return vals;
  for (let left = meta.count(3, "records"); left > 0; left--) {
    const { at, val } = readRecord(meta, strings, exprs);
    const input = inputs[at];
    if (input === undefined) break;
    vals.set(input.arg.name, val);
  }
  return vals;
}

const EMPTY = new Tensor("float32", [0], new HostStorage(new Uint8Array(0)));

/** Stands for tensors, which stay where they are. */
const PASSED_OVER: TensorSource = { take: () => EMPTY };
