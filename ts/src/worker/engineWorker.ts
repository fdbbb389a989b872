/**
 * The engine in a worker, so that nothing that a page does waits for a run: `tracefx/worker`.
 *
 * Programs are opened and called as with `tracefx/load`, and every call is promised. Inputs are copied once and results are handed over; a run
 * that is aborted stops at its next step where memory can be shared (in Node, and on pages that are cross-origin isolated), and elsewhere
 * when it has ended, while its caller goes on at once. Where the worker dies, calls that wait are refused, and the next one
 * starts another worker and opens its program again.
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
import { fxError } from "../base/errors.ts";
import { checkList, checkOptions } from "../base/given.ts";
import type { ModuleSource } from "../engine/module.ts";
import type { LoadModuleOptions } from "../export/loadModule.ts";
import type { RunWatch } from "../fx/interpreter.ts";
import { type Answer, pack, type Packed, type Request, type SentSource, unpack, unpackError } from "./messages.ts";
import { startWorker, type WorkerPort } from "./start.ts";

export * from "../base/errors.ts";
export { tuple } from "../graph/args.ts";
export { tensor, tensorFromBytes } from "../tensor/construct.ts";
export { Tensor } from "../tensor/tensor.ts";

/** Where a program is: its bytes, a URL, a path (where there are files), a Blob, or the response to a request. */
export type WorkerSource = Uint8Array | ArrayBuffer | URL | string | Blob | Response;

/** How a worker is started. */
export interface EngineWorkerOptions {
  /** The engine's module itself or where it lies, for hosts where the package cannot find it. */
  readonly wasm?: ModuleSource;
}

/** Who waits for an answer. */
interface Waiting {
  resolve(value: Packed | number | undefined): void;
  reject(error: unknown): void;
  progress?: ((done: number, total: number) => void) | undefined;
}

/** A request without the number of its answer. */
type Asked = Request extends infer R ? (R extends Request ? Omit<R, "id"> : never) : never;

/** A worker that runs, and who waits for it. */
class Running {
  readonly port: WorkerPort<Request, Answer> = startWorker();
  readonly waiting = new Map<number, Waiting>();
  isOver = false;

  constructor() {
    this.port.receive((answer) => this.#take(answer));
    this.port.ended((cause) => this.#die(cause));
  }

  /** Refuses all who wait, and all who ask from now on. */
  end(error: Error): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const it of this.waiting.values()) it.reject(error);
    this.waiting.clear();
  }

  #take(answer: Answer): void {
    const found = this.waiting.get(answer.id);
    if (found === undefined) return;
    if (answer.is === "progress") return found.progress?.(answer.done, answer.total as number);
    this.waiting.delete(answer.id);
    if (answer.is === "done") return found.resolve(answer.value);
    found.reject(unpackError(answer.error));
    // Of an engine that failed itself, nothing is to be trusted.
    if (answer.error.kind === "Internal") {
      this.port.terminate();
      this.#die("an earlier call failed in it");
    }
  }

  #die(cause: unknown): void {
    const help = "call again: the next call starts another worker and opens the program again";
    this.end(fxError("Internal", "the worker with the engine has ended", { cause, help }));
  }
}

/** The engine in a worker of its own. */
export class EngineWorker implements Disposable {
  readonly #options: EngineWorkerOptions;
  #running: Running | undefined;
  #started: Promise<Running> | undefined;
  #ids = 0;

  constructor(options: EngineWorkerOptions = {}) {
    checkOptions("EngineWorker", options, ["wasm"]);
    this.#options = options;
  }

  /**
   * Opens a program in the worker: `loadModule` of `tracefx/load`. What a GPU of the caller's would do is not to be asked for, since no
   * worker can be given one.
   *
   * @example
   * ```ts
   * const model = await engine.loadModule("model.pt2", { signal, progress: (read, total) => bar.show(read, total) });
   * ```
   */
  async loadModule(source: WorkerSource, options: LoadModuleOptions = {}): Promise<WorkerModule> {
    checkOptions("loadModule", options, ["limits", "signal", "progress", "sha256", "cache", "module"]);
    const module = new WorkerModule(this, await sent(source), options);
    await module.opened(options);
    return module;
  }

  /** Ends the worker. Calls that wait are refused; a later call starts another one. */
  terminate(): void {
    this.#running?.port.terminate();
    this.#running?.end(fxError("Disposed", "the worker with the engine was terminated"));
    this.#running = undefined;
    this.#started = undefined;
  }

  [Symbol.dispose](): void {
    this.terminate();
  }

  /** @internal The worker that runs, which is started where there is none. */
  async running(): Promise<Running> {
    if (this.#running?.isOver !== false) {
      const running = new Running();
      this.#running = running;
      this.#started = this.ask(running, { do: "init", wasm: this.#options.wasm }).then(
        () => running,
        (error: unknown) => {
          // A worker without an engine is of no use to the next call.
          running.port.terminate();
          running.end(error as Error);
          throw error;
        },
      );
    }
    return await (this.#started as Promise<Running>);
  }

  /** @internal Asks the worker, which may be told to stop. */
  async ask(
    running: Running,
    asked: Asked,
    { signal, progress }: Pick<RunWatch, "signal" | "progress"> = {},
    transfers: readonly ArrayBuffer[] = [],
    stop: () => void = () => undefined,
  ): Promise<Packed | number | undefined> {
    signal?.throwIfAborted();
    if (running.isOver) throw fxError("Disposed", "the worker with the engine has ended", { help: "call again" });
    const id = (this.#ids += 1);
    let onAbort: (() => void) | undefined;
    try {
      return await new Promise((resolve, reject) => {
        running.waiting.set(id, { resolve, reject, progress });
        onAbort = () => {
          stop();
          running.port.send({ do: "abort", id });
          reject(signal?.reason as Error);
        };
        signal?.addEventListener("abort", onAbort, { once: true });
        running.port.send({ ...asked, id } as Request, transfers);
      });
    } finally {
      if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
      running.waiting.delete(id);
    }
  }
}

/** A program in the worker, which is called as `ProgramModule.runAsync` is. {@link EngineWorker.loadModule} gives one. */
export class WorkerModule implements Disposable {
  readonly #worker: EngineWorker;
  readonly #source: SentSource;
  readonly #options: LoadModuleOptions;
  /** The worker that has the program, and its number there. */
  #place: { readonly running: Running; readonly model: number } | undefined;
  #opening: Promise<void> | undefined;
  #isDisposed = false;

  /** @internal */
  constructor(worker: EngineWorker, source: SentSource, options: LoadModuleOptions) {
    this.#worker = worker;
    this.#source = source;
    this.#options = options;
  }

  /**
   * Calls the program, and promises what its `forward` gives. The inputs may be changed as soon as this returns.
   *
   * @example
   * ```ts
   * const logits = (await model.runAsync([image], { signal, progress: (done, total) => bar.show(done / total) })) as Tensor;
   * ```
   *
   * @throws `EngineError` `Internal` where the worker dies; the next call starts another one.
   */
  async runAsync(args: readonly unknown[], watch: RunWatch = {}): Promise<unknown> {
    checkOptions("runAsync", watch, ["signal", "progress"]);
    checkList("runAsync", "args", args);
    const transfers: ArrayBuffer[] = [];
    const packed = args.map((it) => pack(it, transfers));
    await this.opened({});
    const { running, model } = this.#place as { running: Running; model: number };
    const stop = watch.signal === undefined ? undefined : sharedWord();
    const asked = { do: "run", model, args: packed, progress: watch.progress !== undefined, stop } as const;
    const result = await this.#worker.ask(running, asked, watch, transfers, () => {
      if (stop !== undefined) Atomics.store(stop, 0, 1);
    });
    return unpack(result as Packed);
  }

  /** Gives the memory of the program back, after the runs that were asked for before. */
  dispose(): void {
    this.#isDisposed = true;
    const place = this.#place;
    this.#place = undefined;
    if (place?.running.isOver === false) {
      this.#worker.ask(place.running, { do: "dispose", model: place.model }).catch(() => undefined);
    }
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** @internal Opens the program where the worker that runs does not have it. */
  async opened({ signal, progress }: Pick<LoadModuleOptions, "signal" | "progress">): Promise<void> {
    if (this.#isDisposed)
      throw fxError("Disposed", "the module was disposed", { help: "open it again: loadModule(source)" });
    if (this.#place?.running.isOver === false) return;
    this.#opening ??= this.#open({ ...(signal && { signal }), ...(progress && { progress }) }).finally(() => {
      this.#opening = undefined;
    });
    await this.#opening;
  }

  async #open(watch: Pick<LoadModuleOptions, "signal" | "progress">): Promise<void> {
    const running = await this.#worker.running();
    const { signal: _, progress: __, ...options } = this.#options;
    const isTold = watch.progress !== undefined;
    const asked = { do: "load", source: this.#source, options, progress: isTold } as const;
    this.#place = { running, model: (await this.#worker.ask(running, asked, watch)) as number };
  }
}

/** A word that both sides see, where the host lets memory be shared. */
function sharedWord(): Int32Array | undefined {
  const isIsolated = (globalThis as { readonly crossOriginIsolated?: boolean }).crossOriginIsolated ?? true;
  return typeof SharedArrayBuffer === "undefined" || !isIsolated ? undefined : new Int32Array(new SharedArrayBuffer(4));
}

/** A source as a message holds it. */
async function sent(source: WorkerSource): Promise<SentSource> {
  if (source instanceof URL) return source.href;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (source instanceof Response) return await source.blob();
  if (typeof source === "string") return atDocument(source);
  if (source instanceof Uint8Array || source instanceof Blob) return source;
  throw fxError("InvalidOption", "loadModule takes the bytes of a file, a URL, a path, a Blob or a Response");
}

/** A URL is relative to the page, and not to the worker. */
function atDocument(source: string): string {
  return typeof document === "undefined" ? source : new URL(source, document.baseURI).href;
}
