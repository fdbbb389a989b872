/**
 * `META`: what passes and the exporter have noted about nodes.
 *
 * Abstract values are written, and what has a text ({@link noteText}); other JavaScript values in `meta` stay with the graph that
 * has them.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import { LAYOUTS, MAX_DEPTH, VAL } from "../../../bindings/wire.ts";
import { FxError } from "../base/errors.ts";
import type { Graph } from "../graph/graph.ts";
import { type Node, notesOf } from "../graph/node.ts";
import { isVal, TensorMeta, type Val, ValSequence } from "../graph/val.ts";
import { LayoutArg } from "../base/values.ts";
import { checkDepth, numbered, readBool, readDevice, readDType, writeDevice } from "./arg.ts";
import type { Cursor } from "./cursor.ts";
import { atNode } from "./graph.ts";
import { noteOf, noteText } from "./notes.ts";
import type { Strings, StringWriter } from "./strings.ts";
import type { Exprs, ExprWriter } from "./symbols.ts";
import type { WordWriter } from "./writer.ts";

/** Writes the notes of those nodes of one graph that are told of: a record for each that has any. */
export function writeMeta(
  words: WordWriter,
  strings: StringWriter,
  exprs: ExprWriter,
  graph: Graph,
  isTold: (node: Node) => boolean,
): void {
  const head = words.words;
  words.word(0);
  let records = 0;
  let at = 0;
  for (const node of graph.nodes) {
    const position = at++;
    const meta = isTold(node) ? notesOf(node) : undefined;
    if (meta === undefined) continue;
    const val = meta.get("val");
    const entries = entriesOf(meta);
    const hasVal = meta.has("val") && isVal(val);
    if (!hasVal && entries.length === 0) continue;
    records++;
    words.count(position);
    words.word(Number(hasVal));
    words.count(entries.length);
    try {
      if (hasVal) writeVal(words, strings, exprs, val, 0);
      for (const [key, text] of entries) {
        strings.write(words, key);
        strings.write(words, text);
      }
    } catch (error) {
      throw error instanceof FxError ? atNode(error, node.name) : error;
    }
  }
  words.patch(head, records);
}

/** Reads the notes of one graph's nodes. */
export function readMeta(cursor: Cursor, strings: Strings, exprs: Exprs, graph: Graph): void {
  const nodes = [...graph.nodes];
  const records = cursor.count(3, "records");
  let next = 0;
  for (let record = 0; record < records; record++) {
    const { at, hasVal, val, notes } = readRecord(cursor, strings, exprs);
    const node = nodes[at];
    if (at < next || node === undefined) {
      throw cursor.fail(`a record of node ${at} stands where one of ${next} to ${nodes.length} may`);
    }
    next = at + 1;
    if (hasVal) node.meta.set("val", val);
    for (const [key, note] of notes) node.meta.set(key, note);
  }
}

/** What is noted of one node. */
interface NodeRecord {
  /** The place of the node in its graph. */
  readonly at: number;
  readonly hasVal: boolean;
  readonly val: Val | undefined;
  readonly notes: ReadonlyMap<string, unknown>;
}

/** Reads the notes of the node that comes next. */
export function readRecord(cursor: Cursor, strings: Strings, exprs: Exprs): NodeRecord {
  const at = cursor.word();
  const hasVal = readBool(cursor, cursor.word());
  const count = cursor.word();
  if (!hasVal && count === 0) throw cursor.fail(`the record of node ${at} is empty`);
  const val = hasVal ? readVal(cursor, strings, exprs, 0) : undefined;
  cursor.checkCount(count, 2, "entries");
  const notes = new Map<string, unknown>();
  for (let entry = 0; entry < count; entry++) {
    const [key, text] = [strings.next(cursor), strings.next(cursor)];
    if (key === "val" || notes.has(key)) throw cursor.fail(`the key \`${key}\` is there twice`);
    notes.set(key, noteOf(key, text));
  }
  return { at, hasVal, val, notes };
}

function entriesOf(meta: ReadonlyMap<string, unknown>): [key: string, text: string][] {
  const res: [string, string][] = [];
  for (const [key, note] of meta) {
    const text = key === "val" ? undefined : noteText(key, note);
    if (text !== undefined) res.push([key, text]);
  }
  return res;
}

function writeVal(words: WordWriter, strings: StringWriter, exprs: ExprWriter, val: Val, depth: number): void {
  checkDepth(depth);
  if (val === null) words.tagged(VAL.NONE, 0);
  else if (val instanceof TensorMeta) writeTensor(words, strings, exprs, val);
  else if (val instanceof ValSequence) {
    words.tagged(val.kind === "tuple" ? VAL.TUPLE : VAL.LIST, val.items.length);
    for (const it of val.items) writeVal(words, strings, exprs, it, depth + 1);
  } else {
    words.tagged(VAL.NUMBER, 0);
    exprs.write(words, val);
  }
}

/** Writes what is known of a tensor. */
export function writeTensor(words: WordWriter, strings: StringWriter, exprs: ExprWriter, meta: TensorMeta): void {
  const layout = LAYOUTS.indexOf(meta.layout.name);
  words.tagged(VAL.TENSOR, DTYPES[meta.dtype].id | (layout << 8) | (Number(meta.requiresGrad) << 16));
  writeDevice(words, strings, meta.device);
  words.count(meta.sizes.length);
  words.count(meta.strides.length);
  for (const it of [...meta.sizes, ...meta.strides, meta.storageOffset]) exprs.writeInt(words, it);
}

/** Reads an abstract value. */
export function readVal(cursor: Cursor, strings: Strings, exprs: Exprs, depth: number): Val {
  if (depth >= MAX_DEPTH) throw cursor.exceeds(`an abstract value is nested deeper than ${MAX_DEPTH} levels`);
  const word = cursor.word();
  const [tag, payload] = [word & 0xff, word >>> 8];
  switch (tag) {
    case VAL.TENSOR:
      return readTensor(cursor, strings, exprs, payload);
    case VAL.LIST:
    case VAL.TUPLE: {
      const count = cursor.checkCount(payload, 1, "items");
      const items: Val[] = [];
      for (let at = 0; at < count; at++) items.push(readVal(cursor, strings, exprs, depth + 1));
      return new ValSequence(tag === VAL.TUPLE ? "tuple" : "list", items);
    }
    case VAL.NONE:
    case VAL.NUMBER:
      if (payload !== 0) throw cursor.fail(`an abstract value of kind ${tag} has the payload ${payload}`);
      return tag === VAL.NONE ? null : exprs.next(cursor);
    default:
      throw cursor.fail(`there is no abstract value of kind ${tag}`);
  }
}

function readTensor(cursor: Cursor, strings: Strings, exprs: Exprs, payload: number): TensorMeta {
  const dtype = readDType(cursor, payload & 0xff);
  const layout = new LayoutArg(numbered(cursor, LAYOUTS, (payload >>> 8) & 0xff, "layout"));
  const requiresGrad = readBool(cursor, payload >>> 16);
  const device = readDevice(cursor, strings);
  const [sizeCount, strideCount] = [cursor.word(), cursor.word()];
  cursor.checkCount(sizeCount, 1, "sizes");
  cursor.checkCount(strideCount, 1, "strides");
  const ints = (length: number) => Array.from({ length }, () => exprs.nextInt(cursor));
  const sizes = ints(sizeCount);
  const strides = ints(strideCount);
  return new TensorMeta({ dtype, sizes, strides, storageOffset: exprs.nextInt(cursor), device, layout, requiresGrad });
}
