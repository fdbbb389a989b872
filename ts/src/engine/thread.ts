/**
 * What a thread of the engine runs: an instance of the module over the memory of the one that it works for.
 *
 * @module
 */
import * as glue from "../../wasm/engine.js";
import { builtinModule } from "../base/builtinModule.ts";
import { sharedMemory } from "./memory.ts";
import { Parts } from "./parts.ts";
import { markStopped, type ThreadStart } from "./threads.ts";
import { type PartName, PARTS } from "./variant.ts";

const parent = builtinModule("node:worker_threads")?.parentPort;
if (parent !== undefined && parent !== null) parent.once("message", work);
else
  globalThis.addEventListener("message", (event) => work((event as MessageEvent).data as ThreadStart), { once: true });

/** Works for the engine as long as there is one. */
function work({ module, memory, parts: state, worker, stoppedAddress }: ThreadStart): void {
  const parts = new Parts<PartName>("the engine", PARTS, () => undefined);
  parts.restore({ ...state, change: sharedMemory });
  parts.attach(glue.initSync({ module, memory }));
  glue.set_parts(parts);
  try {
    glue.run_worker(worker);
  } catch (error) {
    // The engine does not see what becomes of a thread, and may wait for this one.
    markStopped(memory, stoppedAddress);
    throw error;
  }
}
