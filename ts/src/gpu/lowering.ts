/**
 * The GPU's own module of WebAssembly: it makes the program of a GPU of a plan.
 *
 * @module
 */
import initialise, * as glue from "../../wasm/gpu.js";
import type { DType } from "../../../bindings/dtypes.ts";
import type { Program } from "../../../bindings/gpu.ts";
import { type ErrorDetails, type ErrorName, fxError, type FxError } from "../base/errors.ts";
import { compilePackaged } from "../engine/module.ts";
import type { GpuLimits } from "./device.ts";

let loading: Promise<void> | undefined;
/** How often the module was made anew; of what it gave before, nothing is left. */
let restarts = 0;

/** Loads the module, once. */
export function loadLowering(): Promise<void> {
  loading ??= load().catch((error: unknown) => {
    loading = undefined;
    throw error;
  });
  return loading;
}

async function load(): Promise<void> {
  const module = await compilePackaged(new URL("../../wasm/gpu.wasm", import.meta.url));
  await initialise({ module_or_path: module });
}

/** What a GPU does for a plan. */
export interface Lowered {
  readonly program: Program;
  /** Refuses a run of which the data has broken a promise, by the words of the buffer of checks. */
  check(words: Uint32Array): void;
  free(): void;
}

/** The program for the plan of an outline. */
export function lowered(outline: Uint8Array, writingOps: string, limits: GpuLimits): Lowered {
  const { bindings, bufferBytes, workgroups, hasF16, hasSubgroups } = limits;
  const make = (): glue.GpuProgram => {
    return call(() => glue.GpuProgram.of(outline, writingOps, bindings, bufferBytes, workgroups, hasF16, hasSubgroups));
  };
  let [made, life] = [make(), restarts];
  /** What the module has of it now. */
  const live = (): glue.GpuProgram => {
    if (life !== restarts) [made, life] = [make(), restarts];
    return made;
  };
  return {
    program: JSON.parse(call(() => made.json())) as Program,
    check(words) {
      const program = live();
      call(() => program.check(words));
    },
    free() {
      if (life === restarts) made.free();
    },
  };
}

/** The bytes of the device for elements of a dtype. */
export function widened(bytes: Uint8Array, dtype: DType): Uint8Array {
  return call(() => glue.widened(bytes, dtype));
}

/** The elements of a dtype that the device holds as these bytes. */
export function narrowed(bytes: Uint8Array, dtype: DType): Uint8Array {
  return call(() => glue.narrowed(bytes, dtype));
}

function call<T>(body: () => T): T {
  try {
    return body();
  } catch (thrown) {
    if (typeof thrown !== "string") throw stopped(thrown);
    const { name, message, ...told } = JSON.parse(thrown) as { name: ErrorName; message: string } & ErrorDetails;
    throw fxError(name, message, told);
  }
}

/** A bug in the module. After a panic it goes on; after a trap its memory cannot be trusted, and it is made anew. */
function stopped(cause: unknown): FxError {
  const why = cause instanceof Error ? `: ${cause.message}` : "";
  const details = { cause, help: "this is a bug of tracefx, please report it; run on the CPU: program.module()" };
  if (cause instanceof Error && cause.name === "PanicError") {
    return fxError("DeviceFailed", `what makes programs of the GPU panicked${why}`, details);
  }
  restarts += 1;
  glue.__wbg_reset_state();
  return fxError("DeviceFailed", `what makes programs of the GPU stopped${why}`, details);
}
