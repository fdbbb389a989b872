/**
 * Writes files piece by piece, to wherever they are to be.
 *
 * @module
 */
import { builtinModule } from "../base/builtinModule.ts";
import { fxError } from "../base/errors.ts";

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
  const fs = builtinModule("node:fs/promises");
  if (fs === undefined || (typeof target !== "string" && !(target instanceof URL))) {
    throw fxError("InvalidOption", "a program cannot be saved there", {
      help: "pass a WritableStream or, where there are files, a path",
    });
  }
  const path = target instanceof URL ? builtinModule("node:url").fileURLToPath(target) : target;
  try {
    await writePath(path, pieces, fs, builtinModule("node:path"));
  } catch (cause) {
    signal?.throwIfAborted();
    if (!isOfFiles(cause)) throw cause;
    const { code, message } = cause as NodeJS.ErrnoException;
    const help =
      code === "ENOENT"
        ? "make the folder first, or check the path"
        : code === "EACCES" || code === "EPERM"
          ? "check the file's permissions"
          : "check the disk and the path";
    throw fxError("Io", `could not write ${path}: ${message}`, { cause, help });
  }
}

type Files = ReturnType<typeof process.getBuiltinModule<"node:fs/promises">>;
type Paths = ReturnType<typeof process.getBuiltinModule<"node:path">>;

/**
 * Writes a file whole or not at all: until all of it is on the disk, an old file of this name stays as it was, and then its
 * permissions are those of the new one. Links are followed and stay. A device or a pipe is written to as it is.
 */
async function writePath(path: string, pieces: Iterable<Uint8Array>, fs: Files, paths: Paths): Promise<void> {
  const target = await followed(path, fs, paths);
  const old = await fs.stat(target).catch(absent);
  if (old?.isFile() === false) {
    // A folder is refused by the system.
    const file = await fs.open(target, fs.constants.O_WRONLY);
    try {
      for (const piece of pieces) await file.writeFile(piece);
    } finally {
      await file.close();
    }
    return;
  }
  // What may not be written may not be replaced either.
  if (old !== undefined) await (await fs.open(target, fs.constants.O_WRONLY)).close();
  const random = Array.from(crypto.getRandomValues(new Uint8Array(16)), (it) => it.toString(16).padStart(2, "0"));
  const folder = paths.dirname(target);
  const partial = paths.join(folder, `.tracefx-${random.join("")}.partial`);
  // Whoever may not read the old file may not read the new one while it comes.
  const file = await fs.open(partial, "wx", old === undefined ? 0o666 : 0o600);
  try {
    try {
      for (const piece of pieces) await file.writeFile(piece);
      if (old !== undefined) {
        // Only root can change the owner; a file that is writable for others may belong to its writer then.
        await file.chown(old.uid, old.gid).catch(() => {});
        await file.chmod(old.mode & 0o7777);
      }
      await file.sync();
    } finally {
      await file.close();
    }
    await fs.rename(partial, target);
  } catch (error) {
    await fs.rm(partial, { force: true });
    throw error;
  }
  // Puts the new name on the disk, too, where the system can.
  const opened = await fs.open(folder, "r").catch(() => undefined);
  await opened?.sync().catch(() => {});
  await opened?.close();
}

/** Where a path leads, through links: the last of them may lead to what is not there yet. */
async function followed(path: string, fs: Files, paths: Paths): Promise<string> {
  let target = path;
  for (let links = 0; links < 40; links++) {
    const found = await fs.lstat(target).catch(absent);
    if (found?.isSymbolicLink() !== true) return target;
    target = paths.resolve(paths.dirname(target), await fs.readlink(target));
  }
  throw fxError("Io", `could not write ${path}: its links do not end`, { help: "check the disk and the path" });
}

/** Nothing, for what is not there. */
function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
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
