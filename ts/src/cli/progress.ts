/**
 * What is told while the command takes long. The engine keeps the thread busy that calls it, so that another one writes.
 *
 * @module
 */
import { writeSync } from "node:fs";
import { isMainThread, Worker } from "node:worker_threads";

/** What takes no longer than this says nothing. */
const PATIENCE = 1000;

/** What the other thread does: text, so that the package has no file for it, which every bundler would have to find. */
const CODE = `
const { writeSync } = require("node:fs");
const { workerData } = require("node:worker_threads");
const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
const start = Date.now();
let at = 0;
const write = (text) => { try { writeSync(workerData.fd, text); } catch {} };
setTimeout(() => setInterval(() => {
  const seconds = Math.round((Date.now() - start) / 1000);
  write("\\r\\u001b[2K" + frames[at++ % frames.length] + " " + workerData.message + " (" + seconds + "s)");
  Atomics.store(workerData.shown, 0, 1);
}, 100), workerData.patience);
`;

/** Where a line is written, by its number at the system. */
interface Stream {
  readonly fd: number;
  readonly isTTY: boolean;
}

/**
 * A line on the terminal of who waits, until it is disposed of: what is done, and for how long. There is none where errors go to a file.
 */
export function progressOf(message: string, stream: Stream = process.stderr, patience = PATIENCE): AsyncDisposable {
  if (!stream.isTTY || !isMainThread) return { [Symbol.asyncDispose]: () => Promise.resolve() };
  const { fd } = stream;
  const shown = new Int32Array(new SharedArrayBuffer(4));
  const worker = new Worker(CODE, { eval: true, workerData: { message, shown, patience, fd } });
  // A command that is done does not wait for it.
  worker.unref();
  return {
    [Symbol.asyncDispose]: async () => {
      await worker.terminate();
      if (Atomics.load(shown, 0) !== 1) return;
      try {
        writeSync(fd, "\r\u001b[2K");
      } catch {
        // A terminal that is gone, or that takes nothing right now, is no failure of the command.
      }
    },
  };
}
