/** The built package in a real browser, loaded as a plain module script without a bundler. */
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serve } from "../../scripts/serve.mjs";
import { chromium as chromiumPath } from "../../scripts/toolchain.mjs";
import type { call } from "../../ts/src/engine/engine.ts";
import type * as tracefx from "../../ts/src/index.ts";

declare const probe: typeof tracefx & { call: typeof call };

const POLICY = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'";
const BODY = '<!doctype html><title>tracefx</title><script type="module" src="/tests/browser/probe.mjs"></script>';

let server: Awaited<ReturnType<typeof serve>>;
let browser: Browser;

/** A page that has loaded the package, but not yet the engine. */
async function open(): Promise<Page> {
  const page = await browser.newPage();
  await page.route(`${server.url}page`, (route) =>
    route.fulfill({ contentType: "text/html", headers: { "content-security-policy": POLICY }, body: BODY }),
  );
  await page.goto(`${server.url}page`);
  await page.waitForFunction(() => "probe" in globalThis);
  return page;
}

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

it("loads under a content security policy that forbids eval", async () => {
  const page = await open();
  const version = await page.evaluate(async () => {
    await probe.init();
    return probe.engineVersion();
  });
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
});

it("loads a program by ranges, from a file, and from the cache", async () => {
  const page = await open();
  const answers: number[] = [];
  page.on("response", (response) => {
    if (response.url().endsWith("model.pt2")) answers.push(response.status());
  });
  const nodes = await page.evaluate(async () => {
    const url = "/tests/fixtures/programs/digits_cnn/model.pt2";
    const byRanges = await probe.load(url);
    const response = await fetch(url);
    const file = await probe.load(new File([await response.blob()], "model.pt2"));
    const cached = await probe.load(url, { cache: "models" });
    const again = await probe.load(url, { cache: "models" });
    return [byRanges, file, cached, again].map((program) => program.graph.nodes.length);
  });
  expect(new Set(nodes).size).toBe(1);
  expect(nodes[0]).toBeGreaterThan(10);
  const parts = answers.filter((status) => status === 206).length;
  expect(parts).toBeGreaterThan(1);
  // For the file, and for the cache once.
  expect(answers.filter((status) => status === 200)).toHaveLength(2);
});

it("turns a panic into an exception and goes on", async () => {
  const page = await open();
  const result = await page.evaluate(async () => {
    await probe.init();
    try {
      probe.call((engine) => engine.__test_failure("panic"));
      return ["no error", probe.engineVersion()];
    } catch (error) {
      return [(error as Error).message.split("\n")[0], probe.engineVersion()];
    }
  });
  expect(result).toEqual(["FX0902: the engine panicked: asked to panic", expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
});

it("explains a page that is served in place of the module, and can be loaded afterwards", async () => {
  const page = await open();
  await page.route("**/*.wasm", (route) => route.fulfill({ contentType: "text/html", body: BODY }), { times: 1 });
  const [message, version] = await page.evaluate(async () => {
    const failure = await probe.init().then(
      () => "no error",
      (error: Error) => error.message,
    );
    await probe.init();
    return [failure, probe.engineVersion()];
  });
  expect(message).toMatch(/FX0703: \S+\.wasm is no WebAssembly module, it begins with "<!doctyp"/);
  expect(version).toMatch(/^\d+\.\d+\.\d+$/);
});

it("downloads a part of the engine when a call needs it, on the main thread and under a policy", async () => {
  const page = await open();
  const fetched: string[] = [];
  page.on("request", (request) => {
    const [, name] = /wasm\/(\S+)\.wasm$/.exec(request.url()) ?? [];
    if (name !== undefined) fetched.push(name);
  });
  const classes = await page.evaluate(async () => {
    const program = await probe.load("/tests/fixtures/programs/digits_cnn/model.pt2");
    const logits = program.module()(probe.torch.zeros(4, 1, 8, 8)) as tracefx.Tensor;
    return probe.torch.argmax(logits, 1).shape;
  });
  expect(classes).toEqual([4]);
  expect(fetched.toSorted()).toEqual(["engine-relaxed", "engine-simd"]);
  const rare = () => page.evaluate(() => probe.torch.special.besselJ0(probe.torch.ones(1)).tolist());
  expect(await rare()).toEqual([expect.closeTo(0.7652, 3)]);
  expect(await rare()).toEqual([expect.closeTo(0.7652, 3)]);
  expect(fetched.slice(2)).toEqual(["engine-rare"]);
  await page.evaluate(async () => {
    (await probe.load("/tests/fixtures/programs/digits_cnn/model.pt2")).runDecompositions();
  });
  expect(fetched.toSorted()).toEqual(["engine-edit", "engine-rare", "engine-relaxed", "engine-simd"]);
});

it("downloads all parts with the engine where it is told to", async () => {
  const page = await open();
  const fetched: string[] = [];
  page.on("request", (request) => fetched.push(request.url()));
  await page.evaluate(() => probe.init({ parts: "eager" }));
  expect(fetched.filter((url) => url.endsWith(".wasm")).length).toBe(4);
  await page.evaluate(() => probe.torch.special.besselJ0(probe.torch.ones(1)).tolist());
  expect(fetched.filter((url) => url.endsWith(".wasm")).length).toBe(4);
});
