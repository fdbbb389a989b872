/**
 * The bytes of files, from wherever they are.
 *
 * @module
 */
import { fxError } from "../errors.ts";

/**
 * Where a file is: its bytes, a URL, a path (where there are files), a Blob, or the response to a request. A string is a
 * URL where it begins with a scheme, or in a browser; otherwise it is a path.
 */
export type FileSource = Uint8Array | ArrayBuffer | URL | string | Blob | Response;

/** How to read a file. */
export interface ReadOptions {
  /** Bounds on what an untrusted file may ask for, by name; the error of a bound names it. */
  readonly limits?: Readonly<Record<string, number>>;
  /** Stops fetching and reading. */
  readonly signal?: AbortSignal;
  /** Is told the bytes read so far, and all that there are where that is known. */
  readonly progress?: (read: number, total: number | undefined) => void;
  /** The SHA-256 of the file, as 64 hexadecimal digits. Other bytes are refused before anything looks at them. */
  readonly sha256?: string;
  /**
   * The name of a cache (of the Cache API) in which what a URL gave is kept, so that it is fetched once. Hosts without that
   * API fetch it each time.
   */
  readonly cache?: string;
}

const OPTIONS: readonly string[] = ["limits", "signal", "progress", "sha256", "cache"];
/** How much of a file is read at once. */
const PIECE = 1 << 22;

/** The bytes of a file; `reader` is the function that reads it, for messages. */
export async function readSource(source: FileSource, options: ReadOptions, reader: string): Promise<Uint8Array> {
  const stray = Object.keys(options).find((name) => !OPTIONS.includes(name));
  if (stray !== undefined) {
    throw fxError("InvalidOption", `${reader} has no option ${stray}`, {
      help: `the options are ${OPTIONS.join(", ")}`,
    });
  }
  const { sha256 } = options;
  if (sha256 !== undefined && !/^[0-9a-f]{64}$/i.test(sha256)) {
    throw fxError("InvalidOption", "sha256 is not 64 hexadecimal digits", { help: "sha256sum FILE prints them" });
  }
  options.signal?.throwIfAborted();
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
  throw fxError(
    "InvalidOption",
    `${reader} cannot read ${source === null ? "null" : `a value of type ${typeof source}`}`,
    {
      help: "pass bytes, a URL, a path, a Blob or a Response",
    },
  );
}

async function readLocation(source: string | URL, options: ReadOptions): Promise<Uint8Array> {
  const text = String(source);
  const isUrl = /^[a-z][a-z0-9+.-]+:/i.test(text) && !/^[a-z]:[\\/]/i.test(text);
  const isFile = !isUrl || text.startsWith("file:");
  if (isFile && globalThis.process?.getBuiltinModule !== undefined) {
    return await readFile(isUrl ? new URL(text) : text, options);
  }
  const { cache: name, signal } = options;
  const cache = name === undefined ? undefined : await globalThis.caches?.open(name);
  const kept = await cache?.match(source);
  if (kept !== undefined) {
    const bytes = await readResponse(kept, options);
    if (options.sha256 === undefined || (await hashOf(bytes)) === options.sha256.toLowerCase()) return bytes;
    // The file at this URL is another one by now.
    await cache?.delete(source);
  }
  let response: Response;
  try {
    response = await fetch(source, signal === undefined ? {} : { signal });
  } catch (cause) {
    signal?.throwIfAborted();
    throw fxError("Io", `cannot fetch ${text}`, { cause, help: "check the URL and the server's CORS headers" });
  }
  const bytes = await readResponse(response, options);
  if (cache !== undefined) {
    if (options.sha256 !== undefined) await checkHash(bytes, options.sha256);
    await cache.put(source, new Response(bytes as Uint8Array<ArrayBuffer>));
  }
  return bytes;
}

async function readFile(path: string | URL, options: ReadOptions): Promise<Uint8Array> {
  const fs = globalThis.process.getBuiltinModule("node:fs/promises");
  const { signal, progress } = options;
  try {
    const file = await fs.open(path);
    try {
      const { size } = await file.stat();
      const bytes = new Uint8Array(size);
      for (let read = 0; read < size; ) {
        signal?.throwIfAborted();
        const { bytesRead } = await file.read(bytes, read, Math.min(PIECE, size - read), read);
        if (bytesRead === 0) return bytes.subarray(0, read);
        read += bytesRead;
        progress?.(read, size);
      }
      return bytes;
    } finally {
      await file.close();
    }
  } catch (cause) {
    signal?.throwIfAborted();
    if (!(cause instanceof Error && "syscall" in cause)) throw cause;
    throw fxError("Io", `cannot read ${String(path)}`, { cause, help: "check the path" });
  }
}

async function readResponse(response: Response, options: ReadOptions): Promise<Uint8Array> {
  if (!response.ok) {
    throw fxError("Io", `the server answered ${response.status} for ${response.url}`, { help: "check the URL" });
  }
  if (response.body === null) return new Uint8Array(await response.arrayBuffer());
  // The length of a compressed body is that of fewer bytes than come.
  const isPlain = response.headers.get("content-encoding") === null;
  const length = isPlain ? Number(response.headers.get("content-length") ?? Number.NaN) : Number.NaN;
  return await readStream(response.body, Number.isSafeInteger(length) && length > 0 ? length : undefined, options);
}

/** The bytes of a stream, put where they stay as they come: nothing is held twice where the length is known and true. */
async function readStream(
  stream: ReadableStream<Uint8Array>,
  total: number | undefined,
  { signal, progress }: ReadOptions,
): Promise<Uint8Array> {
  // A server may say anything, so more than this comes before it is believed.
  let bytes = new Uint8Array(Math.min(total ?? 1 << 16, 2 ** 30));
  let read = 0;
  const reader = stream.getReader();
  const stop = () => void reader.cancel(signal?.reason).catch(() => {});
  signal?.addEventListener("abort", stop, { once: true });
  try {
    for (;;) {
      const { value, done } = await reader.read();
      signal?.throwIfAborted();
      if (done) return read === bytes.length ? bytes : bytes.slice(0, read);
      if (read + value.length > bytes.length) {
        const longer = new Uint8Array(Math.max(2 * bytes.length, read + value.length));
        longer.set(bytes.subarray(0, read));
        bytes = longer;
      }
      bytes.set(value, read);
      read += value.length;
      progress?.(read, total);
    }
  } finally {
    signal?.removeEventListener("abort", stop);
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
  const digest = new Uint8Array(await subtle.digest("SHA-256", bytes as Uint8Array<ArrayBuffer>));
  return Array.from(digest, (it) => it.toString(16).padStart(2, "0")).join("");
}
