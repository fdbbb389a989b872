/** WebGPU of the package `webgpu`, which is a stand-in here: `npm run hosts` has the real one. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { refusal } from "../export/fixtures.ts";

/** What `create` gave. */
let made: WeakRef<object>[] = [];
let isThere = true;
let hasAdapter = true;

vi.mock("webgpu", () => ({
  create: () => {
    if (!isThere) throw new Error("no driver");
    const adapter = { limits: {}, features: new Set(), requestDevice: async () => fakeDevice().device };
    const entry = { requestAdapter: async () => (hasAdapter ? adapter : null) };
    made.push(new WeakRef(entry));
    return entry;
  },
}));

const { findAdapter, gpuOf } = await import("../../src/gpu/device.ts");
const { fakeDevice } = await import("./fakeDevice.ts");

beforeEach(() => {
  made = [];
});

afterEach(() => {
  [isThere, hasAdapter] = [true, true];
});

test("that is not there is told to each of those who look for it at once, with what they may do", async () => {
  isThere = false;
  const [ofCommand, ofModule, ofNobody] = await Promise.all([
    refusal(() => findAdapter("leave out --device")),
    refusal(() => gpuOf(undefined)),
    refusal(() => findAdapter()),
  ]);
  const reasons = [ofCommand, ofModule, ofNobody].map((it) => it.reason);
  expect(new Set(reasons)).toEqual(new Set(["there is no GPU: the package webgpu does not start"]));
  expect(ofCommand.help).toMatch(/; or leave out --device$/);
  expect(ofModule.help).toContain('device: "auto"');
  expect(ofNobody.help).not.toContain("; or ");
});

test("is looked for again where it was not there, made once, and kept as long as its devices", async () => {
  isThere = false;
  await expect(gpuOf(undefined)).rejects.toThrow("FX0706: there is no GPU: the package webgpu does not start");
  [isThere, hasAdapter] = [true, false];
  await expect(gpuOf(undefined)).rejects.toMatchObject({ help: expect.stringContaining("Vulkan") as string });
  hasAdapter = true;
  const gpu = await gpuOf(undefined);
  expect(await gpuOf(undefined)).toBe(gpu);
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  // A weak reference holds what it refers to until the task ends.
  await new Promise((resolve) => setTimeout(resolve, 1));
  collect();
  // Dawn's devices work on what it has.
  expect(made.map((it) => it.deref() !== undefined)).toEqual([true]);
});
