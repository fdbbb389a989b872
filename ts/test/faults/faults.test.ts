/**
 * Faults of every kind, one after another in one process: each is refused by a typed error, and the next call gives the recorded numbers, bit
 * for bit those of the first. `npm run nightly` injects 10,000 of them.
 */
import { beforeAll, beforeEach, expect, test, vi } from "vitest";
import type * as package_ from "../../src/worker/engineWorker.ts";
import { call, restart } from "../../src/engine/engine.ts";
import { FxError, init, load, type ProgramModule, type Tensor, torch } from "../../src/index.ts";
import { bytesOf, refusal, tensorsOf } from "../export/fixtures.ts";
import { Random } from "../graph/random.ts";

const COUNT = Math.max(10, Number(process.env["TRACEFX_FAULTS"] ?? 100));
const SEED = Number(process.env["TRACEFX_SEED"] ?? 1);
const PACKAGE = new URL("../../dist/bundle/worker/engineWorker.js", import.meta.url).href;
const BYTES = bytesOf("digits_cnn/model.pt2");
const URL_ = "https://example.com/model.pt2";

beforeAll(() => init());
beforeEach(() => void vi.unstubAllGlobals());

const random = new Random(SEED);
/** A whole number below `end`. */
const below = (end: number): number => random.below(end);

const image = (): Tensor => [...tensorsOf("digits_cnn/inputs.safetensors").values()][0] as Tensor;
const logitsOf = (it: unknown): number[] => Array.from((it as Tensor).toFloat32Array());

/** What was thrown, or nothing. */
async function thrown(body: () => unknown): Promise<unknown> {
  try {
    await body();
    return undefined;
  } catch (error) {
    return error;
  }
}

/** Refuses anything but a typed error, of those that are expected of a fault. */
async function expectRefused(body: () => unknown, kinds: readonly string[]): Promise<void> {
  expect(kinds).toContain((await refusal(body)).kind);
}

/** A module of the program in the engine that there is. */
const opened = async (): Promise<ProgramModule> => (await load(BYTES)).module();

/** A response of the model's bytes in pieces, which breaks off behind some of them. */
function brokenResponse(): Response {
  const end = below(BYTES.length);
  let at = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(it) {
      if (at >= end) return it.error(new TypeError("terminated"));
      const next = Math.min(end, at + 1 + below(40_000));
      it.enqueue(BYTES.slice(at, next));
      at = next;
    },
  });
  return new Response(body);
}

/** What a server, or the network, does instead of giving the file. */
const ANSWERS: readonly (() => Response)[] = [
  () => {
    throw new TypeError("fetch failed");
  },
  () => new Response("gone", { status: [404, 410, 500, 503][below(4)] as number }),
  brokenResponse,
  () => new Response(BYTES.slice(0, below(BYTES.length))),
  () => new Response("<!doctype html><title>Not the model</title>"),
  () => new Response(null),
];

/** The faults; each gives the module to go on with. */
const FAULTS: Readonly<Record<string, (module: ProgramModule) => Promise<ProgramModule>>> = {
  async trap(module) {
    await expectRefused(() => call((engine) => engine.__test_failure("trap")), ["Internal"]);
    await expectRefused(() => module(image()), ["Internal", "NotLoaded"]);
    restart();
    await expectRefused(() => module(image()), ["Disposed"]);
    return await opened();
  },
  async panic(module) {
    await expectRefused(() => call((engine) => engine.__test_failure("panic")), ["Internal"]);
    return module;
  },
  async fetch(module) {
    vi.stubGlobal("fetch", async () => (ANSWERS[below(ANSWERS.length)] as () => Response)());
    await expectRefused(() => load(URL_), ["Io", "ArchiveMalformed", "ArchiveWrongKind", "ArchiveChecksum"]);
    vi.unstubAllGlobals();
    return module;
  },
  async "abort of a run"(module) {
    const stop = new AbortController();
    const reason = new Error("enough");
    const last = below(4);
    const progress = (done: number): void => {
      if (done >= last) stop.abort(reason);
    };
    expect(await thrown(() => module.runAsync([image()], { signal: stop.signal, progress }))).toBe(reason);
    return module;
  },
  async "abort of a download"(module) {
    const stop = new AbortController();
    const reason = new Error("left");
    vi.stubGlobal("fetch", async () => new Response(BYTES.slice()));
    const loading = load(URL_, { signal: stop.signal, progress: () => stop.abort(reason) });
    expect(await thrown(() => loading)).toBe(reason);
    vi.unstubAllGlobals();
    return module;
  },
  async "an exception of the caller"(module) {
    const own = new RangeError("of the caller");
    const last = below(4);
    const progress = (done: number): void => {
      if (done >= last) throw own;
    };
    expect(await thrown(() => module.runWith([image()], { progress }))).toBe(own);
    return module;
  },
  async "wrong inputs"(module) {
    const calls = [
      [],
      [torch.ones(1, 1, 8, 7)],
      [torch.ones([1, 1, 8, 8], { dtype: "int64" })],
      [3],
      [image(), image()],
      [{}],
    ];
    await expectRefused(
      () => module(...(calls[below(calls.length)] as unknown[])),
      ["InputCount", "InputStructure", "InputShape", "InputType"],
    );
    return module;
  },
  async "a file that was cut"(module) {
    expect(await thrown(() => load(BYTES.slice(0, below(BYTES.length))))).toBeInstanceOf(FxError);
    return module;
  },
  async "bits that flipped"(module) {
    const bytes = BYTES.slice();
    for (let n = 1 + below(8); n > 0; n--) (bytes[below(bytes.length)] as number) ^= 1 << below(8);
    const error = await thrown(async () => (await load(bytes)).module().dispose());
    // What is between entries, or is not read, may be anything.
    if (error !== undefined) expect(error).toBeInstanceOf(FxError);
    return module;
  },
  async "a module that was disposed of"(module) {
    module.dispose();
    await expectRefused(() => module(image()), ["Disposed"]);
    return await opened();
  },
};

test(`${COUNT} faults are refused, and the engine goes on`, { timeout: 100 * COUNT + 60_000 }, async () => {
  let module = await opened();
  const expected = logitsOf(module(image()));
  const [recorded] = tensorsOf("digits_cnn/expected.safetensors").values();
  for (const [at, it] of logitsOf(recorded).entries()) expect(expected[at]).toBeCloseTo(it, 4);
  const kinds = Object.keys(FAULTS);
  const counts = new Map(kinds.map((it) => [it, 0]));
  for (let at = 0; at < COUNT; at++) {
    // All kinds are met, in an order that the seed says.
    const kind = kinds[at < kinds.length ? at : below(kinds.length)] as string;
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
    const told = `fault ${at} of seed ${SEED}: ${kind}`;
    try {
      module = await (FAULTS[kind] as (typeof FAULTS)[string])(module);
    } catch (cause) {
      throw new Error(told, { cause });
    }
    expect(logitsOf(module(image())), told).toEqual(expected);
  }
  expect([...counts.values()].every((it) => it > 0)).toBe(true);
});

test("a worker that is killed at any moment is made anew by the next call", {
  timeout: COUNT * 20 + 60_000,
}, async () => {
  const tracefx = (await import(PACKAGE)) as typeof package_;
  using engine = new tracefx.EngineWorker();
  const model = await engine.loadModule(BYTES);
  const input = tracefx.tensor(image().toArray() as number[]);
  const expected = Array.from(((await model.runAsync([input])) as package_.Tensor).toFloat32Array());
  for (let at = 0; at < Math.max(3, COUNT / 100); at++) {
    const run = model.runAsync([input]);
    const wait = below(6);
    if (wait > 0) await new Promise((done) => setTimeout(done, wait));
    engine.terminate();
    const error = await thrown(() => run);
    // It may have been done before.
    if (error !== undefined) expect(error).toMatchObject({ kind: "Disposed" });
    expect(Array.from(((await model.runAsync([input])) as package_.Tensor).toFloat32Array())).toEqual(expected);
  }
});
