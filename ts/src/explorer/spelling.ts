/**
 * What boxes say: operators, and what is known of values, in PyTorch's short form.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import type { TensorMetadata } from "../engine/tensorMetadata.ts";
import type { Arg } from "../graph/args.ts";
import { type Node, notesOf } from "../graph/node.ts";
import { repr } from "../graph/print.ts";
import { formatTensorMeta } from "../graph/shapes.ts";
import { isVal, SymExpr, TensorMeta, type Val, ValSequence } from "../graph/val.ts";

/** What a list shows of its items. */
const MOST_ITEMS = 3;

/** What an operator is called in its box: without what all of them share. */
export function spellOperator(target: string): string {
  return target
    .replace(/^(torch\.ops\.(aten|higher_order)\.|torch\.ops\.|torch\.|operator\.)/, "")
    .replace(/\.default$/, "");
}

/** The value of a node: `f32[1, s77]`, or `(f32[2], i64[2])`; empty where nothing is known. */
export function spell(node: Node): string {
  const notes = notesOf(node);
  const val = notes?.get("val") ?? notes?.get("example_value");
  if (isVal(val)) return spellVal(val);
  return spellMetadata(notes?.get("tensor_meta"));
}

function spellVal(val: Val): string {
  if (val instanceof TensorMeta) {
    const { dtype, sizes } = formatTensorMeta(val);
    return `${dtype}${sizes}`;
  }
  if (val instanceof ValSequence) return list(val.items.map(spellVal));
  return val === null ? "" : val instanceof SymExpr ? `${val}` : repr(val as Arg);
}

/** What `ShapeProp` notes. */
function spellMetadata(meta: unknown): string {
  if (Array.isArray(meta)) return list(meta.map(spellMetadata));
  if (typeof meta !== "object" || meta === null || !("dtype" in meta) || !("shape" in meta)) return "";
  const { dtype, shape } = meta as TensorMetadata;
  return `${DTYPES[dtype].short}[${shape.join(", ")}]`;
}

function list(items: readonly string[]): string {
  const more = items.length > MOST_ITEMS ? [`… ${items.length}`] : [];
  return `(${[...items.slice(0, MOST_ITEMS), ...more].join(", ")})`;
}
