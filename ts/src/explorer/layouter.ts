/**
 * Has pictures laid out by a worker, or here where there is none.
 *
 * @module
 */
import { layOut, type Layout, type LayoutRequest } from "./layout.ts";

/** A picture that the worker lays out. */
interface Task {
  readonly request: LayoutRequest;
  readonly resolve: (layout: Layout | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/** Lays out pictures. Only the last one that is asked for counts: a worker that lays out another one is ended. */
export class Layouter implements Disposable {
  #worker: Worker | undefined;
  #task: Task | undefined;
  /** Whether workers cannot be had here. */
  #isAlone = false;
  #isDisposed = false;

  /** Whether a worker does it. */
  get hasWorker(): boolean {
    return this.#worker !== undefined;
  }

  constructor() {
    this.#start();
  }

  /** Lays out one picture; undefined where a newer one was asked for meanwhile, or none is wanted any more. */
  async layOut(request: LayoutRequest): Promise<Layout | undefined> {
    if (this.#task !== undefined) this.#end();
    if (this.#isDisposed) return undefined;
    this.#start();
    const worker = this.#worker;
    if (worker === undefined) return layOut(request);
    return await new Promise((resolve, reject) => {
      this.#task = { request, resolve, reject };
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has none
      worker.postMessage(request);
    });
  }

  /** Ends the worker. What it has not laid out is not laid out. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
    this.#end();
  }

  #start(): void {
    if (this.#worker !== undefined || this.#isAlone) return;
    try {
      // In these words bundlers find the worker.
      this.#worker = new Worker(new URL("./layoutWorker.js", import.meta.url), { type: "module" });
    } catch {
      // A page from a file has no workers.
      this.#isAlone = true;
      return;
    }
    const worker = this.#worker;
    worker.addEventListener("message", ({ data }: MessageEvent<Layout>) => {
      const task = this.#task;
      this.#task = undefined;
      task?.resolve(data);
    });
    for (const type of ["error", "messageerror"]) worker.addEventListener(type, () => this.#goOnHere());
  }

  #end(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    const task = this.#task;
    this.#task = undefined;
    task?.resolve(undefined);
  }

  /** Without the worker, which could not be loaded or has failed; what fails here, too, is told. */
  #goOnHere(): void {
    this.#isAlone = true;
    const task = this.#task;
    this.#task = undefined;
    this.#end();
    if (task === undefined) return;
    try {
      task.resolve(layOut(task.request));
    } catch (error) {
      task.reject(error);
    }
  }
}
