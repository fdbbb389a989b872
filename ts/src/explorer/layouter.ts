/**
 * Has pictures laid out by a worker, or here where there is none.
 *
 * @module
 */
import { layOut, type Layout, type LayoutRequest } from "./layout.ts";

/** Lays out pictures, one after another. */
export class Layouter implements Disposable {
  readonly #waiting = new Map<
    number,
    { readonly request: LayoutRequest; readonly resolve: (layout: Layout) => void }
  >();
  #worker: Worker | undefined;
  #nRequests = 0;

  /** Whether a worker does it. */
  get hasWorker(): boolean {
    return this.#worker !== undefined;
  }

  constructor() {
    try {
      // In these words bundlers find the worker.
      this.#worker = new Worker(new URL("./layoutWorker.js", import.meta.url), { type: "module" });
    } catch {
      // A page from a file has no workers.
      return;
    }
    this.#worker.addEventListener(
      "message",
      ({ data }: MessageEvent<{ readonly id: number; readonly layout: Layout }>) => {
        this.#waiting.get(data.id)?.resolve(data.layout);
        this.#waiting.delete(data.id);
      },
    );
    this.#worker.addEventListener("error", () => this.#goOnHere());
  }

  /** Lays out one picture. */
  async layOut(request: LayoutRequest): Promise<Layout> {
    const worker = this.#worker;
    if (worker === undefined) return layOut(request);
    return await new Promise((resolve) => {
      const id = this.#nRequests++;
      this.#waiting.set(id, { request, resolve });
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a worker has none
      worker.postMessage({ id, request });
    });
  }

  /** Ends the worker. What it has not laid out is not laid out. */
  [Symbol.dispose](): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#waiting.clear();
  }

  /** Without the worker, which could not be loaded. */
  #goOnHere(): void {
    const waiting = [...this.#waiting.values()];
    this[Symbol.dispose]();
    for (const { request, resolve } of waiting) resolve(layOut(request));
  }
}
