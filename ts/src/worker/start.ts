/**
 * Starts the worker of this package, in browsers and in Node.
 *
 * @module
 */
import type { Worker as NodeWorker } from "node:worker_threads";
import { builtinModule } from "../base/builtinModule.ts";
import { type Port, type Poster, sender } from "./port.ts";

/** A worker, as whoever started it sees it. */
export interface WorkerPort<Sent, Received> extends Port<Sent, Received> {
  /** Does `end` once, when the worker has ended by itself, with what it died of. */
  ended(end: (cause: unknown) => void): void;
  terminate(): void;
  /** Says whether the worker is a reason for the program to go on, where programs end by themselves. */
  hold(isHeld: boolean): void;
}

/** What the workers of some hosts have. */
interface Held {
  ref?(): void;
  unref?(): void;
}

/** Starts the worker of this package. */
export function startWorker<Sent, Received>(): WorkerPort<Sent, Received> {
  if (typeof Worker !== "undefined") {
    // Bundlers recognise this form, and build what it names.
    const worker = new Worker(new URL("./serve.js", import.meta.url), { type: "module", name: "tracefx" });
    return {
      send: sender(worker as Poster),
      receive: (take) => worker.addEventListener("message", ({ data }) => take(data as Received)),
      ended: (end) => {
        worker.addEventListener("error", (event) => end(event.error ?? event.message), { once: true });
        worker.addEventListener("messageerror", () => end("a message could not be read"), { once: true });
      },
      terminate: () => worker.terminate(),
      hold: (isHeld) => (worker as Worker & Held)[isHeld ? "ref" : "unref"]?.(),
    };
  }
  // Not in that form: what bundlers of pages make of it would be of no use here.
  const here = import.meta.url;
  const worker = workerOfNode(new URL("./serve.js", here));
  return {
    send: sender(worker as Poster),
    receive: (take) => worker.on("message", (data: Received) => take(data)),
    ended: (end) => {
      worker.once("error", end);
      worker.once("messageerror", end);
      worker.once("exit", (code) => end(`it exited with ${code}`));
    },
    terminate: () => void worker.terminate(),
    hold: (isHeld) => worker[isHeld ? "ref" : "unref"](),
  };
}

/** A worker of Node that runs a file. */
function workerOfNode(file: URL): NodeWorker {
  const threads = builtinModule("node:worker_threads");
  const name = "tracefx";
  // What `--eval` needs is refused by workers that are files. Options of V8 are taken over, but refused where they are said.
  const said = process.execArgv.filter((it) => !it.startsWith("--input-type"));
  if (said.length === process.execArgv.length) return new threads.Worker(file, { name });
  try {
    return new threads.Worker(file, { name, execArgv: said });
  } catch {
    return new threads.Worker(file, { name, execArgv: [] });
  }
}
