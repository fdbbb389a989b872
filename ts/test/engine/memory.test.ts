import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { sharedMemory } from "../../src/engine/memory.ts";
import { thrown } from "../thrown.ts";

const HEADER = [0, 97, 115, 109, 1, 0, 0, 0];
/** `(type (func))`. */
const TYPES = [1, 4, 1, 0x60, 0, 0];
const A = [1, 97];
/** Imports by the name `a` of the module `a`, one of each kind. */
const IMPORTS = {
  function: [...A, ...A, 0, 0],
  table: [...A, ...A, 1, 0x70, 0, 1],
  boundedTable: [...A, ...A, 1, 0x70, 1, 1, 2],
  memory: [...A, ...A, 2, 1, 1, 2],
  global: [...A, ...A, 3, 0x7f, 0],
  tag: [...A, ...A, 4, 0, 0],
};

function moduleOf(...names: (keyof typeof IMPORTS)[]): Uint8Array<ArrayBuffer> {
  const imports = [names.length, ...names.flatMap((name) => IMPORTS[name])];
  return Uint8Array.from([...HEADER, ...TYPES, 2, imports.length, ...imports]);
}

function sharedPages(): WebAssembly.Memory {
  return new WebAssembly.Memory({ initial: 1, maximum: 2, shared: true });
}

const shareMemory = sharedMemory.bytes;

describe("memory that is shared", () => {
  it("is what a module imports afterwards", async () => {
    const bytes = moduleOf("memory");
    const own = new WebAssembly.Memory({ initial: 1, maximum: 2 });
    await WebAssembly.instantiate(bytes, { a: { a: own } });
    shareMemory(bytes);
    await WebAssembly.instantiate(bytes, { a: { a: sharedPages() } });
    await expect(WebAssembly.instantiate(bytes, { a: { a: own } })).rejects.toThrow(WebAssembly.LinkError);
  });

  it("is found behind imports of every kind", () => {
    const bytes = moduleOf("function", "table", "boundedTable", "global", "tag", "memory", "function");
    const before = bytes.slice();
    shareMemory(bytes);
    const changed = [...bytes.entries()].filter(([at, byte]) => byte !== before[at]);
    expect(changed).toEqual([[bytes.length - IMPORTS.function.length - 3, 3]]);
    expect(WebAssembly.validate(bytes)).toBe(true);
  });

  it("takes one bit of every module of the package", () => {
    const folder = new URL("../../wasm/", import.meta.url);
    const files = readdirSync(folder).filter((name) => name.endsWith(".wasm"));
    expect(files.length).toBeGreaterThan(5);
    for (const name of files) {
      const bytes = new Uint8Array(readFileSync(new URL(name, folder)));
      const before = bytes.slice();
      shareMemory(bytes);
      const places: number[] = [];
      for (let at = 0; at < bytes.length; at++) if (bytes[at] !== before[at]) places.push(at);
      // So near to the beginning that it is there before the rest arrives.
      const [place = Number.NaN] = places;
      expect([name, places.length, place < 1 << 16]).toEqual([name, 1, true]);
      expect((bytes[place] as number) ^ (before[place] as number)).toBe(2);
    }
  });

  it("is what a module imports that arrives in pieces", async () => {
    const bytes = new Uint8Array(readFileSync(new URL("../../wasm/gpu.wasm", import.meta.url)));
    for (const [piece, whole] of [
      [1000, bytes],
      [70_000, bytes],
      [1, moduleOf("function", "memory")],
    ] as const) {
      const arriving = (): Response => {
        let at = 0;
        const body = new ReadableStream({
          pull(controller) {
            if (at < whole.length) controller.enqueue(whole.slice(at, (at += piece)));
            else controller.close();
          },
        });
        return sharedMemory.response(new Response(body, { headers: { "content-type": "application/wasm" } }));
      };
      const wanted = whole.slice();
      shareMemory(wanted);
      expect(Buffer.compare(wanted, Buffer.from(await arriving().arrayBuffer()))).toBe(0);
      expect(await WebAssembly.compileStreaming(arriving())).toBeInstanceOf(WebAssembly.Module);
    }
  });

  it("is refused where a module imports none, or ends too soon", () => {
    expect(thrown(() => shareMemory(moduleOf("function", "tag"))).code).toBe("FX0703");
    for (let length = 8; length < moduleOf("function", "memory").length - 3; length++) {
      expect(thrown(() => shareMemory(moduleOf("function", "memory").slice(0, length))).code).toBe("FX0703");
    }
  });
});
