/**
 * Times a workload in this process.
 *
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { readSafetensors } from "../../ts/dist/index.js";
import { timed } from "./repeated.mjs";

/** @type {(open: (opening: import("./repeated.mjs").Opening) => Promise<import("./repeated.mjs").Run>, isOnnx?: boolean) => import("./engines.mjs").Measure} */
export const measureWith =
  (open, isOnnx = false) =>
  async ({ base, threads, seconds, peers }) => {
    const require = createRequire(join(peers, "package.json"));
    const own = `${base}.onnx.inputs.safetensors`;
    const file = isOnnx && existsSync(own) ? own : `${base}.inputs.safetensors`;
    const opening = {
      threads,
      inputs: readSafetensors(readFileSync(file)).tensors,
      read: async (/** @type {string} */ ending) => new Uint8Array(readFileSync(base + ending)),
      peer: (/** @type {string} */ name) => (name === "tfjs" ? tfjs(require) : imported(require.resolve(name))),
    };
    const res = await timed(open, opening, seconds);
    return { ...res, memory: process.resourceUsage().maxRSS * 1024 };
  };

async function imported(/** @type {string} */ path) {
  const module = await import(pathToFileURL(path).href);
  return module.default ?? module;
}

async function tfjs(/** @type {NodeJS.Require} */ require) {
  const [tf, wasm] = ["tfjs-core", "tfjs-backend-wasm"].map((it) => require(`@tensorflow/${it}`));
  wasm.setWasmPaths(join(require.resolve("@tensorflow/tfjs-backend-wasm"), "../"));
  await tf.setBackend("wasm");
  return tf;
}
