/**
 * Times a workload in the page that imports this.
 *
 * @module
 */
import { readSafetensors } from "../../ts/dist/index.js";
import { openWeb } from "./onnxruntime.mjs";
import { timed } from "./repeated.mjs";
import { open as openTfjs } from "./tfjs.mjs";
import { open } from "./wasm.mjs";

/** The clock of a page tells a tenth of a millisecond at best. */
const TICK = 1;

const OPEN = { wasm: open, "onnxruntime-web": openWeb, tfjs: openTfjs };

/**
 * @param {{ engine: keyof typeof OPEN, base: string, threads: number, seconds: number, modules: string }} request where the workload and
 * the packages of the peers are
 */
export async function measureInPage({ engine, base, threads, seconds, modules }) {
  const read = async (/** @type {string} */ ending) => {
    const response = await fetch(base + ending);
    if (!response.ok) throw new Error(`${base}${ending} is not there`);
    return new Uint8Array(await response.arrayBuffer());
  };
  const inputs = readSafetensors(await read(".inputs.safetensors")).tensors;
  const peer = async (/** @type {string} */ name) => {
    if (name !== "tfjs") return await import(`${modules}/onnxruntime-web/dist/ort.wasm.min.mjs`);
    const { tf } = /** @type {any} */ (globalThis);
    tf.wasm.setWasmPaths(`${modules}/@tensorflow/tfjs-backend-wasm/dist/`);
    // Of its three modules the one without threads.
    tf.env().set("WASM_HAS_MULTITHREAD_SUPPORT", false);
    await tf.setBackend("wasm");
    return tf;
  };
  const opening = { read, inputs, peer, threads };
  const { ms, load, output } = await timed(OPEN[engine], opening, seconds, TICK);
  return { ms, load, output: Array.from(output) };
}
