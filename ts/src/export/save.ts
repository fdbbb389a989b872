/**
 * Writes programs as PyTorch's archives.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import type { Bytes } from "../base/bytes.ts";
import { call, type Engine } from "../engine/engine.ts";
import { type FileTarget, writeTarget } from "../engine/target.ts";
import { ExportedProgram } from "./exportedProgram.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

/** Where a program is to be written: a path or a `file:` URL where there are files, or a stream. */
export type ProgramTarget = FileTarget;

/** How to save a program. */
export interface SaveProgramOptions {
  /** Texts to put beside the program, by name; of those that it has already, these take the place. */
  readonly extraFiles?: Readonly<Record<string, string>>;
  /** The folder that all entries of the archive lie in: the name of the file, or `archive` where there is none. */
  readonly root?: string;
  /** Stops the saving. A file that was not finished is removed, a stream is aborted. */
  readonly signal?: AbortSignal;
  /** Is told the bytes written so far, and all that there will be. */
  readonly progress?: (written: number, total: number) => void;
}

type EngineArchive = ReturnType<Engine["Archive"]["of"]>;

const OPTIONS = ["extraFiles", "root", "signal", "progress"] as const;

/**
 * The program as the archive that PyTorch writes: `torch.export.load` takes it. Edits of the graph and of the state are in
 * it. The same program gives the same bytes.
 *
 * What PyTorch's files have no place for is refused by an error that names the node.
 *
 * @example
 * ```ts
 * const bytes = save(program);
 * const labelled = save(program, { extraFiles: { "labels.txt": "cat\ndog" } });
 * ```
 */
export function save(program: ExportedProgram, options: SaveProgramOptions = {}): Bytes {
  return withArchive(program, options, undefined, (archive) => {
    const bytes = new Uint8Array(archive.length());
    let written = 0;
    for (const piece of archivePieces(archive, options)) {
      bytes.set(piece, written);
      written += piece.length;
    }
    return bytes;
  });
}

/**
 * Saves the program to a file or a stream, piece by piece: the archive as a whole is never in memory. The program must not
 * be run or changed before the promise is kept.
 *
 * @example
 * ```ts
 * await saveTo(program, "model.pt2");
 *
 * const file = await handle.createWritable();
 * await saveTo(program, file, { signal, progress: (written, total) => bar.show(written / total) });
 * ```
 */
export async function saveTo(
  program: ExportedProgram,
  target: ProgramTarget,
  options: SaveProgramOptions = {},
): Promise<void> {
  await withArchive(program, options, rootOf(target), async (archive) => {
    await writeTarget(target, archivePieces(archive, options), options.signal);
  });
}

/** The bytes of an archive, piece by piece. */
export function* archivePieces(
  archive: EngineArchive,
  { signal, progress }: SaveProgramOptions,
): IterableIterator<Uint8Array> {
  const total = archive.length();
  let written = 0;
  for (;;) {
    signal?.throwIfAborted();
    const piece = call(() => archive.next_piece());
    if (piece === undefined) return;
    yield piece;
    written += piece.length;
    progress?.(written, total);
  }
}

function withArchive<T>(
  program: ExportedProgram,
  options: SaveProgramOptions,
  root: string | undefined,
  body: (archive: EngineArchive) => T,
): T {
  const help = "exportProgram(module, args) and load(file) give one; saveGraphModule saves a GraphModule";
  checkGiven("save", program instanceof ExportedProgram, "an ExportedProgram", help);
  checkOptions("save", options, OPTIONS);
  options.signal?.throwIfAborted();
  const files = JSON.stringify(Object.entries(options.extraFiles ?? {}));
  return finallyFree(archiveOf(program, options.root ?? root ?? "archive", files), body);
}

function archiveOf(program: ExportedProgram, root: string, files: string): EngineArchive {
  const problems = program.noteValues();
  try {
    return program.withEngine((it) => call((engine) => engine.Archive.of(it, root, files)));
  } catch (error) {
    if (!(error instanceof FxError) || problems.length === 0) throw error;
    const { kind, reason, node, notes } = error;
    throw fxError(kind, reason, { cause: error, node, help: error.help, notes: [...notes, ...problems] });
  }
}

/** Frees the archive when it is written: at once, or when the promise is settled. */
function finallyFree<T>(archive: EngineArchive, body: (archive: EngineArchive) => T): T {
  let result: T;
  try {
    result = body(archive);
  } catch (error) {
    archive.free();
    throw error;
  }
  if (result instanceof Promise) return result.finally(() => archive.free()) as T;
  archive.free();
  return result;
}

/** The name of a file without what comes after the last dot, which PyTorch takes for the root folder. */
export function rootOf(target: ProgramTarget): string | undefined {
  if (typeof target !== "string" && !(target instanceof URL)) return undefined;
  const name = (target instanceof URL ? decodeURIComponent(target.pathname) : target).split(/[\\/]/).at(-1) ?? "";
  return name.replace(/(.)\.[^.]*$/, "$1") || undefined;
}
