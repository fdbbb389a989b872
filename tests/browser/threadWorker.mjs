/** The engine in a worker with threads, as `tracefx/worker` has it, and what a test asks of it beyond programs. */
import { call, init, restart } from "../../ts/dist/engine/engine.js";
import { torch } from "../../ts/dist/index.js";
// oxlint-disable-next-line import/no-unassigned-import -- it says how threads start
import "../../ts/dist/worker/serve.js";

/** How the engine fails on a thread. A worker within a worker starts when the outer one does nothing. */
const fail = async (/** @type {string} */ kind) => {
  for (;;) {
    try {
      call((engine) => engine.__test_failure(`thread: ${kind}`));
    } catch (error) {
      const [message = ""] = /** @type {Error} */ (error).message.split("\n");
      if (!message.endsWith("no other thread has come")) return message;
    }
    await new Promise((resolve) => setTimeout(resolve));
  }
};

const product = () => {
  torch.manualSeed(1);
  return torch.randn(300, 400).matmul(torch.randn(400, 500)).toFloat32Array();
};

await init({ threads: 2 });
const threads = torch.getNumThreads();
const first = product();
const isSame = () => product().every((it, at) => it === first[at]);
const panic = await fail("panic");
const goesOn = isSame();
const trap = await fail("trap");
restart();
const isAnew = isSame();
torch.setNumThreads(1);
postMessage({ threads, panic, goesOn, trap, isAnew, isSameAlone: isSame() });
