/**
 * Where boxes stand and where their edges run. A box that is open is laid out inside first, and is one box outside; edges
 * enter and leave it by ports at its border.
 *
 * All of it is arrays of numbers, which go to a worker and back without copies.
 *
 * @module
 */
import { columns } from "./columns.ts";
import { layer } from "./layering.ts";

/** What is to be laid out. */
export interface LayoutRequest {
  /** The box around each box; -1 at the top. A box stands after the one around it, and otherwise where the program has it. */
  readonly parents: Int32Array;
  /** The sizes of the boxes that are closed; those of open ones follow from what is inside. */
  readonly widths: Float32Array;
  readonly heights: Float32Array;
  /** Pairs of boxes: from, to. */
  readonly edges: Int32Array;
}

/** Where everything is. */
export interface Layout {
  readonly width: number;
  readonly height: number;
  /** Left, top, width and height of each box. */
  readonly boxes: Float32Array;
  readonly wires: Wires;
}

/**
 * The lines that edges run along. Edges of one value share them: a wire is drawn once, and may branch off another. An edge runs
 * along its wires and all that these branch off.
 */
export interface Wires {
  /** Where the points of each wire begin in `points`, and where the last one's end. */
  readonly starts: Int32Array;
  /** The points, x and y. */
  readonly points: Float32Array;
  /** The wire that each wire branches off; -1 for none. */
  readonly branches: Int32Array;
  /** Where the wires of each edge begin in `ofEdges`, and where the last one's end. */
  readonly edgeStarts: Int32Array;
  readonly ofEdges: Int32Array;
}

/** Space between boxes of a row. */
const GAP = 24;
/** Space between rows. */
const ROW_GAP = 40;
/** Space between an open box and what is in it. */
const PADDING = 18;
/** Space for the title of an open box. */
export const TITLE = 26;

/** The inside of one open box, or of the whole picture. */
interface Inside {
  readonly children: number[];
  /** Nodes of the level by what they are for: a box, or a port of a value. */
  readonly ports: Map<string, number>;
  /** The edges that there are, by their ends and values. */
  readonly edges: Map<string, number>;
  readonly from: number[];
  readonly to: number[];
  readonly values: number[];
  readonly first: Set<number>;
  readonly last: Set<number>;
  nNodes: number;
}

/** Part of an edge: an edge of a level, and the box whose level it is. */
interface Piece {
  readonly level: number;
  readonly edge: number;
}

/** A level that was laid out: middles and tops of its nodes and points, from its upper left corner. */
interface Placed {
  readonly middles: Float64Array;
  readonly tops: Float64Array;
  readonly bottoms: Float64Array;
  readonly routes: readonly (readonly number[])[];
  readonly branches: readonly number[];
}

/** Lays out boxes and edges. */
export function layOut(request: LayoutRequest): Layout {
  const { parents, edges } = request;
  const nBoxes = parents.length;
  const insides = new Map<number, Inside>([[-1, newInside()]]);
  const places = new Int32Array(nBoxes);
  for (const [box, parent] of parents.entries()) {
    let inside = insides.get(parent);
    if (inside === undefined) insides.set(parent, (inside = newInside()));
    places[box] = inside.nNodes++;
    inside.children.push(box);
  }
  const pieces: Piece[][] = [];
  for (let at = 0; at < edges.length; at += 2) {
    pieces.push(cut(edges[at] as number, edges[at + 1] as number, parents, places, insides));
  }
  const boxes = new Float32Array(4 * nBoxes);
  for (let box = 0; box < nBoxes; box++) {
    boxes[4 * box + 2] = request.widths[box] as number;
    boxes[4 * box + 3] = request.heights[box] as number;
  }
  const placed = new Map<number, Placed>();
  // A box stands after the one around it, so that backwards the inner ones come first.
  const levels = [...insides.keys()].toSorted((a, b) => b - a);
  let [width, height] = [0, 0];
  for (const level of levels) {
    const size = place(insides.get(level) as Inside, boxes, level, placed);
    if (level === -1) [width, height] = size;
    else [boxes[4 * level + 2], boxes[4 * level + 3]] = size;
  }
  for (const [box, parent] of parents.entries()) {
    if (parent < 0) continue;
    boxes[4 * box] = (boxes[4 * box] as number) + (boxes[4 * parent] as number);
    boxes[4 * box + 1] = (boxes[4 * box + 1] as number) + (boxes[4 * parent + 1] as number);
  }
  return { width, height, boxes, wires: wired(pieces, boxes, insides, placed) };
}

function newInside(): Inside {
  return {
    children: [],
    ports: new Map(),
    edges: new Map(),
    from: [],
    to: [],
    values: [],
    first: new Set(),
    last: new Set(),
    nNodes: 0,
  };
}

/** Cuts an edge at the borders of the boxes that it leaves and enters; each piece is an edge of one level. */
function cut(
  source: number,
  target: number,
  parents: Int32Array,
  places: Int32Array,
  insides: ReadonlyMap<number, Inside>,
): Piece[] {
  const outer = new Set<number>();
  for (let at = target; at >= 0; at = parents[at] as number) outer.add(at);
  const pieces: Piece[] = [];
  let below = source;
  for (let level = parents[below] as number; level >= 0 && !outer.has(level); level = parents[level] as number) {
    const inside = insides.get(level) as Inside;
    const port = portOf(inside, `out ${source}`, inside.last);
    pieces.push({ level, edge: edgeOf(inside, places[below] as number, port, source) });
    below = level;
  }
  const shared = parents[below] as number;
  const entering: Piece[] = [];
  let above = target;
  for (let level = parents[above] as number; level !== shared; level = parents[level] as number) {
    const inside = insides.get(level) as Inside;
    const port = portOf(inside, `in ${source}`, inside.first);
    entering.push({ level, edge: edgeOf(inside, port, places[above] as number, source) });
    above = level;
  }
  const inside = insides.get(shared) as Inside;
  pieces.push({ level: shared, edge: edgeOf(inside, places[below] as number, places[above] as number, source) });
  return [...pieces, ...entering.toReversed()];
}

function portOf(inside: Inside, key: string, side: Set<number>): number {
  const found = inside.ports.get(key);
  if (found !== undefined) return found;
  const port = inside.nNodes++;
  inside.ports.set(key, port);
  side.add(port);
  return port;
}

function edgeOf(inside: Inside, from: number, to: number, value: number): number {
  const key = `${from} ${to} ${value}`;
  const found = inside.edges.get(key);
  if (found !== undefined) return found;
  inside.edges.set(key, inside.from.length);
  inside.from.push(from);
  inside.to.push(to);
  inside.values.push(value);
  return inside.from.length - 1;
}

/** Lays out one level and gives its size; its boxes get their places in it. */
function place(
  inside: Inside,
  boxes: Float32Array,
  level: number,
  placed: Map<number, Placed>,
): [width: number, height: number] {
  const { children, nNodes } = inside;
  const layers = layer(inside);
  const widths = new Float64Array(nNodes);
  for (const [at, box] of children.entries()) widths[at] = boxes[4 * box + 2] as number;
  const middles = columns(layers, nNodes, widths, GAP);
  const tops = new Float64Array(middles.length);
  const bottoms = new Float64Array(middles.length);
  const isInner = level >= 0;
  const heightOf = (node: number): number =>
    node < children.length ? (boxes[4 * (children[node] as number) + 3] as number) : 0;
  let [left, right] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  let y = isInner ? TITLE : PADDING;
  for (const row of layers.rows) {
    const height = row.reduce((most, node) => Math.max(most, heightOf(node)), 0);
    const isOfPorts = isInner && row.every((node) => inside.first.has(node) || inside.last.has(node));
    for (const node of row) {
      const half = (widths[node] ?? 0) / 2;
      left = Math.min(left, (middles[node] as number) - half);
      right = Math.max(right, (middles[node] as number) + half);
      // A port is at the border of its box, and a point passes the whole row, so that it meets no box of it.
      tops[node] = node < nNodes ? y + (height - heightOf(node)) / 2 : y;
      bottoms[node] = node < nNodes ? (tops[node] as number) + heightOf(node) : y + height;
    }
    y += isOfPorts ? ROW_GAP / 4 : height + ROW_GAP;
  }
  if (left > right) [left, right] = [0, 0];
  const height = y - (layers.rows.length > 0 && inside.last.size === 0 ? ROW_GAP : 0) + PADDING;
  const shift = PADDING - left;
  for (let node = 0; node < middles.length; node++) middles[node] = (middles[node] as number) + shift;
  for (const port of inside.first) tops[port] = bottoms[port] = 0;
  for (const port of inside.last) tops[port] = bottoms[port] = height;
  for (const [at, box] of children.entries()) {
    boxes[4 * box] = (middles[at] as number) - (widths[at] as number) / 2;
    boxes[4 * box + 1] = tops[at] as number;
  }
  placed.set(level, { middles, tops, bottoms, routes: layers.routes, branches: layers.branches });
  return [right - left + 2 * PADDING, height];
}

/** All wires, in terms of the whole picture. */
function wired(
  pieces: readonly (readonly Piece[])[],
  boxes: Float32Array,
  insides: ReadonlyMap<number, Inside>,
  placed: ReadonlyMap<number, Placed>,
): Wires {
  const bases = new Map<number, number>();
  let n = 0;
  for (const [level, { from }] of insides) {
    bases.set(level, n);
    n += from.length;
  }
  const edgeStarts = new Int32Array(pieces.length + 1);
  const ofEdges: number[] = [];
  // What a piece is outside of its level: where an open box stands between two pieces, they meet at the port.
  const begins = new Map<number, readonly [x: number, y: number]>();
  const ends = new Map<number, readonly [x: number, y: number]>();
  for (const [index, them] of pieces.entries()) {
    for (const [at, { level, edge }] of them.entries()) {
      const wire = (bases.get(level) as number) + edge;
      ofEdges.push(wire);
      const before = them[at - 1];
      const after = them[at + 1];
      const { from, to, children } = insides.get(level) as Inside;
      if (before !== undefined && (from[edge] as number) < children.length) {
        begins.set(
          wire,
          pointOf(before, (it) => it.to, boxes, insides, placed),
        );
      }
      if (after !== undefined && (to[edge] as number) < children.length) {
        ends.set(
          wire,
          pointOf(after, (it) => it.from, boxes, insides, placed),
        );
      }
    }
    edgeStarts[index + 1] = ofEdges.length;
  }
  const starts = new Int32Array(n + 1);
  const branches = new Int32Array(n).fill(-1);
  const points: number[] = [];
  for (const [level, { from, to }] of insides) {
    const base = bases.get(level) as number;
    const { middles, tops, bottoms, routes, branches: own } = placed.get(level) as Placed;
    const [x, y] = cornerOf(level, boxes);
    for (let edge = 0; edge < from.length; edge++) {
      const wire = base + edge;
      const [source, end] = [from[edge] as number, to[edge] as number];
      const branch = own[edge] as number;
      if (branch >= 0) branches[wire] = base + branch;
      else points.push(...(begins.get(wire) ?? [x + (middles[source] as number), y + (bottoms[source] as number)]));
      for (const [at, point] of (routes[edge] as readonly number[]).entries()) {
        const middle = x + (middles[point] as number);
        if (at === 0 && branch >= 0) {
          points.push(middle, y + (bottoms[point] as number));
          continue;
        }
        points.push(middle, y + (tops[point] as number));
        if (tops[point] !== bottoms[point]) points.push(middle, y + (bottoms[point] as number));
      }
      points.push(...(ends.get(wire) ?? [x + (middles[end] as number), y + (tops[end] as number)]));
      starts[wire + 1] = points.length / 2;
    }
  }
  return { starts, points: Float32Array.from(points), branches, edgeStarts, ofEdges: Int32Array.from(ofEdges) };
}

/** Where a piece begins or ends, which is at a port. */
function pointOf(
  { level, edge }: Piece,
  endOf: (inside: Inside) => readonly number[],
  boxes: Float32Array,
  insides: ReadonlyMap<number, Inside>,
  placed: ReadonlyMap<number, Placed>,
): readonly [x: number, y: number] {
  const node = endOf(insides.get(level) as Inside)[edge] as number;
  const { middles, tops } = placed.get(level) as Placed;
  const [x, y] = cornerOf(level, boxes);
  return [x + (middles[node] as number), y + (tops[node] as number)];
}

function cornerOf(level: number, boxes: Float32Array): readonly [x: number, y: number] {
  return level < 0 ? [0, 0] : [boxes[4 * level] as number, boxes[4 * level + 1] as number];
}
