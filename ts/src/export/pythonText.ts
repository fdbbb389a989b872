/**
 * Specifications of sizes as Python shows them, for errors that PyTorch words.
 *
 * @module
 */
import { isOptions } from "../base/naming.ts";
import { Tuple, ValueTuple } from "../base/values.ts";

/** What Python's `repr` would show. */
export function pythonText(value: unknown): string {
  if (value === null || value === undefined) return "None";
  if (typeof value === "string") return `'${value}'`;
  if (typeof value === "boolean") return value ? "True" : "False";
  if (value instanceof ValueTuple || value instanceof Tuple) {
    const items = [...(value as Iterable<unknown>)].map(pythonText);
    return items.length === 1 ? `(${items[0]},)` : `(${items.join(", ")})`;
  }
  if (Array.isArray(value)) return `[${value.map(pythonText).join(", ")}]`;
  const entries = value instanceof Map ? [...value] : isOptions(value) ? Object.entries(value) : undefined;
  if (entries === undefined) return String(value);
  const key = (it: unknown): string => (/^\d+$/.test(String(it)) ? String(it) : pythonText(it));
  return `{${entries.map(([name, it]) => `${key(name)}: ${pythonText(it)}`).join(", ")}}`;
}
