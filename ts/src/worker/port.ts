/**
 * The port of a worker, in browsers and in Node.
 *
 * @module
 */
import { builtinModule } from "../base/builtinModule.ts";

/** One end of a channel. */
export interface Port<Sent, Received> {
  send(message: Sent, transfers?: readonly ArrayBuffer[]): void;
  /** Does `take` with each message. */
  receive(take: (message: Received) => void): void;
}

/** What both kinds of workers post messages by. */
export interface Poster {
  postMessage(message: unknown, transfers?: readonly ArrayBuffer[]): void;
}

/** The port of the worker that this runs in. */
export function ownPort<Sent, Received>(): Port<Sent, Received> {
  const parent = builtinModule("node:worker_threads")?.parentPort;
  if (parent !== undefined && parent !== null) {
    parent.on("messageerror", unreadable);
    return { send: sender(parent as Poster), receive: (take) => parent.on("message", (data: Received) => take(data)) };
  }
  globalThis.addEventListener("messageerror", unreadable);
  return {
    send: sender(globalThis as unknown as Poster),
    receive: (take) =>
      globalThis.addEventListener("message", (event) => take((event as MessageEvent).data as Received)),
  };
}

/** Ends the worker: of a request that cannot be read, nobody knows who waits for its answer. */
function unreadable(): never {
  throw new Error("a message to the worker could not be read");
}

/** Sends by a worker, or to whoever started this one. */
export function sender(to: Poster): (message: unknown, transfers?: readonly ArrayBuffer[]) => void {
  return (message, transfers = []) => to.postMessage(message, transfers);
}
