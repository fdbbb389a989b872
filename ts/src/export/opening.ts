/**
 * Reads a program into the engine from wherever it is, each weight straight to its place.
 *
 * @module
 */
import { call, type Engine, generation, init } from "../engine/engine.ts";
import { openRanges } from "../engine/ranges.ts";
import { checkReadOptions, type FileSource, type RangeSource, type ReadOptions } from "../engine/source.ts";
import { ArchiveError, fxError } from "../base/errors.ts";
import type { EngineProgram } from "./engineProgram.ts";

type Opening = InstanceType<Engine["Opening"]>;

/**
 * Opens a program, and gives what `take` makes of it, which may call the engine and frees the program. `reader` is the function that the caller
 * called, for its refusals.
 */
export async function opened<T>(
  source: FileSource,
  options: ReadOptions,
  reader: string,
  take: (program: EngineProgram) => T,
): Promise<T> {
  checkReadOptions(options, reader);
  await init();
  for (;;) {
    const file = await openRanges(source, options, reader);
    try {
      return await read(file, options, take);
    } catch (error) {
      // What a cache kept may be damaged, or be another file than the one at this URL by now.
      const wasKept = error instanceof ArchiveError && (await file.forget?.());
      if (wasKept !== true) throw error;
    } finally {
      await file.close?.();
    }
  }
}

async function read<T>(
  file: RangeSource,
  { signal, limits, sha256 }: ReadOptions,
  take: (program: EngineProgram) => T,
): Promise<T> {
  const born = generation();
  let opening: Opening | undefined = call(
    (engine) => new engine.Opening(file.size, JSON.stringify(limits ?? {}), sha256),
  );
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal?.reason);
  signal?.addEventListener("abort", onAbort, { once: true });
  const running = new Set<Promise<void>>();
  try {
    const it = opening;
    for (;;) {
      signal?.throwIfAborted();
      while (running.size < file.parallel) {
        const request = callBorn(born, () => it.next_request());
        if (request === undefined) break;
        const task: Promise<void> = feed(it, file, request, stop.signal, born).finally(() => running.delete(task));
        running.add(task);
      }
      if (running.size === 0) break;
      await Promise.race(running);
    }
    opening = undefined;
    return callBorn(born, () => take(it.finish()));
  } catch (error) {
    stop.abort(error);
    await Promise.allSettled(running);
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", onAbort);
    // Of an engine that was made anew, nothing is left to free.
    if (born === generation()) opening?.free();
  }
}

/** Reads a range that is wanted, to the engine. */
async function feed(
  opening: Opening,
  file: RangeSource,
  [id = 0, start = 0, end = 0]: Float64Array,
  signal: AbortSignal,
  born: number,
): Promise<void> {
  for await (const piece of file.read(start, end, signal)) {
    signal.throwIfAborted();
    callBorn(born, () => opening.feed(id, piece));
  }
}

/** Calls the engine, if it is the one that this began with. */
function callBorn<T>(born: number, body: () => T): T {
  if (born !== generation()) {
    throw fxError("Disposed", "the engine was made anew while the program was loaded", { help: "load it again" });
  }
  return call(body);
}
