import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { afterEach, describe, expect, test, vi } from "vitest";
import { load, restart } from "../../src/index.ts";

const FILE = join(fileURLToPath(new URL("../../../tests/fixtures/programs/", import.meta.url)), "digits_cnn/model.pt2");
const BYTES = readFileSync(FILE);
const SHA256 = createHash("sha256").update(BYTES).digest("hex");

/** A response as a server streams it. */
function streamed(pieces: number, headers: Record<string, string> = {}): Response {
  const size = Math.ceil(BYTES.length / pieces);
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (let at = 0; at < BYTES.length; at += size) controller.enqueue(new Uint8Array(BYTES.subarray(at, at + size)));
      controller.close();
    },
  });
  return new Response(body, { headers });
}

/** A cache as far as the loader uses it. */
function stubCaches(kept: Map<string, Uint8Array<ArrayBuffer>>): void {
  const cache = {
    match: async (url: string) => (kept.has(String(url)) ? new Response(kept.get(String(url))) : undefined),
    put: async (url: string, response: Response) =>
      void kept.set(String(url), new Uint8Array(await response.arrayBuffer())),
    delete: async (url: string) => kept.delete(String(url)),
  };
  vi.stubGlobal("caches", { open: async () => cache });
}

afterEach(() => {
  vi.unstubAllGlobals();
});

describe("what is read is told of", () => {
  test.each([
    ["a path", () => FILE],
    ["a file URL", () => pathToFileURL(FILE)],
    ["a Blob", () => new Blob([new Uint8Array(BYTES)])],
    ["a response with a length", () => streamed(5, { "content-length": String(BYTES.length) })],
    ["a response without a length", () => streamed(5)],
    ["a response with a wrong length", () => streamed(5, { "content-length": "1000" })],
  ])("%s", async (_, source) => {
    const told: number[] = [];
    const program = await load(source(), { progress: (read) => told.push(read) });
    expect(program.graph.nodes.length).toBeGreaterThan(5);
    expect(told.at(-1)).toBe(BYTES.length);
    expect(told).toEqual(told.toSorted((a, b) => a - b));
  });
});

describe("a hash", () => {
  test("of other bytes is refused with both", async () => {
    const other = "0".repeat(64);
    await expect(load(FILE, { sha256: other })).rejects.toThrow(`has the SHA-256 ${SHA256}, and ${other} was expected`);
    await expect(load(BYTES, { sha256: SHA256.toUpperCase() })).resolves.toBeDefined();
  });

  test("that is none is refused before anything is read", async () => {
    await expect(load("/does/not/exist", { sha256: "abc" })).rejects.toThrow("sha256 is not 64 hexadecimal digits");
  });
});

describe("a signal", () => {
  test("stops a response between its pieces", async () => {
    const controller = new AbortController();
    const progress = () => controller.abort();
    await expect(load(streamed(5), { signal: controller.signal, progress })).rejects.toThrow("aborted");
  });

  test("stops the reading of a file", async () => {
    await expect(load(FILE, { signal: AbortSignal.abort() })).rejects.toThrow("aborted");
  });
});

describe("a cache", () => {
  const URL_ = "https://example.com/model.pt2";

  test("keeps what a URL gave", async () => {
    const kept = new Map<string, Uint8Array<ArrayBuffer>>();
    stubCaches(kept);
    const fetched = vi.fn(async () => streamed(3));
    vi.stubGlobal("fetch", fetched);
    for (let n = 0; n < 3; n++) await load(URL_, { cache: "models", sha256: SHA256 });
    expect([fetched.mock.calls.length, [...kept.keys()]]).toEqual([1, [URL_]]);
  });

  test("with other bytes than the hash says is filled again", async () => {
    const kept = new Map([[URL_, new Uint8Array([1, 2, 3])]]);
    stubCaches(kept);
    vi.stubGlobal("fetch", async () => streamed(3));
    await load(URL_, { cache: "models", sha256: SHA256 });
    expect(kept.get(URL_)?.length).toBe(BYTES.length);
  });

  test("is not filled by a download that breaks off", async () => {
    stubCaches(new Map());
    const broken = new ReadableStream<Uint8Array>({
      start: (it) => it.enqueue(new Uint8Array(BYTES.subarray(0, 5))),
      pull: (it) => it.error(new TypeError("terminated")),
    });
    vi.stubGlobal("fetch", async () => new Response(broken));
    await expect(load(URL_, { cache: "models" })).rejects.toMatchObject({
      code: "FX0703",
      cause: expect.any(TypeError),
    });
  });

  test("does not keep bytes that the hash refuses", async () => {
    const kept = new Map<string, Uint8Array<ArrayBuffer>>();
    stubCaches(kept);
    vi.stubGlobal("fetch", async () => streamed(3));
    await expect(load(URL_, { cache: "models", sha256: "0".repeat(64) })).rejects.toThrow("SHA-256");
    expect(kept.size).toBe(0);
  });
});

test("an engine that is made anew at any moment of a load is told of", async () => {
  const refused: number[] = [];
  for (let moment = 0; moment < 40; moment++) {
    let reads = 0;
    const file = {
      stat: async () => ({ size: BYTES.length }),
      read: async (buffer: Uint8Array, offset: number, length: number, position: number) => {
        buffer.set(BYTES.subarray(position, position + length), offset);
        if (++reads === 2) void later(moment).then(restart);
        return { bytesRead: length };
      },
    };
    const problem = await load(file).then(
      () => undefined,
      (error: unknown) => error,
    );
    await later(100);
    if (problem === undefined) continue;
    refused.push(moment);
    expect(String(problem)).toContain("the engine was made anew while the program was loaded");
  }
  expect(refused.length).toBeGreaterThan(2);
});

async function later(turns: number): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await undefined;
}

/** A server that goes on for ever. */
function endless(headers: Record<string, string> = {}): Response {
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      controller.enqueue(new Uint8Array(1 << 16));
    },
  });
  return new Response(body, { headers });
}

describe("what does not end", () => {
  test("is read up to a limit with a name", async () => {
    const limits = { stream_bytes: 1_000_000, archive_bytes: 2_000_000 };
    await expect(load(endless(), { limits })).rejects.toThrow("the limit `stream_bytes` is 1000000");
    await expect(load(endless({ "content-length": "5" }), { limits })).rejects.toThrow(
      "the limit `archive_bytes` is 2000000",
    );
    stubCaches(new Map());
    vi.stubGlobal("fetch", async () => endless());
    const cached = load("https://a.test/endless.pt2", { limits, cache: "models" });
    await expect(cached).rejects.toThrow("the limit `stream_bytes` is 1000000");
  });

  test.skipIf(process.platform === "win32")("is refused of a device, too", async () => {
    await expect(load("/dev/zero", { limits: { stream_bytes: 1_000_000 } })).rejects.toThrow("`stream_bytes`");
  });
});
