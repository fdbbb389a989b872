/**
 * Opens programs from wherever they are.
 *
 * @module
 */
import { call, type Engine, generation, init } from "../engine/engine.ts";
import { openRanges } from "../engine/ranges.ts";
import { checkReadOptions, type FileSource, type RangeSource, type ReadOptions } from "../engine/source.ts";
import { ArchiveError, fxError } from "../base/errors.ts";
import { decoded, type ExportedProgram } from "./exportedProgram.ts";

/** Where a program is. */
export type ProgramSource = FileSource;

/** How to open a program. */
export type LoadOptions = ReadOptions;

type Opening = InstanceType<Engine["Opening"]>;

/**
 * Opens a program that `torch.export.save` wrote, or an `.fxg` file. No code of the file is run.
 *
 * A string is a URL where it begins with a scheme, or in a browser; otherwise it is a path.
 *
 * An archive is read by ranges where that is possible: from files, Blobs, and servers that offer ranges, several of which
 * come at once. Each weight goes straight to the engine's memory, and is there once. With a `sha256` the file comes in its
 * order, one range after the other. Of a server without ranges the file is downloaded first.
 *
 * @example
 * ```ts
 * const program = await load(new URL("./model.pt2", import.meta.url));
 * const fromPicker = await load(input.files[0]);
 * const bounded = await load(bytes, { limits: { nodes: 10_000 } });
 * ```
 */
export async function load(source: ProgramSource, options: LoadOptions = {}): Promise<ExportedProgram> {
  checkReadOptions(options, "load");
  await init();
  for (;;) {
    const file = await openRanges(source, options, "load");
    try {
      return await readProgram(file, options);
    } catch (error) {
      // What a cache kept may be damaged, or be another file than the one at this URL by now.
      const wasKept = error instanceof ArchiveError && (await file.forget?.());
      if (wasKept !== true) throw error;
    } finally {
      await file.close?.();
    }
  }
}

async function readProgram(file: RangeSource, { signal, limits, sha256 }: LoadOptions): Promise<ExportedProgram> {
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
    return callBorn(born, () => decoded(it.finish()));
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
