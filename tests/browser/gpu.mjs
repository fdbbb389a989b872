/**
 * A page of Chromium with WebGPU, which a processor does the work of, and programs on it.
 *
 * @module
 */
import { chromium } from "playwright-core";
import { serve } from "../../scripts/serve.mjs";
import { chromium as chromiumPath } from "../../scripts/toolchain.mjs";

const IMPORTS = JSON.stringify({ imports: { tracefx: "/ts/dist/index.js" } });
const BODY = `<!doctype html><title>tracefx</title><script type="importmap">${IMPORTS}</script>
<script type="module" src="/tests/browser/probe.mjs"></script>`;

/** Chromium has its adapter of software for whoever asks for it. */
const WITH_GPU = ["--no-sandbox", "--enable-unsafe-webgpu"];

/** Arguments with which canvases of WebGPU can be drawn to, too: the same software draws everything else. */
export const CANVASES = ["--use-angle=swiftshader", "--enable-features=Vulkan", "--use-vulkan=swiftshader"];

/**
 * Opens a page that has loaded the package; `isWith` says whether it has WebGPU, and `more` are arguments of Chromium.
 *
 * @param {boolean} isWith
 * @param {readonly string[]} more
 */
export async function gpuPage(isWith = true, more = []) {
  const executablePath = chromiumPath();
  if (executablePath === undefined) throw new Error("there is no Chromium: node scripts/bootstrap.mjs --with-tests");
  const server = await serve();
  const browser = await chromium.launch({ executablePath, args: [...(isWith ? WITH_GPU : ["--no-sandbox"]), ...more] });
  const page = await browser.newPage();
  await page.route(`${server.url}page`, (route) => route.fulfill({ contentType: "text/html", body: BODY }));
  await page.goto(`${server.url}page`);
  await page.waitForFunction(() => "probe" in globalThis);
  return {
    page,
    async close() {
      await browser.close();
      await server.close();
    },
  };
}

/**
 * Loads the engine in a page of {@link gpuPage}, where `sinceLast()` tells from now on what its GPU was told since it was asked last.
 *
 * @param {import("playwright-core").Page} page
 */
export async function count(page) {
  await page.evaluate(async () => {
    const { probe } = /** @type {any} */ (globalThis);
    await probe.init();
    Object.assign(globalThis, { sinceLast: probe.counter() });
  });
}
