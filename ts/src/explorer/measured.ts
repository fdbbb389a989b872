/**
 * What a run tells of the items of a model.
 *
 * @module
 */
import type { PlanReport } from "../export/programModule.ts";
import type { GraphModel } from "./model.ts";
import { stepOf } from "./steps.ts";
import type { NodeRun, ProgramRun } from "./run.ts";

/** A run, by items. */
export interface Measured {
  readonly run: ProgramRun;
  /** All nodes together. */
  readonly milliseconds: number;
  /** The time of each item with what it holds. */
  readonly times: ReadonlyMap<number, number>;
  /** The first nodes, in the order of the run, that give a NaN, or what is infinite. */
  readonly firstNan: number | undefined;
  readonly firstInfinite: number | undefined;
}

/** What a run tells of the items of the program's model. */
export function measuredOf(model: GraphModel, run: ProgramRun): Measured {
  const times = new Map<number, number>();
  let milliseconds = 0;
  let [firstNan, firstInfinite]: (number | undefined)[] = [];
  for (const item of model.items) {
    const told = nodeRun(model, run, item.index);
    if (told === undefined) continue;
    milliseconds += told.milliseconds;
    for (let at = item.index; at >= 0; at = model.items[at]?.parent ?? -1) {
      times.set(at, (times.get(at) ?? 0) + told.milliseconds);
    }
    const { nans = 0, infinities = 0 } = told.statistics ?? {};
    if (nans > 0) firstNan ??= item.index;
    if (infinities > 0) firstInfinite ??= item.index;
  }
  return { run, milliseconds, times, firstNan, firstInfinite };
}

/** What a run told of an item; undefined of weights, of what is no node, and of nodes of inner graphs, which have names of their own. */
export function nodeRun(model: GraphModel, run: ProgramRun, index: number): NodeRun | undefined {
  const item = model.items[index];
  if (item?.node === undefined || item.isWeight || item.id !== item.node.name) return undefined;
  return run.get(item.node.name);
}

/** What the colour of a box can tell: its share of the time node by node, or of what the steps of a plan take. */
export type Heat = "nodes" | "plan" | "bytes" | "flops";

const OF_STEPS = { plan: "milliseconds", bytes: "bytes", flops: "flops" } as const;

/**
 * How hot each item is, from 0 to 1: the root of its share of the whole, so that what takes a hundredth is seen. A step of a plan is of the
 * last of the nodes that it joins.
 */
export function heatOf(model: GraphModel, { run }: Measured, heat: Heat, plan?: PlanReport): Map<number, number> {
  const ids = new Map(model.items.map((it) => [it.id, it.index]));
  if (heat === "nodes") {
    return sharesOf(
      model,
      model.items.map(({ index }) => [index, nodeRun(model, run, index)?.milliseconds ?? 0]),
    );
  }
  const steps = plan?.steps ?? [];
  return sharesOf(
    model,
    steps.map((it) => [ids.get(it.node) ?? -1, it[OF_STEPS[heat]] ?? 0]),
  );
}

/** How hot the steps of a plan are by their times, of the model of a `planGraph`. */
export function stepHeat(model: GraphModel): Map<number, number> {
  return sharesOf(
    model,
    model.items.map(({ index, node }) => [index, node === undefined ? 0 : (stepOf(node)?.milliseconds ?? 0)]),
  );
}

/** The roots of the shares of the whole that items have, with what they hold. */
function sharesOf(
  model: GraphModel,
  amounts: readonly (readonly [item: number, amount: number])[],
): Map<number, number> {
  const sums = new Map<number, number>();
  let whole = 0;
  for (const [index, amount] of amounts) {
    whole += amount;
    for (let at = index; at >= 0; at = model.items[at]?.parent ?? -1) sums.set(at, (sums.get(at) ?? 0) + amount);
  }
  return new Map([...sums].map(([item, sum]) => [item, whole > 0 ? Math.sqrt(sum / whole) : 0]));
}
