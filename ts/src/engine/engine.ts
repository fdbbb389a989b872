/**
 * The engine: one instance of the WebAssembly module for each realm, loaded once.
 *
 * Everything that calls the engine goes through {@link call}, which turns what Rust throws into an {@link FxError}. After
 * a panic the engine goes on. After a trap (memory ran out, the stack overflowed), and after a call for which a part of the engine was
 * missing, its memory cannot be trusted: every call is refused until {@link restart} makes the instance anew.
 *
 * @module
 */
import initialise, * as glue from "../../wasm/engine.js";
import { type ErrorDetails, type ErrorName, fxError } from "../base/errors.ts";
import { bytesOf, checkMagic, compileGiven, type ModuleSource } from "./module.ts";
import { Parts, type PartSources } from "./parts.ts";
import type * as threading from "./threads.ts";
import { relaxedUse } from "./relaxed.ts";
import { canRunEngine, MODULES, type PartName, PARTS, type Variant } from "./variant.ts";
import { checkOptions } from "../base/given.ts";

/** The functions that the engine offers. */
export type Engine = Omit<
  typeof glue,
  | "default"
  | "initSync"
  | "start"
  | "__wbg_reset_state"
  | "set_parts"
  | "load_part"
  | "set_threads"
  | "num_threads"
  | "set_num_threads"
  | "share_memory"
  | "run_worker"
  | "worker_stopped"
  | "use_relaxed_simd"
>;

/** How to load the engine. */
export interface InitOptions {
  /**
   * Which build to load; by default the fastest that this host can run: `relaxed`, where there is relaxed SIMD, or else `simd`. Their results differ
   * within the tolerances of PyTorch, and not at all with `precision: "strict"`.
   */
  readonly variant?: Variant;
  /** The module itself or where it lies, for hosts where the package cannot find it. */
  readonly wasm?: ModuleSource | Promise<ModuleSource>;
  /**
   * When the rest of the engine is fetched, which `wasm` is not all of: `edit`, with passes, decompositions and export, and `rare`, with
   * operators that programs seldom call. By default (`"lazy"`) the first call that needs a part reads it, and in a page waits for
   * it: with `"eager"` both are fetched before `init` has ended. `relaxed`, which the build of this name has, is fetched with the module. Hosts
   * where the package cannot find them are given them by name.
   */
  readonly parts?: PartSources<PartName>;
  /**
   * How many threads kernels use at most, in Node and in the worker of `tracefx/worker`; by default as many as the machine has processors, but not
   * more than eight. Elsewhere, in pages that are not cross-origin isolated, and where `wasm` or a part is compiled already, there
   * is one. Results do not depend on it.
   */
  readonly threads?: number;
}

/** Whether the engine stopped in the middle of a call, after which its memory cannot be trusted. */
let isBroken = false;
/** The error of the call that a part of the engine was missing for. */
let missing: Error | undefined;
/** The parts of the engine that are not loaded with it. */
const parts = new Parts<PartName>("the engine", PARTS, (error) => {
  // What the call leaves behind Rust knows nothing of.
  missing = error;
  breakOff();
});

/** How many threads kernels use at most. */
let numThreads = 1;
/** Whether there was no instance yet. */
let isFresh = true;
/** The engine's module where its memory is shared, and what starts its threads. */
let shared: { readonly module: WebAssembly.Module; readonly Threads: typeof threading.Threads } | undefined;
let threads: threading.Threads | undefined;

let loading: Promise<void> | undefined;
let loaded = false;
/** What waits until the engine is loaded, in order. */
let waiting: (() => void)[] = [];
/** How often the engine was made anew. */
let restarts = 0;

/**
 * Loads the engine. Only the first call does, later ones wait for it and ignore their options but `parts`; after a failure the next
 * call tries again.
 *
 * Hosts without files of their own are given the module and its parts: in Cloudflare's workerd `import wasm from "./engine-simd.wasm"` is
 * one, and what `bun build --compile` makes reads it by
 * `import file from "tracefx/wasm/engine-simd.wasm" with { type: "file" }` and `await Bun.file(file).arrayBuffer()`.
 *
 * @example
 * ```ts
 * await init();
 * await init({ wasm: new URL("/assets/engine-simd.wasm", location.href) });
 * await init({ parts: "eager" });
 * ```
 */
export function init(options: InitOptions = {}): Promise<void> {
  try {
    checkOptions("init", options, ["variant", "wasm", "parts", "threads"]);
    if (options.threads !== undefined) checkNumThreads("threads of init", options.threads);
  } catch (error) {
    return Promise.reject(error as Error);
  }
  if (loading !== undefined) return options.parts === undefined ? loading : loading.then(() => fetchParts(options));
  loading = load(options)
    .then(doWaiting)
    .catch((error: unknown) => {
      loading = undefined;
      throw error;
    });
  return loading;
}

/**
 * Loads the engine at once, from bytes or a compiled module, with one thread. Browsers refuse large bytes on the main thread. Parts that are not given
 * are read when they are needed.
 */
export function initSync(
  wasm: BufferSource | WebAssembly.Module,
  deferred: Readonly<Partial<Record<PartName, BufferSource | WebAssembly.Module>>> = {},
): void {
  if (loaded) return;
  if (!(wasm instanceof WebAssembly.Module)) checkMagic(bytesOf(wasm), "the source");
  parts.give("initSync", deferred);
  if (!isFresh) renew();
  attach(glue.initSync({ module: wasm }));
  isFresh = false;
  loaded = true;
  loading = Promise.resolve();
  doWaiting();
}

/** What is to be done whenever an engine begins. */
const starts: (() => void)[] = [];

/** Does `work` now if the engine is loaded, and whenever one begins: once it is loaded, and when it was made anew. */
export function onStart(work: () => void): void {
  starts.push(work);
  if (loaded) work();
}

/** Whether the engine is loaded. */
export function isLoaded(): boolean {
  return loaded;
}

/** Does `work` as soon as the engine is loaded, after what was given here before. */
export function whenLoaded(work: () => void): void {
  waiting.push(work);
  if (loaded) doWaiting();
}

function doWaiting(): void {
  for (const work of starts) work();
  const works = waiting;
  waiting = [];
  for (const work of works) work();
}

/** Makes the engine anew, with empty memory. Tensors and programs that it held are lost, and say so when they are used. */
export function restart(): void {
  requireLoaded();
  if (callbacks > 0) {
    throw fxError("InvalidOption", "the engine cannot be made anew while it calls a function of an operator", {
      help: "call restart() after the operator has returned",
    });
  }
  renew();
  // There is an instance, which it gives.
  attach(glue.initSync({ module: new Uint8Array() }));
  restarts += 1;
  for (const work of starts) work();
}

/** A number that changes when the engine is made anew; handles of another one mean nothing. */
export function generation(): number {
  return restarts;
}

/** How many functions of JavaScript the engine is calling. */
let callbacks = 0;
/** What such a function threw, and the message under which the engine carries it on. */
let failure: { readonly error: unknown; readonly message: string } | undefined;

/** Says that the engine calls a function of JavaScript. */
export function enterCallback(): void {
  callbacks += 1;
}

/** Says that the function has come to its end. */
export function leaveCallback(): void {
  callbacks -= 1;
}

/** Says what a function threw, so that the error that arrives at the caller of the engine has it as its cause. */
export function noteFailure(error: unknown, message: string): void {
  failure = { error, message };
}

/** The version of the engine. */
export function engineVersion(): string {
  return call((engine) => engine.engine_version());
}

/** Calls the engine and turns what it throws into an {@link FxError}; what a callback threw passes unchanged. */
export function call<T>(body: (engine: Engine) => T): T {
  requireWhole();
  try {
    return body(glue);
  } catch (thrown) {
    throw translated(thrown);
  }
}

async function load(options: InitOptions): Promise<void> {
  const { wasm, parts: deferred } = options;
  const relaxed = relaxedUse(options.variant);
  // Memory that a call made which failed later stays as it is.
  const threaded = isFresh || shared !== undefined ? await threadsFor(options) : undefined;
  const change = threaded?.sharedMemory;
  const compiling = compileGiven(wasm, packaged, change);
  const finding = parts.find("init", deferred, change, relaxed);
  const [module, found] = await Promise.all([compiling, finding]);
  // As by `initSync` in the meantime.
  if (loaded) return;
  parts.restore(found);
  if (isFresh) {
    shared = threaded && { module, Threads: threaded.Threads };
    glue.share_memory(threaded !== undefined);
  } else {
    renew();
  }
  numThreads = threaded?.n ?? 1;
  attach(await initialise({ module_or_path: module }));
  isFresh = false;
  await parts.instantiate();
  loaded = true;
}

/** Takes parts, and fetches them if it is to, when the engine is loaded already. */
async function fetchParts(options: InitOptions): Promise<void> {
  await parts.begin("init", options.parts);
  await parts.instantiate();
}

/** What gives the engine as many threads as it is to have; undefined where there is to be one. */
async function threadsFor({
  threads: asked,
  wasm,
  parts: deferred,
}: InitOptions): Promise<(typeof threading & { readonly n: number }) | undefined> {
  // The main thread of a page may not wait, and does not fetch what it has no use for.
  if (asked === 1 || typeof document !== "undefined" || typeof SharedArrayBuffer === "undefined") return undefined;
  // A bundle of one file may come to it too late, and has no file for threads anyway.
  const module = await import("./threads.ts").catch(() => undefined);
  if (module === undefined) return undefined;
  const n = module.canHaveThreads() ? Math.min(asked ?? module.defaultNumThreads(), MAX_THREADS) : 1;
  if (n === 1) return undefined;
  // What was compiled by whoever gives it has memory that is not shared.
  const given: unknown[] = typeof deferred === "object" ? Object.values(deferred ?? {}) : [];
  const settled = await Promise.allSettled([wasm, ...given]);
  const isCompiled = settled.some((it) => it.status === "fulfilled" && it.value instanceof WebAssembly.Module);
  return isCompiled ? undefined : { ...module, n };
}

/** Makes the instance anew that there is. */
function renew(): void {
  threads?.end();
  glue.__wbg_reset_state();
  isBroken = false;
  missing = undefined;
}

/** Gives a new instance its parts and its threads. */
function attach(exports: { readonly memory: WebAssembly.Memory }): void {
  parts.attach(exports);
  glue.set_parts(parts);
  // Its functions are instantiated when the first is called, if not before.
  if (parts.isRelaxed) glue.use_relaxed_simd();
  if (shared === undefined) return;
  const home = { module: shared.module, memory: exports.memory, stoppedAddress: glue.worker_stopped() };
  threads = new shared.Threads(
    () => ({ ...home, parts: parts.found }),
    (workers) => {
      try {
        glue.set_num_threads(Math.min(numThreads, 1 + workers));
      } catch {
        breakOff();
      }
    },
  );
  glue.set_threads(threads);
  glue.set_num_threads(numThreads);
}

/** Whether fast plans have relaxed SIMD. */
export function isRelaxed(): boolean {
  return parts.isRelaxed;
}

/** How many threads the engine's kernels use at most: `torch.get_num_threads()`. */
export function getNumThreads(): number {
  return call(() => glue.num_threads());
}

/**
 * Sets how many threads the engine's kernels use at most: `torch.set_num_threads()`. Where the engine was loaded for one, as in pages, there is
 * one. Results do not depend on it.
 */
export function setNumThreads(n: number): void {
  checkNumThreads("setNumThreads", n);
  requireWhole();
  if (shared === undefined) return;
  numThreads = n;
  glue.set_num_threads(n);
}

/** The most threads that can be asked for. */
const MAX_THREADS = 256;

function checkNumThreads(what: string, n: number): void {
  if (Number.isInteger(n) && n > 0 && n <= MAX_THREADS) return;
  throw fxError("InvalidOption", `${what} expects a positive integer, ${MAX_THREADS} at most`);
}

/** Where the package has the build. */
function packaged(): URL {
  if (!canRunEngine()) {
    throw fxError(
      "NotImplemented",
      "this host has no WebAssembly with SIMD and atomic instructions, which the engine needs",
      {
        help: "use Node 20 or later, or a browser of 2023 or later",
      },
    );
  }
  try {
    return MODULES.simd();
  } catch (cause) {
    throw fxError("Io", "this host does not say where the files of the package lie", {
      cause,
      help: "import the module and its parts, as `tracefx/wasm/engine-simd.wasm`, and give them: init({ wasm, parts })",
    });
  }
}

/** Throws where the engine was not loaded, and where a call broke it. */
function requireWhole(): void {
  requireLoaded();
  if (isBroken) throw stopped(missing);
}

function requireLoaded(): void {
  if (loaded) return;
  throw fxError("NotLoaded", "the engine is not loaded", { help: "await init() first" });
}

/** What the engine threw, as an error of ours where it is one. */
function translated(thrown: unknown): unknown {
  if (typeof thrown === "string") return refusal(thrown) ?? thrown;
  if (missing !== undefined) return missing;
  let place: string | undefined;
  try {
    place = glue.take_panic_place();
  } catch {
    breakOff();
    return stopped(thrown);
  }
  if (!(thrown instanceof Error && thrown.name === "PanicError")) return thrown;
  return fxError("Internal", `the engine panicked: ${thrown.message}`, {
    cause: thrown,
    notes: place === undefined ? [] : [`at ${place}`],
    help: "this is a bug of tracefx, please report it; the engine goes on",
  });
}

/** Whether calls are refused until {@link restart}. */
export function isStopped(): boolean {
  return isBroken;
}

/** The refusal of what an engine before this one had, or one that has stopped. */
export function lostWithEngine(what: string, help: string): Error {
  return isBroken ? stopped(missing) : fxError("Disposed", `${what} was lost when the engine was made anew`, { help });
}

/** Refuses calls from now on. What the engine holds is lost, so that nobody frees it. */
function breakOff(): void {
  if (!isBroken) restarts += 1;
  isBroken = true;
  threads?.end();
}

function stopped(cause: unknown): Error {
  return fxError("Internal", "the engine stopped and its memory cannot be trusted any more", {
    cause,
    help: "call restart() to make it anew; what it held is lost",
  });
}

/** Why the engine's memory runs out while the host has some, and what to do about it. */
const OUT_OF_MEMORY =
  "the engine has 4 GiB at most, and JavaScript's garbage collector does not see what tensors hold there: " +
  "dispose of them (`using x = …`, `x.dispose()`), or make them inside of `tidy(() => …)`";

/** A refusal that crossed as JSON; undefined for any other string. */
function refusal(json: string): Error | undefined {
  try {
    const { name, message, ...told } = JSON.parse(json) as { name: ErrorName; message: string } & ErrorDetails;
    const details = name === "OutOfMemory" ? { help: OUT_OF_MEMORY, ...told } : told;
    if (failure?.message !== message) return fxError(name, message, details);
    const { error: cause } = failure;
    failure = undefined;
    return fxError(name, message, { ...details, cause });
  } catch {
    return undefined;
  }
}
