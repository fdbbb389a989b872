import { expect, test, vi } from "vitest";
import { init } from "../../src/engine/engine.ts";
import { compilePackaged } from "../../src/engine/module.ts";
import { MODULES } from "../../src/engine/variant.ts";

/** What a bundler of a server gives for a file: a place on the site, which is no whole URL. */
function placeOnSite(path: string): URL {
  return Object.defineProperty(Object.create(URL.prototype) as URL, "toString", { value: () => path });
}

test("the module is found in the installed package where a bundle does not have it", async () => {
  const places = [
    placeOnSite("/_next/static/media/engine-simd.33rv6q8za4vp_.wasm"),
    new URL("file:///no/such/folder/engine-simd.wasm"),
  ];
  for (const place of places) expect(await compilePackaged(place)).toBeInstanceOf(WebAssembly.Module);
});

test("what the package does not have is told as it was asked for", async () => {
  await expect(compilePackaged(new URL("file:///no/such/engine-none.wasm"))).rejects.toMatchObject({
    kind: "Io",
    reason: "cannot read file:///no/such/engine-none.wasm",
  });
});

test("a host that has no places, such as workerd, is told to give the module", async () => {
  vi.spyOn(MODULES, "simd").mockImplementation(() => new URL("engine.wasm", undefined));
  await expect(init()).rejects.toMatchObject({ kind: "Io", help: expect.stringContaining("init({ wasm, parts })") });
  vi.restoreAllMocks();
  await init();
});
