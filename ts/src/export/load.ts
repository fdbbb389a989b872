/**
 * Opens programs from wherever they are.
 *
 * @module
 */
import { init } from "../engine/engine.ts";
import { fxError } from "../errors.ts";
import { type ExportedProgram, openProgram } from "./exportedProgram.ts";

/** Where a program is: its bytes, a URL, a path (where there are files), a Blob, or the response to a request. */
export type ProgramSource = Uint8Array | ArrayBuffer | URL | string | Blob | Response;

/** How to open a program. */
export interface LoadOptions {
  /** Bounds on what an untrusted file may ask for, by name; the error of a bound names it. */
  readonly limits?: Readonly<Record<string, number>>;
  /** Stops fetching and reading. */
  readonly signal?: AbortSignal;
}

/**
 * Opens a program that `torch.export.save` wrote, or an `.fxg` file. No code of the file is run.
 *
 * A string is a URL where it begins with a scheme, or in a browser; otherwise it is a path.
 *
 * @example
 * ```ts
 * const program = await load(new URL("./model.pt2", import.meta.url));
 * const fromPicker = await load(input.files[0]);
 * const bounded = await load(bytes, { limits: { nodes: 10_000 } });
 * ```
 */
export async function load(source: ProgramSource, options: LoadOptions = {}): Promise<ExportedProgram> {
  const { limits = {}, signal, ...unknown } = options;
  const [stray] = Object.keys(unknown);
  if (stray !== undefined) {
    throw fxError("InvalidOption", `load has no option ${stray}`, { help: "the options are limits and signal" });
  }
  signal?.throwIfAborted();
  const [bytes] = await Promise.all([readSource(source, signal), init()]);
  signal?.throwIfAborted();
  return openProgram(bytes, limits);
}

async function readSource(source: ProgramSource, signal: AbortSignal | undefined): Promise<Uint8Array> {
  if (source instanceof Uint8Array) return source;
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  if (source instanceof Response) return await readResponse(source);
  if (typeof source === "string" || source instanceof URL) return await readLocation(source, signal);
  throw fxError("InvalidOption", `a program cannot be loaded from ${source === null ? "null" : typeof source}`, {
    help: "pass bytes, a URL, a path, a Blob or a Response",
  });
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
