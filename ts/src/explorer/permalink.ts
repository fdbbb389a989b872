/**
 * What is open, selected and seen, as the text behind the `#` of an address.
 *
 * @module
 */
import type { GraphModel } from "./model.ts";

/** The first or the second of two programs. */
export type Side = "first" | "second";

/** How long the part of a link is that says what is open: browsers and chats cut longer ones. What is innermost is left out then. */
const MOST_LETTERS = 4000;

/** What a link keeps of how a program is seen. */
export interface ViewState {
  readonly open: ReadonlySet<number>;
  /** The item that is selected; -1 for none. */
  readonly selected: number;
  readonly weights: boolean;
  readonly query: string;
  /** Which of two programs that are compared is seen; undefined where there is one. */
  readonly side?: Side | undefined;
  /** The middle of the view, and its scale. */
  readonly camera: readonly [x: number, y: number, scale: number] | undefined;
}

/** The text of a state. Items are told by number: the file is the same, and the text stays short. */
export function linkOf({ open, selected, weights, query, side, camera }: ViewState): string {
  const fields = new URLSearchParams();
  fields.set("open", ranges([...open].toSorted((a, b) => a - b)));
  if (side !== undefined) fields.set("side", side);
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
  // Items rise, as they do in a link that was written here, so that a forged one takes no longer to read.
  let next = 0;
  for (const part of opened.slice(0, MOST_LETTERS).split(".")) {
    const [first = Number.NaN, last = first] = part.split("-").map((it) => Number.parseInt(it, 36));
    if (!(first >= 0 && first < nItems)) continue;
    for (next = Math.max(next, first); next <= Math.min(last, nItems - 1); next++) open.add(next);
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
    side: sideOfLink(text),
    camera: isCamera ? [x, y, scale] : undefined,
  };
}

/** Which of two programs a text is about; undefined where it says nothing of this. */
export function sideOfLink(text: string): Side | undefined {
  const side = new URLSearchParams(text.replace(/^#/, "")).get("side");
  return side === "first" || side === "second" ? side : undefined;
}

/** Sorted numbers in base 36, runs of them as their ends: `1-4.9`. */
function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  let length = 0;
  for (let at = 0; at < numbers.length; at++) {
    const first = numbers[at] as number;
    let last = first;
    while (numbers[at + 1] === last + 1) last = numbers[++at] as number;
    const part = last === first ? first.toString(36) : `${first.toString(36)}-${last.toString(36)}`;
    length += part.length + 1;
    if (length > MOST_LETTERS) break;
    parts.push(part);
  }
  return parts.join(".");
}
