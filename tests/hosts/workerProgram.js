/**
 * What hosts run of `tracefx/worker`: the program of `program.js`, with the engine in a worker that the package starts.
 *
 * @module
 */
import { EngineWorker, tensor } from "tracefx/worker";
import { expected, image, model, shape } from "./data.js";

/** Runs it, and says how it went in one line, which begins with `tracefx-host ok` or with `tracefx-host failed`. */
export async function run() {
  const engine = new EngineWorker();
  try {
    const start = performance.now();
    const module = await engine.loadModule(Uint8Array.from(atob(model), (it) => it.charCodeAt(0)));
    const loaded = performance.now();
    const logits = await module.runAsync([tensor(Float32Array.from(image), { shape })]);
    const found = /** @type {import("tracefx/worker").Tensor} */ (logits).toFloat32Array();
    const difference = Math.max(...expected.map((it, at) => Math.abs(it - (found[at] ?? Number.NaN))));
    if (!(difference < 3e-5)) throw new Error(`the logits are ${difference} from PyTorch's`);
    return `tracefx-host ok opened ${(loaded - start).toFixed(0)} ms, run ${(performance.now() - loaded).toFixed(0)} ms`;
  } catch (error) {
    return `tracefx-host failed ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  } finally {
    engine.terminate();
  }
}
