/**
 * Runs of a program on the GPU: which plan a run has, what is done when the device is lost, and who does it where there is none.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import type { Program } from "../../../bindings/gpu.ts";
import { fxError, FxError } from "../base/errors.ts";
import { call, type Engine, generation, lostWithEngine } from "../engine/engine.ts";
import type { LeafKind } from "../engine/tensors.ts";
import type { EngineValue } from "../engine/values.ts";
import type { GpuTensor } from "../tensor/gpuTensor.ts";
import { type Gpu, gpuOf } from "./device.ts";
import { host } from "./host.ts";
import { loadLowering, type Lowered, lowered } from "./lowering.ts";
import { type GpuMemory, lieAlike } from "./memory.ts";
import { type EmptyRun, type OuterBuffers, outerBuffers } from "./outer.ts";
import { type PlanHost, PlanOnGpu, type Resident, type RunCounts } from "./plan.ts";
import { StandIns } from "./standIns.ts";
import { checkOn, memoryOf, onDevice, uploaded, viewOf } from "./tensor.ts";

// All that is loaded for a GPU is loaded by one name, so that bundlers put it into one file.
export { draw } from "./draw.ts";
export { attach } from "./host.ts";
export { ofImage } from "./image.ts";
export { ofBuffer, toGpu } from "./tensor.ts";

type EngineRunner = ReturnType<ReturnType<Engine["Program"]["open"]>["runner"]>;
type PlanParts = NonNullable<ReturnType<EngineRunner["parted"]>>;

/** A run: its program, what it is given, and who watches it. */
export interface GpuRun {
  readonly runner: EngineRunner;
  readonly leaves: readonly unknown[];
  /** What the program says that the leaves are. */
  readonly kinds: readonly (LeafKind | undefined)[];
  /** What the engine asks before each node; where it says no, `refusal` has the reason. */
  readonly watch: { readonly goes_on: (done: number, total: number) => boolean };
  readonly refusal: () => unknown;
  /** Whether a run may write to what it is given, and to the program's own. */
  readonly writes: boolean;
  /** Whether the tensors that it gives stay on the device. */
  readonly resultsStay: boolean;
}

/** What a run gives: tensors are on the device where these are to stay there. */
export type RunResult = EngineValue | GpuTensor;

/** A plan in the engine, and what a device does of it; nothing where that is nothing. */
interface Known {
  readonly parts: PlanParts;
  onGpu: PlanOnGpu | undefined;
  /** Which tensors its buffers are, once a tensor is on the device. */
  outer: OuterBuffers | undefined;
}

/** So many plans keep their memory; that which was not used for longest goes first. */
const MAX_PLANS = 4;

/** What a device refuses, and another one, or none, may do. */
const OF_DEVICE: ReadonlySet<string> = new Set(["DeviceFailed", "DeviceMissing", "OutOfMemory"]);

/** Said where changes that were on the device alone are gone. */
const LOST = "the program's own tensors are as they were at the last synchronize()";

function isOfDevice(error: unknown): error is FxError {
  return error instanceof FxError && OF_DEVICE.has(error.kind);
}

/** The memory of the inputs that are on the device, by buffers of the plan. */
function inputsOf(leaves: readonly unknown[], { inputs }: OuterBuffers, { outputs }: Program): Map<number, GpuMemory> {
  const found = new Map<number, GpuMemory>();
  for (const [buffer, leaf] of inputs) {
    const memory = memoryOf(leaves[leaf]);
    if (memory === undefined) continue;
    if (outputs.includes(buffer)) memory.checkWritable(`the input ${leaf}`);
    found.set(buffer, memory);
  }
  return found;
}

/** A result on the device, where it is a tensor that has a place there. The tensor of the CPU stays. */
async function goneUp(gpu: Gpu, result: EngineValue): Promise<RunResult> {
  return result instanceof host.Tensor && DTYPES[result.dtype].size <= 8 ? await uploaded(gpu, result) : result;
}

/** All results; where there is one that cannot be had, the others are disposed of. */
async function allOrNone(promised: readonly Promise<RunResult>[]): Promise<RunResult[]> {
  const settled = await Promise.allSettled(promised);
  const failed = settled.find((it) => it.status === "rejected");
  const results = settled.flatMap((it) => (it.status === "fulfilled" ? [it.value] : []));
  if (failed === undefined) return results;
  for (const it of results) if (memoryOf(it) !== undefined) (it as GpuTensor).dispose();
  throw failed.reason;
}

function lost({ kind, reason, node, op, help, notes, cause }: FxError): FxError {
  return fxError(kind, reason, { node, op, help, notes: [...notes, LOST], cause });
}

/** A run that only moves what there is. */
function unwatched(runner: EngineRunner): Pick<GpuRun, "runner" | "watch" | "refusal"> {
  return { runner, watch: { goes_on: () => true }, refusal: () => undefined };
}

/** Refuses two tensors of one buffer that are not known to be one, where one may be written to. */
function checkApart(leaves: readonly unknown[]): void {
  const owners = new Map<GPUBuffer, readonly [memory: GpuMemory, at: number]>();
  leaves.forEach((leaf, at) => {
    const memory = memoryOf(leaf);
    if (memory === undefined) return;
    const [other, place] = owners.get(memory.buffer) ?? [memory, at];
    owners.set(memory.buffer, [other, place]);
    if (other === memory) return;
    throw fxError("InputType", `the inputs ${place} and ${at} are of one buffer, and the program writes to inputs`, {
      help: "give the same tensor twice, or a view of it that a program gave",
    });
  });
}

/** The plans of one module on the GPU. */
export class RunsOnGpu implements Disposable {
  readonly #device: GPUDevice | undefined;
  /** Whether the CPU does what there is no GPU for. */
  readonly #isAuto: boolean;
  #known: Known[] = [];
  /** The run that was asked for last: one follows the other. */
  #last: Promise<unknown> = Promise.resolve();
  #isDisposed = false;
  /** Which of the engine's lives the plans belong to. */
  readonly #generation = generation();
  /** Whether what a run changes of the program's own tensors stays on the device. */
  readonly #keeps: boolean;
  /** What the last run took. */
  counts: RunCounts | undefined;

  constructor(device: GPUDevice | undefined, isAuto: boolean, keeps: boolean) {
    this.#device = device;
    this.#isAuto = isAuto;
    this.#keeps = keeps;
  }

  /** Whether the device has changes that the engine does not know. */
  get isAhead(): boolean {
    return this.#known.some(({ onGpu }) => onGpu?.isAhead === true);
  }

  /** Brings to the engine what it does not know yet. */
  synchronize(runner: EngineRunner): Promise<void> {
    const done = this.#last.then(() => this.#synchronize(runner));
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #synchronize(runner: EngineRunner, except?: Known): Promise<void> {
    this.#checkAlive();
    for (const known of this.#known) {
      const { parts, onGpu } = known;
      if (onGpu?.isAhead !== true || known === except) continue;
      try {
        await onGpu.synchronize(this.#hostOf(unwatched(runner), parts, 0, { isSeen: false }));
      } catch (error) {
        this.#forget(known);
        throw lost(onGpu.gpu.refusal(error));
      }
    }
  }

  /** What the program gives, or what `onCpu` gives for the leaves where the CPU is to run it. The next run begins after it. */
  run(run: GpuRun, onCpu: (leaves: readonly unknown[]) => readonly EngineValue[]): Promise<readonly RunResult[]> {
    const done = this.#last.then(async () => (await this.#run(run)) ?? (await this.#onCpu(run, onCpu)));
    this.#last = done.catch(() => undefined);
    return done;
  }

  /** Has the CPU run the program. What is on a device comes down for it, and goes up again. */
  async #onCpu(
    run: GpuRun,
    onCpu: (leaves: readonly unknown[]) => readonly EngineValue[],
  ): Promise<readonly RunResult[]> {
    using standIns = await StandIns.filled(run.leaves);
    const results = onCpu(standIns.leaves);
    return await this.#afterCpu(run, standIns, results);
  }

  async #afterCpu(run: GpuRun, standIns: StandIns, results: readonly EngineValue[]): Promise<readonly RunResult[]> {
    if (run.writes) await standIns.writeBack();
    if (!run.resultsStay) return results;
    try {
      const gpu = await gpuOf(this.#device);
      const there = await allOrNone(results.map((it) => goneUp(gpu, it)));
      results.forEach((it, at) => {
        if (it instanceof host.Tensor && it !== there[at]) it.dispose();
      });
      return there;
    } catch (error) {
      if (this.#isAuto && isOfDevice(error)) return results;
      throw error;
    }
  }

  async #run(run: GpuRun): Promise<readonly RunResult[] | undefined> {
    const told = { isSeen: false };
    let isSecond = false;
    for (;;) {
      try {
        return await this.#attempt(run, told);
      } catch (error) {
        // Nobody may go on with what was there before, but who is told.
        if (error instanceof FxError && error.notes.includes(LOST)) throw error;
        // What was changed in the engine's memory would be changed twice.
        if (!isOfDevice(error) || (told.isSeen && run.writes)) throw error;
        if (error.kind === "DeviceFailed" && !isSecond && this.#device === undefined) {
          isSecond = true;
          continue;
        }
        if (!this.#isAuto) throw error;
        // The CPU goes on with what the device has, or not at all.
        await this.#synchronize(run.runner);
        return undefined;
      }
    }
  }

  async #attempt(run: GpuRun, told: { isSeen: boolean }): Promise<readonly RunResult[] | undefined> {
    const gpu = await gpuOf(this.#device);
    gpu.checkNotLost();
    await loadLowering();
    run.leaves.forEach((leaf, at) => {
      const memory = memoryOf(leaf);
      if (memory !== undefined) checkOn(memory, gpu, `the input ${at}`);
    });
    if (run.writes) checkApart(run.leaves);
    using standIns = StandIns.empty(run.leaves);
    const known = await this.#begun(run, standIns.leaves, gpu);
    // Others see what the program is now.
    await this.#synchronize(run.runner, known);
    if (known === undefined) return undefined;
    const { parts, onGpu } = known;
    if (onGpu === undefined) {
      call(() => parts.abandon());
      return undefined;
    }
    if (!standIns.isAny && !run.resultsStay) return (await this.#ran(run, parts, onGpu, told)).values;
    if (onGpu.isWhole) {
      try {
        return await this.#ranOnDevice(run, known, onGpu, standIns, told);
      } catch (error) {
        if (this.#generation === generation()) call(() => parts.abandon());
        throw error;
      }
    }
    // The CPU has to see what its steps read.
    call(() => parts.abandon());
    using filled = await StandIns.filled(run.leaves);
    this.#checkAlive();
    if (!this.#begins(run, parts, filled.leaves)) return undefined;
    const { values } = await this.#ran(run, parts, onGpu, told);
    return await this.#afterCpu(run, filled, values);
  }

  /** The run that has begun: what it gives, and the memory of the results that are resident. */
  async #ran(
    run: GpuRun,
    parts: PlanParts,
    onGpu: PlanOnGpu,
    told: { isSeen: boolean },
    resident?: Resident,
  ): Promise<{ readonly values: EngineValue[]; readonly kept: ReadonlyMap<number, GpuMemory> }> {
    const wasAhead = onGpu.isAhead;
    let kept: ReadonlyMap<number, GpuMemory> | undefined;
    try {
      kept = await onGpu.run(this.#hostOf(run, parts, onGpu.program.steps.length, told), this.#keeps, resident);
      this.counts = onGpu.counts;
      return { values: host.takeLeaves(this.#call(() => parts.end())), kept };
    } catch (error) {
      for (const it of kept?.values() ?? []) it.release();
      if (this.#generation === generation()) call(() => parts.abandon());
      if (wasAhead && !onGpu.isAhead) throw lost(onGpu.gpu.refusal(error));
      throw error === run.refusal() ? error : onGpu.gpu.refusal(error);
    }
  }

  /** The run that has begun, of which inputs or results stay on the device. */
  async #ranOnDevice(
    run: GpuRun,
    known: Known,
    onGpu: PlanOnGpu,
    standIns: StandIns,
    told: { isSeen: boolean },
  ): Promise<readonly RunResult[] | undefined> {
    const { parts } = known;
    const { gpu, program } = onGpu;
    if (known.outer === undefined) {
      known.outer = outerBuffers(program, standIns.leaves, this.#emptyRun(run, parts));
      if (!this.#begins(run, parts, standIns.leaves)) return undefined;
    }
    const { outer } = known;
    const resident = {
      inputs: inputsOf(run.leaves, outer, program),
      results: new Set(run.resultsStay ? outer.results.filter((it) => it !== undefined) : []),
    };
    const { values, kept } = await this.#ran(run, parts, onGpu, told, resident);
    // What follows may fail, and the run is not to be done twice.
    told.isSeen = true;
    const placed = async (value: EngineValue, at: number): Promise<RunResult> => {
      if (!(value instanceof host.Tensor)) return value;
      const memory = kept.get(outer.results[at] ?? -1) ?? standIns.memoryOf(value);
      if (memory === undefined) {
        const up = run.resultsStay ? await goneUp(gpu, value) : value;
        if (up !== value) value.dispose();
        return up;
      }
      using tensor = value;
      const there = onDevice(memory.share(), tensor.dtype, tensor.shape, viewOf(tensor));
      if (run.resultsStay && lieAlike(memory.dtype, tensor.dtype)) return there;
      using input = there;
      const down = await input.cpu();
      if (!run.resultsStay) return down;
      // The elements are others on the device than those that it looks at: it has memory of its own.
      using other = down;
      return await uploaded(gpu, other);
    };
    try {
      return await allOrNone(values.map(placed));
    } finally {
      for (const it of kept.values()) it.release();
    }
  }

  /** Runs of the plan without steps. */
  #emptyRun(run: GpuRun, parts: PlanParts): EmptyRun {
    return {
      begin: (leaves) => this.#begins(run, parts, leaves),
      read: (buffer) => call(() => parts.read(buffer, 1))[0] as number,
      write: (buffer, byte) => call(() => parts.write(buffer, Uint8Array.of(byte))),
      end: () => host.takeLeaves(call(() => parts.end())),
    };
  }

  /** Begins a run of the plan, where it is for these leaves. */
  #begins({ runner, kinds }: GpuRun, parts: PlanParts, leaves: readonly unknown[]): boolean {
    return host.withLeaves(leaves, kinds, (words) => call(() => parts.begin(runner, words)));
  }

  /** The plan for these inputs, whose run has begun; nothing where there can be none. */
  async #begun(run: GpuRun, leaves: readonly unknown[], gpu: Gpu): Promise<Known | undefined> {
    this.#checkAlive();
    const stale = this.#known.filter(({ onGpu }) => onGpu !== undefined && onGpu.gpu !== gpu);
    const wasAhead = stale.some(({ onGpu }) => onGpu?.isAhead);
    for (const it of stale) this.#forget(it);
    if (wasAhead) throw lost(gpu.failed("another device was lost"));
    const begins = ({ parts }: Known): boolean => this.#begins(run, parts, leaves);
    const found = this.#known.find(begins);
    if (found !== undefined) {
      this.#known = [found, ...this.#known.filter((it) => it !== found)];
      return found;
    }
    const parts = host.withLeaves(leaves, run.kinds, (words) => call(() => run.runner.parted(words)));
    if (parts === undefined) return undefined;
    const made: Known = { parts, onGpu: undefined, outer: undefined };
    try {
      const [outline, writing] = call(() => [parts.outline(), parts.writing_ops(run.runner)] as const);
      made.onGpu = await this.#onGpu(gpu, lowered(outline, writing, gpu.limits));
    } catch (error) {
      this.#forget(made);
      throw gpu.refusal(error);
    }
    this.#known.unshift(made);
    this.#checkAlive();
    await this.#synchronize(run.runner, made);
    for (const it of this.#known.slice(MAX_PLANS)) this.#forget(it);
    return begins(made) ? made : undefined;
  }

  /** What the device does of a program; nothing where that is nothing. */
  async #onGpu(gpu: Gpu, program: Lowered): Promise<PlanOnGpu | undefined> {
    const isForGpu = program.program.steps.some(({ work }) => "device" in work);
    try {
      if (isForGpu) return await PlanOnGpu.of(gpu, program);
    } catch (error) {
      program.free();
      throw error;
    }
    program.free();
    return undefined;
  }

  #forget(known: Known): void {
    this.#known = this.#known.filter((it) => it !== known);
    known.onGpu?.dispose();
    // Of an engine that was made anew, nothing is left to free.
    if (this.#generation === generation()) known.parts.free();
  }

  #checkAlive(): void {
    if (this.#generation !== generation()) {
      throw lostWithEngine("the module", "make another one after restart(): program.module()");
    }
    if (this.#isDisposed) {
      throw fxError("Disposed", "the module was disposed before it ran", { help: "await its runs first" });
    }
  }

  /** Calls the engine, which may have been made anew while the device was waited for. */
  #call<T>(body: () => T): T {
    if (this.#generation !== generation()) this.#checkAlive();
    return call(body);
  }

  /** Gives memory back when the run that goes on has ended. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
    void this.#last.then(() => {
      for (const it of this.#known) this.#forget(it);
    });
  }

  #hostOf(
    run: Pick<GpuRun, "runner" | "watch" | "refusal">,
    parts: PlanParts,
    nSteps: number,
    told: { isSeen: boolean },
  ): PlanHost {
    const { runner, watch, refusal } = run;
    return {
      version: (buffer) => this.#call(() => parts.version(buffer)),
      read: (buffer, nBytes) => this.#call(() => parts.read(buffer, nBytes)),
      write: (buffer, bytes) => {
        told.isSeen = true;
        this.#call(() => parts.write(buffer, bytes));
      },
      changes: () => {
        told.isSeen = true;
      },
      run: (from, to) => {
        told.isSeen = true;
        try {
          this.#call(() => parts.run(runner, from, to, watch));
        } catch (error) {
          throw refusal() ?? error;
        }
      },
      goesOn: (done) => {
        if (!watch.goes_on(done, nSteps)) throw refusal();
      },
    };
  }
}
