/** The page that draws a video as a comic in a real browser: the GPU draws what the CPU draws, and nothing of it passes the CPU. */
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { CANVASES, gpuPage } from "./gpu.mjs";

const PATIENCE = 120_000;
/** The size of the pictures that are asked for. */
const [WIDTH, HEIGHT] = [160, 120];

const FAKE = "--use-fake-device-for-media-stream";

/** Has the page count what it tells WebGPU from now on, and what it makes there and does not destroy. Text, so that no bundler looks for the module. */
const COUNTED = `import("/tests/browser/gpuCounter.mjs").then(({ counter }) => {
  globalThis.sinceLast = counter();
  globalThis.living = new Set();
  for (const [name, { prototype }] of [["createBuffer", GPUBuffer], ["createTexture", GPUTexture]]) {
    const [make, { destroy }] = [GPUDevice.prototype[name], prototype];
    GPUDevice.prototype[name] = function (given) {
      const made = make.call(this, given);
      living.add(made);
      return made;
    };
    prototype.destroy = function () {
      living.delete(this);
      destroy.call(this);
    };
  }
})`;

/** Has the page keep what it draws by WebGPU, since a canvas shows that to others in the task in which it was drawn alone. */
const KEPT = `
  const { getCurrentTexture } = GPUCanvasContext.prototype;
  const { submit } = GPUQueue.prototype;
  let drawn;
  GPUCanvasContext.prototype.getCurrentTexture = function () {
    drawn = this.canvas;
    return getCurrentTexture.call(this);
  };
  GPUQueue.prototype.submit = function (...given) {
    submit.apply(this, given);
    if (drawn !== undefined) globalThis.kept = pixelsOf(drawn);
    drawn = undefined;
  };`;
const PIXELS = `globalThis.pixelsOf = (canvas) => {
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d");
  copy.drawImage(canvas, 0, 0);
  return [...copy.getImageData(0, 0, canvas.width, canvas.height).data];
};`;

/** The pixels that the page drew last on a device. */
async function pixels(page: Page, device: "gpu" | "cpu"): Promise<number[]> {
  return await page.evaluate(device === "gpu" ? "kept" : 'pixelsOf(document.getElementById("cpu"))');
}

/** Opens the page where nothing moves by itself, and does something with it. What the page complains of is refused. */
async function withPage(
  body: (page: Page) => Promise<void>,
  isWith = true,
  more: readonly string[] = [],
): Promise<void> {
  const host = await gpuPage(isWith, [...(isWith ? CANVASES : []), ...more]);
  try {
    const { page } = host;
    const complaints: string[] = [];
    page.on("pageerror", (error) => complaints.push(error.message));
    page.on("console", (message) => {
      if (message.type() === "error") complaints.push(message.text());
    });
    await page.addInitScript(isWith ? `${PIXELS}${KEPT}` : PIXELS);
    await page.emulateMedia({ reducedMotion: "reduce" });
    // Small pictures from the first one on: the GPU is software.
    await page.route("**/web/vision.html", async (route) => {
      const response = await route.fetch();
      const text = (await response.text()).replace('value="640" selected', 'value="640"');
      await route.fulfill({ response, body: text });
    });
    await page.goto(new URL("/web/vision.html", page.url()).href);
    await body(page);
    expect(complaints).toEqual([]);
  } finally {
    await host.close();
  }
}

/** Waits for words. */
async function says(page: Page, words: string | RegExp): Promise<void> {
  await page.locator("#status", { hasText: words }).waitFor({ timeout: PATIENCE });
}

/** Waits until the page knows how long a frame takes. */
async function ran(page: Page, device: "gpu" | "cpu"): Promise<void> {
  await page.locator(`#${device}-time`, { hasText: "ms" }).waitFor({ timeout: PATIENCE });
}

test(
  "draws on the GPU what the CPU draws, and nothing of it passes the CPU",
  async () => {
    await withPage(async (page) => {
      await says(page, "Frame 0 on the GPU.");
      const program = await page.locator("#program").innerText();
      expect(program).toMatch(/^160 × 120 pixels, \d+ nodes, \d+ steps of the plan\.$/u);
      for (const look of ["ink", "comic"]) {
        await page.selectOption("#device", "gpu");
        await says(page, "Frame 0 on the GPU.");
        await page.selectOption("#look", look);
        await says(page, "Frame 0 on the GPU.");
        const ofGpu = await pixels(page, "gpu");
        await page.selectOption("#device", "cpu");
        await says(page, "Frame 0 on the CPU.");
        const ofCpu = await pixels(page, "cpu");
        expect(ofGpu).toHaveLength(4 * WIDTH * HEIGHT);
        const far = ofGpu.map((it, at) => Math.abs(it - (ofCpu[at] as number)));
        expect(Math.max(...far), look).toBeLessThanOrEqual(2);
        // There is something to see: ink, and what is no ink.
        const dark = ofCpu.filter((it, at) => at % 4 === 1 && it < 64).length / (WIDTH * HEIGHT);
        expect(dark, look).toBeGreaterThan(0.02);
        expect(dark, look).toBeLessThan(0.6);
      }
      await page.selectOption("#device", "gpu");
      await says(page, "Frame 0 on the GPU.");
      await page.evaluate(COUNTED);
      await page.click("#start");
      await ran(page, "gpu");
      // Another device takes over while it runs.
      await page.selectOption("#device", "cpu");
      await ran(page, "cpu");
      await page.click("#start");
      const counts = await page.evaluate<Record<string, number>>("({ ...sinceLast(), living: living.size })");
      const frames = (counts["submissions"] as number) / 3;
      expect(frames).toBeGreaterThanOrEqual(3);
      // A frame is taken, drawn by the network and shown: what goes up is how the picture lies.
      expect(counts).toMatchObject({ readbacks: 0, bytesDown: 0, bytesUp: 20 * frames, living: 0 });
    });
  },
  PATIENCE,
);

test(
  "draws what the camera gives and what a video has, and says what cannot be opened",
  async () => {
    await withPage(
      async (page) => {
        await says(page, "Frame 0 on the GPU.");
        await page.selectOption("#source", "camera");
        await ran(page, "gpu");
        expect(await page.locator("#video").isVisible()).toBe(true);
        expect(new Set(await pixels(page, "gpu")).size).toBeGreaterThan(8);
        // A video of the scene.
        const video = await page.evaluate(async () => {
          const canvas = document.createElement("canvas");
          [canvas.width, canvas.height] = [320, 160];
          const context = canvas.getContext("2d") as CanvasRenderingContext2D;
          const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: "video/webm" });
          const parts: Blob[] = [];
          recorder.ondataavailable = ({ data }) => parts.push(data);
          const stopped = new Promise((resolve) => (recorder.onstop = resolve));
          recorder.start();
          for (let at = 0; at < 10; at++) {
            context.fillStyle = `hsl(${36 * at} 80% 50%)`;
            context.fillRect(10 * at, 0, 160, 160);
            await new Promise((resolve) => setTimeout(resolve, 40));
          }
          recorder.stop();
          await stopped;
          return [...new Uint8Array(await new Blob(parts).arrayBuffer())];
        });
        await page.selectOption("#source", "file");
        await page.setInputFiles("#file", { name: "a.webm", mimeType: "video/webm", buffer: Buffer.from(video) });
        // It is scaled to the size that was asked for.
        await page.locator("#program", { hasText: "160 × 80 pixels" }).waitFor({ timeout: PATIENCE });
        await page.setInputFiles("#file", { name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("no video") });
        await says(page, "The browser cannot play a.txt.");
        expect(await page.locator("#source").inputValue()).toBe("scene");
        expect(await page.locator("#start").innerText()).toBe("Start");
      },
      true,
      [FAKE, "--use-fake-ui-for-media-stream"],
    );
  },
  PATIENCE,
);

test(
  "stops though it has not begun, and switches a camera off that is not wanted any more",
  async () => {
    await withPage(
      async (page) => {
        await says(page, "Frame 0 on the GPU.");
        // All in one task: what is begun has no time to run.
        await page.evaluate(`for (let at = 0; at < 4; at++) document.getElementById("start").click()`);
        expect(await page.locator("#start").innerText()).toBe("Start");
        // What waits for the last one that ran goes on.
        await page.selectOption("#look", "ink");
        await says(page, "Frame 0 on the GPU.");
        // The camera is given when the scene was chosen again.
        await page.evaluate(`{
          const { mediaDevices } = navigator;
          const ask = mediaDevices.getUserMedia.bind(mediaDevices);
          const answer = new Promise((resolve) => (globalThis.allow = resolve));
          mediaDevices.getUserMedia = async (...given) => {
            globalThis.asked = true;
            await answer;
            return (globalThis.camera = await ask(...given));
          };
          globalThis.asked = false;
        }`);
        await page.selectOption("#source", "camera");
        await expect.poll(() => page.evaluate("globalThis.asked"), { timeout: PATIENCE }).toBe(true);
        await page.selectOption("#source", "scene");
        await ran(page, "gpu");
        await page.evaluate("allow()");
        const isOff = `globalThis.camera?.getTracks().every((it) => it.readyState === "ended")`;
        await expect.poll(() => page.evaluate(isOff), { timeout: PATIENCE }).toBe(true);
        expect(await page.locator("#scene").isVisible()).toBe(true);
        expect(await page.evaluate(`document.getElementById("video").srcObject`)).toBe(null);
        await page.click("#start");
      },
      true,
      [FAKE, "--use-fake-ui-for-media-stream"],
    );
  },
  PATIENCE,
);

test(
  "says that the camera was refused, and goes on with the scene",
  async () => {
    await withPage(
      async (page) => {
        await says(page, "Frame 0 on the GPU.");
        await page.selectOption("#source", "camera");
        await says(page, "The camera was refused. Allow it for this page in the browser, and choose it again.");
        expect(await page.locator("#source").inputValue()).toBe("scene");
        expect(await page.locator("#scene").isVisible()).toBe(true);
      },
      true,
      [FAKE],
    );
  },
  PATIENCE,
);

test(
  "says that there is no GPU, and draws on the CPU",
  async () => {
    await withPage(async (page) => {
      await says(page, "There is no GPU for this page");
      expect(await page.locator("#device").inputValue()).toBe("cpu");
      expect(new Set(await pixels(page, "cpu")).size).toBeGreaterThan(8);
      await page.click("#start");
      await ran(page, "cpu");
    }, false);
  },
  PATIENCE,
);
