/**
 * Gets a compiled WebAssembly module from wherever it is: a URL, a response, bytes, or a module that is compiled already.
 *
 * @module
 */
import { builtinModule } from "../base/builtinModule.ts";
import type { Bytes } from "../base/bytes.ts";
import { fxError } from "../base/errors.ts";

/** What the engine can be loaded from. Hosts that forbid compiling at run time pass a module. */
export type ModuleSource = string | URL | Response | BufferSource | WebAssembly.Module;

const HELP = "copy the .wasm files of the package beside your bundle, or say where they are: init({ wasm })";

/** How a module is changed before it is compiled. */
export interface Change {
  /** Changes its bytes. */
  bytes(module: Bytes): void;
  /** The module as it arrives, changed. */
  response(module: Response): Response;
}

/** Compiles a source. Relative URLs are relative to the document. */
export async function compileModule(source: ModuleSource, change?: Change): Promise<WebAssembly.Module> {
  if (source instanceof WebAssembly.Module) return source;
  if (typeof source === "string" || source instanceof URL) {
    const url = source.toString();
    if (url.startsWith("file:")) return await compileBytes(await readFile(url), url, change);
    return await compileResponse(await request(url), change);
  }
  if (source instanceof Response) return await compileResponse(source, change);
  const bytes = bytesOf(source);
  return await compileBytes(change === undefined ? bytes : bytes.slice(), "the source", change);
}

/** Where this file is, or the bundle that it is in. Not written in the call, which bundlers would take for a file of theirs. */
const HERE = String(import.meta.url);

/**
 * Compiles a module of the package. Bundlers of servers name places for it that only a browser can ask for, and others leave the
 * file behind; then it is looked for beside the bundle, and where the program's folder has the package installed.
 */
export async function compilePackaged(url: URL, change?: Change): Promise<WebAssembly.Module> {
  try {
    return await compileModule(url, change);
  } catch (error) {
    const [, stem] = /((?:engine|runtime)-[a-z]+|gpu)[^/]*\.wasm$/.exec(String(url)) ?? [];
    for (const place of stem === undefined ? [] : otherPlaces(stem)) {
      try {
        return await compileModule(place, change);
      } catch {
        // What is said is what went wrong at the place that the bundler knows.
      }
    }
    throw error;
  }
}

/** Compiles what a host gave, or else a module of the package. */
export async function compileGiven(
  given: ModuleSource | Promise<ModuleSource> | undefined,
  place: () => URL,
  change?: Change,
): Promise<WebAssembly.Module> {
  return given === undefined ? await compilePackaged(place(), change) : await compileModule(await given, change);
}

/** Where else a file of the package may be, whose name bundlers may have given a hash. */
export function otherPlaces(stem: string): URL[] {
  const places = [() => new URL(`${stem}.wasm`, HERE), () => installedPlace(stem)];
  return places.flatMap((place) => {
    try {
      const found = place();
      return found === undefined ? [] : [found];
    } catch {
      return [];
    }
  });
}

/** Where the installed package has the file. */
function installedPlace(stem: string): URL | undefined {
  const [modules, urls] = [builtinModule("node:module"), builtinModule("node:url")];
  if (modules === undefined || urls === undefined) return undefined;
  const { resolve } = modules.createRequire(`${globalThis.process.cwd()}/`);
  return urls.pathToFileURL(resolve(`tracefx/wasm/${stem}.wasm`));
}

/** The bytes of a buffer or of a view of one. */
export function bytesOf(source: BufferSource): Bytes {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  const { buffer, byteOffset, byteLength } = source;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** Refuses bytes that are no WebAssembly; most often they are the page that a server sends for what it does not find. */
export function checkMagic(bytes: Uint8Array, from: string): void {
  const [a, b, c, d] = bytes;
  if (a === 0x00 && b === 0x61 && c === 0x73 && d === 0x6d) return;
  const start = String.fromCharCode(...bytes.subarray(0, 8));
  throw fxError("Io", `${from} is no WebAssembly module, it begins with ${JSON.stringify(start)}`, { help: HELP });
}

async function request(url: string): Promise<Response> {
  try {
    return await fetch(url);
  } catch (cause) {
    throw fxError("Io", `cannot fetch ${url}`, { cause, help: HELP });
  }
}

async function compileResponse(response: Response, change: Change | undefined): Promise<WebAssembly.Module> {
  if (!response.ok) {
    throw fxError("Io", `the server answered ${response.status} for ${response.url}`, { help: HELP });
  }
  // Compiling while bytes arrive is possible only with the right type; servers often send another one.
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/wasm")) {
    return await WebAssembly.compileStreaming(change === undefined ? response : change.response(response));
  }
  return await compileBytes(new Uint8Array(await response.arrayBuffer()), response.url, change);
}

async function compileBytes(bytes: Bytes, from: string, change: Change | undefined): Promise<WebAssembly.Module> {
  checkMagic(bytes, from);
  change?.bytes(bytes);
  return await WebAssembly.compile(bytes);
}

/** Reads a file where there are files. */
async function readFile(url: string): Promise<Bytes> {
  const fs = builtinModule("node:fs/promises");
  if (fs === undefined) throw fxError("Io", `this host cannot read ${url}`, { help: HELP });
  try {
    return new Uint8Array(await fs.readFile(new URL(url)));
  } catch (cause) {
    throw fxError("Io", `cannot read ${url}`, { cause, help: HELP });
  }
}
