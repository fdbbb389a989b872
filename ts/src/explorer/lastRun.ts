/**
 * The last run of what is shown: what it tells of items, and what a compiled plan takes on the same inputs.
 *
 * @module
 */
import { ExportedProgram } from "../export/exportedProgram.ts";
import type { PlanReport } from "../export/programModule.ts";
import { stepRows } from "./details.ts";
import { type Heat, heatOf, type Measured, measuredOf, nodeRun } from "./measured.ts";
import type { GraphModel } from "./model.ts";
import type { MeasuredItem } from "./panel.ts";
import { profileProgram, type ProgramRun, valueOf } from "./run.ts";

/** A run of a program, and what else its inputs are for. */
export class LastRun {
  readonly measured: Measured;
  readonly #model: GraphModel;
  readonly #inputs: readonly unknown[] | undefined;
  #plan: PlanReport | undefined;

  constructor(model: GraphModel, run: ProgramRun, inputs: readonly unknown[] | undefined) {
    this.measured = measuredOf(model, run);
    this.#model = model;
    this.#inputs = inputs;
  }

  /** What the run took, and the node that is to be seen, of which a value is NaN. */
  summary(): { readonly told: string; readonly found: number | undefined } {
    const { milliseconds, firstNan, firstInfinite } = this.measured;
    const nameOf = (item: number): string => this.#model.items[item]?.node?.name ?? "";
    let told = `all nodes took ${milliseconds.toFixed(1)} ms`;
    if (firstNan !== undefined) told += `; the first NaN is in ${nameOf(firstNan)}`;
    if (firstInfinite !== undefined) told += `; the first infinity is in ${nameOf(firstInfinite)}`;
    return { told, found: firstNan };
  }

  /** What the steps of a plan take, which are timed when that is asked for. */
  plan(): PlanReport {
    const { source } = this.#model;
    if (!(source instanceof ExportedProgram)) throw new Error("what was run is a program");
    this.#plan ??= profileProgram(source, this.#inputs);
    return this.#plan;
  }

  /** How hot each item is, and what there is to tell of the plan that this is about. */
  heat(heat: Heat): { readonly shares: ReadonlyMap<number, number>; readonly told: string | undefined } {
    const plan = heat === "nodes" ? undefined : this.plan();
    const told = plan && `a plan of ${plan.steps.length} steps took ${plan.milliseconds?.toFixed(3)} ms`;
    return { shares: heatOf(this.#model, this.measured, heat, plan), told };
  }

  /** What the run told of an item. */
  told(item: number): MeasuredItem | undefined {
    const { milliseconds, run, times } = this.measured;
    const time = times.get(item);
    if (time === undefined) return undefined;
    const share = ((100 * time) / milliseconds).toFixed(1);
    const rows = [{ name: "time", value: `${time.toFixed(3)} ms (${share} %)` }];
    const node = nodeRun(this.#model, run, item);
    if (node === undefined) return { rows };
    rows.push({ name: "value", value: node.value });
    const id = this.#model.items[item]?.id;
    const step = this.#plan?.steps.find((it) => it.node === id);
    if (step !== undefined) rows.push(...stepRows(step));
    const { statistics, elements } = node;
    if (statistics === undefined) return { rows };
    if (elements === undefined) return { rows, statistics };
    return { rows, statistics, elements: elements === "dropped" ? () => this.#elements(item) : elements };
  }

  #elements(item: number): ReturnType<typeof valueOf> {
    const [{ source }, name] = [this.#model, this.#model.items[item]?.node?.name];
    if (!(source instanceof ExportedProgram) || name === undefined) return undefined;
    return valueOf(source, name, this.#inputs);
  }
}
