/**
 * What Node runs with the package `webgpu`: a program on the GPU, tensors that stay there, the same in a worker, and the command. It says how it
 * went in one line, which begins with `tracefx-host ok` or with `tracefx-host failed`.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { load, readSafetensors, tensor, writeSafetensors } from "tracefx";
import { EngineWorker, tensor as tensorOfWorker } from "tracefx/worker";
import { expected, image, model, shape } from "./data.js";

/** @typedef {import("tracefx").GpuTensor} GpuTensor */
/** @typedef {import("tracefx").Tensor} Tensor */

const BYTES = Uint8Array.from(atob(model), (it) => it.charCodeAt(0));
const COMMAND = "../node_modules/tracefx/bin/tracefx.mjs";

/** Refuses logits that are not PyTorch's. */
function check(/** @type {string} */ what, /** @type {Float32Array} */ logits) {
  const difference = Math.max(...expected.map((it, at) => Math.abs(it - (logits[at] ?? Number.NaN))));
  if (!(difference < 3e-5)) throw new Error(`${what}: the logits are ${difference} from PyTorch's`);
}

async function runModule() {
  const program = await load(BYTES);
  const input = tensor(Float32Array.from(image), { shape });
  using module = program.module({ device: "gpu" });
  using other = program.module({ device: "gpu" });
  const runs = /** @type {Tensor[]} */ (await Promise.all([module.runAsync([input]), other.runAsync([input])]));
  for (const it of runs) check("modules", it.toFloat32Array());
  using there = await input.to("gpu");
  // So many that what nobody holds is collected in between.
  for (let round = 0; round < 20; round++) {
    using logits = /** @type {GpuTensor} */ (await module.runAsync([there], { outputs: "gpu" }));
    check("tensors on the GPU", (await logits.cpu()).toFloat32Array());
  }
}

async function runWorker() {
  const engine = new EngineWorker();
  const module = await engine.loadModule(BYTES, { module: { device: "gpu" } });
  const logits = await module.runAsync([tensorOfWorker(Float32Array.from(image), { shape })]);
  check("tracefx/worker", /** @type {import("tracefx/worker").Tensor} */ (logits).toFloat32Array());
  engine.terminate();
}

async function runCommand() {
  mkdirSync("command", { recursive: true });
  const [file, inputs, outputs] = ["model.pt2", "inputs.safetensors", "outputs.safetensors"].map(
    (it) => `command/${it}`,
  );
  writeFileSync(file, BYTES);
  writeFileSync(inputs, writeSafetensors({ in0: tensor(Float32Array.from(image), { shape }) }));
  const command = (/** @type {string[]} */ ...args) =>
    execFileSync(process.execPath, [COMMAND, ...args, "--inputs", inputs, "--device", "gpu"], { encoding: "utf8" });
  command("run", file, "--outputs", outputs);
  const [logits] = readSafetensors(readFileSync(outputs)).tensors.values();
  check("tracefx run", /** @type {Tensor} */ (logits).toFloat32Array());
  if (!command("explain", file).includes(" steps on the device, 0 on the CPU")) throw new Error("explain");
}

/** Runs all of it. */
export async function run() {
  try {
    const start = performance.now();
    await runModule();
    await runWorker();
    await runCommand();
    return `tracefx-host ok on the GPU in ${(performance.now() - start).toFixed(0)} ms`;
  } catch (error) {
    return `tracefx-host failed ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`;
  }
}
