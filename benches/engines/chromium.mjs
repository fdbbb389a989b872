/**
 * Times a workload in a page of Chromium, which is served from the repository.
 *
 * @module
 */
import { relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { serve } from "../../scripts/serve.mjs";
import { chromium as chromiumPath } from "../../scripts/toolchain.mjs";
import { peakOf } from "./process.mjs";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** @type {(engine: "wasm" | "onnxruntime-web" | "tfjs") => import("./engines.mjs").Measure} */
export const measureWith =
  (engine) =>
  async ({ base, threads, seconds, peers }) => {
    const executablePath = chromiumPath();
    if (executablePath === undefined) throw new Error("there is no Chromium: node scripts/bootstrap.mjs --with-tests");
    const server = await serve();
    const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
    try {
      const page = await browser.newPage();
      const body = "<!doctype html><title>bench</title>";
      await page.route(`${server.url}bench`, (route) =>
        route.fulfill({
          contentType: "text/html",
          headers: { "cross-origin-embedder-policy": "require-corp", "cross-origin-opener-policy": "same-origin" },
          body,
        }),
      );
      await page.goto(`${server.url}bench`);
      const url = (/** @type {string} */ path) => server.url + relative(ROOT, path).split(sep).join("/");
      const modules = `${url(peers)}/node_modules`;
      if (engine === "tfjs") {
        for (const it of ["tfjs-core/dist/tf-core.min.js", "tfjs-backend-wasm/dist/tf-backend-wasm.min.js"]) {
          await page.addScriptTag({ url: `${modules}/@tensorflow/${it}` });
        }
      }
      const found = await page.evaluate(
        async ({ script, ...request }) => (await import(script)).measureInPage(request),
        { script: `${server.url}benches/engines/page.mjs`, engine, base: url(base), threads, seconds, modules },
      );
      return { ...found, memory: await memoryOf(browser) };
    } finally {
      await browser.close();
      await server.close();
    }
  };

/** The most memory that the process of the page had. */
async function memoryOf(/** @type {import("playwright-core").Browser} */ browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const peaks = processInfo.filter((it) => it.type === "renderer").map((it) => peakOf(it.id) ?? 0);
  return peaks.length === 0 ? undefined : Math.max(...peaks);
}
