/**
 * The runtime's module of WebAssembly: loaded once, and made anew after a trap.
 *
 * @module
 */
import initialise, * as glue from "../../wasm/runtime.js";
import { type ErrorName, fxError } from "../base/errors.ts";
import { compileGiven, type ModuleSource } from "../engine/module.ts";
import { Parts, type PartSources } from "../engine/parts.ts";
import { RELAXED, relaxedUse, type Variant } from "../engine/relaxed.ts";

export type { Call, Model } from "../../wasm/runtime.js";

/** The functions that the module offers. */
type Glue = Omit<
  typeof glue,
  "default" | "initSync" | "__wbg_reset_state" | "set_parts" | "load_part" | "use_relaxed_simd"
>;

/** What the runtime has beside its module. */
export type RuntimePart = "rare" | typeof RELAXED;

/** What plans seldom call, and products with relaxed SIMD. */
const parts = new Parts<RuntimePart>(
  "the runtime",
  [
    ["rare", "runtime-rare", () => new URL("../../wasm/runtime-rare.wasm", import.meta.url)],
    [RELAXED, "runtime-relaxed", () => new URL("../../wasm/runtime-relaxed.wasm", import.meta.url)],
  ],
  (error) => (missing = error),
);
/** The error of a call that a part was missing for, until the module is made anew. */
let missing: Error | undefined;

let loading: Promise<void> | undefined;
let exports: { readonly memory: WebAssembly.Memory } | undefined;
let compiled: WebAssembly.Module | undefined;
/** How often the module was made anew. */
let restarts = 0;

/** What the module is loaded with. */
interface Begin {
  readonly wasm?: ModuleSource | Promise<ModuleSource>;
  readonly parts?: PartSources<RuntimePart>;
  readonly variant?: Variant;
}

/** Loads the module, once; after a failure the next call tries again. */
export function begin(options: Begin): Promise<void> {
  loading ??= start(options).catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

/** Where the package has the module: a literal, which bundlers recognise and rewrite. */
function packaged(): URL {
  return new URL("../../wasm/runtime-simd.wasm", import.meta.url);
}

async function start({ wasm, parts: deferred, variant }: Begin): Promise<void> {
  const finding = parts.find("load", deferred, undefined, relaxedUse(variant));
  const [module, found] = await Promise.all([compileGiven(wasm, packaged), finding]);
  parts.restore(found);
  attach(await initialise({ module_or_path: module }));
  await parts.instantiate();
  compiled = module;
}

/** Gives a new instance its parts. */
function attach(instance: { readonly memory: WebAssembly.Memory }): void {
  exports = instance;
  parts.attach(instance);
  glue.set_parts(parts);
  if (parts.isRelaxed) glue.use_relaxed_simd();
}

/** A number that changes when the module is made anew; what belongs to another one is lost. */
export function generation(): number {
  return restarts;
}

/** Bytes of the module's memory, good until the module is called. */
export function memory(address: number, length: number): Uint8Array {
  if (exports === undefined) throw fxError("NotLoaded", "the runtime is not loaded", { help: "await load(…) first" });
  return new Uint8Array(exports.memory.buffer, address, length);
}

/** Calls the module and makes errors of what it throws. */
export function call<T>(body: (module: Glue) => T): T {
  try {
    return body(glue);
  } catch (thrown) {
    if (typeof thrown === "string") {
      const [name, message, node, op, help] = thrown.split("\u001f").map((it) => (it === "" ? undefined : it));
      throw fxError(name as ErrorName, message ?? "", { node, op, help });
    }
    if (missing === undefined && thrown instanceof Error && thrown.name === "PanicError") {
      throw fxError("Internal", `the runtime panicked: ${thrown.message}`, {
        cause: thrown,
        help: "this is a bug of tracefx, please report it; the runtime goes on",
      });
    }
    if (missing === undefined && !(thrown instanceof WebAssembly.RuntimeError)) throw thrown;
    const error =
      missing ??
      fxError("Internal", "the runtime stopped, and its memory cannot be trusted any more", {
        cause: thrown,
        help: "load the model again: the runtime was made anew",
      });
    missing = undefined;
    restarts += 1;
    glue.__wbg_reset_state();
    // There is an instance, which it gives.
    attach(glue.initSync({ module: compiled as WebAssembly.Module }));
    throw error;
  }
}
