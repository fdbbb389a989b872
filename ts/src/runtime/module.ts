/**
 * The runtime's module of WebAssembly: loaded once, and made anew after a trap.
 *
 * @module
 */
import initialise, * as glue from "../../wasm/runtime.js";
import { type ErrorName, fxError } from "../base/errors.ts";
import { compileModule, compilePackaged, type ModuleSource } from "../engine/module.ts";

export type { Call, Model } from "../../wasm/runtime.js";

/** The functions that the module offers. */
type Glue = Omit<typeof glue, "default" | "initSync" | "__wbg_reset_state">;

let loading: Promise<void> | undefined;
let exports: { readonly memory: WebAssembly.Memory } | undefined;
let compiled: WebAssembly.Module | undefined;
/** How often the module was made anew. */
let restarts = 0;

/** Loads the module, once; after a failure the next call tries again. */
export function begin(wasm?: ModuleSource | Promise<ModuleSource>): Promise<void> {
  loading ??= start(wasm).catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

/** Where the package has the module: a literal, which bundlers recognise and rewrite. */
function packaged(): URL {
  return new URL("../../wasm/runtime-simd.wasm", import.meta.url);
}

async function start(wasm: ModuleSource | Promise<ModuleSource> | undefined): Promise<void> {
  const module = await (wasm === undefined ? compilePackaged(packaged()) : compileModule(await wasm));
  exports = await initialise({ module_or_path: module });
  compiled = module;
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
    if (thrown instanceof Error && thrown.name === "PanicError") {
      throw fxError("Internal", `the runtime panicked: ${thrown.message}`, {
        cause: thrown,
        help: "this is a bug of tracefx, please report it; the runtime goes on",
      });
    }
    if (!(thrown instanceof WebAssembly.RuntimeError)) throw thrown;
    restarts += 1;
    glue.__wbg_reset_state();
    // There is an instance, which it gives.
    exports = glue.initSync({ module: compiled as WebAssembly.Module });
    throw fxError("Internal", "the runtime stopped, and its memory cannot be trusted any more", {
      cause: thrown,
      help: "load the model again: the runtime was made anew",
    });
  }
}
