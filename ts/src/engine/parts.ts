/**
 * The deferred parts of a WebAssembly module: files with functions that are rarely called, each of which is instantiated over the
 * memory of the module when one of its functions is called first.
 *
 * The call cannot wait for a promise. So a part is read at once, from a file or by a synchronous request, unless it was fetched
 * before; hosts that can do neither fetch all parts when the module begins.
 *
 * @module
 */
import { builtinModule } from "../base/builtinModule.ts";
import type { Bytes } from "../base/bytes.ts";
import { fxError } from "../base/errors.ts";
import { checkNames } from "../base/given.ts";
import {
  bytesOf,
  type Change,
  checkMagic,
  compileGiven,
  compileModule,
  type ModuleSource,
  otherPlaces,
} from "./module.ts";
import { hasRelaxedSimd, RELAXED, type RelaxedUse } from "./relaxed.ts";

/**
 * Where deferred parts come from: fetched when they are needed, fetched when the module is loaded, or given by name. `Source` is what one
 * is given as.
 */
export type PartSources<Name extends string, Source = ModuleSource | Promise<ModuleSource>> =
  | "lazy"
  | "eager"
  | Readonly<Partial<Record<Name, Source>>>;

/** What is known of parts. */
export interface Found {
  readonly known: readonly Known[];
  /** What is done to the bytes of each before it is compiled, as of the module. */
  readonly change?: Change | undefined;
}

/** A part: its name, the stem of its file, and where the package has it. */
export type PackagedPart<Name extends string> = readonly [name: Name, stem: string, place: () => URL];

/** What is known of a part. */
interface Known {
  module?: WebAssembly.Module;
  /** Where it is read when it is needed. */
  readonly place?: string | undefined;
  /** Whether a host said that it is there, so that nobody looks for it elsewhere. */
  readonly isGiven?: boolean;
  /** Why it could not be fetched beforehand. */
  readonly failure?: unknown;
}

/** The deferred parts of one module, for all its instances. */
export class Parts<Name extends string> {
  readonly #owner: string;
  readonly #parts: readonly PackagedPart<Name>[];
  readonly #onMissing: (error: Error) => void;
  #known: readonly Known[] = [];
  /** The parts that the instance has. */
  readonly #present = new Set<number>();
  #exports: WebAssembly.ModuleImports = {};
  #change: Change | undefined;

  /** The first part is number 1 of the module. `onMissing` is told why a call is broken off. */
  constructor(owner: string, parts: readonly PackagedPart<Name>[], onMissing: (error: Error) => void) {
    this.#owner = owner;
    this.#parts = parts;
    this.#onMissing = onMissing;
  }

  /** Takes what `caller` was given, and fetches what is to be there from the beginning. */
  async begin(caller: string, sources?: PartSources<Name>): Promise<void> {
    this.restore(await this.find(caller, sources));
  }

  /**
   * What becomes known of the parts by what `caller` was given, some of which is fetched. Of relaxed SIMD, a module that has begun already has
   * what it had.
   */
  async find(
    caller: string,
    sources: PartSources<Name> = "lazy",
    change = this.#change,
    relaxed?: RelaxedUse,
  ): Promise<Found> {
    this.#check(caller, sources);
    const parts = this.#parts.map(async (part, at) => {
      const [name] = part;
      if (name !== RELAXED) return await found(part, sources, change);
      if (relaxed === undefined) return this.#known[at] ?? {};
      if (relaxed !== "not") return await found(part, sources, change, relaxed);
      // A host without relaxed SIMD cannot compile it, which is no problem of whoever gives it.
      if (typeof sources === "object") void Promise.resolve(sources[name]).catch(() => undefined);
      return {};
    });
    return { change, known: await Promise.all(parts) };
  }

  /** Whether the part with relaxed SIMD is there. */
  get isRelaxed(): boolean {
    return this.#known[this.#parts.findIndex(([name]) => name === RELAXED)]?.module !== undefined;
  }

  /** Takes what is known of the parts. */
  restore({ change, known }: Found): void {
    this.#change = change;
    this.#known = known;
  }

  /** What is known of the parts, as a message can hold it. */
  get found(): Found {
    return {
      known: this.#known.map(({ module, place, isGiven = false }) => ({ place, isGiven, ...(module && { module }) })),
    };
  }

  /** Takes parts that are there. */
  give(caller: string, sources: Readonly<Partial<Record<Name, BufferSource | WebAssembly.Module>>>): void {
    this.#check(caller, sources);
    this.#known = this.#parts.map(([name, , place]) => {
      const source = sources[name];
      if (source === undefined || (name === RELAXED && !hasRelaxedSimd())) return { place: packagedPlace(place) };
      if (source instanceof WebAssembly.Module) return { module: source };
      checkMagic(bytesOf(source), `the part ${name}`);
      const bytes = this.#change === undefined ? bytesOf(source) : bytesOf(source).slice();
      this.#change?.bytes(bytes);
      return { module: new WebAssembly.Module(bytes) };
    });
  }

  /** Throws where what `caller` was given says nothing of parts. */
  #check(caller: string, sources: PartSources<Name, unknown>): void {
    if (sources === "lazy" || sources === "eager") return;
    if (typeof sources !== "object" || sources === null) {
      throw fxError("InvalidOption", `parts of ${caller} are "lazy", "eager" or an object`);
    }
    const names = this.#parts.map(([name]) => name);
    checkNames(`parts of ${caller}`, sources, names);
  }

  /** The exports of the instance that parts belong to from now on. */
  attach(exports: object): void {
    this.#exports = exports as WebAssembly.ModuleImports;
    this.#present.clear();
  }

  /** Instantiates the parts that were fetched, without the limits of what may be done at once. */
  async instantiate(): Promise<void> {
    for (const [at, { module }] of this.#known.entries()) {
      if (module === undefined || this.#present.has(at)) continue;
      try {
        await WebAssembly.instantiate(module, { primary: this.#exports });
      } catch (cause) {
        throw this.#otherBuild(at, cause);
      }
      this.#present.add(at);
    }
  }

  /** Instantiates a part: what the module calls. */
  load(part: number): void {
    try {
      this.#instantiateNow(part - 1);
    } catch (error) {
      this.#onMissing(error as Error);
      throw error;
    }
  }

  #instantiateNow(at: number): void {
    const known = this.#known[at] as Known;
    const module = known.module ?? new WebAssembly.Module(this.#read(at));
    try {
      // Its functions take their places in the table of the module, so that nothing is to be kept.
      void new WebAssembly.Instance(module, { primary: this.#exports });
    } catch (cause) {
      throw this.#otherBuild(at, cause);
    }
    known.module = module;
    this.#present.add(at);
  }

  #otherBuild(at: number, cause: unknown): Error {
    const [name] = this.#parts[at] as PackagedPart<Name>;
    return fxError("Io", `the part ${name} does not fit ${this.#owner}, which is of another build`, {
      cause,
      help: "take all .wasm files from one release of the package, and reload pages of another one",
    });
  }

  #read(at: number): Bytes {
    const [name, stem] = this.#parts[at] as PackagedPart<Name>;
    const { place, isGiven, failure } = this.#known[at] as Known;
    const others = isGiven === true ? [] : otherPlaces(stem).map(String);
    const places = [...(place === undefined ? [] : [place]), ...others];
    let cause = failure;
    for (const url of places) {
      try {
        const bytes = readNow(url);
        checkMagic(bytes, url);
        this.#change?.bytes(bytes);
        return bytes;
      } catch (error) {
        cause ??= error;
      }
    }
    const where = places[0] === undefined ? "which is not here" : `and ${places[0]} cannot be read`;
    throw fxError("Io", `this call needs the part ${name} of ${this.#owner}, ${where}`, {
      cause,
      help: `fetch it beforehand, \`parts: "eager"\`, or say where it is, \`parts: { ${name} }\``,
    });
  }
}

/** What a host has of a part. */
async function found<Name extends string>(
  [name, stem, place]: PackagedPart<Name>,
  sources: PartSources<Name>,
  change: Change | undefined,
  relaxed?: RelaxedUse,
): Promise<Known> {
  const given = typeof sources === "string" ? undefined : await sources[name];
  if (given !== undefined && typeof given !== "string" && !(given instanceof URL)) {
    if (change !== undefined && given instanceof WebAssembly.Module) {
      throw fxError("InvalidOption", `the part ${name} is compiled, which does not fit an engine with threads`, {
        help: "give its bytes or say where it is, or load the engine with `threads: 1`",
      });
    }
    return { module: await compileModule(given, change) };
  }
  const isGiven = given !== undefined;
  const url = isGiven ? absolute(given) : packagedPlace(place);
  const fetched = (): Promise<WebAssembly.Module> => compileGiven(isGiven ? url : undefined, place, change);
  const isNeeded = relaxed === undefined ? sources === "eager" : isGiven || relaxed === "must";
  if (isNeeded) return { module: await fetched() };
  const places = isGiven ? [url] : [url, ...otherPlaces(stem)];
  if (relaxed === undefined && (url === undefined || places.some((it) => isReadable(String(it)))))
    return { place: url, isGiven };
  try {
    return { module: await fetched() };
  } catch (failure) {
    // It may be that no call needs it, and all works without relaxed SIMD.
    return { place: url, isGiven, failure };
  }
}

/** A URL that does not depend on where the page is. */
function absolute(source: string | URL): string {
  return typeof document === "undefined" ? String(source) : new URL(source, document.baseURI).href;
}

/** Where the package has a part; undefined where the host does not say. */
function packagedPlace(place: () => URL): string | undefined {
  try {
    return String(place());
  } catch {
    return undefined;
  }
}

/** Whether a file can be read and compiled without waiting. */
function isReadable(url: string): boolean {
  if (url.startsWith("file:")) return builtinModule("node:fs")?.existsSync(new URL(url)) === true;
  if (typeof XMLHttpRequest === "undefined") return false;
  return typeof document === "undefined" || (mayAsk() && canCompile());
}

/** Whether the page may make synchronous requests, of which its policy tells in some browsers. */
function mayAsk(): boolean {
  const { featurePolicy } = document as { featurePolicy?: { allowsFeature(name: string): boolean } };
  return featurePolicy?.allowsFeature("sync-xhr") !== false;
}

/** Whether the main thread compiles more than 4 kB at once, which Chrome before 115 refuses: a module with a section of nothing. */
function canCompile(): boolean {
  const length = 5000;
  const header = [0, 97, 115, 109, 1, 0, 0, 0, 0, (length & 127) | 128, length >> 7];
  const bytes = new Uint8Array(header.length + length);
  bytes.set(header);
  try {
    return new WebAssembly.Module(bytes) instanceof WebAssembly.Module;
  } catch {
    return false;
  }
}

/** Reads a file before it returns. */
function readNow(url: string): Bytes {
  if (url.startsWith("file:")) {
    const fs = builtinModule("node:fs");
    if (fs === undefined) throw fxError("Io", `this host cannot read ${url}`);
    return new Uint8Array(fs.readFileSync(new URL(url)));
  }
  const request = new XMLHttpRequest();
  request.open("GET", url, false);
  // On the main thread a page gets text alone, of which every character is a byte then.
  const isPage = typeof document !== "undefined";
  if (isPage) request.overrideMimeType("text/plain; charset=x-user-defined");
  else request.responseType = "arraybuffer";
  request.send();
  if (request.status !== 200) throw fxError("Io", `the server answered ${request.status} for ${url}`);
  if (!isPage) return new Uint8Array(request.response as ArrayBuffer);
  const text = request.responseText;
  const bytes = new Uint8Array(text.length);
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at);
  return bytes;
}
