/** GPUs of workers, in a real browser: the package's worker that a page has a program in, and a worker of the page's own. */
import type { Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as worker from "../../ts/src/worker/engineWorker.ts";
import { gpuPage } from "./gpu.mjs";

const PATIENCE = 120_000;
const PROGRAM = "/tests/fixtures/programs/digits_cnn/model.pt2";

declare const workerProbe: typeof worker;
/** What a promise is kept with, or the first line of what it is refused with. */
declare const told: (promise: Promise<unknown>) => Promise<unknown>;

let host: Awaited<ReturnType<typeof gpuPage>>;
let page: Page;

beforeAll(async () => {
  host = await gpuPage();
  ({ page } = host);
  await page.addScriptTag({ type: "module", url: "/tests/browser/workerProbe.mjs" });
  await page.waitForFunction(() => "workerProbe" in globalThis);
  await page.evaluate(() => {
    Object.assign(globalThis, {
      told: async (promise: Promise<unknown>) => {
        try {
          return await promise;
        } catch (error) {
          return (error as Error).message.split("\n")[0];
        }
      },
    });
  });
}, PATIENCE);

afterAll(async () => {
  await host?.close();
});

test(
  "a worker of the page's own has tensors on its GPU from call to call, and images",
  async () => {
    const found = await page.evaluate(
      () =>
        new Promise((resolve, reject) => {
          const running = new Worker("/tests/browser/gpuWorker.mjs", { type: "module" });
          running.addEventListener("message", ({ data }) => resolve(data), { once: true });
          running.addEventListener("error", (event) => reject(new Error(event.message)), { once: true });
        }),
    );
    const image = { shape: [1, 3, 4, 6], means: [255, 0, 51] };
    expect(found).toEqual({
      device: "gpu",
      values: [
        [7, 15, 23],
        [31, 39, 47],
      ],
      images: [image, image, image],
    });
  },
  PATIENCE,
);

test(
  "a program in the package's worker runs on the GPU there, gives the CPU's numbers, and hands results over",
  async () => {
    const found = await page.evaluate(async (program) => {
      // No `using`, which the compiler turns into functions of its own.
      const engine = new workerProbe.EngineWorker();
      const image = workerProbe.tensor(
        Float32Array.from({ length: 128 }, (_, at) => (at % 17) / 17),
        { shape: [2, 1, 8, 8] },
      );
      const [cpu, gpu] = [
        await engine.loadModule(program),
        await engine.loadModule(program, { module: { device: "gpu", state: "device" } }),
      ];
      const wanted = ((await cpu.runAsync([image])) as worker.Tensor).toFloat32Array();
      const results = (await Promise.all([gpu.runAsync([image]), gpu.runAsync([image])])) as worker.Tensor[];
      const far = results.map((it) =>
        Math.max(...it.toFloat32Array().map((got, at) => Math.abs(got - (wanted[at] ?? 9)))),
      );
      const asked = { outputs: "gpu" } as object;
      const answers = {
        far,
        devices: results.map((it) => String(it.device)),
        isHandedOver: results[0]?.data.buffer.byteLength === results[0]?.nbytes,
        refused: await told(gpu.runAsync([image], asked)),
        // The refusal has broken nothing.
        shape: ((await gpu.runAsync([image])) as worker.Tensor).shape,
      };
      engine.terminate();
      return answers;
    }, PROGRAM);
    expect(Math.max(...found.far)).toBeLessThan(1e-4);
    expect(found).toMatchObject({ devices: ["cpu", "cpu"], isHandedOver: true, shape: [2, 10] });
    expect(found.refused).toBe("FX0702: what a worker gives is handed over, and a tensor on its GPU cannot be");
  },
  PATIENCE,
);

test(
  "a run there is aborted, its module disposed of and its worker ended while it goes on",
  async () => {
    const found = await page.evaluate(async (program) => {
      const engine = new workerProbe.EngineWorker();
      const image = workerProbe.tensor(new Float32Array(64), { shape: [1, 1, 8, 8] });
      const open = () => engine.loadModule(program, { module: { device: "gpu" } });
      const first = await open();
      // The first run, which compiles, is aborted while it goes on, and the next one follows it.
      const stop = new AbortController();
      const progress = () => stop.abort(new Error("enough"));
      const reason = await told(first.runAsync([image], { signal: stop.signal, progress }));
      const after = ((await first.runAsync([image])) as worker.Tensor).shape;
      const second = await open();
      const runs = [second.runAsync([image]), second.runAsync([image])];
      second.dispose();
      const disposed = (await Promise.all(runs)).map((it) => (it as worker.Tensor).shape);
      const refused = await told(second.runAsync([image]));
      const third = await open();
      // What is told of a run comes before its end, however fast the machine is.
      const end = await told(third.runAsync([image], { progress: () => engine.terminate() }));
      // The next call starts another worker, with a GPU of its own.
      const again = ((await third.runAsync([image])) as worker.Tensor).shape;
      engine.terminate();
      return { reason, after, disposed, refused, end, again };
    }, PROGRAM);
    expect(found).toEqual({
      reason: "enough",
      after: [1, 10],
      disposed: [
        [1, 10],
        [1, 10],
      ],
      refused: "FX0701: the module was disposed",
      end: "FX0701: the worker with the engine was terminated",
      again: [1, 10],
    });
  },
  PATIENCE,
);
