/** The page of the language model in a real browser: what it writes on the GPU is what it writes on the CPU. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { gpuPage } from "./gpu.mjs";

const PATIENCE = 120_000;

let host: Awaited<ReturnType<typeof gpuPage>>;

beforeAll(async () => {
  host = await gpuPage();
}, PATIENCE);

afterAll(async () => {
  await host?.close();
});

test(
  "writes the same on the GPU as on the CPU, letter by letter",
  async () => {
    const { page } = host;
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    await page.goto(new URL("/web/writer.html", page.url()).href);
    // Text, so that no bundler looks for the module.
    await page.evaluate(`import("/ts/dist/gpu/plan.js").then(({ PlanOnGpu: { prototype } }) => {
      const { run } = prototype;
      globalThis.counts = [];
      prototype.run = async function (...given) {
        await run.apply(this, given);
        counts.push({ ...this.counts, onCpu: this.program.steps.filter((it) => "cpu" in it.work).length });
      };
    })`);
    const texts: string[] = [];
    for (const device of ["gpu", "cpu"]) {
      await page.selectOption("#device", device);
      await page.click("#write:enabled");
      await page.getByText(`letter 128 of 128 on the ${device.toUpperCase()}`).waitFor({ timeout: PATIENCE });
      await page.locator("#write:enabled").waitFor();
      texts.push((await page.locator("#text").textContent()) ?? "");
    }
    expect(complaints).toEqual([]);
    const counts = await page.evaluate<Record<string, number>[]>("counts");
    expect(counts).toHaveLength(128);
    // A letter and its place go up, and scores come down; of the cache of 128 letters, nothing.
    expect(counts.at(-1)).toMatchObject({ submissions: 1, readbacks: 1, onCpu: 0 });
    expect(counts.at(-1)?.["bytesDown"]).toBeLessThan(512);
    expect(counts.at(-1)?.["bytesUp"]).toBeLessThan(512);
    expect(texts[0]).toHaveLength(128);
    expect(new Set(texts[0]).size).toBeGreaterThan(5);
    expect(texts[0]).toBe(texts[1]);
  },
  PATIENCE,
);
