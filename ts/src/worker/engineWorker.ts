/**
 * The engine in a worker, so that nothing that a page does waits for a run: `tracefx/worker`.
 *
 * Programs are opened and called as with `tracefx/load`, and every call is promised. Inputs are copied once and results are handed over; a run
 * that is aborted stops at its next step where memory can be shared (in Node, and on pages that are cross-origin isolated), and elsewhere
 * when it has ended, while its caller goes on at once. Where the worker dies, calls that wait are refused, and the next one
 * starts another worker and opens its program again. A program in Node ends when nothing waits for the worker.
 *
 * Tensors are made and read here, and have no methods that compute (`x.relu()`): import `tracefx/torch` for them.
 *
 * @example
 * ```ts
 * import { EngineWorker, tensor } from "tracefx/worker";
 *
 * const engine = new EngineWorker();
 * const model = await engine.loadModule("model.pt2");
 * const logits = await model.runAsync([tensor([[1, 2, 3]], { dtype: "float32" })], { signal });
 * engine.terminate();
 * ```
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import { fxError } from "../base/errors.ts";
import { checkFunction, checkList, checkOptions } from "../base/given.ts";
import type { ModuleSource } from "../engine/module.ts";
import type { PartSources } from "../engine/parts.ts";
import { READ_OPTIONS } from "../engine/source.ts";
import type { PartName, Variant } from "../engine/variant.ts";
import type { LoadModuleOptions } from "../export/loadModule.ts";
import type { RunWatch } from "../fx/interpreter.ts";
import { HostStorage } from "../tensor/storage.ts";
import { moveTensor, type Tensor, tensorStorage } from "../tensor/tensor.ts";
import {
  pack,
  type RunResult,
  type SentOptions,
  type SentParts,
  type SentSource,
  type SentWasm,
  unpack,
} from "./messages.ts";
import { Running } from "./running.ts";
import { sentOptions, sentParts, sentSource, sentWasm, type WorkerSource } from "./sources.ts";

export * from "../base/errors.ts";
export { tuple } from "../graph/args.ts";
export { tensor, tensorFromBytes } from "../tensor/construct.ts";
export { Tensor } from "../tensor/tensor.ts";
export type { WorkerSource } from "./sources.ts";

/** How a worker is started. */
export interface EngineWorkerOptions {
  /** The engine's module itself or where it lies, for hosts where the package cannot find it. */
  readonly wasm?: ModuleSource;
  /** When the rest of the engine is fetched: as `init` takes it. */
  readonly parts?: PartSources<PartName>;
  /** How many threads kernels use at most: as `init` takes it. */
  readonly threads?: number;
  /** Which build to load: as `init` takes it. */
  readonly variant?: Variant;
}

/** The engine in a worker of its own. */
export class EngineWorker implements Disposable {
  readonly #options: EngineWorkerOptions;
  #wasm: Promise<SentWasm> | undefined;
  #parts: Promise<SentParts> | undefined;
  #running: Running | undefined;
  #started: Promise<Running> | undefined;

  constructor(options: EngineWorkerOptions = {}) {
    checkOptions("EngineWorker", options, ["wasm", "parts", "threads", "variant"]);
    this.#options = options;
  }

  /**
   * Opens a program in the worker: `loadModule` of `tracefx/load`. A worker cannot be given a `GPUDevice`; with `module: { device: "gpu" }` it asks
   * for one of its own.
   *
   * @example
   * ```ts
   * const model = await engine.loadModule("model.pt2", { signal, progress: (read, total) => bar.show(read, total) });
   * ```
   */
  async loadModule(source: WorkerSource, options: LoadModuleOptions = {}): Promise<WorkerModule> {
    checkOptions("loadModule", options, [...READ_OPTIONS, "module"]);
    checkProgress("loadModule", options);
    const { signal } = options;
    signal?.throwIfAborted();
    const sent = sentOptions(options);
    const module = new WorkerModule(this, await untilAborted(sentSource(source), signal), sent);
    try {
      await untilAborted(module.opened(options), signal);
    } catch (error) {
      module.dispose();
      throw error;
    }
    return module;
  }

  /** Ends the worker. Calls that wait are refused; a later call starts another one. */
  terminate(): void {
    this.#running?.end(fxError("Disposed", "the worker with the engine was terminated"));
    this.#running = undefined;
    this.#started = undefined;
  }

  [Symbol.dispose](): void {
    this.terminate();
  }

  /** @internal The worker that runs, which is started where there is none. */
  async running(): Promise<Running> {
    const { wasm, parts = "lazy", threads, variant } = this.#options;
    // A response can be read once, and every worker is sent what it said.
    if (wasm !== undefined) this.#wasm ??= sentWasm(wasm);
    this.#parts ??= sentParts(parts);
    const [sentModule, sentDeferred] = await Promise.all([this.#wasm, this.#parts]);
    if (this.#running?.isOver !== false) {
      const running = new Running();
      const options = {
        parts: sentDeferred,
        ...(sentModule === undefined ? {} : { wasm: sentModule }),
        ...(threads === undefined ? {} : { threads }),
        ...(variant === undefined ? {} : { variant }),
      };
      this.#running = running;
      this.#started = running.ask({ do: "init", options }).then(
        () => running,
        (error: unknown) => {
          // A worker without an engine is of no use to the next call.
          running.end(error as Error);
          throw error;
        },
      );
    }
    return await (this.#started as Promise<Running>);
  }
}

/** The worker that has a program, and its number there. */
interface Place {
  readonly running: Running;
  readonly model: number;
}

/** A program in the worker, which is called as `ProgramModule.runAsync` is. {@link EngineWorker.loadModule} gives one. */
export class WorkerModule implements Disposable {
  readonly #worker: EngineWorker;
  readonly #source: SentSource;
  readonly #options: SentOptions;
  #place: Place | undefined;
  #opening: Promise<Place> | undefined;
  /** How many calls have not ended. */
  #pending = 0;
  /** Whether calls have changed the program's own tensors, which only the worker has. */
  #hasChanged = false;
  #isDisposed = false;

  /** @internal */
  constructor(worker: EngineWorker, source: SentSource, options: SentOptions) {
    this.#worker = worker;
    this.#source = source;
    this.#options = options;
  }

  /**
   * Calls the program, and promises what its `forward` gives. The inputs may be changed as soon as this returns; those that the program
   * itself writes to have their new elements once the promise is kept.
   *
   * @example
   * ```ts
   * const logits = (await model.runAsync([image], { signal, progress: (done, total) => bar.show(done / total) })) as Tensor;
   * ```
   *
   * @throws `EngineError` `Internal` where the worker dies; the next call starts another one. `UsageError` `Disposed`, once, where that call
   * is of a program whose calls have changed its own tensors, such as a cache: another worker has them as the file has them. `UsageError`
   * `InvalidOption` where results are to stay on the worker's GPU, which no message can hold.
   */
  async runAsync(args: readonly unknown[], watch: RunWatch = {}): Promise<unknown> {
    checkOutputs(watch);
    checkOptions("runAsync", watch, ["signal", "progress"]);
    checkProgress("runAsync", watch);
    checkList("runAsync", "args", args);
    this.#checkLive();
    watch.signal?.throwIfAborted();
    const transfers: ArrayBuffer[] = [];
    const tensors: Tensor[] = [];
    const packed = args.map((it) => pack(it, transfers, (tensor) => tensors.push(tensor)));
    this.#checkState();
    this.#pending += 1;
    try {
      const { running, model } = await untilAborted(this.opened(), watch.signal);
      const word = watch.signal === undefined && watch.progress === undefined ? undefined : sharedWord();
      const asked = { do: "run", model, args: packed, progress: watch.progress !== undefined, stop: word } as const;
      const stop = (): void => {
        if (word !== undefined) Atomics.store(word, 0, 1);
      };
      const { value, written, hasChanged } = (await running.ask(asked, { ...watch, transfers, stop })) as RunResult;
      this.#hasChanged = hasChanged;
      for (const [at, bytes] of written) writeBack(tensors[at] as Tensor, bytes);
      return unpack(value);
    } finally {
      this.#pending -= 1;
      this.#release();
    }
  }

  /** Gives the memory of the program back, after the runs that were asked for before. */
  dispose(): void {
    this.#isDisposed = true;
    this.#release();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** @internal Opens the program where the worker that runs does not have it. */
  async opened(watch: Pick<LoadModuleOptions, "signal" | "progress"> = {}): Promise<Place> {
    if (this.#place?.running.isOver === false) return this.#place;
    this.#opening ??= this.#open(watch).finally(() => {
      this.#opening = undefined;
      this.#release();
    });
    return await this.#opening;
  }

  async #open({ signal, progress }: Pick<LoadModuleOptions, "signal" | "progress">): Promise<Place> {
    const running = await this.#worker.running();
    const isTold = progress !== undefined;
    const asked = { do: "load", source: this.#source, options: this.#options, progress: isTold } as const;
    const model = await running.ask(asked, { ...(signal && { signal }), ...(progress && { progress }) });
    this.#place = { running, model: model as number };
    return this.#place;
  }

  /** Refuses once to go on without what earlier calls have written. */
  #checkState(): void {
    if (!this.#hasChanged || this.#place?.running.isOver !== true) return;
    this.#hasChanged = false;
    throw fxError(
      "Disposed",
      "what calls have changed of the program's own tensors is gone with the worker that ended",
      {
        help: "call again to begin with the tensors of the file",
      },
    );
  }

  #checkLive(): void {
    if (!this.#isDisposed) return;
    throw fxError("Disposed", "the module was disposed", { help: "open it again: loadModule(source)" });
  }

  /** Lets the worker forget the program, once it was disposed and nothing of it goes on. */
  #release(): void {
    const place = this.#place;
    if (!this.#isDisposed || this.#pending > 0 || place === undefined) return;
    this.#place = undefined;
    if (!place.running.isOver) place.running.ask({ do: "dispose", model: place.model }).catch(() => undefined);
  }
}

/** Puts what a run wrote to an input where the caller sees it. */
function writeBack(tensor: Tensor, bytes: Bytes): void {
  if (tensor.isDisposed) return;
  if (!tensorStorage(tensor).needsFree) return moveTensor(tensor, new HostStorage(bytes));
  throw fxError(
    "InputType",
    "the program writes to an input that the engine of this thread has, which a worker cannot change",
    {
      help: "give a copy: tensor(x.toArray(), { dtype: x.dtype })",
    },
  );
}

/** Refuses what modules of this thread can do: no message holds a tensor on a GPU. */
function checkOutputs(watch: unknown): void {
  if ((watch as { readonly outputs?: unknown } | null)?.outputs !== "gpu") return;
  throw fxError("InvalidOption", "what a worker gives is handed over, and a tensor on its GPU cannot be", {
    help:
      'leave out `outputs`; tensors stay on the GPU from call to call in the thread that has the module: import "tracefx" there, ' +
      "in a worker of your own",
  });
}

function checkProgress(what: string, { progress }: { readonly progress?: unknown }): void {
  if (progress !== undefined) checkFunction(what, "options.progress", progress);
}

/** What is promised, or the reason of a signal, whichever comes first. */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  let onAbort: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort as () => void);
  }
}

/** A word that both sides see, where the host lets memory be shared. */
function sharedWord(): Int32Array | undefined {
  const isIsolated = (globalThis as { readonly crossOriginIsolated?: boolean }).crossOriginIsolated ?? true;
  return typeof SharedArrayBuffer === "undefined" || !isIsolated ? undefined : new Int32Array(new SharedArrayBuffer(4));
}
