/**
 * Writes files piece by piece, to wherever they are to be.
 *
 * @module
 */
import { fxError } from "../errors.ts";

/** Where a file is to be written: a path or a `file:` URL where there are files, or a stream. */
export type FileTarget = string | URL | WritableStream<Uint8Array>;

/**
 * Writes the pieces. A stream is closed at the end and aborted on failure; a file is there whole or not at all.
 */
export async function writeTarget(
  target: FileTarget,
  pieces: Iterable<Uint8Array>,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (target instanceof WritableStream) return await writeStream(target, pieces);
  const fs = globalThis.process?.getBuiltinModule?.("node:fs/promises");
  if (fs === undefined || (typeof target !== "string" && !(target instanceof URL))) {
    throw fxError("InvalidOption", "a program cannot be saved there", {
      help: "pass a WritableStream or, where there are files, a path",
    });
  }
  const path = target instanceof URL ? globalThis.process.getBuiltinModule("node:url").fileURLToPath(target) : target;
  const partial = `${path}.partial-${globalThis.process.pid}`;
  try {
    const file = await fs.open(partial, "w");
    try {
      for (const piece of pieces) await file.writeFile(piece);
      await file.sync();
    } finally {
      await file.close();
    }
    await fs.rename(partial, path);
  } catch (cause) {
    await fs.rm(partial, { force: true });
    signal?.throwIfAborted();
    if (!isOfFiles(cause)) throw cause;
    throw fxError("Io", `cannot write ${path}`, { cause, help: "check the path and the disk" });
  }
}

async function writeStream(stream: WritableStream<Uint8Array>, pieces: Iterable<Uint8Array>): Promise<void> {
  const writer = stream.getWriter();
  try {
    for (const piece of pieces) {
      await writer.ready;
      await writer.write(piece);
    }
    await writer.close();
  } catch (error) {
    // What went wrong is told to the caller; that the stream cannot be aborted any more is not news.
    await writer.abort(error).catch(() => {});
    throw error;
  } finally {
    writer.releaseLock();
  }
}

/** Whether the error is of the file system, and not of what makes the pieces. */
function isOfFiles(error: unknown): boolean {
  return error instanceof Error && "syscall" in error;
}
