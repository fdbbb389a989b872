/**
 * What every host runs: a program that PyTorch exported, on an image, and a function that is traced and run. It says how it went
 * in one line, which begins with `tracefx-host ok` or with `tracefx-host failed`.
 *
 * @module
 */
import { F, init, load, symbolicTrace, tensor } from "tracefx";
import { expected, image, model, shape } from "./data.js";

/** The program's own error, from PyTorch's numbers. */
const TOLERANCE = 3e-5;

/** Runs all of it. Hosts without files give the engine. */
export async function run(/** @type {Parameters<typeof init>[0]} */ options) {
  try {
    const start = performance.now();
    await init(options);
    const loaded = performance.now();
    const program = await load(Uint8Array.from(atob(model), (it) => it.charCodeAt(0)));
    const module = program.module();
    const logits = /** @type {import("tracefx").Tensor} */ (
      module(tensor(Float32Array.from(image), { shape }))
    ).toFloat32Array();
    const difference = Math.max(...expected.map((it, at) => Math.abs(it - (logits[at] ?? Number.NaN))));
    if (!(difference < TOLERANCE)) throw new Error(`the logits are ${difference} from PyTorch's`);
    module.dispose();
    program.dispose();
    const traced = symbolicTrace((/** @type {import("tracefx").Tensor} */ x) => F.relu(x).add(1));
    const result = String(traced.forward(tensor([-0.5, 2])));
    if (result !== "tensor([1., 3.])") throw new Error(`the traced function gives ${result}`);
    return `tracefx-host ok engine ${(loaded - start).toFixed(0)} ms, program ${(performance.now() - loaded).toFixed(0)} ms`;
  } catch (error) {
    return `tracefx-host failed ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
}
