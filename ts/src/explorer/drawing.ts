/**
 * Draws a picture with a pen: a canvas has one, and SVG has another. Only what is in view is drawn, and less of it from far away.
 *
 * @module
 */
import type { Item } from "./model.ts";
import type { Layout } from "./layout.ts";
import { TITLE } from "./layout.ts";
import { labelOf, type Scene } from "./scene.ts";
import { type Difference, heatColor, stripeOf, type Theme } from "./theme.ts";

/** What draws. All lengths are those of the picture. */
export interface Pen {
  /** A box with round corners. */
  box(x: number, y: number, width: number, height: number, look: BoxLook): void;
  /** A bar without a border. */
  bar(x: number, y: number, width: number, height: number, fill: string): void;
  /** A line of text from its left end, or around its middle, which is cut to a width. */
  text(x: number, y: number, text: string, width: number, look: TextLook): void;
  /** A line along points `from` to `to` of pairs of coordinates. */
  wire(points: ArrayLike<number>, from: number, to: number, look: WireLook): void;
}

/** How a box looks. */
export interface BoxLook {
  readonly fill: string;
  readonly border: string;
  readonly line: number;
  readonly radius: number;
}

/** How text looks. */
export interface TextLook {
  readonly fill: string;
  readonly size: number;
  readonly bold: boolean;
}

/** How a line looks. */
export interface WireLook {
  readonly stroke: string;
  readonly line: number;
  /** Whether it bends softly, and ends in an arrow. */
  readonly isFine: boolean;
}

/** A picture whose boxes have their places. */
export interface Picture {
  readonly scene: Scene;
  readonly layout: Layout;
  /** Left, top, right and bottom of each wire. */
  readonly bounds: Float32Array;
}

/** What is special about boxes. */
export interface Marks {
  /** The box that is selected; -1 for none. */
  readonly selected: number;
  /** The items that were searched for. */
  readonly found: ReadonlySet<number>;
  /** The share of the heat of items, from 0 to 1. */
  readonly heat: ReadonlyMap<number, number>;
  readonly differences: ReadonlyMap<number, Difference>;
}

/** Nothing special. */
export const NO_MARKS: Marks = { selected: -1, found: new Set(), heat: new Map(), differences: new Map() };

/** The part of the picture that is seen, and how many pixels a length of 1 has. */
export interface View {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
  readonly scale: number;
}

/** Below these scales text and fine lines are left out. */
const TEXT_FROM = 0.45;
const FINE_FROM = 0.25;
const LABELS_FROM = 0.75;

/** A picture, with what drawing it needs to know. */
export function pictureOf(scene: Scene, layout: Layout): Picture {
  const { starts, points } = layout.wires;
  const n = starts.length - 1;
  const bounds = new Float32Array(4 * n);
  for (let wire = 0; wire < n; wire++) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let at = starts[wire] as number; at < (starts[wire + 1] as number); at++) {
      const [x, y] = [points[2 * at] as number, points[2 * at + 1] as number];
      [left, right] = [Math.min(left, x), Math.max(right, x)];
      [top, bottom] = [Math.min(top, y), Math.max(bottom, y)];
    }
    bounds.set([left, top, right, bottom], 4 * wire);
  }
  return { scene, layout, bounds };
}

/** Draws what is in view: open boxes, wires above them, then the closed boxes. */
export function draw(pen: Pen, picture: Picture, view: View, theme: Theme, marks: Marks = NO_MARKS): void {
  const { scene, layout } = picture;
  const { items, isOpen } = scene;
  const { boxes } = layout;
  const isSeen = (box: number): boolean => {
    const [x, y] = [boxes[4 * box] as number, boxes[4 * box + 1] as number];
    const [width, height] = [boxes[4 * box + 2] as number, boxes[4 * box + 3] as number];
    return x <= view.right && x + width >= view.left && y <= view.bottom && y + height >= view.top;
  };
  for (let box = 0; box < items.length; box++) {
    if (isOpen[box] === true && isSeen(box)) drawOpen(pen, picture, box, view, theme, marks);
  }
  drawWires(pen, picture, view, theme);
  if (marks.selected >= 0) drawWiresOf(pen, picture, marks.selected, view, theme);
  if (view.scale >= LABELS_FROM) drawLabels(pen, picture, isSeen, theme);
  for (let box = 0; box < items.length; box++) {
    if (isOpen[box] !== true && isSeen(box)) drawClosed(pen, picture, box, view, theme, marks);
  }
}

function drawOpen(pen: Pen, { scene, layout }: Picture, box: number, view: View, theme: Theme, marks: Marks): void {
  const { model, items, request } = scene;
  const item = model.items[items[box] as number] as Item;
  const [x, y, width, height] = corners(layout, box);
  let depth = 0;
  for (let at = request.parents[box] as number; at >= 0; at = request.parents[at] as number) depth++;
  const isSelected = box === marks.selected;
  const difference = marks.differences.get(item.index);
  pen.box(x, y, width, height, {
    fill: difference === undefined ? (theme.open[depth % theme.open.length] as string) : theme.differences[difference],
    border: isSelected ? theme.accent : marks.found.has(item.index) ? theme.found : theme.border,
    line: isSelected ? 2.5 : 1,
    radius: 8,
  });
  if (view.scale < FINE_FROM) return;
  const caption = item.caption === "" ? "" : `  ${item.caption}`;
  pen.text(x + 12, y + TITLE - 9, `− ${item.title}${caption}`, width - 20, { fill: theme.muted, size: 12, bold: true });
}

function drawClosed(pen: Pen, { scene, layout }: Picture, box: number, view: View, theme: Theme, marks: Marks): void {
  const { model, items } = scene;
  const item = model.items[items[box] as number] as Item;
  const [x, y, width, height] = corners(layout, box);
  const isSelected = box === marks.selected;
  const isFound = marks.found.has(item.index);
  const fill = fillOf(item, theme, marks);
  if (view.scale < FINE_FROM && !isSelected && !isFound) {
    pen.bar(x, y, width, height, item.node?.op === "call_function" && fill === theme.box ? stripe(item, theme) : fill);
    return;
  }
  pen.box(x, y, width, height, {
    fill,
    border: isSelected ? theme.accent : isFound ? theme.found : theme.border,
    line: isSelected || isFound ? 2.5 : 1,
    radius: 6,
  });
  if (item.node !== undefined && item.node.op !== "placeholder" && item.node.op !== "output") {
    pen.bar(x + 1, y + 6, 4, height - 12, stripe(item, theme));
  }
  if (view.scale < TEXT_FROM) return;
  const holds = model.children(item.index).length > 0;
  const title = holds ? `+ ${item.title}` : item.title;
  const caption = holds && item.kind !== "node" ? `${item.caption} · ${item.nNodes}` : item.caption;
  pen.text(x + 12, y + 18, title, width - 18, { fill: theme.text, size: 12, bold: true });
  if (caption !== "") pen.text(x + 12, y + 33, caption, width - 18, { fill: theme.muted, size: 10.5, bold: false });
}

function stripe(item: Item, theme: Theme): string {
  return stripeOf(theme, item.node?.target ?? item.caption);
}

function fillOf(item: Item, theme: Theme, marks: Marks): string {
  const difference = marks.differences.get(item.index);
  if (difference !== undefined) return theme.differences[difference];
  const share = marks.heat.get(item.index);
  if (share !== undefined) return heatColor(theme, share);
  if (item.isWeight) return theme.weight;
  if (item.node?.op === "placeholder") return theme.input;
  return item.node?.op === "output" ? theme.output : theme.box;
}

function drawWires(pen: Pen, { layout, bounds }: Picture, view: View, theme: Theme): void {
  const { starts, points } = layout.wires;
  const look = {
    stroke: theme.wire,
    line: view.scale < FINE_FROM ? 0.6 / view.scale : 1.2,
    isFine: view.scale >= FINE_FROM,
  };
  const least = 0.7 / view.scale;
  for (let wire = 0; wire + 1 < starts.length; wire++) {
    const at = 4 * wire;
    const [left, top] = [bounds[at] as number, bounds[at + 1] as number];
    const [right, bottom] = [bounds[at + 2] as number, bounds[at + 3] as number];
    if (left > view.right || right < view.left || top > view.bottom || bottom < view.top) continue;
    if (right - left < least && bottom - top < least) continue;
    pen.wire(points, starts[wire] as number, starts[wire + 1] as number, look);
  }
}

/** The wires into a box and out of it, once more in another colour. */
function drawWiresOf(pen: Pen, { scene, layout }: Picture, box: number, view: View, theme: Theme): void {
  const { starts, points, branches, edgeStarts, ofEdges } = layout.wires;
  const look = { stroke: theme.accent, line: Math.max(2, 1 / view.scale), isFine: view.scale >= FINE_FROM };
  const drawn = new Set<number>();
  for (let edge = 0; 2 * edge < scene.edges.length; edge++) {
    if (scene.edges[2 * edge] !== box && scene.edges[2 * edge + 1] !== box) continue;
    for (let at = edgeStarts[edge] as number; at < (edgeStarts[edge + 1] as number); at++) {
      for (let wire = ofEdges[at] as number; wire >= 0 && !drawn.has(wire); wire = branches[wire] as number) {
        drawn.add(wire);
        pen.wire(points, starts[wire] as number, starts[wire + 1] as number, look);
      }
    }
  }
}

/** What boxes give, below them. */
function drawLabels(pen: Pen, { scene, layout }: Picture, isSeen: (box: number) => boolean, theme: Theme): void {
  const look = { fill: theme.muted, size: 10, bold: false };
  for (const box of scene.given.keys()) {
    if (!isSeen(box)) continue;
    const [x, y, width, height] = corners(layout, box);
    pen.text(x + width / 2 + 6, y + height + 14, labelOf(scene, box), 220, look);
  }
}

function corners({ boxes }: Layout, box: number): [x: number, y: number, width: number, height: number] {
  const at = 4 * box;
  return [boxes[at] as number, boxes[at + 1] as number, boxes[at + 2] as number, boxes[at + 3] as number];
}

/** The innermost box at a place of the picture; -1 where there is none. */
export function boxAt({ scene, layout }: Picture, x: number, y: number): number {
  for (let box = scene.items.length - 1; box >= 0; box--) {
    const [left, top, width, height] = corners(layout, box);
    if (x >= left && x <= left + width && y >= top && y <= top + height) return box;
  }
  return -1;
}

/** Whether a place of the picture is on the sign of a box that opens and closes it. */
export function isOnSign({ scene, layout }: Picture, box: number, x: number, y: number): boolean {
  if (scene.model.children(scene.items[box] as number).length === 0) return false;
  const [left, top] = corners(layout, box);
  return x >= left + 8 && x <= left + 22 && y >= top + 5 && y <= top + 24;
}
