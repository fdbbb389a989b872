/**
 * What a run tells of the items of a model.
 *
 * @module
 */
import type { GraphModel } from "./model.ts";
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

/** How hot each item is: the root of its share of the time, so that what takes a hundredth is seen. */
export function heatOf({ times, milliseconds }: Measured): Map<number, number> {
  return new Map([...times].map(([item, time]) => [item, milliseconds > 0 ? Math.sqrt(time / milliseconds) : 0]));
}
