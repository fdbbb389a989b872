/**
 * What two graphs have in common: nodes that are matched by name and operator, and by what they use.
 *
 * @module
 */
import type { Node } from "../graph/node.ts";
import { formatArg } from "../graph/print.ts";
import { isNode } from "../graph/args.ts";
import type { GraphModel } from "./model.ts";
import { nodeRun } from "./measured.ts";
import type { ProgramRun } from "./run.ts";
import type { Difference } from "./theme.ts";

/** How the items of two models differ. */
export interface ModelDiff {
  /** The item of the second model that each item of the first is matched with. */
  readonly matches: ReadonlyMap<number, number>;
  /** Of the first model: what the second has not, and what differs there. */
  readonly before: ReadonlyMap<number, Difference>;
  /** Of the second model: what the first has not, and what differs there. */
  readonly after: ReadonlyMap<number, Difference>;
}

/**
 * Compares two models. A node is matched with the one of the same operator whose inputs are matched, in the order of the programs, and
 * else with the one of its name; what has another operator, other constants or another value then differs.
 */
export function compareModels(before: GraphModel, after: GraphModel): ModelDiff {
  const matches = new Map<number, number>();
  const taken = new Set<number>();
  const nodes = after.items.flatMap(({ node, index }) => (node === undefined ? [] : [[index, node] as const]));
  const byKey = new Map<string, number[]>();
  for (const [index, node] of nodes) {
    const key = keyOf(node, (it) => after.indexOf(it));
    byKey.set(key, [...(byKey.get(key) ?? []), index]);
  }
  const match = (from: number, to: number): void => {
    matches.set(from, to);
    taken.add(to);
  };
  const free = (indices: readonly number[] = []): number | undefined => indices.find((it) => !taken.has(it));
  const byId = new Map(after.items.map((it) => [it.id, it.index]));
  for (const { node, index, id } of before.items) {
    if (node === undefined) {
      const same = byId.get(id);
      if (same !== undefined && after.items[same]?.node === undefined) match(index, same);
      continue;
    }
    const key = keyOf(node, (it) => matches.get(before.indexOf(it) ?? -1));
    const found =
      free(byKey.get(key)) ?? free([byId.get(id) ?? -1].filter((it) => after.items[it]?.node?.op === node.op));
    if (found !== undefined) match(index, found);
  }
  const [differences, others] = [new Map<number, Difference>(), new Map<number, Difference>()];
  for (const { index, node } of before.items) {
    const other = matches.get(index);
    if (other === undefined) differences.set(index, "removed");
    else if (node !== undefined && differs(before, index, after, other, matches)) {
      differences.set(index, "changed");
      others.set(other, "changed");
    }
  }
  for (const { index } of after.items) if (!taken.has(index)) others.set(index, "added");
  return { matches, before: within(before, differences), after: within(after, others) };
}

/** What holds something that differs differs, too, so that it is seen while it is closed. */
function within(model: GraphModel, differences: Map<number, Difference>): Map<number, Difference> {
  for (const { index, parent } of model.items.toReversed()) {
    if (differences.has(index) && parent >= 0 && !differences.has(parent)) differences.set(parent, "changed");
  }
  return differences;
}

/** An operator with its inputs and constants; the inputs as items of the second model. */
function keyOf(node: Node, indexOf: (input: Node) => number | undefined): string {
  if (node.op === "placeholder" || node.op === "get_attr") return `${node.op} ${node.target}`;
  const inputs = node.allInputNodes.map((it) => indexOf(it) ?? "?");
  return `${node.op} ${node.target} ${inputs.join(" ")}`;
}

function differs(
  before: GraphModel,
  index: number,
  after: GraphModel,
  other: number,
  matches: ReadonlyMap<number, number>,
): boolean {
  const [a, b] = [before.items[index]?.node, after.items[other]?.node];
  if (a === undefined || b === undefined) return false;
  if (a.op !== b.op || a.target !== b.target || before.value(index) !== after.value(other)) return true;
  const inputs = a.allInputNodes.map((it) => matches.get(before.indexOf(it) ?? -1));
  if (inputs.some((it, at) => it !== after.indexOf(b.allInputNodes[at] as Node))) return true;
  return constants(a) !== constants(b);
}

/** The arguments that are no nodes. */
function constants(node: Node): string {
  const shown = [...node.args, ...Object.values(node.kwargs)].filter((it) => !isNode(it));
  return shown.map((it) => formatArg(it).replaceAll(/%\w+/g, "%")).join(", ");
}

/** A node whose values part. */
export interface Parting {
  /** The item of the first model. */
  readonly item: number;
  /** How far the values are apart, as a share of the largest of them. */
  readonly distance: number;
}

/**
 * The first node of the first program whose value is another one in the run of the second, by 256 of its elements; undefined where all
 * that are matched agree to within a tolerance.
 */
export function firstParting(
  before: GraphModel,
  runBefore: ProgramRun,
  after: GraphModel,
  runAfter: ProgramRun,
  { matches }: ModelDiff,
  tolerance: number,
): Parting | undefined {
  for (const { index } of before.items) {
    const [a, b] = [nodeRun(before, runBefore, index), nodeRun(after, runAfter, matches.get(index) ?? -1)];
    if (a === undefined || b === undefined) continue;
    const distance = distanceOf(a.sample, b.sample);
    if (distance > tolerance) return { item: index, distance };
  }
  return undefined;
}

/** The largest difference, as a share of the largest element; infinite where one is a number and the other is none. */
function distanceOf(a: Float32Array, b: Float32Array): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  let [largest, most] = [1e-30, 0];
  for (const [at, x] of a.entries()) {
    const y = b[at] as number;
    if (Object.is(x, y)) continue;
    if (!Number.isFinite(x) || !Number.isFinite(y)) return Number.POSITIVE_INFINITY;
    largest = Math.max(largest, Math.abs(x), Math.abs(y));
    most = Math.max(most, Math.abs(x - y));
  }
  return most === 0 ? 0 : most / largest;
}
