/** Who runs a program, where the host has no GPU: Node without the package `webgpu`. */
import { expect, test } from "vitest";
import { FxError } from "../../src/base/errors.ts";
import type { RunDevice } from "../../src/export/programModule.ts";
import { open, refusal, tensorsOf } from "../export/fixtures.ts";

test("a GPU that is not there is told of, with what to do", async () => {
  using module = (await open("digits_cnn")).module({ device: "gpu" });
  const image = tensorsOf("digits_cnn/inputs.safetensors").get("in0");
  const error = await refusal(async () => await module.runFlatAsync([image]));
  expect(error.kind).toBe("DeviceMissing");
  expect(error.help).toContain("npm install webgpu");
});

test("the CPU does it then, where it may, and is asked at once, too", async () => {
  const program = await open("digits_cnn");
  const image = tensorsOf("digits_cnn/inputs.safetensors").get("in0");
  using cpu = program.module();
  using auto = program.module({ device: "auto" });
  const wanted = String(cpu.runFlat([image])[0]);
  expect(String((await auto.runFlatAsync([image]))[0])).toBe(wanted);
  expect(String(auto.runFlat([image])[0])).toBe(wanted);
  expect(String(await cpu.runAsync([image]))).toBe(wanted);
});

test("a call at once of a module on a GPU is refused, and says how to wait", async () => {
  using module = (await open("digits_cnn")).module({ device: "gpu" });
  const image = tensorsOf("digits_cnn/inputs.safetensors").get("in0");
  for (const call of [() => module(image), () => module.runFlat([image]), () => module.runInto([image], [])]) {
    const error = await refusal(call);
    expect(error.kind).toBe("InvalidOption");
    expect(error.help).toContain("runAsync");
  }
});

test("a device that is none is refused by name", async () => {
  const program = await open("digits_cnn");
  const error = await refusal(() => program.module({ device: "cuda" as RunDevice }));
  expect(error.kind).toBe("InvalidOption");
  expect(error.help).toContain('"auto"');
});

test("what stops a run stops one that is waited for", async () => {
  using module = (await open("digits_cnn")).module();
  const image = tensorsOf("digits_cnn/inputs.safetensors").get("in0");
  const reason = new Error("enough");
  await expect(module.runFlatAsync([image], { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
  await expect(
    module.runFlatAsync([image], {
      progress: () => {
        throw reason;
      },
    }),
  ).rejects.toBe(reason);
  module.dispose();
  await expect(module.runFlatAsync([image])).rejects.toBeInstanceOf(FxError);
});
