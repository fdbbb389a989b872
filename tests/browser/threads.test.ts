/** Threads of the engine in a real browser: in the worker of `tracefx/worker`, on pages that are cross-origin isolated. */
import { type Browser, chromium } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serve } from "../../scripts/serve.mjs";
import { chromium as chromiumPath } from "../../scripts/toolchain.mjs";
import type * as worker from "../../ts/src/worker/engineWorker.ts";

declare const workerProbe: typeof worker;

const ISOLATED = { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" };

let server: Awaited<ReturnType<typeof serve>>;
let browser: Browser;

beforeAll(async () => {
  server = await serve();
  const executablePath = chromiumPath();
  if (executablePath === undefined) throw new Error("there is no Chromium: node scripts/bootstrap.mjs --with-tests");
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
}, 60_000);

afterAll(async () => {
  await browser?.close();
  await server?.close();
});

it("share work, fail as the engine does, and are there again when it was made anew", async () => {
  const page = await browser.newPage();
  await page.route(`${server.url}page`, (route) =>
    route.fulfill({ contentType: "text/html", headers: ISOLATED, body: "<!doctype html><title>threads</title>" }),
  );
  await page.goto(`${server.url}page`);
  const told = await page.evaluate(
    () =>
      new Promise((resolve, reject) => {
        const running = new Worker("/tests/browser/threadWorker.mjs", { type: "module" });
        running.addEventListener("message", ({ data }) => resolve(data), { once: true });
        running.addEventListener("error", (event) => reject(new Error(event.message)), { once: true });
      }),
  );
  expect(told).toEqual({
    threads: 2,
    panic: "FX0902: the engine panicked: asked to panic",
    goesOn: true,
    trap: "FX0902: the engine stopped and its memory cannot be trusted any more",
    isAnew: true,
    isSameAlone: true,
  });
});

it("run programs of the worker, on isolated pages and on others", async () => {
  for (const headers of [ISOLATED, undefined]) {
    const page = await browser.newPage();
    const body =
      '<!doctype html><title>threads</title><script type="module" src="/tests/browser/workerProbe.mjs"></script>';
    await page.route(`${server.url}page`, (route) =>
      route.fulfill({ contentType: "text/html", ...(headers && { headers }), body }),
    );
    await page.goto(`${server.url}page`);
    await page.waitForFunction(() => "workerProbe" in globalThis);
    const result = await page.evaluate(async () => {
      const engine = new workerProbe.EngineWorker({ threads: 2 });
      const model = await engine.loadModule("/tests/fixtures/programs/digits_cnn/model.pt2");
      const image = workerProbe.tensor(new Float32Array(64), { shape: [1, 1, 8, 8] });
      const { shape } = (await model.runAsync([image])) as worker.Tensor;
      engine.terminate();
      return [crossOriginIsolated, shape];
    });
    expect(result).toEqual([headers !== undefined, [1, 10]]);
    await page.close();
  }
});
