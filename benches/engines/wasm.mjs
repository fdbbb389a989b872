/**
 * Opens a workload on tracefx in WebAssembly, which has threads in Node 22 and later.
 *
 * @module
 */
import { init, load, torch } from "../../ts/dist/index.js";

/** @typedef {import("../../ts/dist/index.js").Tensor} Tensor */

/** @type {(opening: import("./repeated.mjs").Opening) => Promise<import("./repeated.mjs").Run>} */
export async function open({ read, inputs, threads }) {
  await init({ threads });
  const program = await load(await read(".pt2"));
  const module = program.module();
  program.dispose();
  // In the engine's memory, where results of other calls are.
  const leaves = Array.from(inputs.values(), (it) => torch.clone(it));
  return () => {
    const output = /** @type {Tensor} */ (module.runFlat(leaves)[0]);
    const data = /** @type {Float32Array} */ (output.data);
    output.dispose();
    return data;
  };
}
