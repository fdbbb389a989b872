/**
 * Layers of one graph: which row each node stands in, where long edges pass, and the order in each row.
 *
 * This is Sugiyama's method with steps that are linear, or nearly so, in nodes and edges: rows by longest paths, points for
 * long edges which all users of a value share, and sweeps of barycentres. Libraries for layered layouts take from eight
 * seconds on for 1,500 nodes, or end with a stack that overflowed; docs/explorer.md has the measurements.
 *
 * @module
 */

/** A graph of one level, its nodes in the order of the program. */
export interface Level {
  readonly nNodes: number;
  /** The node that each edge leaves. */
  readonly from: readonly number[];
  /** The node that it enters. */
  readonly to: readonly number[];
  /** Which value each edge carries: edges of one value share the points that they pass. */
  readonly values: readonly number[];
  /** Nodes that stand above all others. */
  readonly first: ReadonlySet<number>;
  /** Nodes that stand below all others. */
  readonly last: ReadonlySet<number>;
}

/** The rows of a level. Points of long edges are numbered after the nodes. */
export interface Layers {
  /** Nodes and points of each row, from left to right. */
  readonly rows: number[][];
  /** The links between neighbouring rows, upper end and lower end. */
  readonly links: Links;
  /** The points that each edge passes: from its source on, or from the last point of the edge that it branches off. */
  readonly routes: readonly (readonly number[])[];
  /** The edge of the same value that each edge branches off; -1 for one that begins at its source. */
  readonly branches: readonly number[];
}

/** Neighbours in the rows above and below. */
export interface Links {
  readonly above: number[][];
  readonly below: number[][];
}

/** How many points a level may have for each of its nodes and edges; the longest edges are drawn straight beyond that. */
const POINTS_EACH = 4;
const POINTS_ALWAYS = 20_000;
const SWEEPS = 6;
/** How many links the sweeps of a level pass at most, and so how long a level takes: of a larger one there are fewer sweeps. */
const MOST_SWEPT = 3_000_000;

/** Puts the nodes of a level into rows, and each row into an order with few crossings. */
export function layer(level: Level): Layers {
  const rowOf = rowsOf(level);
  const { links, routes, branches } = linked(level, rowOf);
  return { rows: ordered(rowOf, links), links, routes, branches };
}

/** The row of each node: below all that it uses. An edge that closes a cycle may lead up. */
function rowsOf(level: Level): number[] {
  const { nNodes, from, to, first, last } = level;
  const outgoing = edgesBy(nNodes, from);
  const open = new Int32Array(nNodes);
  for (const [edge, end] of to.entries()) if (from[edge] !== end) open[end] = (open[end] as number) + 1;
  const top = first.size > 0 ? 1 : 0;
  const rowOf = Array.from({ length: nNodes }, (_, node): number => (first.has(node) ? 0 : top));
  const done = new Uint8Array(nNodes);
  const order: number[] = [];
  const ready: number[] = [];
  for (let node = nNodes - 1; node >= 0; node--) if (open[node] === 0) ready.push(node);
  let next = 0;
  while (order.length < nNodes) {
    let node = ready.pop();
    if (node === undefined) {
      // All that is left stands on a cycle, which is cut before the first of it in the program.
      while (done[next] === 1) next++;
      node = next;
    }
    if (done[node] === 1) continue;
    done[node] = 1;
    order.push(node);
    for (const edge of outgoing[node] as number[]) {
      const end = to[edge] as number;
      if (done[end] === 1) continue;
      rowOf[end] = Math.max(rowOf[end] as number, (rowOf[node] as number) + 1);
      open[end] = (open[end] as number) - 1;
      if (open[end] === 0) ready.push(end);
    }
  }
  // A node that uses nothing stands just above what uses it: weights and constants would all be in the first row.
  const used = new Set(to);
  for (const node of order.toReversed()) {
    const edges = outgoing[node] as number[];
    if (used.has(node) || edges.length === 0) continue;
    // A value may have more users than a call takes arguments.
    const nearest = edges.reduce((row, edge) => Math.min(row, rowOf[to[edge] as number] as number), Infinity);
    rowOf[node] = Math.max(rowOf[node] as number, nearest - 1);
  }
  let most = 0;
  for (let node = 0; node < nNodes; node++) {
    if (first.has(node)) rowOf[node] = 0;
    if (!last.has(node)) most = Math.max(most, rowOf[node] as number);
  }
  for (const node of last) rowOf[node] = most + 1;
  return rowOf;
}

function edgesBy(n: number, ends: readonly number[]): number[][] {
  const res = Array.from({ length: n }, (): number[] => []);
  for (const [edge, end] of ends.entries()) (res[end] as number[]).push(edge);
  return res;
}

/** Links of neighbouring rows, with points where an edge passes rows; the points of a value are a chain that its users share. */
function linked(level: Level, rowOf: number[]): Pick<Layers, "links" | "routes" | "branches"> {
  const { nNodes, from, to, values } = level;
  const above = Array.from({ length: nNodes }, (): number[] => []);
  const below = Array.from({ length: nNodes }, (): number[] => []);
  const link = (upper: number, lower: number): void => {
    (below[upper] as number[]).push(lower);
    (above[lower] as number[]).push(upper);
  };
  const span = (edge: number): number =>
    (rowOf[to[edge] as number] as number) - (rowOf[from[edge] as number] as number);
  // Short edges first, so that the budget is spent on as many as it reaches for.
  const edges = Array.from(from.keys()).toSorted((a, b) => span(a) - span(b) || a - b);
  const chains = new Map<string, { readonly points: number[]; longest: number }>();
  const routes: (readonly number[])[] = from.map(() => []);
  const branches = from.map(() => -1);
  let budget = POINTS_ALWAYS + POINTS_EACH * (nNodes + from.length);
  for (const edge of edges) {
    const [source, end, nPoints] = [from[edge] as number, to[edge] as number, span(edge) - 1];
    if (nPoints < 0) continue;
    if (nPoints === 0) {
      link(source, end);
      continue;
    }
    const key = `${source} ${values[edge]}`;
    const chain = chains.get(key) ?? { points: [], longest: -1 };
    const { points, longest } = chain;
    const known = points.length;
    if (nPoints - known > budget) continue;
    budget -= nPoints - known;
    chains.set(key, chain);
    while (points.length < nPoints) {
      const point = rowOf.length;
      rowOf.push((rowOf[source] as number) + points.length + 1);
      above.push([]);
      below.push([]);
      link(points.at(-1) ?? source, point);
      points.push(point);
    }
    link(points[nPoints - 1] as number, end);
    routes[edge] = points.slice(Math.max(0, known - 1));
    branches[edge] = longest;
    chain.longest = edge;
  }
  return { links: { above, below }, routes, branches };
}

/** The rows, with the order of the sweep that has the fewest crossings. */
function ordered(rowOf: readonly number[], links: Links): number[][] {
  const nRows = rowOf.reduce((most, row) => Math.max(most, row + 1), 0);
  const rows = Array.from({ length: nRows }, (): number[] => []);
  const places = new Float64Array(rowOf.length);
  // In the order of a walk from above, in which what belongs together stands together.
  for (const node of walk(rowOf, links)) {
    const row = rows[rowOf[node] as number] as number[];
    places[node] = row.length;
    row.push(node);
  }
  let best = rows.map((row) => [...row]);
  let fewest = crossings(rows, links, places);
  const nLinks = links.below.reduce((n, it) => n + it.length, 0);
  const nSweeps = Math.min(SWEEPS, Math.floor(MOST_SWEPT / (nLinks + 1)));
  for (let sweep = 0; sweep < nSweeps && fewest > 0; sweep++) {
    const isDown = sweep % 2 === 0;
    const neighbours = isDown ? links.above : links.below;
    for (let at = 1; at < nRows; at++) sortRow(rows[isDown ? at : nRows - 1 - at] as number[], neighbours, places);
    const found = crossings(rows, links, places);
    if (found >= fewest) continue;
    fewest = found;
    best = rows.map((row) => [...row]);
  }
  return best;
}

/** All nodes and points by depth-first search downwards, from those that nothing leads to. */
function walk(rowOf: readonly number[], { above, below }: Links): number[] {
  const seen = new Uint8Array(rowOf.length);
  const order: number[] = [];
  const visit = (root: number): void => {
    const stack = [root];
    for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
      if (seen[node] === 1) continue;
      seen[node] = 1;
      order.push(node);
      const next = below[node] as number[];
      for (let at = next.length - 1; at >= 0; at--) stack.push(next[at] as number);
    }
  };
  for (const node of rowOf.keys()) if ((above[node] as number[]).length === 0) visit(node);
  return order;
}

/** Sorts a row by the mean place of its neighbours; what has none stays where it is. */
function sortRow(row: number[], neighbours: readonly number[][], places: Float64Array): void {
  if (row.length < 2) return;
  const keys = new Map<number, number>();
  for (const node of row) {
    const them = neighbours[node] as number[];
    let sum = 0;
    for (const it of them) sum += places[it] as number;
    keys.set(node, them.length === 0 ? (places[node] as number) : sum / them.length);
  }
  row.sort(
    (a, b) => (keys.get(a) as number) - (keys.get(b) as number) || (places[a] as number) - (places[b] as number),
  );
  for (const [place, node] of row.entries()) places[node] = place;
}

/** How many links cross, by a tree of sums for each pair of rows. */
function crossings(rows: readonly number[][], { below }: Links, places: Float64Array): number {
  let count = 0;
  for (const [at, row] of rows.entries()) {
    const size = rows[at + 1]?.length ?? 0;
    if (row.length < 2 || size < 2) continue;
    const sums = new Float64Array(size + 1);
    let total = 0;
    for (const node of row) {
      const ends = (below[node] as number[]).map((it) => places[it] as number);
      for (const end of ends) {
        let before = 0;
        for (let it = end + 1; it > 0; it -= it & -it) before += sums[it] as number;
        count += total - before;
      }
      for (const end of ends) for (let it = end + 1; it <= size; it += it & -it) sums[it] = (sums[it] as number) + 1;
      total += ends.length;
    }
  }
  return count;
}
