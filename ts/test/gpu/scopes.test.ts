/** What the host refuses of the scopes in which a device tells its errors: none stays open, and nobody hears of it from elsewhere. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Gpu } from "../../src/gpu/device.ts";

const unheard: unknown[] = [];
const note = (reason: unknown): void => void unheard.push(reason);

beforeAll(() => process.on("unhandledRejection", note));
afterAll(() => process.off("unhandledRejection", note));

/** A device of which some of the calls are refused, and how many of its scopes are open. */
function device(refuses: { readonly entering?: number; readonly leaving?: true }) {
  const counts = { entered: 0, open: 0 };
  const made = {
    limits: {},
    features: new Set(),
    lost: new Promise(() => undefined),
    pushErrorScope() {
      if (counts.entered++ === refuses.entering) throw new Error("not entered");
      counts.open += 1;
    },
    async popErrorScope() {
      counts.open -= 1;
      if (refuses.leaving) throw new Error("not left");
      return null;
    },
  };
  return { gpu: new Gpu(made as unknown as GPUDevice), counts };
}

/** Until those are told who are told of what nobody has heard. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 5));

test("scopes that were entered are left where the next one is not", async () => {
  for (const entering of [0, 1, 2]) {
    const { gpu, counts } = device({ entering });
    expect(() => gpu.watched(() => "done")).toThrow("not entered");
    expect(counts.open).toBe(0);
  }
});

test("what the host refuses is told once, and with what was done at once first", async () => {
  const { gpu, counts } = device({ leaving: true });
  const stopped = () =>
    gpu.watched(() => {
      throw new Error("enough");
    });
  expect(stopped).toThrow("enough");
  const [done, problem] = gpu.watched(() => "done");
  expect(done).toBe("done");
  expect((await problem)?.kind).toBe("DeviceFailed");
  await settled();
  expect(counts.open).toBe(0);
  expect(unheard).toEqual([]);
});
