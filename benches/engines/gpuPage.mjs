/**
 * Runs a workload on the GPU of the page that imports this, and counts what WebGPU is told.
 *
 * @module
 */
import { counter } from "../../tests/browser/gpuCounter.mjs";
import { init, load, readSafetensors } from "../../ts/dist/index.js";
import { differenceOf } from "./difference.mjs";

/** @typedef {import("../../ts/dist/index.js").Tensor} Tensor */

/**
 * What an engine is opened with: where the workload is, its inputs, and where the packages of the peers are.
 *
 * @typedef {{ base: string, inputs: ReadonlyMap<string, Tensor>, modules: string }} Opening
 * @typedef {() => Promise<ArrayLike<number>>} Run
 */

/** @type {Readonly<Record<string, (opening: Opening) => Promise<Run>>>} */
const OPEN = { tracefx: openOwn, "onnxruntime-web": openOnnx };

/**
 * What WebGPU is told in the second run, when the weights are there and all is compiled, and how far the results are from PyTorch's.
 *
 * @param {{ engine: string, base: string, modules: string }} request
 */
export async function countInPage({ engine, base, modules }) {
  const open = OPEN[engine];
  if (open === undefined) throw new Error(`there is no engine ${engine}`);
  const since = counter();
  const run = await open({ base, modules, inputs: await tensorsOf(`${base}.inputs.safetensors`) });
  await run();
  since();
  const output = await run();
  const counts = since();
  const wanted = (await tensorsOf(`${base}.expected.safetensors`)).get("out0")?.data;
  if (wanted === undefined) throw new Error(`${base} has no expected output`);
  return { ...counts, difference: differenceOf(output, wanted) };
}

/** A program whose state stays on the device. @type {(opening: Opening) => Promise<Run>} */
async function openOwn({ base, inputs }) {
  await init();
  const program = await load(await bytesOf(`${base}.pt2`));
  const module = program.module({ device: "gpu", state: "device" });
  program.dispose();
  return async () => {
    const [output] = /** @type {Tensor[]} */ (await module.runFlatAsync([...inputs.values()]));
    return /** @type {Float32Array} */ (output?.data);
  };
}

/**
 * A session whose caches stay on the device: keys and values of the past go in, and come out one position longer.
 *
 * @type {(opening: Opening) => Promise<Run>}
 */
async function openOnnx({ base, inputs, modules }) {
  const ort = await import(`${modules}/onnxruntime-web/dist/ort.webgpu.min.mjs`);
  ort.env.wasm.numThreads = 1;
  ort.env.logLevel = "error";
  const own = `${base}.onnx.inputs.safetensors`;
  const all = (await fetch(own, { method: "HEAD" })).ok ? await tensorsOf(own) : inputs;
  const past = Array.from(all).filter(([name]) => !inputs.has(name));
  const session = await ort.InferenceSession.create(await bytesOf(`${base}.onnx`), {
    executionProviders: ["webgpu"],
    preferredOutputLocation: {
      out0: "cpu",
      ...Object.fromEntries(past.map((_, at) => [`out${at + 1}`, "gpu-buffer"])),
    },
  });
  const feeds = Object.fromEntries(
    Array.from(inputs, ([name, { dtype, data, shape }]) => [name, new ort.Tensor(dtype, data, shape)]),
  );
  const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
  for (const [name, { dtype, data, shape }] of past) {
    /** @type {GPUDevice} */
    const device = await ort.env.webgpu.device;
    const values = /** @type {Float32Array<ArrayBuffer>} */ (data);
    const buffer = device.createBuffer({ size: values.byteLength, usage: STORAGE | COPY_SRC | COPY_DST });
    device.queue.writeBuffer(buffer, 0, values);
    feeds[name] = ort.Tensor.fromGpuBuffer(buffer, { dataType: dtype, dims: shape });
  }
  return async () => {
    const { out0, ...present } = await session.run(feeds);
    for (const it of Object.values(present)) it.dispose();
    return out0.data;
  };
}

async function tensorsOf(/** @type {string} */ url) {
  return readSafetensors(await bytesOf(url)).tensors;
}

async function bytesOf(/** @type {string} */ url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} is not there`);
  return new Uint8Array(await response.arrayBuffer());
}
