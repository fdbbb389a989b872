/**
 * Files that are read by ranges, so that they need not be in memory as a whole.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import { HttpRanges, endOf, RANGES_OF_TAIL } from "./httpRanges.ts";
import {
  bodyOf,
  checkLength,
  type FileSource,
  fetched,
  isLocal,
  isReadableFile,
  openFile,
  piecesOf,
  type RangeSource,
  type ReadableFile,
  type ReadOptions,
  readToEnd,
  unreadable,
} from "./source.ts";

/** How much of a file, or of memory, is taken at once. */
const PIECE = 1 << 20;

/** Opens a file for reading by ranges; `reader` is the function that reads it, for messages. */
export async function openRanges(source: FileSource, options: ReadOptions, reader: string): Promise<RangeSource> {
  if (source instanceof Uint8Array) return new MemoryRanges(source);
  if (source instanceof ArrayBuffer) return new MemoryRanges(new Uint8Array(source));
  if (source instanceof Blob) return new BlobRanges(source, counter(options, source.size));
  if (source instanceof Response) return await DownloadRanges.of(source, options);
  if (typeof source !== "string" && !(source instanceof URL)) {
    if (!isReadableFile(source)) throw unreadable(source, reader);
    const { size } = await source.stat();
    return new FileRanges(source, size, counter(options, size));
  }
  if (isLocal(source)) {
    const file = await openFile(source);
    try {
      const found = await file.stat();
      if (!found.isFile()) {
        const bytes = await readToEnd(file, options);
        await file.close();
        return new MemoryRanges(bytes);
      }
      const { size } = found;
      return new FileRanges(file, size, counter(options, size), () => file.close());
    } catch (error) {
      await file.close();
      throw error;
    }
  }
  const cache = options.cache === undefined ? undefined : await globalThis.caches?.open(options.cache);
  if (cache !== undefined) return await openCached(cache, source, options);
  return await openUrl(source, options);
}

/** Told of bytes as they come. */
type Counter = (bytes: number) => void;

function counter({ progress }: ReadOptions, total: number | undefined): Counter {
  let read = 0;
  return (bytes) => {
    read += bytes;
    progress?.(read, total);
  };
}

async function openUrl(source: string | URL, options: ReadOptions): Promise<RangeSource> {
  if (!/^https?:/i.test(new URL(source, globalThis.location?.href).href)) {
    return await DownloadRanges.of(await fetched(source, options), options);
  }
  // A server that refuses the header, or the browser for it, may give the file without it.
  const headers = { Range: `bytes=-${RANGES_OF_TAIL}` };
  const response = await fetched(source, options, headers).catch(() => fetched(source, options));
  options.signal?.throwIfAborted();
  if (response.status === 200) return await DownloadRanges.of(response, options);
  const first = endOf(response);
  if (first !== undefined) {
    return await HttpRanges.of(source, response, first, counter(options, first.size), options.signal);
  }
  await response.body?.cancel();
  return await DownloadRanges.of(await fetched(source, options), options);
}

/** The cache gives a Blob, which the browser may keep on its disk. What is not there yet is put there as it comes. */
async function openCached(cache: Cache, source: string | URL, options: ReadOptions): Promise<RangeSource> {
  const forget = async (): Promise<boolean> => {
    await cache.delete(source);
    return wasKept;
  };
  let kept = await cache.match(source);
  const wasKept = kept !== undefined;
  if (kept === undefined) {
    const answer = new Response(counted(await fetched(source, options), options));
    try {
      await cache.put(source, answer);
    } catch (cause) {
      options.signal?.throwIfAborted();
      if (cause instanceof FxError) throw cause;
      throw fxError("Io", `cannot keep ${String(source)} in the cache`, {
        cause,
        help: "try again, or without a cache",
      });
    }
    options.signal?.throwIfAborted();
    kept = await cache.match(source);
  }
  if (kept === undefined) throw fxError("Io", `the cache did not keep ${String(source)}`);
  const blob = await kept.blob();
  const count = wasKept ? counter(options, blob.size) : () => {};
  return Object.assign(new BlobRanges(blob, count), { forget });
}

/** The body of a response, whose bytes are told of as they go by. */
function counted(response: Response, options: ReadOptions): ReadableStream<Uint8Array> {
  const { body, total } = bodyOf(response);
  const count = counter(options, total);
  let read = 0;
  const watch = new TransformStream<Uint8Array, Uint8Array>({
    transform(piece, controller) {
      options.signal?.throwIfAborted();
      read += piece.length;
      checkLength(read, total, options.limits);
      count(piece.length);
      controller.enqueue(piece);
    },
  });
  return body.pipeThrough(watch);
}

/** Bytes that are in memory. */
class MemoryRanges implements RangeSource {
  readonly parallel = 1;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  get size(): number {
    return this.#bytes.length;
  }

  *read(start: number, end: number): Iterable<Uint8Array> {
    for (let at = start; at < end; at += PIECE) yield this.#bytes.subarray(at, Math.min(at + PIECE, end));
  }
}

/** What a server sent that has no ranges. A piece is forgotten when all of it was read. */
class DownloadRanges implements RangeSource {
  readonly parallel = 1;
  readonly size: number;
  readonly #pieces: (Uint8Array | undefined)[];
  readonly #starts: number[] = [];
  readonly #left: number[];

  private constructor(pieces: Uint8Array[]) {
    this.#pieces = pieces;
    this.#left = pieces.map((it) => it.length);
    let size = 0;
    for (const piece of pieces) {
      this.#starts.push(size);
      size += piece.length;
    }
    this.size = size;
  }

  static async of(response: Response, options: ReadOptions): Promise<DownloadRanges> {
    const { body, total } = bodyOf(response);
    const count = counter(options, total);
    const pieces: Uint8Array[] = [];
    let read = 0;
    for await (const piece of piecesOf(body, options.signal)) {
      read += piece.length;
      checkLength(read, total, options.limits);
      pieces.push(piece);
      count(piece.length);
    }
    return new DownloadRanges(pieces);
  }

  *read(start: number, end: number): Iterable<Uint8Array> {
    let at = this.#starts.findLastIndex((it) => it <= start);
    for (let from = start; from < end; at++) {
      const [piece, first = 0] = [this.#pieces[at], this.#starts[at]];
      if (piece === undefined) throw fxError("Internal", "a piece of a download was asked for twice");
      const bytes = piece.subarray(from - first, end - first);
      from += bytes.length;
      this.#left[at] = (this.#left[at] ?? 0) - bytes.length;
      if (this.#left[at] === 0) this.#pieces[at] = undefined;
      yield bytes;
    }
  }
}

class BlobRanges implements RangeSource {
  readonly parallel = 1;
  readonly #blob: Blob;
  readonly #count: Counter;

  constructor(blob: Blob, count: Counter) {
    this.#blob = blob;
    this.#count = count;
  }

  get size(): number {
    return this.#blob.size;
  }

  async *read(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array> {
    for await (const piece of piecesOf(this.#blob.slice(start, end).stream(), signal)) {
      this.#count(piece.length);
      yield piece;
    }
  }
}

class FileRanges implements RangeSource {
  readonly parallel = 1;
  readonly size: number;
  readonly close?: () => Promise<void>;
  readonly #file: ReadableFile;
  readonly #count: Counter;
  readonly #buffer: Uint8Array;

  constructor(file: ReadableFile, size: number, count: Counter, close?: () => Promise<void>) {
    this.#file = file;
    this.size = size;
    this.#count = count;
    this.#buffer = new Uint8Array(Math.min(PIECE, size));
    if (close !== undefined) this.close = close;
  }

  async *read(start: number, end: number, signal: AbortSignal): AsyncIterable<Uint8Array> {
    for (let at = start; at < end; ) {
      signal.throwIfAborted();
      const { bytesRead } = await this.#file.read(this.#buffer, 0, Math.min(this.#buffer.length, end - at), at);
      if (bytesRead === 0) throw fxError("Io", "the file became shorter while it was read");
      at += bytesRead;
      this.#count(bytesRead);
      yield this.#buffer.subarray(0, bytesRead);
    }
  }
}
