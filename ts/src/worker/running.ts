/**
 * A worker that runs, and who waits for it.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { RunWatch } from "../fx/interpreter.ts";
import { type Answer, type Request, unpackError } from "./messages.ts";
import { startWorker, type WorkerPort } from "./start.ts";

/** A request without the number of its answer. */
export type Asked = Request extends infer R ? (R extends Request ? Omit<R, "id"> : never) : never;

/** What a request is answered with, where it is not refused. */
export type Answered = Extract<Answer, { readonly is: "done" }>["value"];

/** Who waits for an answer. */
interface Waiting {
  resolve(value: Answered): void;
  reject(error: unknown): void;
  /** Rejects, and tells the worker to stop. */
  stop(reason: unknown): void;
  readonly progress: ((done: number, total: number) => void) | undefined;
}

/** How a request is watched. */
export interface AskWatch extends Pick<RunWatch, "signal" | "progress"> {
  /** What is sent and not copied. */
  readonly transfers?: readonly ArrayBuffer[];
  /** Stops what the worker does at once, where that is possible. */
  readonly stop?: () => void;
}

/** A worker that runs, and who waits for it. A program in Node goes on while somebody waits, and no longer. */
export class Running {
  readonly #port: WorkerPort<Request, Answer> = startWorker();
  readonly #waiting = new Map<number, Waiting>();
  #ids = 0;
  #isOver = false;
  #hasAnswered = false;

  constructor() {
    this.#port.receive((answer) => this.#take(answer));
    this.#port.ended((cause) => this.#die(cause));
    this.#port.hold(false);
  }

  /** Whether it has ended. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /** Ends the worker. All who wait, and all who ask from now on, are refused. */
  end(error: Error): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#port.terminate();
    for (const it of this.#waiting.values()) it.reject(error);
    this.#waiting.clear();
  }

  /** Asks the worker, which may be told to stop. */
  async ask(asked: Asked, watch: AskWatch = {}): Promise<Answered> {
    const { signal, progress, transfers, stop } = watch;
    signal?.throwIfAborted();
    if (this.#isOver) throw fxError("Disposed", "the worker with the engine has ended", { help: "call again" });
    const id = (this.#ids += 1);
    let onAbort: (() => void) | undefined;
    try {
      return await new Promise((resolve, reject) => {
        const halt = (reason: unknown): void => {
          stop?.();
          this.#port.send({ do: "abort", id });
          reject(reason as Error);
        };
        onAbort = () => halt(signal?.reason);
        signal?.addEventListener("abort", onAbort, { once: true });
        this.#send({ ...asked, id } as Request, transfers);
        this.#waiting.set(id, { resolve, reject, stop: halt, progress });
        this.#port.hold(true);
      });
    } finally {
      if (onAbort !== undefined) signal?.removeEventListener("abort", onAbort);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) this.#port.hold(false);
    }
  }

  #send(request: Request, transfers: readonly ArrayBuffer[] | undefined): void {
    try {
      this.#port.send(request, transfers);
    } catch (cause) {
      throw fxError("InvalidArgument", "a worker cannot be sent what was given", {
        cause,
        help: "give tensors, numbers, texts, typed arrays and containers of them",
      });
    }
  }

  #take(answer: Answer): void {
    this.#hasAnswered = true;
    const found = this.#waiting.get(answer.id);
    if (found === undefined) return;
    if (answer.is === "progress") {
      try {
        found.progress?.(answer.done, answer.total as number);
      } catch (error) {
        found.stop(error);
      }
      return;
    }
    if (answer.is === "done") return found.resolve(answer.value);
    found.reject(unpackError(answer.error));
    // Of an engine that failed itself, nothing is to be trusted.
    if (answer.isLast || answer.error.kind === "Internal") this.#die("an earlier call failed in it");
  }

  #die(cause: unknown): void {
    this.end(
      this.#hasAnswered
        ? fxError("Internal", "the worker with the engine has ended", {
            cause,
            help: "call again: the next call starts another worker and opens the program again",
          })
        : notStarted(cause),
    );
  }
}

/** Where this file is, or the bundle that it is in. Not written in a URL, which bundlers would take for a file of theirs. */
const HERE = String(import.meta.url);

/** The refusal of a worker that has never answered. */
function notStarted(cause: unknown): Error {
  return fxError("Io", `the worker of the package, which is loaded beside ${HERE}, did not start`, {
    cause,
    help: "see that the server has the worker's file there, at the page's origin, and that a content security policy has worker-src 'self'",
  });
}
