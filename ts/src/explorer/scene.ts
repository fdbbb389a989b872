/**
 * What stands in the picture: the boxes of a model that are visible with some items open, and the edges between them.
 *
 * @module
 */
import { checkOptions } from "../base/given.ts";
import type { LayoutRequest } from "./layout.ts";
import type { GraphModel, Item } from "./model.ts";

/** What decides which boxes there are. */
export interface SceneOptions {
  /** The items that are open; none, where nothing is said. */
  readonly open?: ReadonlySet<number>;
  /** Whether weights have boxes; they have none, where nothing is said. */
  readonly weights?: boolean;
}

/** The boxes and edges of a picture, without where they are. */
export interface Scene {
  readonly model: GraphModel;
  /** The items that have boxes, in the order of the program; one that is open before what it holds. */
  readonly items: readonly number[];
  /** The box of each item, by its number; of one that is hidden, the box that it is in; -1 where there is none. */
  readonly boxOf: Int32Array;
  /** Whether each box is open. */
  readonly isOpen: readonly boolean[];
  /** Pairs of boxes. */
  readonly edges: Int32Array;
  /** The values that leave each box which has users outside of it. */
  readonly given: ReadonlyMap<number, ReadonlySet<number>>;
  readonly request: LayoutRequest;
}

const NOTHING: ReadonlySet<number> = new Set();
const CHARACTER = 7.4;
const CHARACTER_SMALL = 6;
const LEAST_WIDTH = 64;
const MOST_WIDTH = 260;

/** The boxes and edges that are visible. */
export function sceneOf(model: GraphModel, options: SceneOptions = {}): Scene {
  checkOptions("sceneOf", options, ["open", "weights"]);
  const { open = NOTHING, weights = false } = options;
  const nItems = model.items.length;
  const boxOf = new Int32Array(nItems).fill(-1);
  const items: number[] = [];
  const isOpen: boolean[] = [];
  const parents: number[] = [];
  const widths: number[] = [];
  const heights: number[] = [];
  for (const item of model.items) {
    const { index, parent } = item;
    if (item.isWeight && !weights) continue;
    const outer = parent < 0 ? -1 : (boxOf[parent] as number);
    if (parent >= 0 && (outer < 0 || items[outer] !== parent || isOpen[outer] !== true)) {
      boxOf[index] = outer;
      continue;
    }
    boxOf[index] = items.length;
    items.push(index);
    isOpen.push(open.has(index) && model.children(index).length > 0);
    parents.push(outer);
    const [width, height] = sizeOf(item);
    widths.push(width);
    heights.push(height);
  }
  const known = new Set<number>();
  const edges: number[] = [];
  const given = new Map<number, Set<number>>();
  for (let at = 0; at < model.uses.length; at += 2) {
    const value = model.uses[at] as number;
    const [from, to] = [boxOf[value] as number, boxOf[model.uses[at + 1] as number] as number];
    if (from < 0 || to < 0 || from === to) continue;
    const values = given.get(from);
    if (values === undefined) given.set(from, new Set([value]));
    else values.add(value);
    const key = from * items.length + to;
    if (known.has(key)) continue;
    known.add(key);
    edges.push(from, to);
  }
  const request = {
    parents: Int32Array.from(parents),
    widths: Float32Array.from(widths),
    heights: Float32Array.from(heights),
    edges: Int32Array.from(edges),
  };
  return { model, items, boxOf, isOpen, edges: request.edges, given, request };
}

function sizeOf({ title, caption }: Item): [width: number, height: number] {
  const width = Math.max(title.length * CHARACTER, caption.length * CHARACTER_SMALL) + 28;
  return [Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, Math.ceil(width))), caption === "" ? 28 : 42];
}

/**
 * The items to open at first: from outside, the smallest first, as long as there is room for what they hold. A program of few
 * nodes is all open, and one of very many shows its outermost modules.
 */
export function opening(model: GraphModel, room: number): Set<number> {
  const open = new Set<number>();
  const nShown = (index: number): number =>
    model.children(index).reduce((n, it) => n + ((model.items[it] as Item).isWeight ? 0 : 1), 0);
  let level = model.items.filter((it) => it.parent < 0 && !it.isWeight).map((it) => it.index);
  let left = room - level.length;
  while (level.length > 0) {
    const next: number[] = [];
    const sizes = level.map((it) => [it, nShown(it)] as const).filter(([, n]) => n > 0);
    for (const [index, n] of sizes.toSorted(([, a], [, b]) => a - b)) {
      if (n > left) break;
      left -= n;
      open.add(index);
      for (const child of model.children(index)) next.push(child);
    }
    level = next;
  }
  return open;
}

/** What a box gives to others: the value, or how many there are. */
export function labelOf({ model, given }: Scene, box: number): string {
  const [value, ...more] = given.get(box) ?? [];
  if (more.length > 0) return `${more.length + 1} values`;
  return value === undefined ? "" : model.value(value);
}
