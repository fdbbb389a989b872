/**
 * Times a workload on the command `tracefx`.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { readSafetensors } from "../../ts/dist/index.js";
import { watched } from "./process.mjs";

/** @type {import("./engines.mjs").Measure} */
export async function measure({ base, threads, seconds, scratch }) {
  const command = fileURLToPath(new URL("../../target/release/tracefx", import.meta.url));
  const outputs = `${scratch}/outputs.safetensors`;
  const run = async (/** @type {number} */ repeat) => {
    const args = ["--json", "run", `${base}.pt2`, "--inputs", `${base}.inputs.safetensors`, "--outputs", outputs];
    const env = { TRACEFX_NUM_THREADS: String(threads) };
    const { printed, memory } = await watched(command, [...args, "--repeat", String(repeat)], env);
    return { ms: JSON.parse(printed).milliseconds, memory };
  };
  const start = performance.now();
  const first = await run(1);
  const load = performance.now() - start;
  const guess = (await run(3)).ms ?? first.ms;
  const { ms, memory } = await run(Math.max(5, Math.ceil((seconds * 1000) / guess)));
  const output = readSafetensors(readFileSync(outputs)).tensors.get("out0")?.data ?? [];
  return { ms, load, memory, output: /** @type {ArrayLike<number>} */ (output) };
}
