import { readFile } from "node:fs/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { call, engineVersion, init, initSync, restart } from "../../src/engine/engine.ts";
import { MODULES } from "../../src/engine/variant.ts";
import { EngineError, OperatorError, UsageError } from "../../src/base/errors.ts";
import { thrown } from "../thrown.ts";

describe("before it is loaded", () => {
  it("refuses calls and says what to do", () => {
    const error = thrown(() => engineVersion());
    expect(error).toBeInstanceOf(UsageError);
    expect(error.message).toBe("FX0704: the engine is not loaded\n  help: await init() first");
  });

  it("refuses an unknown option by name, an unknown variant, and bytes that are no module", async () => {
    await expect(init({ wsam: "x" } as object)).rejects.toThrow("FX0702: init has no option `wsam`");
    await expect(init({ variant: "fast" } as object)).rejects.toThrow("FX0702: this host has no variant fast");
    const page = new TextEncoder().encode("<!DOCTYPE html>");
    await expect(init({ wasm: page })).rejects.toThrow(
      'FX0703: the source is no WebAssembly module, it begins with "<!DOCTYP"',
    );
    expect(thrown(() => initSync(page)).code).toBe("FX0703");
  });

  it("names the file that is not there, and can be loaded afterwards", async () => {
    const url = new URL("missing.wasm", MODULES.simd());
    await expect(init({ wasm: url })).rejects.toThrow(`FX0703: cannot read ${url}`);
  });
});

describe("the loaded engine", () => {
  beforeAll(() => init());
  afterAll(() => restart());

  it("is loaded once", async () => {
    expect(init()).toBe(init());
    await init({ wasm: "nowhere" });
    initSync(new Uint8Array(await readFile(MODULES.simd())));
  });

  it("has the version of the package", async () => {
    const manifest = JSON.parse(await readFile(new URL("../../package.json", import.meta.url), "utf8"));
    expect(engineVersion()).toBe(manifest.version);
  });

  it("refuses with the class, the code and every field of the diagnostic", () => {
    const error = thrown(() => call((engine) => engine.__test_failure("refuse")));
    expect(error).toBeInstanceOf(OperatorError);
    expect({ ...error }).toMatchObject({
      code: "FX0301",
      kind: "ShapeMismatch",
      reason: "mat1 is 2x3 but mat2 is 4x5",
      node: "mm_1",
      op: "aten.mm.default",
      notes: ["mat1 is %x"],
      help: "transpose mat2",
    });
  });

  it("turns a panic into an error that names the place, and goes on", () => {
    for (let round = 0; round < 3; round++) {
      const error = thrown(() => call((engine) => engine.__test_failure("panic")));
      expect(error).toBeInstanceOf(EngineError);
      expect(error.reason).toBe("the engine panicked: asked to panic");
      expect(error.notes).toEqual([expect.stringMatching(/^at crates\/wasm\/src\/lib\.rs:\d+:\d+$/)]);
      expect(engineVersion()).not.toBe("");
    }
  });

  it("passes on what a callback throws", () => {
    const mine = new TypeError("mine");
    for (const value of [mine, "a string", 7, undefined]) {
      let caught: unknown = "nothing";
      try {
        call(() => {
          throw value;
        });
      } catch (error) {
        caught = error;
      }
      expect(caught).toBe(value);
    }
  });

  it("refuses every call after a trap until it is made anew", () => {
    const trap = thrown(() => call((engine) => engine.__test_failure("trap")));
    expect(trap).toBeInstanceOf(EngineError);
    expect(trap.cause).toBeInstanceOf(WebAssembly.RuntimeError);
    expect(thrown(() => engineVersion()).help).toContain("restart()");
    restart();
    expect(engineVersion()).not.toBe("");
    expect(thrown(() => call((engine) => engine.__test_failure("panic"))).notes).toHaveLength(1);
  });
});
