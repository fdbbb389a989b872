/**
 * Where programs and the engine are, as messages hold it. A worker that is started again is sent the same: nobody else can change it.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { type ModuleSource, bytesOf } from "../engine/module.ts";
import type { LoadModuleOptions } from "../export/loadModule.ts";
import type { PartSources } from "../engine/parts.ts";
import type { PartName } from "../engine/variant.ts";
import type { SentOptions, SentParts, SentSource, SentWasm } from "./messages.ts";

/** Where a program is: its bytes, a URL, a path (where there are files), a Blob, or the response to a request. */
export type WorkerSource = Uint8Array | ArrayBuffer | URL | string | Blob | Response;

/** A program's place. */
export async function sentSource(source: WorkerSource): Promise<SentSource> {
  if (source instanceof URL) return source.href;
  if (source instanceof ArrayBuffer || source instanceof Uint8Array) return new Uint8Array(source);
  if (source instanceof Response) return await checked(source).blob();
  if (typeof source === "string") return atDocument(source);
  if (source instanceof Blob) return source;
  throw fxError("InvalidOption", "loadModule takes the bytes of a file, a URL, a path, a Blob or a Response");
}

/** The engine's place. */
export async function sentWasm(source: ModuleSource): Promise<SentWasm> {
  if (source instanceof URL) return source.href;
  if (typeof source === "string") return atDocument(source);
  if (source instanceof Response) return await checked(source).arrayBuffer();
  if (source instanceof WebAssembly.Module) return source;
  if (source instanceof ArrayBuffer || ArrayBuffer.isView(source)) return new Uint8Array(bytesOf(source));
  throw fxError(
    "InvalidOption",
    "EngineWorker takes the engine's module and its parts as modules, bytes, URLs or Responses",
  );
}

/** The places of the engine's parts. */
export async function sentParts(sources: PartSources<PartName>): Promise<SentParts> {
  // What it is otherwise, the worker refuses.
  if (typeof sources !== "object" || sources === null) return sources;
  const given = Object.entries(sources).filter(([, source]) => source !== undefined);
  const sent = given.map(async ([name, source]) => [name, await sentWasm(await source)] as const);
  return Object.fromEntries(await Promise.all(sent));
}

/** The options that the worker opens a program with. */
export function sentOptions(given: LoadModuleOptions): SentOptions {
  const { signal: _, progress: __, ...options } = given;
  if (typeof options.module?.device === "object") {
    throw fxError("InvalidOption", "a worker cannot be given a GPUDevice", {
      help: 'the worker asks for one of its own: module: { device: "gpu" }',
    });
  }
  try {
    return structuredClone(options);
  } catch (cause) {
    throw fxError("InvalidOption", "the options of loadModule cannot be sent to a worker", { cause });
  }
}

function checked(response: Response): Response {
  if (response.ok) return response;
  throw fxError("Io", `the server answered ${response.status} for ${response.url}`, { help: "check the URL" });
}

/** A URL is relative to the page, and not to the worker. */
function atDocument(source: string): string {
  return typeof document === "undefined" ? source : new URL(source, document.baseURI).href;
}
