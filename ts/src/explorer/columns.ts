/**
 * Where the nodes of ordered rows stand from left to right.
 *
 * Each row in turn is put as near as it can be to its neighbours, in the sense of least squares, with its order and the gaps
 * kept: pool-adjacent-violators gives that exactly in linear time.
 *
 * @module
 */
import type { Layers } from "./layering.ts";

/** How often all rows are moved, alternately downwards and upwards. */
const SWEEPS = 8;
/** How much more a bend in a long edge weighs than a slanted short one. */
const STRAIGHT = 8;

/** The middles of nodes and points. `widths` has those of the nodes; points have none. */
export function columns({ rows, links }: Layers, nNodes: number, widths: ArrayLike<number>, gap: number): Float64Array {
  const middles = new Float64Array(links.above.length);
  const widthOf = (node: number): number => (node < nNodes ? (widths[node] as number) : 0);
  const spaces = rows.map((row) => {
    let at = 0;
    return row.map((node, index) => {
      if (index > 0) at += (widthOf(row[index - 1] as number) + widthOf(node)) / 2 + gap;
      return at;
    });
  });
  for (const [index, row] of rows.entries()) {
    const offsets = spaces[index] as number[];
    const half = (offsets.at(-1) ?? 0) / 2;
    for (const [at, node] of row.entries()) middles[node] = (offsets[at] as number) - half;
  }
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const isDown = sweep % 2 === 0;
    const neighbours = isDown ? links.above : links.below;
    for (let at = 0; at < rows.length; at++) {
      const index = isDown ? at : rows.length - 1 - at;
      settle(rows[index] as number[], spaces[index] as number[], neighbours, nNodes, middles);
    }
  }
  return middles;
}

/** Moves a row towards the mean of its neighbours, as far as the gaps let it. */
function settle(
  row: readonly number[],
  offsets: readonly number[],
  neighbours: readonly number[][],
  nNodes: number,
  middles: Float64Array,
): void {
  // Without the gaps what is left to keep is the order: places that do not fall.
  const means: number[] = [];
  const weights: number[] = [];
  const sizes: number[] = [];
  for (const [at, node] of row.entries()) {
    let [sum, weight] = [0, 0];
    for (const it of neighbours[node] as number[]) {
      const own = node >= nNodes && it >= nNodes ? STRAIGHT : 1;
      sum += own * (middles[it] as number);
      weight += own;
    }
    // What has no neighbour here stays about where it is, and gives way.
    let mean = (weight === 0 ? (middles[node] as number) : sum / weight) - (offsets[at] as number);
    let total = weight === 0 ? 0.01 : weight;
    let size = 1;
    while (means.length > 0 && (means.at(-1) as number) > mean) {
      const [before, weightBefore] = [means.pop() as number, weights.pop() as number];
      mean = (mean * total + before * weightBefore) / (total + weightBefore);
      total += weightBefore;
      size += sizes.pop() as number;
    }
    means.push(mean);
    weights.push(total);
    sizes.push(size);
  }
  let at = 0;
  for (const [block, size] of sizes.entries()) {
    for (const end = at + size; at < end; at++) {
      middles[row[at] as number] = (means[block] as number) + (offsets[at] as number);
    }
  }
}
