/**
 * Functions of JavaScript that the engine calls by number; `crates/wasm/src/library.rs` says how.
 *
 * @module
 */
import { call, enterCallback, leaveCallback, noteFailure } from "../engine/engine.ts";
import { moveToEngine, takeLeaves } from "../engine/tensors.ts";
import { type EngineValue, ValueWriter } from "../engine/values.ts";
import { FxError } from "../base/errors.ts";

interface Callback {
  /** What it is, for errors. */
  readonly what: string;
  readonly run: (values: readonly EngineValue[]) => readonly unknown[];
}

/** What was replaced stays: programs that run keep the operators that they began with. */
const callbacks: Callback[] = [];

/** The number under which the engine calls a function. */
export function numberOf(what: string, run: Callback["run"]): number {
  return callbacks.push({ what, run }) - 1;
}

/** Says to an engine that has just begun who calls the functions. */
export function installHost(): void {
  call((engine) => engine.set_host(HOST));
}

const HOST = {
  call(number: number, words: Uint32Array): Uint32Array {
    const { what, run } = callbacks[number] as Callback;
    // A function may call the engine again, so each call has words of its own.
    const writer = new ValueWriter(moveToEngine);
    enterCallback();
    try {
      const results = run(takeLeaves(words));
      writer.word(0);
      for (const [at, result] of results.entries()) writer.value(result, () => `result ${at} of ${what}`);
    } catch (error) {
      writer.clear();
      writer.word(1);
      writer.text(JSON.stringify(refusalOf(error, what)));
    } finally {
      leaveCallback();
    }
    return writer.finish();
  },
};

/** What was thrown, as the engine carries it on. The error itself becomes the cause of the one that arrives. */
function refusalOf(error: unknown, what: string): object {
  if (error instanceof FxError) {
    const { kind: name, reason: message, op, notes, help } = error;
    noteFailure(error, message);
    return { name, message, op, notes, help };
  }
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const message = `${what} threw ${text}`;
  noteFailure(error, message);
  return { name: "KernelFailed", message };
}
