/**
 * Opens a workload on ONNX Runtime: natively, or in WebAssembly without relaxed SIMD.
 *
 * @module
 */

/** @typedef {import("./repeated.mjs").Opening} Opening */
/** @typedef {import("./repeated.mjs").Run} Run */

/** @type {(opening: Opening) => Promise<Run>} */
export const openNode = (opening) =>
  open(opening, "onnxruntime-node", { intraOpNumThreads: opening.threads, interOpNumThreads: 1 });

/** @type {(opening: Opening) => Promise<Run>} */
export const openWeb = (opening) => open(opening, "onnxruntime-web", { executionProviders: ["wasm"] });

/** @type {(opening: Opening, name: string, options: object) => Promise<Run>} */
async function open({ read, inputs, peer, threads }, name, options) {
  const ort = await peer(name);
  if (name === "onnxruntime-web") ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
  const session = await ort.InferenceSession.create(await read(".onnx"), options);
  const feed = Object.fromEntries(
    Array.from(inputs, ([key, { dtype, data, shape }]) => [key, new ort.Tensor(dtype, data, shape)]),
  );
  return async () => (await session.run(feed)).out0.data;
}
