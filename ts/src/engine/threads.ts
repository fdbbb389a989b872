/**
 * The threads of the engine: workers of the host, each with an instance of the module over the same memory. The engine has one started
 * when a kernel has work for it, and goes on without it until it is there.
 *
 * @module
 */
import { builtinModule } from "../base/builtinModule.ts";
import type { Found } from "./parts.ts";

export { sharedMemory } from "./memory.ts";

/** What all workers of an instance are told. */
export interface ThreadHome {
  readonly module: WebAssembly.Module;
  readonly memory: WebAssembly.Memory;
  readonly parts: Found;
  /** Where a one says that a worker stopped. */
  readonly stoppedAddress: number;
}

/** What a worker is told to begin with. */
export interface ThreadStart extends ThreadHome {
  readonly worker: number;
}

/** A worker of the host. */
export interface ThreadWorker {
  postMessage(start: ThreadStart, transfers: ArrayBuffer[]): void;
  terminate(): unknown;
}

/**
 * Starts a worker whose program is `thread.ts`, and does `onError` when an error ends it, which nobody else is told of. Throws where there is
 * none.
 */
export type StartThread = (onError: () => void) => ThreadWorker;

let startThread: StartThread = startInNode;
/** Whether a browser's worker told how its threads are started. */
let isGiven = false;

/**
 * Says how threads are started where the host is no Node. (It stands where only workers import it: bundlers build what it names for
 * every page.)
 */
export function startThreadsBy(start: StartThread): void {
  startThread = start;
  isGiven = true;
}

/** Says that threads over a memory have stopped, for who waits for them. */
export function markStopped(memory: WebAssembly.Memory, address: number): void {
  Atomics.store(new Int32Array(memory.buffer), address >> 2, 1);
}

/** The threads of one instance of the engine: what the module calls. */
export class Threads {
  readonly #workers = new Set<ThreadWorker>();
  readonly #home: () => ThreadHome;
  readonly #onFewer: (workers: number) => void;

  /** `onFewer` is told how many workers there are when one could not be started. */
  constructor(home: () => ThreadHome, onFewer: (workers: number) => void) {
    this.#home = home;
    this.#onFewer = onFewer;
  }

  /** Starts a worker; gives whether there will be one. */
  start(worker: number): boolean {
    let thread: ThreadWorker | undefined;
    const lose = (): void => {
      if (thread === undefined || this.#workers.delete(thread)) this.#onFewer(this.#workers.size);
    };
    try {
      thread = startThread(lose);
      this.#workers.add(thread);
      thread.postMessage({ ...this.#home(), worker }, []);
      return true;
    } catch {
      // The work is done without it.
      void thread?.terminate();
      lose();
      return false;
    }
  }

  /** Ends all workers, of which some may be in the middle of something: the instance stops where it waits for one. */
  end(): void {
    if (this.#workers.size === 0) return;
    const { memory, stoppedAddress } = this.#home();
    markStopped(memory, stoppedAddress);
    for (const worker of this.#workers) void worker.terminate();
    this.#workers.clear();
  }
}

/** How many threads are enough for most programs: more than so many share no step of theirs well. */
const ENOUGH = 8;

/** The environment variable that says how many threads there are where `init` is not told. */
const VARIABLE = "TRACEFX_NUM_THREADS";

/** How many threads the engine has where nobody says how many, and it can have some. */
export function defaultNumThreads(): number {
  const asked = Number(globalThis.process?.env?.[VARIABLE]);
  if (Number.isInteger(asked) && asked > 0) return asked;
  const processors = builtinModule("node:os")?.availableParallelism() ?? globalThis.navigator?.hardwareConcurrency;
  return Math.min(processors ?? 1, ENOUGH);
}

/**
 * Whether the engine can have threads here: where memory can be shared, and who calls the engine may wait. The main thread of a page may not.
 * Before version 12, Liftoff, the first compiler of V8, miscompiles atomic waits.
 */
export function canHaveThreads(): boolean {
  if (typeof SharedArrayBuffer === "undefined" || typeof document !== "undefined") return false;
  const { v8, deno, bun } = (globalThis.process?.versions ?? {}) as Partial<Record<string, string>>;
  const isNode = v8 !== undefined && deno === undefined && bun === undefined;
  const isAble = isNode
    ? Number.parseInt(v8, 10) >= 12 || process.execArgv.includes("--no-liftoff")
    : isGiven && globalThis.crossOriginIsolated;
  return isAble && canShare();
}

/** Whether the host has room for shared memory, which takes the addresses of all that it may become. */
function canShare(): boolean {
  try {
    return new WebAssembly.Memory({ initial: 1, maximum: 65536, shared: true }).buffer.byteLength > 0;
  } catch {
    return false;
  }
}

function startInNode(onError: () => void): ThreadWorker {
  // Not in the form that bundlers of pages know. It holds in `dist`, and in the chunks of `dist/bundle`.
  const here = import.meta.url;
  const file = new URL("../engine/thread.js", here);
  if (!builtinModule("node:fs").existsSync(file)) throw new Error("a bundle has no file for threads");
  const { Worker: NodeWorker } = builtinModule("node:worker_threads");
  // What the program was started with, such as hooks of loaders, is not for threads.
  const worker = new NodeWorker(file, { name: "tracefx thread", execArgv: [] });
  worker.on("error", onError);
  worker.unref();
  return worker;
}
