/**
 * Times one workload of `bench.mjs` on one engine, in a process of its own, and prints JSON: the milliseconds of the shortest
 * call after a warm-up, and the largest difference from what PyTorch gave.
 *
 *     node benches/measure.mjs ENGINE BASE THREADS SECONDS PEERS
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { init, load, readSafetensors } from "../ts/dist/index.js";

const [engine = "", base = "", threads = "1", seconds = "1", peers = "."] = process.argv.slice(2);

/** @typedef {{ ms: number[], output: ArrayLike<number> }} Times */

await init();
const tensorsOf = (/** @type {string} */ file) => readSafetensors(readFileSync(file)).tensors;
const inputs = [...tensorsOf(`${base}.inputs.safetensors`)];
const expected = tensorsOf(`${base}.expected.safetensors`).get("out0");
if (expected === undefined) throw new Error(`${base} has no expected output`);

/** @type {(run: () => ArrayLike<number> | Promise<ArrayLike<number>>) => Promise<Times>} */
async function repeated(run) {
  const output = await run();
  await run();
  /** @type {number[]} */
  const ms = [];
  const end = performance.now() + Number(seconds) * 1000;
  while (ms.length < 5 || performance.now() < end) {
    const start = performance.now();
    await run();
    ms.push(performance.now() - start);
  }
  return { ms, output };
}

/** @type {(name: string, options: object) => Promise<Times>} */
async function onnxruntime(name, options) {
  const path = createRequire(join(peers, "package.json")).resolve(name);
  const module = await import(pathToFileURL(path).href);
  const ort = module.default ?? module;
  if (name === "onnxruntime-web") ort.env.wasm.numThreads = Number(threads);
  ort.env.logLevel = "error";
  const session = await ort.InferenceSession.create(new Uint8Array(readFileSync(`${base}.onnx`)), options);
  const dataOf = (/** @type {typeof expected} */ it) =>
    it.dtype === "int64" ? new ort.Tensor("int64", it.data, it.shape) : new ort.Tensor("float32", it.data, it.shape);
  const feed = Object.fromEntries(inputs.map(([key, it]) => [key, dataOf(it)]));
  return await repeated(async () => (await session.run(feed)).out0.data);
}

/** @type {Record<string, () => Times | Promise<Times>>} */
const ENGINES = {
  native() {
    const command = fileURLToPath(new URL("../target/release/tracefx", import.meta.url));
    const folder = mkdtempSync(join(tmpdir(), "tracefx-"));
    const outputs = join(folder, "outputs.safetensors");
    const run = (/** @type {number} */ repeat) => {
      const args = ["--json", "run", `${base}.pt2`, "--inputs", `${base}.inputs.safetensors`, "--outputs", outputs];
      const env = { ...process.env, RAYON_NUM_THREADS: threads };
      return JSON.parse(execFileSync(command, [...args, "--repeat", String(repeat)], { env, encoding: "utf8" }));
    };
    const guess = run(3).milliseconds;
    const { milliseconds } = run(Math.max(5, Math.ceil((Number(seconds) * 1000) / guess)));
    const output = tensorsOf(outputs).get("out0")?.toFloat32Array() ?? [];
    rmSync(folder, { recursive: true });
    return { ms: [milliseconds], output };
  },
  async wasm() {
    const program = await load(readFileSync(`${base}.pt2`));
    const module = program.module();
    const leaves = inputs.map(([, it]) => it);
    return await repeated(() => {
      const output = /** @type {import("../ts/dist/index.js").Tensor} */ (module.runFlat(leaves)[0]);
      const data = output.toFloat32Array();
      output.dispose();
      return data;
    });
  },
  "onnxruntime-node": () =>
    onnxruntime("onnxruntime-node", { intraOpNumThreads: Number(threads), interOpNumThreads: 1 }),
  "onnxruntime-web": () => onnxruntime("onnxruntime-web", { executionProviders: ["wasm"] }),
};

const measure = ENGINES[engine];
if (measure === undefined) throw new Error(`there is no engine ${engine}`);
const { ms, output } = await measure();
const wanted = expected.toFloat32Array();
if (output.length !== wanted.length) throw new Error(`${output.length} numbers instead of ${wanted.length}`);
let difference = 0;
for (let at = 0; at < wanted.length; at++) {
  difference = Math.max(difference, Math.abs(Number(output[at]) - Number(wanted[at])));
}
console.log(JSON.stringify({ ms: Math.min(...ms), difference }));
// The threads of a peer would keep the process.
process.exit(0);
