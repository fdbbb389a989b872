/** Waits for a device that may be lost: all are told, and what they were given goes when its owner lets it go. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { Gpu } from "../../src/gpu/device.ts";

test("a loss is told to all who wait, and to who waits afterwards", async () => {
  let lose!: (why: object) => void;
  const lost = new Promise<object>((resolve) => {
    lose = resolve;
  });
  const gpu = new Gpu({ limits: {}, features: new Set(), lost } as unknown as GPUDevice);
  expect(await gpu.orLost(Promise.resolve(1))).toBe(1);
  const waits = [1, 2].map(() => gpu.orLost(new Promise(() => undefined)).catch(String));
  lose({ message: "", reason: "destroyed" });
  const told = [...(await Promise.all(waits)), await gpu.orLost(new Promise(() => undefined)).catch(String)];
  for (const it of told) expect(it).toContain("it was lost: destroyed");
  expect(() => gpu.checkNotLost()).toThrow("it was lost: destroyed");
});

test("what a wait has given is not kept as long as the device", async () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const gpu = new Gpu({ limits: {}, features: new Set(), lost: new Promise(() => undefined) } as unknown as GPUDevice);
  const given: WeakRef<ArrayBuffer>[] = [];
  const wait = async (): Promise<void> => {
    const bytes = new ArrayBuffer(100_000);
    given.push(new WeakRef(bytes));
    await gpu.orLost(Promise.resolve(bytes));
  };
  for (let round = 0; round < 20; round++) await wait();
  // A weak reference holds what it refers to until the task ends.
  await new Promise((resolve) => setTimeout(resolve, 1));
  collect();
  // The last one may still lie on the stack.
  expect(given.filter((it) => it.deref() !== undefined).length).toBeLessThan(3);
});
