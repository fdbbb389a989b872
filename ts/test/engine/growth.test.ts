import { expect, test } from "vitest";
import { init, type Tensor, torch } from "../../src/index.ts";
import initialise from "../../wasm/engine.js";

test("memory that is taken in many small parts grows in few steps", async () => {
  await init();
  // The instance was made already, so that this gives it.
  const { memory } = await (initialise as unknown as () => Promise<{ readonly memory: WebAssembly.Memory }>)();
  const kept: Tensor[] = [];
  const one = torch.ones([1]);
  const lengths = new Set<number>();
  for (let n = 0; n < 500; n++) {
    // A tensor of the engine that takes a page, 64 KiB.
    kept.push(one.mul(torch.ones([128, 128])));
    lengths.add(memory.buffer.byteLength);
  }
  expect(memory.buffer.byteLength).toBeGreaterThan(kept.length * 65536);
  expect(lengths.size).toBeLessThan(60);
});
