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
}

/** The bytes of a file; `reader` is the function that reads it, for messages. */
export async function readSource(source: FileSource, options: ReadOptions, reader: string): Promise<Uint8Array> {
  const stray = Object.keys(options).find((name) => name !== "limits" && name !== "signal");
  if (stray !== undefined) {
    throw fxError("InvalidOption", `${reader} has no option ${stray}`, { help: "the options are limits and signal" });
  }
  const { signal } = options;
  signal?.throwIfAborted();
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  if (source instanceof Response) return await readResponse(source);
  if (typeof source === "string" || source instanceof URL) return await readLocation(source, signal);
  throw fxError(
    "InvalidOption",
    `${reader} cannot read ${source === null ? "null" : `a value of type ${typeof source}`}`,
    {
      help: "pass bytes, a URL, a path, a Blob or a Response",
    },
  );
}

async function readLocation(source: string | URL, signal: AbortSignal | undefined): Promise<Uint8Array> {
  const fs = globalThis.process?.getBuiltinModule?.("node:fs/promises");
  const text = String(source);
  const isUrl = /^[a-z][a-z0-9+.-]+:/i.test(text) && !/^[a-z]:[\\/]/i.test(text);
  const isFile = !isUrl || text.startsWith("file:");
  if (fs !== undefined && isFile) {
    try {
      return await fs.readFile(isUrl ? new URL(text) : text, signal === undefined ? {} : { signal });
    } catch (cause) {
      signal?.throwIfAborted();
      throw fxError("Io", `cannot read ${text}`, { cause, help: "check the path" });
    }
  }
  let response: Response;
  try {
    response = await fetch(source, signal === undefined ? {} : { signal });
  } catch (cause) {
    signal?.throwIfAborted();
    throw fxError("Io", `cannot fetch ${text}`, { cause, help: "check the URL and the server's CORS headers" });
  }
  return await readResponse(response);
}

async function readResponse(response: Response): Promise<Uint8Array> {
  if (!response.ok) {
    throw fxError("Io", `the server answered ${response.status} for ${response.url}`, { help: "check the URL" });
  }
  return new Uint8Array(await response.arrayBuffer());
}
