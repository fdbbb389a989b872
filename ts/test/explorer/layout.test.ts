/** Layouts: no box on another, edges that lead down, wires that are shared, and graphs that are large, cyclic or wide. */
import { describe, expect, it } from "vitest";
import { layOut, type Layout } from "../../src/explorer/layout.ts";

interface Wanted {
  readonly parents?: readonly number[];
  readonly n?: number;
  readonly edges: readonly (readonly [number, number])[];
}

function laidOut({ parents, n = 0, edges }: Wanted): Layout {
  const them = parents ?? Array.from({ length: n }, () => -1);
  return layOut({
    parents: Int32Array.from(them),
    widths: new Float32Array(them.length).fill(100),
    heights: new Float32Array(them.length).fill(30),
    edges: Int32Array.from(edges.flat()),
  });
}

function boxOf({ boxes }: Layout, box: number): { x: number; y: number; right: number; bottom: number } {
  const [x = 0, y = 0, width = 0, height = 0] = boxes.subarray(4 * box, 4 * box + 4);
  return { x, y, right: x + width, bottom: y + height };
}

/** The points of an edge from its source to its target, along the wires that its own branch off. */
function pathOf({ wires }: Layout, edge: number): [number, number][] {
  const { starts, points, branches, edgeStarts, ofEdges } = wires;
  const path: [number, number][] = [];
  for (const wire of ofEdges.subarray(edgeStarts[edge], edgeStarts[edge + 1])) {
    const own: [number, number][] = [];
    for (let at = wire; at >= 0; at = branches[at] as number) {
      const part: [number, number][] = [];
      for (let point = starts[at] as number; point < (starts[at + 1] as number); point++) {
        part.push([points[2 * point] as number, points[2 * point + 1] as number]);
      }
      own.unshift(...part);
    }
    path.push(...own);
  }
  return path;
}

function overlaps(layout: Layout, a: number, b: number): boolean {
  const [first, second] = [boxOf(layout, a), boxOf(layout, b)];
  return first.x < second.right && second.x < first.right && first.y < second.bottom && second.y < first.bottom;
}

/** A graph of n nodes with a chain, skips and a value that many use. */
function network(n: number): [number, number][] {
  const edges: [number, number][] = [];
  for (let at = 1; at < n; at++) {
    edges.push([at - 1, at]);
    if (at % 5 === 0) edges.push([Math.max(0, at - 4), at]);
    if (at % 37 === 0) edges.push([0, at]);
  }
  return edges;
}

describe("boxes", () => {
  it("of a value with very many users stand below it", () => {
    const n = 130_000;
    const layout = laidOut({ n, edges: Array.from({ length: n - 1 }, (_, at) => [0, at + 1] as const) });
    expect(boxOf(layout, n - 1).y).toBeGreaterThan(boxOf(layout, 0).bottom);
  });

  it("stand below what they use, and none on another", () => {
    const edges: [number, number][] = [
      [0, 2],
      [1, 2],
      [2, 3],
      [2, 4],
      [3, 5],
      [4, 5],
      [0, 5],
    ];
    const layout = laidOut({ n: 6, edges });
    for (const [from, to] of edges) expect(boxOf(layout, to).y).toBeGreaterThan(boxOf(layout, from).bottom);
    for (let a = 0; a < 6; a++) for (let b = 0; b < a; b++) expect(overlaps(layout, a, b)).toBe(false);
  });

  it("that use nothing stand just above their users", () => {
    const layout = laidOut({
      n: 5,
      edges: [
        [0, 1],
        [1, 2],
        [2, 4],
        [3, 4],
      ],
    });
    expect(boxOf(layout, 3).y).toBe(boxOf(layout, 2).y);
  });

  it("in an open box stand in it, and all that is outside stands outside", () => {
    const layout = laidOut({
      parents: [-1, -1, 1, 1, -1],
      edges: [
        [0, 2],
        [2, 3],
        [3, 4],
      ],
    });
    const outer = boxOf(layout, 1);
    for (const inner of [2, 3].map((box) => boxOf(layout, box))) {
      expect(inner.x).toBeGreaterThan(outer.x);
      expect(inner.right).toBeLessThan(outer.right);
      expect(inner.y).toBeGreaterThan(outer.y);
      expect(inner.bottom).toBeLessThan(outer.bottom);
    }
    expect(overlaps(layout, 0, 1)).toBe(false);
    expect(boxOf(layout, 4).y).toBeGreaterThan(outer.bottom);
  });

  it("in an open box begin just below its title", () => {
    const layout = laidOut({
      parents: [-1, -1, 1, 1],
      edges: [
        [0, 2],
        [2, 3],
      ],
    });
    expect(boxOf(layout, 2).y - boxOf(layout, 1).y).toBeLessThan(40);
  });

  it("on a cycle have their places, too", () => {
    const layout = laidOut({
      n: 3,
      edges: [
        [0, 1],
        [1, 2],
        [2, 1],
        [1, 1],
      ],
    });
    expect(boxOf(layout, 2).y).toBeGreaterThan(boxOf(layout, 1).bottom);
    expect(layout.boxes.every(Number.isFinite)).toBe(true);
  });
});

describe("wires", () => {
  it("begin below the source, end above the target, and pass beside the boxes between", () => {
    const layout = laidOut({
      n: 4,
      edges: [
        [0, 1],
        [1, 2],
        [2, 3],
        [0, 3],
      ],
    });
    const path = pathOf(layout, 3);
    expect(path[0]?.[1]).toBe(boxOf(layout, 0).bottom);
    expect(path.at(-1)?.[1]).toBe(boxOf(layout, 3).y);
    for (const box of [1, 2].map((at) => boxOf(layout, at))) {
      const beside = path.filter(([, y]) => y >= box.y && y <= box.bottom);
      expect(beside.length).toBeGreaterThan(0);
      for (const [x] of beside) expect(x < box.x || x > box.right).toBe(true);
    }
  });

  it("cross the border of an open box where they enter it", () => {
    const layout = laidOut({
      parents: [-1, -1, 1, 1],
      edges: [
        [0, 2],
        [2, 3],
      ],
    });
    const path = pathOf(layout, 0);
    expect(path.some(([, y]) => y === boxOf(layout, 1).y)).toBe(true);
    expect(path.at(-1)?.[1]).toBe(boxOf(layout, 2).y);
  });

  it("of one value are shared", () => {
    const edges: [number, number][] = [];
    const n = 200;
    for (let at = 1; at < n; at++) edges.push([at - 1, at], [0, at]);
    const layout = laidOut({ n, edges });
    // Without sharing, the value that all use alone would have some 40,000 points.
    expect(layout.wires.points.length / 2).toBeLessThan(3000);
    for (let edge = 1; edge < edges.length; edge += 2) {
      const path = pathOf(layout, edge);
      expect(path[0]?.[1]).toBe(boxOf(layout, 0).bottom);
      expect(path.at(-1)?.[1]).toBe(boxOf(layout, edges[edge]?.[1] as number).y);
    }
  });
});

it("nothing has a layout of nothing", () => {
  const layout = laidOut({ n: 0, edges: [] });
  expect([layout.boxes.length, layout.wires.points.length]).toEqual([0, 0]);
  expect(Number.isFinite(layout.width + layout.height)).toBe(true);
});

it("ten thousand nodes take a moment, a chain of them no deep stack", () => {
  const start = performance.now();
  const layout = laidOut({ n: 10_000, edges: network(10_000) });
  expect(layout.boxes.every(Number.isFinite)).toBe(true);
  // Far from what it takes, since machines of tests are busy: a step that is quadratic takes minutes.
  expect(performance.now() - start).toBeLessThan(20_000);
});
