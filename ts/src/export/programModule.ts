/**
 * A program that can be called.
 *
 * @module
 */
import type { PlanReport as PlanContents } from "../../../bindings/plans.ts";
import { call, enterCallback, generation, leaveCallback, lostWithEngine } from "../engine/engine.ts";
import { type LeafKind, moveToEngine, takeLeaves, withLeaves, wrapWords } from "../engine/tensors.ts";
import { type EngineValue, ValueWriter } from "../engine/values.ts";
import { fxError } from "../base/errors.ts";
import { Float } from "../base/values.ts";
import type { RunWatch } from "../fx/interpreter.ts";
import type { RunResult, RunsOnGpu } from "../gpu/run.ts";
import type { GivenGpu, GpuTensor } from "../tensor/gpuTensor.ts";
import { relieveMemory } from "../tensor/storage.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { CallInput, CallParts } from "./callParts.ts";
import type { EngineRunner } from "./engineProgram.ts";
import type { CallSignature, ProgramParts } from "./program.ts";
import { loadGpu } from "./loadGpu.ts";
import { givenTensor, isGivenArray } from "./givenArrays.ts";
import type { Argument } from "./signature.ts";
import { flattenCall, unflatten } from "./tree.ts";
import { checkGiven, checkList, checkOptions, checkText } from "../base/given.ts";

/** Who does the steps of a plan: the CPU; a GPU, which may be the caller's; or a GPU where there is one (`"auto"`). */
export type RunDevice = "cpu" | "gpu" | "auto" | GivenGpu;

/** What is inside a module, out of the way of its call signature, and which of the engine's lives the runner belongs to. */
interface Inside extends RunSettings {
  readonly parts: CallParts;
  /** All of the program, where its graph was read, too. */
  readonly program: ProgramParts | undefined;
  /** One that is never disposed is freed with its module, by the glue. */
  runner: EngineRunner | undefined;
  readonly generation: number;
  /** How many runs go on: one may be disposed of, or run again, by what it calls. */
  running: number;
  /** What is freed when the last run has ended. */
  abandoned: EngineRunner | undefined;
  /** What the GPU knows of it, from its first run there on. */
  onGpu: Promise<RunsOnGpu> | undefined;
  runsOnGpu: RunsOnGpu | undefined;
  /** How many runs were promised, and have not ended. */
  promised: number;
  /** Whether a run may write to what it is given, once one has ended: operators of the user's may be defined until then. */
  writes: boolean | undefined;
}

/** What a call of a program is compiled to, and what its steps take; as text it is a table. */
export interface PlanReport extends PlanContents {
  /** The steps as events of Chrome's trace format, which `chrome://tracing` and Perfetto open. */
  readonly chromeTrace: string;
  /** The table. */
  toString(): string;
}

/** How a module runs. */
export interface RunSettings {
  /** How long a run may take. */
  readonly milliseconds: number | undefined;
  readonly device: RunDevice;
  /** Whether what runs change of the program's own tensors stays on the device. */
  readonly keepsState: boolean;
}

/** How one run of {@link ProgramModule.runAsync} goes. */
export interface RunAsyncOptions extends RunWatch {
  /**
   * Where the tensors are that it gives: on the CPU, the default, or with `"gpu"` on the GPU, as {@link GpuTensor}, until they are read. With
   * `device: "auto"` they are on the CPU all the same where there is no GPU.
   */
  readonly outputs?: "cpu" | "gpu";
}

const WATCH = ["signal", "progress"] as const;

const insides = new WeakMap<ProgramModule, Inside>();

/**
 * A program with its state, called with the inputs that the exported module's `forward` takes: positional arguments,
 * then one object with the keyword arguments where there are any. It gives what `forward` gives; of a joint program, the
 * loss, the other results and the gradients as one list. Nested arrays and typed arrays are taken where a tensor stands:
 * they have its dtype and its sizes.
 *
 * @example
 * ```ts
 * using model = program.module();
 * const logits = model(image) as Tensor;
 * ```
 */
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- an instance is a function, which a class cannot declare
export interface ProgramModule {
  (...args: unknown[]): unknown;
}

/** A program with its state, which can be called; what a call takes and gives is told above. */
// oxlint-disable-next-line typescript/no-unsafe-declaration-merging -- as above
export class ProgramModule implements Disposable {
  /** @internal */
  constructor(parts: CallParts, runner: EngineRunner, settings: RunSettings, program?: ProgramParts) {
    const self = ((...args: unknown[]) => self.forward(...args)) as unknown as ProgramModule;
    Object.setPrototypeOf(self, new.target.prototype);
    insides.set(self, {
      parts,
      program,
      runner,
      generation: generation(),
      ...settings,
      onGpu: undefined,
      runsOnGpu: undefined,
      promised: 0,
      running: 0,
      abandoned: undefined,
      writes: undefined,
    });
    // An instance is a function, so that it can be called.
    return self;
  }

  /** Calls the program; the module itself is the same function. */
  forward(...args: unknown[]): unknown {
    return this.runWith(args);
  }

  /**
   * Calls the program, and tells how far it is. A signal stops it before its next step: what the steps before wrote to
   * buffers and inputs stays.
   *
   * @example
   * ```ts
   * model.runWith([image], { signal, progress: (done, total) => bar.show(done / total) });
   * ```
   */
  runWith(args: readonly unknown[], watch: RunWatch = {}): unknown {
    const { parts } = live(this);
    checkOptions("runWith", watch, WATCH);
    checkList("runWith", "args", args);
    const signature = rootSignature(parts);
    const leaves = flattenCall(args, signature.inSpec, parts);
    const results = this.runFlat(leaves, watch);
    // The structure of the result tells nothing of the gradients that follow it.
    if (parts.givesGradients) return results;
    return unflatten(results, signature.outSpec, parts);
  }

  /** Calls the program with the inputs as a flat list, and gives the outputs as one. */
  runFlat(leaves: readonly unknown[], watch: RunWatch = {}): EngineValue[] {
    checkOptions("runFlat", watch, WATCH);
    checkList("runFlat", "leaves", leaves);
    checkAtOnce(this);
    return onCpu(this, leaves, watch);
  }

  /**
   * Calls the program on the device that the module was made for, and promises what {@link runWith} gives. The inputs are to stay as they
   * are until then. Runs that are asked for while one goes on follow it. On a GPU, the signal is looked at wherever the CPU has
   * something to do. Tensors that are there already ({@link GpuTensor}) are taken as they are, and results stay there where `outputs` says so.
   *
   * @example
   * ```ts
   * using model = program.module({ device: "auto" });
   * const logits = (await model.runAsync([image])) as Tensor;
   * ```
   *
   * @example
   * ```ts
   * using model = program.module({ device: "gpu" });
   * let x = await image.to("gpu");
   * for (let step = 0; step < 10; step++) x = (await model.runAsync([x], { outputs: "gpu" })) as GpuTensor;
   * const last = await x.cpu();
   * ```
   *
   * @throws `UsageError` `DeviceMissing` where there is no GPU, `DeviceFailed` where it is lost, twice, or refuses its work.
   */
  async runAsync(args: readonly unknown[], options: RunAsyncOptions = {}): Promise<unknown> {
    const { parts } = live(this);
    checkOptions("runAsync", options, [...WATCH, "outputs"]);
    checkList("runAsync", "args", args);
    const signature = rootSignature(parts);
    const results = await runLater(this, flattenCall(args, signature.inSpec, parts), options);
    if (parts.givesGradients) return results;
    return unflatten(results as readonly EngineValue[], signature.outSpec, parts);
  }

  /** The same with the inputs as a flat list; it promises the outputs as one. */
  runFlatAsync(
    leaves: readonly unknown[],
    options: RunAsyncOptions & { readonly outputs: "gpu" },
  ): Promise<(EngineValue | GpuTensor)[]>;
  runFlatAsync(
    leaves: readonly unknown[],
    options?: RunAsyncOptions & { readonly outputs?: "cpu" },
  ): Promise<EngineValue[]>;
  runFlatAsync(leaves: readonly unknown[], options?: RunAsyncOptions): Promise<(EngineValue | GpuTensor)[]>;
  async runFlatAsync(leaves: readonly unknown[], options: RunAsyncOptions = {}): Promise<unknown[]> {
    checkOptions("runFlatAsync", options, [...WATCH, "outputs"]);
    checkList("runFlatAsync", "leaves", leaves);
    return await runLater(this, leaves, options);
  }

  /**
   * Brings what runs have changed of the program's own tensors from the device, where it stays with `state: "device"`, after the runs that
   * were asked for before. Until then {@link getTensor} and calls at once are refused, and tensors that {@link getTensor} gave earlier show
   * what was there the last time; they are not to be written to before.
   *
   * @throws `UsageError` `DeviceFailed` where the device was lost: the tensors are then what they were the last time.
   */
  async synchronize(): Promise<void> {
    const { runner } = live(this);
    const onGpu = await (insides.get(this) as Inside).onGpu;
    await onGpu?.synchronize(runner);
  }

  /**
   * Calls the program, and writes the tensors that it gives to these, in their order: of the same dtypes and sizes, each in memory that
   * no other, no input and no tensor of the program looks at. What comes back is what a call gives, with these tensors in it. Where they lie
   * row-major, a call makes none of its own for them: one that is repeated allocates nothing.
   *
   * @example
   * ```ts
   * const logits = torch.empty(1, 1000);
   * for (const image of images) show(model.runInto([image], [logits]) as Tensor);
   * ```
   */
  runInto(args: readonly unknown[], outputs: readonly Tensor[]): unknown {
    checkList("runInto", "args", args);
    const { parts } = live(this);
    const signature = rootSignature(parts);
    const results = this.runFlatInto(flattenCall(args, signature.inSpec, parts), outputs);
    if (parts.givesGradients) return results;
    return unflatten(results, signature.outSpec, parts);
  }

  /** The same with the inputs as a flat list; it gives the outputs as one. */
  runFlatInto(leaves: readonly unknown[], outputs: readonly Tensor[]): EngineValue[] {
    checkList("runFlatInto", "leaves", leaves);
    checkList("runFlatInto", "outputs", outputs);
    checkAtOnce(this);
    for (const [at, it] of outputs.entries()) {
      if (!(it instanceof Tensor)) throw fxError("InputType", `the output ${at} is no tensor`);
    }
    // Before the inputs: of a tensor in JavaScript's memory that is both, the run would see two.
    for (const it of outputs) moveToEngine(it);
    return runLeaves(this, leaves, ({ runner, milliseconds }, words) => {
      if (milliseconds !== undefined) {
        throw fxError("InvalidOption", "a run with a limit of `milliseconds` writes to no outputs", {
          help: "leave out the limit, or call the module",
        });
      }
      const written = new ValueWriter(moveToEngine);
      for (const [at, it] of outputs.entries()) written.value(it, () => `output ${at}`);
      return takeLeaves(
        call(() => runner.run_into(words, written.finish())),
        (place) => outputs[place] as Tensor,
      );
    });
  }

  /**
   * What a call with these inputs is compiled to: a step for each convolution or product with what follows it, for each group of
   * pointwise operators, and for every other operator. Printed, it is a table.
   *
   * @example
   * ```ts
   * console.log(String(model.explain([image])));
   * ```
   */
  explain(args: readonly unknown[]): PlanReport {
    return reportOf(this, "explain", args, () => undefined);
  }

  /**
   * Calls the program so many times, after a first time, and tells the shortest time of each step. Printed, it is a table;
   * `chromeTrace` is text that `chrome://tracing` and Perfetto open.
   *
   * @example
   * ```ts
   * const { steps, milliseconds } = model.profile([image], { times: 20 });
   * ```
   */
  profile(args: readonly unknown[], options: { readonly times?: number } = {}): PlanReport {
    checkOptions("profile", options, ["times"]);
    checkAtOnce(this);
    const { times = 10 } = options;
    checkGiven("profile", Number.isInteger(times) && times > 0, "options.times, a whole number from 1 on");
    return reportOf(this, "profile", args, (runner, words, milliseconds) =>
      stepTimes(times, (watch) => {
        for (const it of takeLeaves(watched(runner, words, watch, milliseconds))) {
          if (it instanceof Tensor) it.dispose();
        }
      }),
    );
  }

  /**
   * The program as a file (`.fxg`) with a plan for each of these calls, of whose inputs dtypes and sizes count alone. `tracefx/runtime` runs it
   * without the engine, for inputs of these dtypes and sizes; it opens as a program everywhere. Buffers are stored as the program has them.
   *
   * @example
   * ```ts
   * await writeFile("digits.fxg", model.compiledFile([torch.zeros(1, 1, 8, 8)]));
   * ```
   */
  compiledFile(...calls: readonly (readonly unknown[])[]): Uint8Array {
    const { runner } = live(this);
    if (calls.length === 0) throw fxError("InputCount", "a file of plans has one at least", { help: "give a call" });
    return withInputs(this, "compiledFile", calls, (words) => call(() => runner.compiled_file(words, calls.length)));
  }

  /** Refused, as in PyTorch: a program was exported for training or for evaluation. */
  train(): never {
    throw fxError("NotImplemented", "Calling train() is not supported yet.");
  }

  /** Refused, as in PyTorch: a program was exported for training or for evaluation. */
  eval(): never {
    throw fxError("NotImplemented", "Calling eval() is not supported yet.");
  }

  /** A parameter, buffer or constant as it is now, after the calls that changed it. */
  getTensor(name: string): Tensor {
    const { runner } = live(this);
    checkInEngine(this);
    checkText("getTensor", "the name", name);
    return wrapWords(call(() => runner.state(name)));
  }

  /** Gives the engine's memory back; during a run, as its `progress` may ask for it, when the run has ended. */
  dispose(): void {
    const inside = insides.get(this);
    if (inside?.runner === undefined) return;
    inside.abandoned = inside.runner;
    inside.runner = undefined;
    inside.onGpu?.then(
      (it) => it[Symbol.dispose](),
      () => undefined,
    );
    freeAbandoned(inside);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

/** What the CPU gives for these inputs. */
function onCpu(module: ProgramModule, leaves: readonly unknown[], watch: RunWatch): EngineValue[] {
  return runLeaves(module, leaves, ({ runner, milliseconds }, words) =>
    takeLeaves(watched(runner, words, watch, milliseconds)),
  );
}

/** What the device of the module gives for these inputs. */
async function runLater(
  module: ProgramModule,
  leaves: readonly unknown[],
  options: RunAsyncOptions,
): Promise<RunResult[]> {
  const { outputs = "cpu", ...watch } = options;
  const { device } = live(module);
  checkGiven("runAsync", outputs === "cpu" || outputs === "gpu", 'options.outputs, "cpu" or "gpu"');
  if (device !== "cpu") return await onGpuOrCpu(module, leaves, watch, device, outputs === "gpu");
  if (outputs === "cpu") return onCpu(module, leaves, watch);
  throw fxError("InvalidOption", "a module that runs on the CPU leaves no outputs on a GPU", {
    help: 'program.module({ device: "gpu" })',
  });
}

/** What the GPU gives for these inputs, or the CPU where it is to run them. */
async function onGpuOrCpu(
  module: ProgramModule,
  leaves: readonly unknown[],
  watch: RunWatch,
  device: Exclude<RunDevice, "cpu">,
  resultsStay: boolean,
): Promise<RunResult[]> {
  watch.signal?.throwIfAborted();
  const inside = insides.get(module) as Inside;
  inside.promised += 1;
  try {
    inside.onGpu ??= loadRuns(inside, device);
    // All wait for the same promise, so that they go on in the order in which they were asked for.
    return await leavesOnGpu(module, leaves, watch, await inside.onGpu, resultsStay);
  } finally {
    inside.promised -= 1;
  }
}

async function loadRuns(inside: Inside, device: Exclude<RunDevice, "cpu">): Promise<RunsOnGpu> {
  try {
    const { RunsOnGpu } = await loadGpu();
    const given = typeof device === "string" ? undefined : (device as unknown as GPUDevice);
    inside.runsOnGpu = new RunsOnGpu(given, device === "auto", inside.keepsState);
    return inside.runsOnGpu;
  } catch (error) {
    inside.onGpu = undefined;
    throw error;
  }
}

async function leavesOnGpu(
  module: ProgramModule,
  leaves: readonly unknown[],
  watch: RunWatch,
  onGpu: RunsOnGpu,
  resultsStay: boolean,
): Promise<RunResult[]> {
  const inside = insides.get(module) as Inside;
  relieveMemory();
  const { runner, milliseconds } = live(module);
  const { given, kinds, writes } = prepared(module, leaves);
  inside.running += 1;
  try {
    const watching = watcher(watch, milliseconds);
    const { goes_on, reason } = watching;
    const run = { runner, leaves: given, kinds, watch: { goes_on }, refusal: reason, writes, resultsStay };
    // The CPU has what is left of the time.
    const instead = (all: readonly unknown[]): EngineValue[] =>
      runLeaves(module, all, (_, words) => takeLeaves(watchedBy(runner, words, watching)));
    return forJavaScript(await onGpu.run(run, instead));
  } finally {
    inside.running -= 1;
    freeAbandoned(inside);
  }
}

/** Refuses to look at tensors of the program which a run is to change, or which are ahead on the device. */
function checkInEngine(module: ProgramModule): void {
  const inside = insides.get(module);
  if (inside !== undefined && inside.promised > 0) {
    throw fxError("InvalidOption", "a run that was promised has not ended, and may change the program's tensors", {
      help: "await module.runAsync([...]) first",
    });
  }
  if (inside?.runsOnGpu?.isAhead !== true) return;
  throw fxError("InvalidOption", "what the last runs have changed of the program's tensors is on the device", {
    help: "await module.synchronize() first",
  });
}

/** Refuses a call at once where a GPU is to do it. */
function checkAtOnce(module: ProgramModule): void {
  const { device } = live(module);
  checkInEngine(module);
  if (device === "cpu" || device === "auto") return;
  throw fxError("InvalidOption", "a GPU gives what it computes later, and the module is called at once", {
    help: "await module.runAsync([...])",
  });
}

/** What `run` gives for these inputs, as JavaScript's values. */
function runLeaves(
  module: ProgramModule,
  leaves: readonly unknown[],
  run: (module: ReturnType<typeof live>, words: Uint32Array) => EngineValue[],
): EngineValue[] {
  relieveMemory();
  const inside = live(module);
  const { given, kinds, writes } = prepared(module, leaves);
  const outputs = whileRunning(module, () => withLeaves(given, kinds, (words) => run(inside, words)));
  (insides.get(module) as Inside).writes = writes;
  return forJavaScript(outputs);
}

/** What an operator gives to another one says that it is a float; a result is for JavaScript, which has one number. */
function forJavaScript<T extends RunResult>(outputs: readonly T[]): (T | number)[] {
  return outputs.map((it) => (it instanceof Float ? it.value : it));
}

/** Whether a run may write to what it is given, or to the program's own tensors. */
export function mayWrite(module: ProgramModule): boolean {
  const { runner } = live(module);
  return (insides.get(module) as Inside).writes ?? call(() => runner.changes_inputs());
}

/** What runs change of the program's own tensors: whether they always do, and else the buffers in which it would be seen. */
export function stateOfModule(module: ProgramModule): {
  readonly isChanged: boolean;
  readonly buffers: readonly string[];
} {
  const { parts, device } = live(module);
  if (!mayWrite(module)) return { isChanged: false, buffers: [] };
  const { buffers, changed } = parts;
  // While runs on a GPU go on, buffers cannot be looked at.
  return { isChanged: changed.length > 0 || (device !== "cpu" && buffers.length > 0), buffers };
}

/** The inputs of a call as the engine takes them. */
function prepared(
  module: ProgramModule,
  leaves: readonly unknown[],
): { given: readonly unknown[]; kinds: (LeafKind | undefined)[]; writes: boolean } {
  const { inputs } = live(module).parts;
  const writes = mayWrite(module);
  const given = leaves.some(isGivenArray) ? tensorsOf(leaves, inputs, writes) : leaves;
  if (writes) for (const leaf of given) if (leaf instanceof Tensor && leaf.device.type === "cpu") moveToEngine(leaf);
  return { given, kinds: inputs.map(({ arg }) => kindOf(arg)), writes };
}

/** What the plan for these inputs is made of, with what `timed` tells of its steps. */
function reportOf(
  module: ProgramModule,
  name: string,
  args: readonly unknown[],
  timed: (runner: EngineRunner, words: Uint32Array, milliseconds: number | undefined) => Float64Array | undefined,
): PlanReport {
  const { runner, milliseconds } = live(module);
  return withInputs(module, name, [args], (words) => {
    const times = timed(runner, words, milliseconds);
    const as = (format: string): string => call(() => runner.explain(words, times, format));
    const contents = JSON.parse(as("json")) as PlanContents;
    const [text, chromeTrace] = [as("text"), as("trace")];
    return { ...contents, chromeTrace, toString: () => text };
  });
}

/** Gives the inputs of calls as the engine takes them, one call after the other, to a body that writes to none. */
function withInputs<T>(
  module: ProgramModule,
  name: string,
  calls: readonly (readonly unknown[])[],
  body: (words: Uint32Array) => T,
): T {
  const { parts } = live(module);
  const { inSpec } = rootSignature(parts);
  const { inputs } = parts;
  const given = calls.flatMap((args) => {
    checkList(name, "args", args);
    const leaves = flattenCall(args, inSpec, parts);
    return leaves.some(isGivenArray) ? tensorsOf(leaves, inputs, false) : leaves;
  });
  const kinds = calls.flatMap(() => inputs.map(({ arg }) => kindOf(arg)));
  return whileRunning(module, () => withLeaves(given, kinds, body));
}

/** Runs the body while nothing of the module is freed. */
function whileRunning<T>(module: ProgramModule, body: () => T): T {
  const inside = insides.get(module) as Inside;
  inside.running += 1;
  try {
    return body();
  } finally {
    inside.running -= 1;
    freeAbandoned(inside);
  }
}

function freeAbandoned(inside: Inside): void {
  if (inside.running > 0) return;
  // Of an engine that was made anew, nothing is left to free: what lies in that place now is something else.
  if (inside.generation === generation()) inside.abandoned?.free();
  inside.abandoned = undefined;
}

/** The parts of the program that a module is of, with its tensors as they are now: calls may have changed them. */
export function partsOfModule(module: ProgramModule): ProgramParts {
  const { runner } = live(module);
  const parts = insides.get(module)?.program;
  if (parts === undefined) {
    throw fxError("InvalidOption", "the module was opened without the graph of its program", {
      help: "load(source) gives a program with its graph, and program.module() its module",
    });
  }
  checkInEngine(module);
  const isHeld = new Set(parts.graphSignature.inputSpecs.map(({ target }) => target));
  const now = (fqn: string): Tensor => wrapWords(call(() => runner.state(fqn)));
  return {
    ...parts,
    state: new Map(
      Array.from(parts.state, ([fqn, entry]) => [fqn, isHeld.has(fqn) ? { ...entry, tensor: now(fqn) } : entry]),
    ),
    constants: new Map(
      Array.from(parts.constants, ([fqn, it]) => [
        fqn,
        it.kind === "tensor" && isHeld.has(fqn) ? { kind: "tensor", tensor: now(fqn) } : it,
      ]),
    ),
  };
}

/** The shortest time of each step of so many runs, after one that makes the program ready. */
export function stepTimes(times: number, run: (watch: RunWatch) => void): Float64Array {
  run({});
  const shortest: number[] = [];
  for (let round = 0; round < times; round++) {
    const current: number[] = [];
    let [step, start] = [-1, 0];
    const stop = (now: number): void => {
      if (step >= 0) current[step] = now - start;
    };
    const progress = (done: number): void => {
      // A loop tells of its own steps too.
      if (done === step) return;
      const now = performance.now();
      stop(now);
      [step, start] = [done, now];
    };
    run({ progress });
    stop(performance.now());
    current.forEach((it, at) => (shortest[at] = Math.min(shortest[at] ?? Number.POSITIVE_INFINITY, it)));
  }
  return Float64Array.from(shortest);
}

/** Runs the words of a call. What `progress` throws, or the signal, arrives as it is. */
export function watched(
  runner: EngineRunner,
  words: Uint32Array,
  watch: RunWatch,
  milliseconds: number | undefined,
): Uint32Array {
  const { signal, progress } = watch;
  signal?.throwIfAborted();
  if (signal === undefined && progress === undefined && milliseconds === undefined) {
    return call(() => runner.run(words));
  }
  return watchedBy(runner, words, watcher(watch, milliseconds));
}

/** Runs the words of a call for who watches already. */
export function watchedBy(runner: EngineRunner, words: Uint32Array, { goes_on, reason }: Watcher): Uint32Array {
  try {
    return call(() => runner.run_watched(words, { goes_on }));
  } catch (error) {
    throw reason() ?? error;
  }
}

/** What the engine asks before each node, and what `progress`, the signal or the time has said where it goes on no more. */
interface Watcher {
  readonly goes_on: (done: number, total: number) => boolean;
  readonly reason: () => unknown;
}

/** Watches from now on. */
export function watcher({ signal, progress }: RunWatch, milliseconds: number | undefined): Watcher {
  let stopped: unknown;
  const start = performance.now();
  const goes_on = (done: number, total: number): boolean => {
    enterCallback();
    try {
      progress?.(done, total);
      signal?.throwIfAborted();
      if (milliseconds !== undefined && performance.now() - start > milliseconds) throw tookTooLong(milliseconds);
      return true;
    } catch (reason) {
      stopped = reason;
      return false;
    } finally {
      leaveCallback();
    }
  };
  return { goes_on, reason: () => stopped };
}

/** The inputs with a tensor for each array that stands where the program takes one. */
function tensorsOf(leaves: readonly unknown[], inputs: readonly CallInput[], writes: boolean): unknown[] {
  return leaves.map((leaf, at) => {
    const { arg, val } = inputs[at] ?? {};
    if (arg?.type !== "tensor" || !isGivenArray(leaf)) return leaf;
    if (writes) {
      throw fxError("InputType", `the program writes to its inputs, and ${arg.name} is an array`, {
        help: "give a tensor, which has the changes afterwards: tensor(array)",
      });
    }
    return givenTensor(leaf, val, `the input ${arg.name}`);
  });
}

function tookTooLong(milliseconds: number): Error {
  const what = `the run took longer than ${milliseconds} milliseconds, the limit \`milliseconds\``;
  return fxError("LimitExceeded", what, {
    help: "if you trust the program, run it with a larger limit `milliseconds`",
  });
}

function live(module: ProgramModule): {
  parts: CallParts;
  runner: EngineRunner;
  milliseconds: number | undefined;
  device: RunDevice;
} {
  const inside = insides.get(module);
  if (inside?.runner === undefined) {
    throw fxError("Disposed", "the module was disposed", { help: "make another one: program.module()" });
  }
  if (inside.generation !== generation()) {
    throw lostWithEngine("the module", "make another one after restart(): program.module()");
  }
  const { parts, runner, milliseconds, device } = inside;
  return { parts, runner, milliseconds, device };
}

function rootSignature({ signature }: CallParts): CallSignature {
  if (signature !== undefined) return signature;
  throw fxError("InputStructure", "the program does not say what the structure of its inputs is", {
    help: "pass the inputs as a flat list: module.runFlat([...])",
  });
}

function kindOf(arg: Argument): LeafKind | undefined {
  switch (arg.type) {
    case "tensor":
      return "tensor";
    case "symInt":
      return "int";
    case "symFloat":
      return "float";
    case "symBool":
      return "bool";
    case "constant":
      return arg.value.type;
    case "customObj":
    case "token":
      return undefined;
    default:
      return arg satisfies never;
  }
}
