/** What a device has decides what its programs may use. */
import { afterEach, expect, test, vi } from "vitest";
import { Gpu } from "../../src/gpu/device.ts";

const device = (features: readonly string[]): GPUDevice => {
  const lost = new Promise(() => undefined);
  return { limits: {}, features: new Set(features), lost } as unknown as GPUDevice;
};

const withLanguage = (features: readonly string[]): void => {
  vi.stubGlobal("navigator", { gpu: { wgslLanguageFeatures: new Set(features) } });
};

afterEach(() => vi.unstubAllGlobals());

test("numbers of 16 bits are used where the device was given them", () => {
  expect(new Gpu(device([])).limits.hasF16).toBe(false);
  expect(new Gpu(device(["shader-f16"])).limits.hasF16).toBe(true);
});

test("subgroups are used where the shader language tells which one an invocation is of", () => {
  expect(new Gpu(device(["subgroups"])).limits.hasSubgroups).toBe(false);
  withLanguage(["packed_4x8_integer_dot_product"]);
  expect(new Gpu(device(["subgroups"])).limits.hasSubgroups).toBe(false);
  withLanguage(["subgroup_id"]);
  expect(new Gpu(device(["subgroups"])).limits.hasSubgroups).toBe(true);
  expect(new Gpu(device([])).limits.hasSubgroups).toBe(false);
});
