/** The engine in a worker, of the package as it is built: a worker is loaded by its place. */
import type { Worker } from "node:worker_threads";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as package_ from "../../src/worker/engineWorker.ts";
import { bytesOf, fixture, tensorsOf } from "../export/fixtures.ts";

const PACKAGE = new URL("../../dist/bundle/worker/engineWorker.js", import.meta.url).href;

let tracefx: typeof package_;
let engine: package_.EngineWorker;

beforeAll(async () => {
  tracefx = (await import(PACKAGE)) as typeof package_;
  engine = new tracefx.EngineWorker();
});

afterAll(() => engine.terminate());

/** An image that the package's own `Tensor` is. */
function image(): package_.Tensor {
  const [input] = tensorsOf("digits_cnn/inputs.safetensors").values();
  return tracefx.tensor((input as package_.Tensor).toArray() as number[]);
}

function expectedLogits(): number[] {
  const [logits] = tensorsOf("digits_cnn/expected.safetensors").values();
  return Array.from((logits as package_.Tensor).toFloat32Array());
}

/** What `body` refuses, by the package's own class. */
async function refusal(body: () => Promise<unknown>): Promise<package_.FxError> {
  try {
    await body();
  } catch (error) {
    if (error instanceof tracefx.FxError) return error;
    throw error;
  }
  throw new Error("nothing was refused");
}

/** Refuses logits that are not PyTorch's. */
function check(logits: unknown): void {
  const found = Array.from((logits as package_.Tensor).toFloat32Array());
  const wanted = expectedLogits();
  expect(found.length).toBe(wanted.length);
  for (const [at, it] of found.entries()) expect(it).toBeCloseTo(wanted[at] as number, 4);
}

test("a program runs in the worker, and tells how far it is", async () => {
  const model = await engine.loadModule(fixture("digits_cnn/model.pt2"));
  const input = image();
  const told: number[] = [];
  check(await model.runAsync([input], { progress: (done, total) => told.push(done / total) }));
  expect(told.length).toBeGreaterThan(3);
  // The input is the caller's, as it was.
  check(await model.runAsync([input]));
  model.dispose();
  expect((await refusal(() => model.runAsync([input]))).kind).toBe("Disposed");
});

test("several calls at once have their own answers", async () => {
  const model = await engine.loadModule(bytesOf("digits_cnn/model.pt2"));
  for (const it of await Promise.all([1, 2, 3].map(() => model.runAsync([image()])))) check(it);
});

test("refusals are those of the engine", async () => {
  const model = await engine.loadModule(bytesOf("digits_cnn/model.pt2"));
  const { kind, message } = await refusal(() => model.runAsync([tracefx.tensor([1, 2])]));
  expect([kind, message]).toEqual(["InputType", expect.stringContaining("FX0602")]);
  expect((await refusal(() => engine.loadModule(new Uint8Array(8)))).code).toMatch(/^FX01/);
  expect((await refusal(() => model.runAsync([new Date()]))).kind).toBe("InputType");
  expect(
    (await refusal(() => engine.loadModule(fixture("digits_cnn/model.pt2"), { module: { mode: "fast" as never } })))
      .kind,
  ).toBe("InvalidOption");
});

test("a signal stops a run before its next step, and a load", async () => {
  const model = await engine.loadModule(bytesOf("digits_cnn/model.pt2"));
  const stop = new AbortController();
  const run = model.runAsync([image()], { signal: stop.signal, progress: () => stop.abort(new Error("enough")) });
  await expect(run).rejects.toThrow("enough");
  await expect(model.runAsync([image()], { signal: AbortSignal.abort(new Error("before")) })).rejects.toThrow("before");
  const leave = new AbortController();
  const loading = engine.loadModule(bytesOf("digits_cnn/model.pt2"), { signal: leave.signal });
  leave.abort(new Error("left"));
  await expect(loading).rejects.toThrow("left");
  check(await model.runAsync([image()]));
});

test("where the worker ends, who waits is refused, and the next call works", async () => {
  const own = new tracefx.EngineWorker();
  const model = await own.loadModule(bytesOf("digits_cnn/model.pt2"));
  const run = model.runAsync([image()], { progress: () => own.terminate() });
  expect((await refusal(() => run)).kind).toBe("Disposed");
  check(await model.runAsync([image()]));
  own.terminate();
});

test("where the worker dies, who waits is refused with what it died of, and the next call works", async () => {
  const threads = process.getBuiltinModule("node:worker_threads") as { Worker: typeof Worker };
  const original = threads.Worker;
  const started: Worker[] = [];
  threads.Worker = class extends original {
    constructor(...given: ConstructorParameters<typeof Worker>) {
      super(...given);
      started.push(this);
    }
  };
  try {
    using own = new tracefx.EngineWorker();
    const model = await own.loadModule(bytesOf("digits_cnn/model.pt2"));
    void started[0]?.terminate();
    const died = await refusal(() => model.runAsync([image()]));
    expect(died).toMatchObject({ kind: "Internal", cause: "it exited with 1" });
    check(await model.runAsync([image()]));
  } finally {
    threads.Worker = original;
  }
});

test("an engine that cannot be loaded is refused, every time", async () => {
  using own = new tracefx.EngineWorker({ wasm: new Uint8Array([1, 2, 3, 4]) });
  for (const _ of [1, 2]) {
    expect((await refusal(() => own.loadModule(bytesOf("digits_cnn/model.pt2")))).kind).toBe("Io");
  }
});
