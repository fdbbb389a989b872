/** `npx tracefx … --device gpu`, with a stand-in of the package `webgpu`: what is told before anything runs. `npm run hosts` has the real one. */
import { afterEach, beforeAll, expect, test, vi } from "vitest";
import type { PlanReport } from "../../../bindings/plans.ts";
import { main } from "../../src/cli/main.ts";
import { fixture } from "../export/fixtures.ts";
import { fakeDevice } from "../gpu/fakeDevice.ts";

/** What every adapter of WebGPU has. */
const LIMITS = {
  maxBufferSize: 2 ** 28,
  maxStorageBufferBindingSize: 2 ** 27,
  maxStorageBuffersPerShaderStage: 8,
  maxComputeWorkgroupsPerDimension: 65_535,
};

let isThere = false;

async function requestDevice(): Promise<object> {
  const { device } = fakeDevice();
  Object.assign((device as unknown as GPUDevice).limits, LIMITS);
  return device;
}

vi.mock("webgpu", () => ({
  create: () => ({
    requestAdapter: async () => (isThere ? { limits: LIMITS, features: new Set(), requestDevice } : null),
  }),
}));

beforeAll(() => {
  isThere = true;
});

afterEach(() => {
  vi.restoreAllMocks();
  isThere = true;
});

function argsOf(verb: string, program: string): string[] {
  const [model, inputs] = ["model.pt2", "inputs.safetensors"].map((it) => fixture(`${program}/${it}`));
  return [verb, model as string, "--inputs", inputs as string, "--device", "gpu"];
}

async function told(...args: string[]): Promise<{ code: number; text: string }> {
  const [log, problem] = [vi.spyOn(console, "log"), vi.spyOn(console, "error")].map((it) =>
    it.mockImplementation(() => {}),
  );
  const code = await main(args);
  return { code, text: [log, problem].flatMap((it) => it?.mock.calls.flat() ?? []).join("\n") };
}

test("explain says who does the steps, as the native command does", async () => {
  const { code, text } = await told(...argsOf("explain", "cond_simple"));
  expect(code).toBe(0);
  // What the native command prints.
  expect(text.slice(text.indexOf("on the CPU\n")).split("\n")).toEqual([
    "on the CPU",
    "     step   reason                 up   down ",
    "─────────────────────────────────────────────",
    " 2   cond   cond is control flow    0      4 ",
    "",
    "3 steps: 158 bytes, 0 FLOPs, 48 bytes of parameters, buffers and constants",
    "2 steps on the device, 1 on the CPU; 24 bytes up, 4 bytes down between them",
  ]);
  vi.restoreAllMocks();
  const { steps } = JSON.parse((await told(...argsOf("explain", "cond_simple"), "--json")).text) as PlanReport;
  expect(steps.map((it) => it.placement?.reason)).toEqual([null, null, "cond is control flow"]);
  vi.restoreAllMocks();
  const whole = await told(...argsOf("explain", "digits_cnn"));
  expect(whole.text).toMatch(/\n7 steps on the device, 0 on the CPU; 1024 bytes up, 0 bytes down between them$/);
  expect(whole.text).not.toContain("reason");
});

test("what a GPU does not do is refused: results to the bit, and times of steps", async () => {
  const strict = await told(...argsOf("run", "digits_cnn"), "--outputs", "/no/such/file", "--precision", "strict");
  expect([strict.code, strict.text]).toEqual([1, expect.stringContaining("leave out --mode and --precision")]);
  vi.restoreAllMocks();
  const profile = await told(...argsOf("profile", "digits_cnn"));
  expect([profile.code, profile.text]).toEqual([2, expect.stringContaining("of the native command alone")]);
});

test("a GPU that is not there is refused, with what the command can do without", async () => {
  isThere = false;
  for (const verb of ["explain", "bench"]) {
    const { code, text } = await told(...argsOf(verb, "digits_cnn"));
    expect([code, text]).toEqual([1, expect.stringMatching(/FX0706: there is no GPU[^]*or leave out --device/)]);
    vi.restoreAllMocks();
  }
});
