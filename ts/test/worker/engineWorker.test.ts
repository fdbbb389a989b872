/** The engine in a worker, of the package as it is built: a worker is loaded by its place. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as package_ from "../../src/worker/engineWorker.ts";
import { pack, unpack } from "../../src/worker/messages.ts";
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

/** The workers that the body starts, and what they are asked. */
async function watchingWorkers(
  body: (
    started: readonly Worker[],
    asked: readonly { readonly do: string; readonly model?: number }[],
  ) => Promise<void>,
): Promise<void> {
  const threads = process.getBuiltinModule("node:worker_threads") as { Worker: typeof Worker };
  const original = threads.Worker;
  const started: Worker[] = [];
  const asked: { readonly do: string }[] = [];
  threads.Worker = class extends original {
    constructor(...given: ConstructorParameters<typeof Worker>) {
      super(...given);
      started.push(this);
    }

    override postMessage(...given: Parameters<Worker["postMessage"]>): void {
      super.postMessage(...given);
      asked.push(given[0] as { readonly do: string });
    }
  };
  try {
    await body(started, asked);
  } finally {
    threads.Worker = original;
  }
}

test("where the worker dies, who waits is refused with what it died of, and the next call works", async () => {
  await watchingWorkers(async (started) => {
    using own = new tracefx.EngineWorker();
    const model = await own.loadModule(bytesOf("digits_cnn/model.pt2"));
    void started[0]?.terminate();
    const died = await refusal(() => model.runAsync([image()]));
    expect(died).toMatchObject({ kind: "Internal", cause: "it exited with 1" });
    check(await model.runAsync([image()]));
  });
});

test("where the worker dies before it has answered, the refusal says where it is", async () => {
  await watchingWorkers(async (started) => {
    using own = new tracefx.EngineWorker();
    const loading = own.loadModule(bytesOf("digits_cnn/model.pt2"));
    while (started.length === 0) await Promise.resolve();
    void started[0]?.terminate();
    const { kind, message } = await refusal(() => loading);
    expect([kind, message]).toEqual(["Io", expect.stringContaining("dist/bundle/")]);
  });
});

test("a program that is disposed of while it is opened again does not stay in the worker", async () => {
  await watchingWorkers(async (_, asked) => {
    using own = new tracefx.EngineWorker();
    const model = await own.loadModule(bytesOf("digits_cnn/model.pt2"));
    own.terminate();
    const run = model.runAsync([image()]);
    model.dispose();
    check(await run);
    await Promise.resolve();
    expect(asked.map((it) => it.do)).toEqual(["init", "load", "init", "load", "run", "dispose"]);
  });
});

test("an engine that cannot be loaded is refused, every time", async () => {
  using own = new tracefx.EngineWorker({ wasm: new Uint8Array([1, 2, 3, 4]) });
  for (const _ of [1, 2]) {
    expect((await refusal(() => own.loadModule(bytesOf("digits_cnn/model.pt2")))).kind).toBe("Io");
  }
});

test("inputs and sources may be changed as soon as a call returns", async () => {
  const source = bytesOf("digits_cnn__core/model.pt2");
  const own = new tracefx.EngineWorker();
  const model = await own.loadModule(source);
  source.fill(0);
  own.terminate();
  const [rows, input] = [image().toArray() as number[][][][], image()];
  const runs = [model.runAsync([rows]), model.runAsync([input])];
  rows.pop();
  input.dispose();
  for (const it of await Promise.all(runs)) check(it);
  own.terminate();
});

test.each([Float32Array.of(1, 2), Buffer.from([1, 2])])("a typed array is packed as a copy", (array) => {
  const packed = pack([array], []);
  array.fill(0);
  expect(Array.from((unpack(packed) as [ArrayLike<number>])[0])).toEqual([1, 2]);
});

test("a module that is disposed of ends the runs that were asked for before", async () => {
  const model = await engine.loadModule(bytesOf("digits_cnn/model.pt2"));
  const runs = [model.runAsync([image()]), model.runAsync([image()])];
  model.dispose();
  expect((await refusal(() => model.runAsync([image()]))).kind).toBe("Disposed");
  for (const it of await Promise.all(runs)) check(it);
});

test("what progress throws refuses that call, and stops it", async () => {
  const model = await engine.loadModule(bytesOf("digits_cnn/model.pt2"));
  let told = 0;
  const progress = (): void => {
    told += 1;
    throw new Error("the bar is gone");
  };
  await expect(model.runAsync([image()], { progress })).rejects.toThrow("the bar is gone");
  check(await model.runAsync([image()]));
  expect(told).toBe(1);
  await expect(engine.loadModule(fixture("digits_cnn/model.pt2"), { progress })).rejects.toThrow("the bar is gone");
  expect((await refusal(() => model.runAsync([image()], { progress: 1 as never }))).kind).toBe("InvalidArgument");
});

test("inputs that a program writes to are changed", async () => {
  const model = await engine.loadModule(bytesOf("input_mutation__core/model.pt2"));
  const x = tracefx.tensor(
    [
      [0, 1, 2],
      [3, 4, 5],
    ],
    { dtype: "float32" },
  );
  const k = tracefx.tensor([[7], [8]], { dtype: "float32" });
  await model.runAsync([x, { k }]);
  expect([x.toArray(), k.toArray()]).toEqual([
    [
      [2, 2, 3],
      [8, 5, 6],
    ],
    [[21], [8]],
  ]);
});

test("state that calls have changed is not lost without a word", async () => {
  for (const name of ["conv_bn_relu_train", "conv_bn_relu_train__core"]) {
    using own = new tracefx.EngineWorker();
    const model = await own.loadModule(bytesOf(`${name}/model.pt2`));
    const [input] = tensorsOf(`${name}/inputs.safetensors`).values();
    const x = tracefx.tensor((input as package_.Tensor).toArray() as number[]);
    await model.runAsync([x]);
    own.terminate();
    const lost = await refusal(() => model.runAsync([x]));
    expect([lost.kind, lost.help]).toEqual(["Disposed", "call again to begin with the tensors of the file"]);
    await model.runAsync([x]);
  }
});

test("the engine may be a relative path's URL, a response, bytes or a module", async () => {
  const place = new URL("../../wasm/engine-simd.wasm", import.meta.url);
  const bytes = new Uint8Array(readFileSync(place));
  const response = (status: number): Response =>
    new Response(bytes, { status, headers: { "content-type": "application/wasm" } });
  for (const wasm of [place, response(200)]) {
    using own = new tracefx.EngineWorker({ wasm });
    const model = await own.loadModule(bytesOf("digits_cnn/model.pt2"));
    check(await model.runAsync([image()]));
    own.terminate();
    check(await model.runAsync([image()]));
  }
  using own = new tracefx.EngineWorker({ wasm: response(404) });
  expect((await refusal(() => own.loadModule(fixture("digits_cnn/model.pt2")))).message).toContain("404");
  const missing = new Response("not found", { status: 404 });
  expect((await refusal(() => engine.loadModule(missing))).kind).toBe("Io");
});

test("the engine's parts may be given, and one that is missing is another worker's matter", async () => {
  const nowhere = "file:///nowhere/part.wasm";
  using without = new tracefx.EngineWorker({ parts: { edit: nowhere, rare: nowhere } });
  const model = await without.loadModule(bytesOf("digits_cnn/model.pt2"));
  check(await model.runAsync([image()]));
  const load = () => without.loadModule(bytesOf("linalg_ops__core/model.pt2"));
  const recorded = [...tensorsOf("linalg_ops__core/inputs.safetensors").values()];
  const tensors = recorded.map((it) => tracefx.tensor(it.toArray() as number[], { dtype: it.dtype }));
  const missing = await refusal(async () => await (await load()).runAsync(tensors));
  expect(missing.reason).toBe(`this call needs the part rare of the engine, and ${nowhere} cannot be read`);
  check(await model.runAsync([image()]));
  const [edit, rare] = ["edit", "rare"].map((it) => {
    return new Uint8Array(readFileSync(new URL(`../../wasm/engine-${it}.wasm`, import.meta.url)));
  }) as [Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>];
  using own = new tracefx.EngineWorker({ parts: { edit, rare: Promise.resolve(rare) } });
  const linear = await own.loadModule(bytesOf("linalg_ops__core/model.pt2"));
  await linear.runAsync(tensors);
  using wrong = new tracefx.EngineWorker({ parts: { rares: nowhere } as object });
  expect((await refusal(() => wrong.loadModule(fixture("digits_cnn/model.pt2")))).message).toContain(
    "did you mean `rare`?",
  );
});

test("results do not stay on the GPU of the worker", async () => {
  const model = await engine.loadModule(bytesOf("digits_cnn/model.pt2"), { module: { device: "auto" } });
  const outputs = { outputs: "gpu" } as object;
  const error = await refusal(() => model.runAsync([image()], outputs));
  expect([error.kind, error.help]).toEqual(["InvalidOption", expect.stringContaining("in a worker of your own")]);
  check(await model.runAsync([image()]));
  model.dispose();
});

test("what no message holds is refused by name", async () => {
  const model = await engine.loadModule(bytesOf("digits_cnn/model.pt2"));
  expect((await refusal(() => model.runAsync([new Map([[{}, 1]])]))).kind).toBe("InputType");
  const load = (options: object) => refusal(() => engine.loadModule(fixture("digits_cnn/model.pt2"), options));
  const device = { createComputePipelineAsync: () => undefined, lost: Promise.resolve(), queue: {} };
  expect((await load({ module: { device } })).help).toContain('device: "gpu"');
  expect((await load({ limits: { nodes: () => 1 } })).kind).toBe("InvalidOption");
  expect((await load({ module: { checkGuards: false } })).message).toContain("checkGuards");
});

test("a signal is heeded while a program is opened again, and another call opens it", async () => {
  using own = new tracefx.EngineWorker();
  const model = await own.loadModule(bytesOf("digits_cnn/model.pt2"));
  own.terminate();
  const stop = new AbortController();
  const run = model.runAsync([image()], { signal: stop.signal });
  const other = model.runAsync([image()]);
  stop.abort(new Error("too long"));
  await expect(run).rejects.toThrow("too long");
  check(await other);
});

test("a program in Node ends when nothing waits for the worker, and not before", () => {
  const source = `
    import { EngineWorker, tensor } from ${JSON.stringify(PACKAGE)};
    const model = await new EngineWorker().loadModule(${JSON.stringify(fixture("digits_cnn/model.pt2"))});
    console.log((await model.runAsync([tensor(new Float32Array(64), { shape: [1, 1, 8, 8] })])).shape.join());`;
  for (const options of [[], ["--max-old-space-size=500", "--stack-size=900"]]) {
    const args = [...options, "--input-type=module", "--eval", source];
    expect(execFileSync("node", args, { encoding: "utf8", timeout: 20_000 })).toBe("1,10\n");
  }
});
