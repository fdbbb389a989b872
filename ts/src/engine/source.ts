/**
 * The bytes of files, from wherever they are.
 *
 * @module
 */
import { builtinModule } from "../base/builtinModule.ts";
import { STREAM_BYTES } from "../../../bindings/command.ts";
import type { Bytes } from "../base/bytes.ts";
import { fxError } from "../base/errors.ts";
import { checkOptions } from "../base/given.ts";

/** A file that is open, such as a `FileHandle` of Node. It is not closed. */
export interface ReadableFile {
  /** Tells how long it is. */
  stat(): Promise<{ readonly size: number }>;
  /** Reads bytes from a position into a buffer. */
  read(buffer: Uint8Array, offset: number, length: number, position: number): Promise<{ readonly bytesRead: number }>;
}

/**
 * Where a file is: its bytes, a URL, a path (where there are files), an open file, a Blob, or the response to a request. A
 * string is a URL where it begins with a scheme, or in a browser; otherwise it is a path.
 */
export type FileSource = Uint8Array | ArrayBuffer | URL | string | Blob | Response | ReadableFile;

/** A file of which each range is read once. */
export interface RangeSource {
  readonly size: number;
  /** How many ranges may be read at once. */
  readonly parallel: number;
  /** The bytes of a range, in pieces. A piece is good until the next one is asked for. */
  read(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** Gives back what was opened. */
  close?(): Promise<void>;
  /** Of what a cache gave: takes it out of the cache, and says whether it was there before. */
  forget?(): Promise<boolean>;
}

/** How to read a file. */
export interface ReadOptions {
  /** Bounds on what an untrusted file may ask for, by name; the error of a bound names it. */
  readonly limits?: Readonly<Record<string, number>>;
  /** Stops fetching and reading. */
  readonly signal?: AbortSignal;
  /** Is told the bytes read so far, and all that there are where that is known. */
  readonly progress?: (read: number, total: number | undefined) => void;
  /** The SHA-256 of the file, as 64 hexadecimal digits. No program is made of other bytes. */
  readonly sha256?: string;
  /**
   * The name of a cache (of the Cache API) in which what a URL gave is kept, so that it is fetched once. Hosts without that
   * API fetch it each time.
   */
  readonly cache?: string;
}

/** The names of the options. */
export const READ_OPTIONS = ["limits", "signal", "progress", "sha256", "cache"] as const;
/** How much of a file is read at once. */
const PIECE = 1 << 22;

/** Refuses options that no reader of files has; `reader` is the function that reads, for messages. */
export function checkReadOptions(options: ReadOptions, reader: string): void {
  checkOptions(reader, options, READ_OPTIONS);
  const { sha256 } = options;
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw fxError("InvalidOption", "sha256 is not 64 hexadecimal digits", { help: "sha256sum FILE prints them" });
  }
  options.signal?.throwIfAborted();
}

/** The bytes of a file as a whole; `reader` is the function that reads it, for messages. */
export async function readSource(source: FileSource, options: ReadOptions, reader: string): Promise<Uint8Array> {
  checkReadOptions(options, reader);
  const { sha256 } = options;
  const bytes = await readBytes(source, options, reader);
  if (sha256 !== undefined) await checkHash(bytes, sha256);
  return bytes;
}

async function readBytes(source: FileSource, options: ReadOptions, reader: string): Promise<Uint8Array> {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (source instanceof Blob) return await readStream(source.stream(), source.size, options);
  if (source instanceof Response) return await readResponse(source, options);
  if (typeof source === "string" || source instanceof URL) return await readLocation(source, options);
  if (isReadableFile(source)) return await readFile(source, options);
  throw unreadable(source, reader);
}

/** The refusal of what is no source of bytes. */
export function unreadable(source: unknown, reader: string): Error {
  const what = source === null ? "null" : `a value of type ${typeof source}`;
  return fxError("InvalidOption", `${reader} cannot read ${what}`, {
    help: "pass bytes, a URL, a path, an open file, a Blob or a Response",
  });
}

/** Whether this is a file that is open. */
export function isReadableFile(source: unknown): source is ReadableFile {
  return typeof source === "object" && source !== null && "read" in source && "stat" in source;
}

async function readLocation(source: string | URL, options: ReadOptions): Promise<Uint8Array> {
  if (isLocal(source)) return await readPath(source, options);
  const { cache: name } = options;
  const cache = name === undefined ? undefined : await globalThis.caches?.open(name);
  const kept = await cache?.match(source);
  if (kept !== undefined) {
    const bytes = await readResponse(kept, options);
    if (options.sha256 === undefined || (await hashOf(bytes)) === options.sha256.toLowerCase()) return bytes;
    // The file at this URL is another one by now.
    await cache?.delete(source);
  }
  const bytes = await readResponse(await fetched(source, options), options);
  if (cache !== undefined) {
    if (options.sha256 !== undefined) await checkHash(bytes, options.sha256);
    await cache.put(source, new Response(bytes as Bytes));
  }
  return bytes;
}

/** What a server answers. */
export async function fetched(
  source: string | URL,
  { signal }: ReadOptions,
  headers: Readonly<Record<string, string>> = {},
): Promise<Response> {
  try {
    return await fetch(source, signal === undefined ? { headers } : { headers, signal });
  } catch (cause) {
    signal?.throwIfAborted();
    const what = `cannot fetch ${String(source)}`;
    throw fxError("Io", what, { cause, help: "check the URL and the server's CORS headers" });
  }
}

/** Whether a location is a path or a `file:` URL, on a host that has files. */
export function isLocal(source: string | URL): boolean {
  return (!isUrl(source) || String(source).startsWith("file:")) && builtinModule("node:fs/promises") !== undefined;
}

function isUrl(source: string | URL): boolean {
  const text = String(source);
  return /^[a-z][a-z0-9+.-]+:/i.test(text) && !/^[a-z]:[\\/]/i.test(text);
}

/** The bytes of a local file. */
export async function readPath(path: string | URL, options: ReadOptions): Promise<Uint8Array> {
  const file = await openFile(path);
  try {
    return (await file.stat()).isFile() ? await readFile(file, options) : await readToEnd(file, options);
  } finally {
    await file.close();
  }
}

/** The bytes of a pipe or a device, which has no places to read at, and may have no end. */
export async function readToEnd(file: LocalFile, options: ReadOptions): Promise<Uint8Array> {
  async function* pieces(): AsyncGenerator<Uint8Array, void> {
    for (;;) {
      const piece = new Uint8Array(PIECE);
      const { bytesRead } = await file.read(piece, 0, PIECE, null);
      if (bytesRead === 0) return;
      yield piece.subarray(0, bytesRead);
    }
  }
  return await gathered(pieces(), undefined, options);
}

/** A file of the system that is open. */
export interface LocalFile extends ReadableFile {
  stat(): Promise<{ readonly size: number; isFile(): boolean }>;
  /** Without a position it reads on. */
  read(
    buffer: Uint8Array,
    offset: number,
    length: number,
    position: number | null,
  ): Promise<{ readonly bytesRead: number }>;
  close(): Promise<void>;
}

/** Opens a local file, which the caller closes. */
export async function openFile(source: string | URL): Promise<LocalFile> {
  try {
    const file = await builtinModule("node:fs/promises")?.open(isUrl(source) ? new URL(source) : source);
    if (file !== undefined) return file;
  } catch (cause) {
    throw fxError("Io", `cannot read ${String(source)}`, { cause, help: "check the path" });
  }
  throw fxError("Io", `cannot read ${String(source)}`, { help: "this host has no files" });
}

async function readFile(file: ReadableFile, { signal, progress, limits }: ReadOptions): Promise<Uint8Array> {
  const { size } = await file.stat();
  checkLength(size, size, limits);
  const bytes = new Uint8Array(size);
  for (let read = 0; read < size; ) {
    signal?.throwIfAborted();
    const { bytesRead } = await file.read(bytes, read, Math.min(PIECE, size - read), read);
    if (bytesRead === 0) return bytes.subarray(0, read);
    read += bytesRead;
    progress?.(read, size);
  }
  return bytes;
}

/** The body of a good answer, and how long it will be where that is known. */
export function bodyOf(response: Response): { body: ReadableStream<Uint8Array>; total: number | undefined } {
  if (!response.ok) {
    throw fxError("Io", `the server answered ${response.status} for ${response.url}`, { help: "check the URL" });
  }
  // The length of a compressed body is that of fewer bytes than come.
  const length = response.headers.get("content-encoding") === null ? Number(response.headers.get("content-length")) : 0;
  const total = Number.isSafeInteger(length) && length > 0 ? length : undefined;
  return { body: response.body ?? new Blob([]).stream(), total };
}

async function readResponse(response: Response, options: ReadOptions): Promise<Uint8Array> {
  const { body, total } = bodyOf(response);
  return await readStream(body, total, options);
}

/** The bytes of a stream. */
async function readStream(
  stream: ReadableStream<Uint8Array>,
  total: number | undefined,
  options: ReadOptions,
): Promise<Uint8Array> {
  return await gathered(piecesOf(stream, options.signal), total, options);
}

/** The bytes of pieces, put where they stay as they come: nothing is held twice where the length is known and true. */
async function gathered(
  pieces: AsyncIterable<Uint8Array>,
  total: number | undefined,
  { signal, progress, limits }: ReadOptions,
): Promise<Uint8Array> {
  // A server may say anything, so more than this comes before it is believed.
  let bytes = new Uint8Array(Math.min(total ?? 1 << 16, 2 ** 30));
  let read = 0;
  for await (const value of pieces) {
    signal?.throwIfAborted();
    checkLength(read + value.length, total, limits);
    if (read + value.length > bytes.length) {
      const longer = new Uint8Array(Math.max(2 * bytes.length, read + value.length));
      longer.set(bytes.subarray(0, read));
      bytes = longer;
    }
    bytes.set(value, read);
    read += value.length;
    progress?.(read, total);
  }
  return read === bytes.length ? bytes : bytes.slice(0, read);
}

/**
 * Refuses more bytes than the limits allow: `stream_bytes` where nobody says how many there will be, which may be endless,
 * and else `archive_bytes`.
 */
export function checkLength(read: number, total: number | undefined, limits: ReadOptions["limits"]): void {
  const name = total === undefined ? "stream_bytes" : "archive_bytes";
  const limit = limits?.[name] ?? (total === undefined ? STREAM_BYTES : 2 ** 32);
  if (read <= limit) return;
  throw fxError("LimitExceeded", `the limit \`${name}\` is ${limit}, but the file has more bytes`, {
    help: `if you trust the file, load it with a larger limit: { limits: { ${name}: … } }`,
  });
}

/** The pieces of a stream, which is cancelled where not all of them are taken. */
export async function* piecesOf(
  stream: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array, void> {
  const reader = stream.getReader();
  const stop = (): void => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", stop, { once: true });
  let isDone = false;
  try {
    for (;;) {
      signal?.throwIfAborted();
      const { value, done } = await reader.read();
      signal?.throwIfAborted();
      isDone = done;
      if (value === undefined) return;
      yield value;
    }
  } catch (cause) {
    signal?.throwIfAborted();
    isDone = true;
    throw fxError("Io", "the bytes stopped coming", { cause, help: "try again" });
  } finally {
    signal?.removeEventListener("abort", stop);
    if (!isDone) stop();
    reader.releaseLock();
  }
}

async function checkHash(bytes: Uint8Array, sha256: string): Promise<void> {
  const found = await hashOf(bytes);
  if (found === sha256.toLowerCase()) return;
  throw fxError("ArchiveChecksum", `the file has the SHA-256 ${found}, and ${sha256.toLowerCase()} was expected`, {
    help: "the file is damaged, or another one",
  });
}

async function hashOf(bytes: Uint8Array): Promise<string> {
  const { subtle } = globalThis.crypto ?? {};
  if (subtle === undefined) {
    throw fxError("NotImplemented", "this host cannot compute a SHA-256", {
      help: "browsers can on secure pages (https)",
    });
  }
  const digest = new Uint8Array(await subtle.digest("SHA-256", bytes as Bytes));
  return Array.from(digest, (it) => it.toString(16).padStart(2, "0")).join("");
}
