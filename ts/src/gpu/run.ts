/**
 * Runs of a program on the GPU: which plan a run has, what is done when the device is lost, and who does it where there is none.
 *
 * @module
 */
import { fxError, FxError } from "../base/errors.ts";
import { call, type Engine, generation, lostWithEngine } from "../engine/engine.ts";
import { type Gpu, gpuOf } from "./device.ts";
import { loadLowering, type Lowered, lowered } from "./lowering.ts";
import { type PlanHost, PlanOnGpu, type RunCounts } from "./plan.ts";

type EngineRunner = ReturnType<ReturnType<Engine["Program"]["open"]>["runner"]>;
type PlanParts = NonNullable<ReturnType<EngineRunner["parted"]>>;

/** Gives the words of a call's inputs, for as long as the body runs. */
export type WithWords = <T>(body: (words: Uint32Array) => T) => T;

/** A run: who watches it, and its program. */
export interface GpuRun {
  readonly runner: EngineRunner;
  readonly withWords: WithWords;
  /** What the engine asks before each node; where it says no, `refusal` has the reason. */
  readonly watch: { readonly goes_on: (done: number, total: number) => boolean };
  readonly refusal: () => unknown;
  /** Whether a run may write to what it is given, and to the program's own. */
  readonly writes: boolean;
}

/** A plan in the engine, and what a device does of it; nothing where that is nothing. */
interface Known {
  readonly parts: PlanParts;
  onGpu: PlanOnGpu | undefined;
}

/** So many plans keep their memory; that which was not used for longest goes first. */
const MAX_PLANS = 4;

/** What a device refuses, and another one, or none, may do. */
const OF_DEVICE: ReadonlySet<string> = new Set(["DeviceFailed", "DeviceMissing", "OutOfMemory"]);

/** Said where changes that were on the device alone are gone. */
const LOST = "the program's own tensors are as they were at the last synchronize()";

function lost({ kind, reason, node, op, help, notes, cause }: FxError): FxError {
  return fxError(kind, reason, { node, op, help, notes: [...notes, LOST], cause });
}

/** A run that only moves what there is. */
const UNWATCHED = (runner: EngineRunner): Pick<GpuRun, "runner" | "watch" | "refusal"> => {
  return { runner, watch: { goes_on: () => true }, refusal: () => undefined };
};

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
  /** What the last run took. */
  counts: RunCounts | undefined;

  /** Whether what a run changes of the program's own tensors stays on the device. */
  readonly #keeps: boolean;

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
        await onGpu.synchronize(this.#hostOf(UNWATCHED(runner), parts, 0, { isSeen: false }));
      } catch (error) {
        this.#forget(known);
        throw lost(onGpu.gpu.refusal(error));
      }
    }
  }

  /** What the program gives, as words, or what the CPU gives where it is to run it, before the next run begins. */
  run<T>(run: GpuRun, onCpu: () => T): Promise<Uint32Array | T> {
    const done = this.#last.then(async () => (await this.#run(run)) ?? onCpu());
    this.#last = done.catch(() => undefined);
    return done;
  }

  async #run(run: GpuRun): Promise<Uint32Array | undefined> {
    const told = { isSeen: false };
    let isSecond = false;
    for (;;) {
      try {
        return await this.#attempt(run, told);
      } catch (error) {
        // Nobody may go on with what was there before, but who is told.
        if (error instanceof FxError && error.notes.includes(LOST)) throw error;
        const isOfDevice = error instanceof FxError && OF_DEVICE.has(error.kind);
        // What was changed in the engine's memory would be changed twice.
        if (!isOfDevice || (told.isSeen && run.writes)) throw error;
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

  async #attempt(run: GpuRun, told: { isSeen: boolean }): Promise<Uint32Array | undefined> {
    const gpu = await gpuOf(this.#device);
    gpu.checkNotLost();
    await loadLowering();
    const known = await this.#begun(run, gpu);
    // Others see what the program is now.
    await this.#synchronize(run.runner, known);
    if (known === undefined) return undefined;
    const { parts, onGpu } = known;
    if (onGpu === undefined) {
      call(() => parts.abandon());
      return undefined;
    }
    const wasAhead = onGpu.isAhead;
    try {
      await onGpu.run(this.#hostOf(run, parts, onGpu.program.steps.length, told), this.#keeps);
      this.counts = onGpu.counts;
      return this.#call(() => parts.end());
    } catch (error) {
      if (this.#generation === generation()) call(() => parts.abandon());
      if (wasAhead && !onGpu.isAhead) throw lost(gpu.refusal(error));
      throw error === run.refusal() ? error : gpu.refusal(error);
    }
  }

  /** The plan for these inputs, whose run has begun; nothing where there can be none. */
  async #begun(run: GpuRun, gpu: Gpu): Promise<Known | undefined> {
    this.#checkAlive();
    const stale = this.#known.filter(({ onGpu }) => onGpu !== undefined && onGpu.gpu !== gpu);
    const wasAhead = stale.some(({ onGpu }) => onGpu?.isAhead);
    for (const it of stale) this.#forget(it);
    if (wasAhead) throw lost(gpu.failed("another device was lost"));
    const begins = ({ parts }: Known): boolean => run.withWords((words) => call(() => parts.begin(run.runner, words)));
    const found = this.#known.find(begins);
    if (found !== undefined) {
      this.#known = [found, ...this.#known.filter((it) => it !== found)];
      return found;
    }
    const parts = run.withWords((words) => call(() => run.runner.parted(words)));
    if (parts === undefined) return undefined;
    const made: Known = { parts, onGpu: undefined };
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
