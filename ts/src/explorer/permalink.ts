/**
 * What is open, selected and seen, as the text behind the `#` of an address.
 *
 * @module
 */
import type { GraphModel } from "./model.ts";

/** What a link keeps of how a program is seen. */
export interface ViewState {
  readonly open: ReadonlySet<number>;
  /** The item that is selected; -1 for none. */
  readonly selected: number;
  readonly weights: boolean;
  readonly query: string;
  /** The middle of the view, and its scale. */
  readonly camera: readonly [x: number, y: number, scale: number] | undefined;
}

/** The text of a state. Items are told by number: the file is the same, and the text stays short. */
export function linkOf({ open, selected, weights, query, camera }: ViewState): string {
  const fields = new URLSearchParams();
  fields.set("open", ranges([...open].toSorted((a, b) => a - b)));
  if (selected >= 0) fields.set("at", String(selected));
  if (weights) fields.set("weights", "1");
  if (query !== "") fields.set("q", query);
  if (camera !== undefined) fields.set("view", camera.map((it) => Number(it.toPrecision(5))).join("_"));
  return fields.toString();
}

/** The state of a text; what it says of items that the model does not have is left out. Undefined where it says nothing of this. */
export function stateOfLink(text: string, model: GraphModel): ViewState | undefined {
  const fields = new URLSearchParams(text.replace(/^#/, ""));
  const opened = fields.get("open");
  if (opened === null) return undefined;
  const nItems = model.items.length;
  const open = new Set<number>();
  for (const part of opened.split(".")) {
    const [first = Number.NaN, last = first] = part.split("-").map((it) => Number.parseInt(it, 36));
    for (let index = Math.max(0, first); index <= Math.min(last, nItems - 1); index++) open.add(index);
  }
  const selected = Number.parseInt(fields.get("at") ?? "", 10);
  const numbers = (fields.get("view") ?? "").split("_").map(Number);
  const [x = 0, y = 0, scale = 0] = numbers;
  const isCamera = numbers.length === 3 && numbers.every(Number.isFinite) && scale > 0;
  return {
    open,
    selected: selected >= 0 && selected < nItems ? selected : -1,
    weights: fields.get("weights") === "1",
    query: fields.get("q") ?? "",
    camera: isCamera ? [x, y, scale] : undefined,
  };
}

/** Sorted numbers in base 36, runs of them as their ends: `1-4.9`. */
function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  for (let at = 0; at < numbers.length; at++) {
    const first = numbers[at] as number;
    let last = first;
    while (numbers[at + 1] === last + 1) last = numbers[++at] as number;
    parts.push(last === first ? first.toString(36) : `${first.toString(36)}-${last.toString(36)}`);
  }
  return parts.join(".");
}
