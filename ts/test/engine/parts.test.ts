/** Deferred parts: read when a call needs them, fetched beforehand or given, and refused where they are not there. */
import { existsSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Parts, type PartSources } from "../../src/engine/parts.ts";
import { MODULES, PARTS } from "../../src/engine/variant.ts";
import { thrown } from "../thrown.ts";

/** `(module (import "primary" "$g0" (global (mut i32))) (func $start i32.const 1 global.set 0) (start $start))`. */
const PART = new Uint8Array(
  Buffer.from(
    "0061736d01000000010401600000021001077072696d61727903246730037f01030201000801000a08010600410124000b",
    "hex",
  ),
);

let folder: string;
beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), "tracefx-parts-"))));

/** The exports of an instance whose flag the part sets. */
function instance(): { readonly $g0: WebAssembly.Global } {
  return { $g0: new WebAssembly.Global({ value: "i32", mutable: true }, 0) };
}

/** Parts of which the package has one, and what was missing. */
function partsAt(place: () => URL): Parts<"rare"> & { missing?: Error } {
  const res: Parts<"rare"> & { missing?: Error } = new Parts("the engine", [["rare", "part", place]], (error) => {
    res.missing = error;
  });
  return res;
}

function nowhere(): URL {
  return new URL("file:///nowhere/part.wasm");
}

/** A part of the package. */
function partOf(name: string): Uint8Array<ArrayBuffer> {
  return new Uint8Array(readFileSync(new URL(`engine-${name}.wasm`, MODULES.simd())));
}

async function onDisk(bytes: Uint8Array): Promise<URL> {
  const path = join(folder, "part.wasm");
  await writeFile(path, bytes);
  return pathToFileURL(path);
}

describe("parts of a module", () => {
  it("are read by the call that needs them, for each instance", async () => {
    const place = await onDisk(PART);
    const parts = partsAt(() => place);
    await parts.begin("init");
    for (const exports of [instance(), instance()]) {
      parts.attach(exports);
      parts.load(1);
      expect(exports.$g0.value).toBe(1);
    }
  });

  it("are there already where they were asked for, or given", async () => {
    const place = await onDisk(PART);
    const begun = async (packaged: () => URL, sources: PartSources<"rare">): Promise<Parts<"rare">> => {
      const parts = partsAt(packaged);
      await parts.begin("init", sources);
      return parts;
    };
    const response = new Response(PART, { headers: { "content-type": "application/wasm" } });
    const given = partsAt(nowhere);
    given.give("initSync", { rare: PART });
    const all = [
      await begun(() => place, "eager"),
      await begun(nowhere, { rare: PART }),
      await begun(nowhere, { rare: new WebAssembly.Module(PART) }),
      await begun(nowhere, { rare: response }),
      await begun(nowhere, { rare: Promise.resolve(PART) }),
      given,
    ];
    await rm(place);
    for (const parts of all) {
      const exports = instance();
      parts.attach(exports);
      await parts.instantiate();
      expect(exports.$g0.value).toBe(1);
      // Another instance, of an engine that was made anew.
      const again = instance();
      parts.attach(again);
      parts.load(1);
      expect(again.$g0.value).toBe(1);
    }
  });

  it("are read where a host says that they are", async () => {
    const place = await onDisk(PART);
    for (const rare of [place, place.href]) {
      const parts = partsAt(nowhere);
      await parts.begin("init", { rare });
      const exports = instance();
      parts.attach(exports);
      await parts.instantiate();
      expect(exports.$g0.value).toBe(0);
      parts.load(1);
      expect(exports.$g0.value).toBe(1);
    }
  });

  it("that are missing are named, with where they were looked for and what to do", async () => {
    const parts = partsAt(nowhere);
    // It may be that no call needs it.
    await parts.begin("init");
    const error = thrown(() => parts.load(1));
    expect(error).toMatchObject({ code: "FX0703", kind: "Io" });
    expect(error.message).toBe(
      "FX0703: this call needs the part rare of the engine, and file:///nowhere/part.wasm cannot be read\n" +
        '  help: fetch it beforehand, `parts: "eager"`, or say where it is, `parts: { rare }`',
    );
    expect(parts.missing).toBe(error);
    await expect(parts.begin("init", "eager")).rejects.toThrow("FX0703: cannot read file:///nowhere/part.wasm");
    const none = partsAt(() => new URL("no base"));
    await none.begin("init");
    expect(thrown(() => none.load(1)).reason).toMatch(
      /^this call needs the part rare of the engine, and file:\S+part\.wasm cannot be read$/,
    );
  });

  it("that are something else are refused, and what failed once is forgotten", async () => {
    const place = await onDisk(new TextEncoder().encode("<!doctype html>"));
    const parts = partsAt(() => place);
    await parts.begin("init");
    parts.attach(instance());
    expect(String(thrown(() => parts.load(1)).cause)).toContain('is no WebAssembly module, it begins with "<!doctyp"');
    await expect(parts.begin("init", "eager")).rejects.toThrow("is no WebAssembly module");
    await expect(parts.begin("init", { rare: nowhere(), rares: PART } as object)).rejects.toThrow(
      "FX0702: parts of init has no option `rares`\n  help: did you mean `rare`? the options are rare",
    );
    await expect(parts.begin("init", "now" as "lazy")).rejects.toThrow(
      'parts of init are "lazy", "eager" or an object',
    );
    await onDisk(PART);
    parts.load(1);
  });

  it("of another build are refused", async () => {
    const place = await onDisk(PART);
    const parts = partsAt(() => place);
    await parts.begin("init");
    parts.attach({});
    const error = thrown(() => parts.load(1));
    expect(error.reason).toBe("the part rare does not fit the engine, which is of another build");
    expect(error.cause).toBeInstanceOf(WebAssembly.LinkError);
    await parts.begin("init", "eager");
    await expect(parts.instantiate()).rejects.toThrow("which is of another build");
  });
});

describe("the engine", () => {
  beforeEach(() => vi.resetModules());
  afterEach(() => vi.resetModules());

  it("has all of its parts in the package", () => {
    for (const [, , place] of PARTS) expect(existsSync(place())).toBe(true);
  });

  it("refuses a call that cannot have its part, and all later ones until it is made anew", async () => {
    const { init, restart, torch } = await import("../../src/index.ts");
    // Of the same copy of the package.
    const { thrown: refused } = await import("../thrown.ts");
    const missing = new URL("engine-rare.wasm", pathToFileURL(`${folder}/`));
    await init({ parts: { rare: missing } });
    expect(torch.ones(2).add(1).tolist()).toEqual([2, 2]);
    const kept = torch.ones(2);
    const rare = (): unknown => torch.special.besselJ0(torch.ones(1)).tolist();
    expect(refused(rare).reason).toContain(
      `this call needs the part rare of the engine, and ${missing} cannot be read`,
    );
    expect(refused(() => torch.ones(2)).help).toBe("call restart() to make it anew; what it held is lost");
    // What it holds is lost, and nobody fails who gives it back.
    kept.dispose();
    restart();
    expect(torch.ones(2).add(1).tolist()).toEqual([2, 2]);
    await writeFile(missing, partOf("rare"));
    expect(rare()).toEqual([expect.closeTo(0.7652, 3)]);
  });

  it("takes parts and fetches them when it is loaded already", async () => {
    const { init, torch } = await import("../../src/index.ts");
    const missing = new URL("engine-rare.wasm", pathToFileURL(`${folder}/`));
    await init({ parts: { rare: missing } });
    await expect(init({ parts: "later" } as object)).rejects.toThrow('parts of init are "lazy", "eager" or an object');
    await init({ parts: "eager" });
    vi.spyOn(process, "getBuiltinModule").mockImplementation(() => undefined as never);
    expect(torch.special.besselJ0(torch.ones(1)).tolist()).toEqual([expect.closeTo(0.7652, 3)]);
    vi.restoreAllMocks();
  });

  it("needs none that was given", async () => {
    const { initSync, torch } = await import("../../src/index.ts");
    vi.spyOn(process, "getBuiltinModule").mockImplementation(() => undefined as never);
    try {
      initSync(partOf("simd"), { edit: partOf("edit"), rare: new WebAssembly.Module(partOf("rare")) });
      expect(torch.special.besselJ0(torch.ones(1)).tolist()).toEqual([expect.closeTo(0.7652, 3)]);
    } finally {
      vi.restoreAllMocks();
    }
  });
});
