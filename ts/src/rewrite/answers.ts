/**
 * What passes of the engine say of arguments: JSON as `engine/src/passes/matching.rs` writes it.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { type Arg, freezeArg, slice, tuple } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";
import { complex, device, dtype, Ellipsis, float, layout, memoryFormat, op } from "../base/values.ts";

/** Finds the nodes that an answer names: by their places before the pass, and after it. */
export interface AnswerNodes {
  readonly before: readonly Node[];
  readonly after?: readonly Node[];
}

/** The argument that an answer tells. */
export function readArg(told: unknown, nodes: AnswerNodes): Arg {
  if (typeof told === "number") return nodeAt(nodes.before, told);
  if (told === null || typeof told !== "object") return told as Arg;
  const each = (items: readonly unknown[]) => items.map((it) => readArg(it, nodes));
  if (Array.isArray(told)) return freezeArg(each(told));
  const [[tag, body]] = Object.entries(told) as [[string, unknown]];
  const text = String(body);
  const items = body as readonly unknown[];
  switch (tag) {
    case "$new":
      return nodeAt(nodes.after ?? [], body as number);
    case "$t":
      return tuple(...each(items));
    case "$d": {
      const entries = items as readonly (readonly [string, unknown])[];
      return freezeArg(new Map(entries.map(([key, it]) => [key, readArg(it, nodes)])));
    }
    case "$s": {
      const [start = null, stop = null, step = null] = each(items);
      return slice(start, stop, step);
    }
    case "$e":
      return Ellipsis;
    case "$i":
      return freezeArg(BigInt(text));
    case "$f":
      return freezeArg(float(readFloat(text)));
    case "$c":
      return complex(readFloat(String(items[0])), readFloat(String(items[1])));
    case "$dtype":
      return dtype(text as Parameters<typeof dtype>[0]);
    case "$dev":
      return device(text);
    case "$layout":
      return layout(text as Parameters<typeof layout>[0]);
    case "$mf":
      return memoryFormat(text as Parameters<typeof memoryFormat>[0]);
    case "$fn":
      return op(text);
    default:
      throw fxError("Internal", `the engine told an argument of an unknown kind: ${tag}`);
  }
}

/** The node at a place of which an answer speaks. */
export function nodeAt(nodes: readonly Node[], place: number): Node {
  const node = nodes[place];
  if (node === undefined) throw fxError("Internal", `the engine named node ${place} of ${nodes.length}`);
  return node;
}

function readFloat(text: string): number {
  if (text === "inf") return Infinity;
  return text === "-inf" ? -Infinity : Number(text);
}
