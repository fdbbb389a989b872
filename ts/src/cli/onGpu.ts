/**
 * `npx tracefx … --device gpu`: programs on the GPU of the package `webgpu`, and what they are made of there.
 *
 * @module
 */
import type { Program } from "../../../bindings/gpu.ts";
import type { PlanReport, StepPlacement } from "../../../bindings/plans.ts";
import { fxError } from "../base/errors.ts";
import { call } from "../engine/engine.ts";
import { takeLeaves, withLeaves } from "../engine/tensors.ts";
import type { EngineValue } from "../engine/values.ts";
import type { EngineRunner } from "../export/engineProgram.ts";
import { loadGpu } from "../export/loadGpu.ts";
import { watchedBy, watcher } from "../export/programModule.ts";
import { findAdapter, gpuOf } from "../gpu/device.ts";
import { loadLowering, lowered } from "../gpu/lowering.ts";
import { placeBytes } from "../gpu/memory.ts";
import type { RunsOnGpu } from "../gpu/run.ts";
import { printable } from "./printable.ts";

/** A program that the GPU runs. */
export class GpuRunner {
  readonly #runner: EngineRunner;
  readonly #milliseconds: number | undefined;
  readonly #runs: RunsOnGpu;

  private constructor(runner: EngineRunner, milliseconds: number | undefined, runs: RunsOnGpu) {
    this.#runner = runner;
    this.#milliseconds = milliseconds;
    this.#runs = runs;
  }

  /**
   * A program on the GPU, which keeps there what runs change of its own tensors, as the native command has it.
   *
   * @throws `UsageError` `DeviceMissing` where there is no GPU.
   */
  static async of(runner: EngineRunner, milliseconds: number | undefined): Promise<GpuRunner> {
    await findAdapter("leave out --device");
    const loaded = await loadGpu();
    return new GpuRunner(runner, milliseconds, new loaded.RunsOnGpu(undefined, false, true));
  }

  /** What the program gives for these inputs. */
  async run(leaves: readonly unknown[]): Promise<EngineValue[]> {
    const watching = watcher({}, this.#milliseconds);
    const { goes_on, reason } = watching;
    const writes = call(() => this.#runner.changes_inputs());
    const run = { runner: this.#runner, leaves, kinds: [], watch: { goes_on }, refusal: reason, writes };
    // The CPU has what is left of the time.
    const onCpu = (all: readonly unknown[]): EngineValue[] =>
      withLeaves(all, [], (words) => takeLeaves(watchedBy(this.#runner, words, watching)));
    return (await this.#runs.run({ ...run, resultsStay: false }, onCpu)) as EngineValue[];
  }

  /** The steps of a plan, who does them, and what crosses for them. */
  async explain(leaves: readonly unknown[], format: "json" | "text"): Promise<string> {
    const told = (as: string): string =>
      withLeaves(leaves, [], (words) => call(() => this.#runner.explain(words, undefined, as)));
    const report = JSON.parse(told("json")) as PlanReport;
    const placements = await this.#placements(leaves);
    if (format === "text") return placedText(told("text"), report, placements);
    const steps = report.steps.map((it, at) => ({ ...it, placement: placements[at] ?? null }));
    return JSON.stringify({ ...report, steps });
  }

  /** Who does each step of the plan. The process ends afterwards, so what is made for it needs no care. */
  async #placements(leaves: readonly unknown[]): Promise<StepPlacement[]> {
    const [{ limits }] = await Promise.all([gpuOf(undefined), loadLowering()]);
    const parts = withLeaves(leaves, [], (words) => call(() => this.#runner.parted(words)));
    if (parts === undefined) return [];
    const made = lowered(
      call(() => parts.outline()),
      call(() => parts.writing_ops(this.#runner)),
      limits,
    );
    return made.program.steps.map((it) => placementOf(made.program, it));
  }
}

/** Refuses what a GPU does not do: it runs plans, and not to the bit. */
export function checkForGpu(mode: string | undefined, precision: string): void {
  if (mode !== "interpret" && precision !== "strict") return;
  throw fxError("InvalidOption", "a GPU runs plans, in the precision fast: its sums have other orders", {
    help: "leave out --mode and --precision, or --device",
  });
}

function placementOf({ places }: Program, { work, uploads, downloads }: Program["steps"][number]): StepPlacement {
  const bytes = (buffers: readonly number[]): number =>
    buffers.reduce((sum, it) => {
      const place = places[it];
      return place === null || place === undefined ? sum : sum + placeBytes(place);
    }, 0);
  return { reason: "cpu" in work ? work.cpu : null, bytes_up: bytes(uploads), bytes_down: bytes(downloads) };
}

/** The text of a plan, with who does its steps where the native command says it. */
function placedText(text: string, { steps }: PlanReport, placements: readonly StepPlacement[]): string {
  if (placements.length === 0) return text;
  const ofCpu = placements.flatMap(({ reason, bytes_up, bytes_down }, at) => {
    return reason === null ? [] : [[at, steps[at]?.step ?? "", reason, bytes_up, bytes_down].map(String)];
  });
  const lines = text.split("\n");
  const summary = lines.pop() as string;
  const [up, down] = placements.reduce(([a, b], it) => [a + it.bytes_up, b + it.bytes_down], [0, 0]);
  const counts = `${placements.length - ofCpu.length} steps on the device, ${ofCpu.length} on the CPU`;
  const table = ofCpu.length === 0 ? [] : ["on the CPU", ...tableOf(ofCpu), ""];
  return [...lines, ...table, summary, `${counts}; ${up} bytes up, ${down} bytes down between them`].join("\n");
}

/** The columns of the steps of the CPU. Those of numbers end where the others begin. */
const COLUMNS = [
  { header: "", isNumber: true },
  { header: "step", isNumber: false },
  { header: "reason", isNumber: false },
  { header: "up", isNumber: true },
  { header: "down", isNumber: true },
] as const;

/** Rows as the engine prints its tables. */
function tableOf(rows: readonly (readonly string[])[]): string[] {
  const cells = [COLUMNS.map((it) => it.header), ...rows.map((row) => row.map(printable))];
  const widths = COLUMNS.map((_, at) => Math.max(...cells.map((row) => (row[at] as string).length)));
  const lines = cells.map((row) =>
    COLUMNS.map(({ isNumber }, at) => {
      const [cell, width] = [row[at] as string, widths[at] as number];
      return ` ${isNumber ? cell.padStart(width) : cell.padEnd(width)} `;
    }).join(" "),
  );
  const [header = "", ...others] = lines;
  return [header, "─".repeat(header.length), ...others];
}
