/** The explorer in a real browser: opens programs, closes and opens modules, searches, runs, compares, exports, and is accessible. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serve } from "../../scripts/serve.mjs";
import { chromium as chromiumPath } from "../../scripts/toolchain.mjs";
import { tensor } from "../../ts/src/tensor/construct.ts";
import { writeNpy } from "../../ts/src/tensor/npy.ts";
import type { ExportedProgram } from "../../ts/src/index.ts";
import type { TracefxGraph } from "../../ts/src/explorer/explorer.ts";

const PATIENCE = 60_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let server: Awaited<ReturnType<typeof serve>>;
let browser: Browser;
const complaints: string[] = [];

let shared: Page | undefined;

/** A page with the explorer in it; what the browser complains of is collected. */
async function newPage(hash: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1100, height: 700 } });
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  await page.goto(`${server.url}tests/browser/explorer.html${hash}`);
  await page.evaluate(() => customElements.whenDefined("tracefx-graph"));
  return page;
}

/** A page whose explorer has a recorded program. Tests share one, since loading it takes longest; an address of its own is for a new one. */
async function open(program: string, hash?: string): Promise<Page> {
  const page = hash === undefined ? (shared ??= await newPage("")) : await newPage(hash);
  await withElement(page, (element, src) => element.open(new URL(src)), address(program));
  return page;
}

function address(program: string): string {
  return `${server.url}tests/fixtures/programs/${program}/model.pt2`;
}

/** Does something with the element. */
async function withElement<T, A>(page: Page, body: (element: TracefxGraph, arg: A) => T, arg?: A): Promise<Awaited<T>> {
  return (await page.locator("tracefx-graph").evaluate(body as never, arg)) as Awaited<T>;
}

const status = (page: Page) => page.locator("tracefx-graph .status");

beforeAll(async () => {
  server = await serve();
  const executablePath = chromiumPath();
  if (executablePath === undefined) throw new Error("there is no Chromium: node scripts/bootstrap.mjs --with-tests");
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
}, PATIENCE);

afterAll(async () => {
  await browser?.close();
  await server?.close();
  // A test that goes on after an error of the page would hide it.
  expect(complaints).toEqual([]);
});

it(
  "opens and closes modules by keyboard, and tells where it is",
  async () => {
    const page = await open("resnet_block_tiny");
    const tree = page.getByRole("tree");
    // While boxes are laid out, there is no number of them.
    const boxes = async (): Promise<number> => Number((await status(page).innerText()).match(/(\d+) boxes/)?.[1]);
    await page.getByRole("button", { name: "Open all" }).click();
    await expect.poll(boxes).toBeGreaterThan(10);
    const opened = await boxes();
    await page.getByRole("button", { name: "Close all" }).click();
    await expect.poll(boxes).toBeLessThan(opened);
    const closed = await boxes();
    await tree.focus();
    await withElement(page, (element) =>
      element.select(element.model?.items.find((item) => item.kind === "module")?.id ?? ""),
    );
    const active = page.locator('tracefx-graph [aria-selected="true"]');
    expect(await active.getAttribute("aria-expanded")).toBe("false");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => active.getAttribute("aria-expanded")).toBe("true");
    await expect.poll(boxes).toBeGreaterThan(closed);
    const module = await active.innerText();
    await page.keyboard.press("ArrowRight");
    expect(await active.getAttribute("aria-level")).toBe("2");
    await page.keyboard.press("ArrowLeft");
    expect(await active.innerText()).toBe(module);
    await page.keyboard.press("ArrowLeft");
    await expect.poll(() => status(page).innerText()).toContain(`${closed} boxes`);
  },
  PATIENCE,
);

it(
  "searches with a slash, and shows what it finds",
  async () => {
    const page = await open("resnet_block_tiny");
    await page.getByRole("tree").focus();
    await page.keyboard.press("/");
    await page.keyboard.type("batch_norm");
    await page.getByText(/^\d+ found$/).waitFor();
    expect(await page.locator("tracefx-graph .panel").innerText()).toContain("torch.ops.aten.batch_norm.default");
    const first = await withElement(page, (element) => element.selection?.id);
    await page.keyboard.press("Enter");
    expect(await withElement(page, (element) => element.selection?.id)).not.toBe(first);
  },
  PATIENCE,
);

it(
  "is moved and scaled by pointer and wheel, and selects what is clicked",
  async () => {
    const page = await open("digits_cnn");
    const camera = () =>
      withElement(page, (element) => new URLSearchParams(element.state).get("view")?.split("_").map(Number) ?? []);
    const before = await camera();
    const box = await page.locator("tracefx-graph canvas").boundingBox();
    if (box === null) throw new Error("the canvas is shown");
    await page.mouse.move(box.x + 5, box.y + box.height - 5);
    await page.mouse.down();
    await page.mouse.move(box.x + 65, box.y + box.height - 45, { steps: 3 });
    await page.mouse.up();
    const moved = await camera();
    expect((moved[0] as number) * (moved[2] as number)).toBeCloseTo(
      (before[0] as number) * (before[2] as number) - 60,
      0,
    );
    await page.mouse.wheel(0, -200);
    expect((await camera())[2]).toBeGreaterThan(before[2] as number);
    await page.getByRole("button", { name: "Fit" }).click();
    const [, , scale = 1] = await camera();
    const svg = await withElement(page, (element) => element.toSvg());
    const height = Number(/ height="([\d.]+)"/.exec(svg)?.[1]);
    // The first box of the chain stands 18 below the upper end, and is 28 high.
    const place = [box.x + box.width / 2, box.y + box.height / 2 + (32 - height / 2) * scale] as const;
    await page.mouse.click(...place, { button: "middle" });
    expect(await withElement(page, (element) => element.selection)).toBeUndefined();
    await page.mouse.click(...place);
    expect(await withElement(page, (element) => element.selection?.node?.op)).toBe("placeholder");
    await page.keyboard.press("Escape");
    await expect.poll(() => withElement(page, (element) => element.selection)).toBeUndefined();
  },
  PATIENCE,
);

it(
  "opens a module by its sign",
  async () => {
    const page = await open("resnet_block_tiny");
    await page.getByRole("button", { name: "Close all" }).click();
    await page.getByRole("button", { name: "Fit" }).click();
    const closed = await status(page).innerText();
    const [svg, state] = await withElement(page, (element) => [element.toSvg(), element.state]);
    const [, width = 0, height = 0] = (/ width="([\d.]+)" height="([\d.]+)"/.exec(svg) ?? []).map(Number);
    const [, x = 0, y = 0] = (/<text x="([\d.]+)" y="([\d.]+)"[^>]*>\+ 4</.exec(svg) ?? []).map(Number);
    const scale = Number(state.split("_").at(-1));
    const box = await page.locator("tracefx-graph canvas").boundingBox();
    if (box === null) throw new Error("the canvas is shown");
    const [middleX, middleY] = [box.x + box.width / 2, box.y + box.height / 2];
    await page.mouse.click(middleX + (x + 3 - width / 2) * scale, middleY + (y - 4 - height / 2) * scale);
    await expect.poll(() => status(page).innerText()).not.toBe(closed);
  },
  PATIENCE,
);

it(
  "shows what was opened before it came into the page",
  async () => {
    const page = await open("digits_cnn");
    const told = await page.evaluate(async (src) => {
      const before = document.querySelector("tracefx-graph") as TracefxGraph;
      const element = document.createElement("tracefx-graph");
      await element.open(new URL(src));
      before.parentElement?.append(element);
      for (let at = 0; at < 100 && !element.shadowRoot?.textContent?.includes("boxes"); at++) {
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      const text = element.shadowRoot?.querySelector(".status")?.textContent;
      element.remove();
      return text;
    }, address("digits_cnn"));
    expect(told).toBe("15 nodes, 15 boxes");
  },
  PATIENCE,
);

it(
  "keeps in the address what is open and selected",
  async () => {
    const page = await open("resnet_block_tiny");
    await page.getByRole("button", { name: "Close all" }).click();
    await withElement(page, (element) => element.select("conv2d_1"));
    const state = await withElement(page, (element) => element.state.replace(/&view=.*/, ""));
    await expect.poll(() => page.url()).toContain(state);
    const again = await open("resnet_block_tiny", new URL(page.url()).hash);
    expect(await withElement(again, (element) => element.selection?.id)).toBe("conv2d_1");
    const boxes = /\d+ boxes/;
    expect((await status(again).innerText()).match(boxes)).toEqual((await status(page).innerText()).match(boxes));
  },
  PATIENCE,
);

it(
  "runs the program, and shows time and statistics of a node",
  async () => {
    const page = await open("digits_cnn");
    await withElement(page, (element) => element.select("linear"));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/all nodes took/).waitFor();
    const panel = await page.locator("tracefx-graph .panel").innerText();
    expect(panel).toContain("Value of the run");
    expect(panel).toContain("deviation");
    expect(await page.locator(".panel svg.histogram").count()).toBe(1);
  },
  PATIENCE,
);

it(
  "finds the first NaN of a run, and shows its node",
  async () => {
    const page = await open("digits_cnn");
    const told = await withElement(page, async (element) => {
      const program = element.model?.source as ExportedProgram;
      program.stateDict.get("4.weight")?.fill_(Number.NaN);
      element.run();
      await new Promise((resolve) => setTimeout(resolve, 50));
      return [element.shadowRoot?.querySelector(".status")?.textContent, element.selection?.id];
    });
    // All of its elements are, and of none there is no histogram.
    expect(await page.locator("tracefx-graph .panel svg.histogram").count()).toBe(0);
    expect(told).toEqual([expect.stringContaining("the first NaN is in conv2d_1"), "conv2d_1"]);
  },
  PATIENCE,
);

it(
  "compares two programs, and goes from difference to difference",
  async () => {
    const page = await open("digits_cnn");
    await withElement(page, (element, other) => element.compare(new URL(other)), address("digits_cnn__core"));
    expect(await status(page).innerText()).toMatch(/^\d+ nodes differ$/);
    await page.getByRole("button", { name: "Next difference" }).click();
    // What a colour tells is said and written, too.
    const active = page.locator('tracefx-graph [aria-selected="true"]');
    expect(await active.innerText()).toMatch(/, (added|changed)$/);
    expect(await page.locator("tracefx-graph .panel").innerText()).toMatch(/difference\s+(added|changed)/);
    const first = await withElement(page, (element) => element.selection?.id);
    await page.getByRole("button", { name: "Next difference" }).click();
    expect(await withElement(page, (element) => element.selection?.id)).not.toBe(first);
    await page.getByRole("button", { name: "Show the first" }).click();
    await page.getByRole("button", { name: "Show the second" }).waitFor();
    await page.getByRole("button", { name: "Next difference" }).click();
    const [state, chosen] = await withElement(page, (element) => [element.state, element.selection?.id]);
    expect(state).toContain("side=first");
    await page.getByRole("button", { name: "Show the second" }).click();
    await page.getByRole("button", { name: "Show the first" }).waitFor();
    expect(
      await withElement(page, (element, text) => element.restore(text).then(() => element.selection?.id), state),
    ).toBe(chosen);
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/all nodes took .*example inputs/).waitFor();
    expect(await active.innerText()).toMatch(/\d %$/);
  },
  PATIENCE,
);

it(
  "shows the last of what is opened and compared at once, and runs it on what the bar says",
  async () => {
    const page = await open("digits_cnn");
    const told = await withElement(
      page,
      async (element, [one, other]) => {
        const compared = element.compare(new URL(other as string));
        await element.open(new URL(one as string));
        const picture = element.toSvg();
        await compared;
        const bar = element.shadowRoot?.querySelector(".next-difference") as HTMLElement;
        const alone = bar.hidden && element.toSvg() === picture;
        const { source } = element.model as NonNullable<TracefxGraph["model"]>;
        const [weight] = (source as ExportedProgram).stateDict.values();
        await element.compare(new URL(other as string));
        const isKept = weight?.isDisposed === false;
        await element.open(new URL(one as string));
        const isGone = weight?.isDisposed === true;
        return { alone, isKept, isGone };
      },
      [address("digits_cnn"), address("resnet_block_tiny")],
    );
    expect(told).toEqual({ alone: true, isKept: true, isGone: true });
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/all nodes took .*; on the example inputs$/).waitFor();
    await page.getByLabel("Inputs of a run").selectOption("random");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/; on random inputs$/).waitFor();
    await page.getByLabel("Inputs of a run").selectOption("example");
  },
  PATIENCE,
);

/** Drops a file on the element, as people do. */
async function drop(page: Page, name: string, type: string, bytes: readonly number[]): Promise<void> {
  await withElement(
    page,
    (element, file) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([Uint8Array.from(file.bytes)], file.name, { type: file.type }));
      element.dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true, composed: true }));
    },
    { name, type, bytes },
  );
}

it(
  "takes images, sounds, arrays of NumPy and texts as inputs, by choice and by dropping them",
  async () => {
    const page = await open("digits_cnn");
    await withElement(page, (element) => element.select("input"));
    const panel = page.locator("tracefx-graph .panel");
    const run = async () => {
      // What the run before told is not what this one tells.
      await withElement(page, (element) => element.shadowRoot?.querySelector(".status")?.replaceChildren());
      await page.getByRole("button", { name: "Run", exact: true }).click();
      await page.getByText(/all nodes took .*; on the chosen inputs$/).waitFor();
      return (await panel.innerText()).replaceAll(/\s+/g, " ");
    };
    const png = await page.evaluate(async () => {
      const canvas = new OffscreenCanvas(20, 10);
      const context = canvas.getContext("2d") as OffscreenCanvasRenderingContext2D;
      context.fillStyle = "rgb(255 0 0)";
      context.fillRect(0, 0, 20, 10);
      return [...new Uint8Array(await (await canvas.convertToBlob({ type: "image/png" })).arrayBuffer())];
    });
    await drop(page, "red.png", "image/png", png);
    await page.getByText("red.png").waitFor();
    await page.getByLabel("Pixels of input").selectOption("bytes");
    // The brightness of red.
    expect(await run()).toContain("minimum 76 maximum 76");
    const source = page.getByLabel("Source of input");
    await source.selectOption("text");
    await page.getByLabel("Text or numbers of input").fill("2 3");
    expect(await run()).toContain("maximum 3 ");
    const array = tensor(new Float64Array(256).fill(0.5), { shape: [4, 1, 8, 8] });
    await drop(page, "input.npy", "", [...writeNpy(array)]);
    await page.getByText("input.npy").waitFor();
    expect(await run()).toContain("minimum 0.5 maximum 0.5");
    await drop(page, "small.npy", "", [...writeNpy(tensor([1.5]))]);
    await page.getByText("small.npy").waitFor();
    const refused = withElement(
      page,
      (element) =>
        new Promise<string>((resolve) => {
          element.addEventListener("tracefx-error", (event) => resolve(String((event as CustomEvent).detail.message)), {
            once: true,
          });
          element.shadowRoot?.querySelector<HTMLElement>(".run")?.click();
        }),
    );
    expect(await refused).toContain("the input `input` is f32[s31, 1, 8, 8]: it is f32[1]");
    await drop(page, "a.exe", "", [1]);
    await page.getByText(/choose \.npy/).waitFor();
    await page.getByLabel("Inputs of a run").selectOption("example");
    await expect.poll(() => page.locator("tracefx-graph .given").isVisible()).toBe(false);
  },
  PATIENCE,
);

it(
  "decodes a sound",
  async () => {
    const page = await open("digits_cnn");
    // A WAV file of 100 samples of 16 bits, all of them a half.
    const wav = Buffer.alloc(44 + 200);
    wav.write("RIFF");
    wav.writeUInt32LE(36 + 200, 4);
    wav.write("WAVEfmt ", 8);
    for (const [at, value] of [
      [16, 16],
      [24, 16_000],
      [28, 32_000],
      [40, 200],
    ] as const)
      wav.writeUInt32LE(value, at);
    for (const [at, value] of [
      [20, 1],
      [22, 1],
      [32, 2],
      [34, 16],
    ] as const)
      wav.writeUInt16LE(value, at);
    wav.write("data", 36);
    for (let at = 0; at < 100; at++) wav.writeInt16LE(0x4000, 44 + 2 * at);
    await withElement(page, (element) => element.select("input"));
    await drop(page, "half.wav", "audio/wav", [...wav]);
    await page.getByText("half.wav").waitFor();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/all nodes took .*; on the chosen inputs$/).waitFor();
    expect(await page.locator("tracefx-graph .panel").innerText()).toMatch(/maximum\s+0\.5/);
    await page.getByLabel("Inputs of a run").selectOption("example");
  },
  PATIENCE,
);

it(
  "shows a value as an image, of which keys and pickers tell the elements",
  async () => {
    const page = await open("digits_cnn");
    await withElement(page, (element) => element.select("conv2d"));
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/all nodes took/).waitFor();
    const image = page.getByRole("img", { name: /conv2d as an image of 8 rows and 8 columns/ });
    await image.focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    const told = page.locator("tracefx-graph .slice output");
    expect(await told.innerText()).toMatch(/^\[0, 0, 1, 1\] = -?[\d.]+$/);
    await page.getByLabel("Place in dimension 1, of 12").fill("3");
    await image.focus();
    await page.keyboard.press("ArrowDown");
    expect(await told.innerText()).toMatch(/^\[0, 3, 1, 0\]/);
    await page.getByLabel("Dimension of the rows").selectOption("1");
    await page.getByRole("img", { name: /12 rows and 8 columns/ }).waitFor();
    await withElement(page, (element) => element.select("p_0_weight"));
    await page.getByRole("img", { name: /0\.weight as an image of 3 rows and 3 columns/ }).waitFor();
    await page.getByRole("button", { name: "Weights" }).click();
  },
  PATIENCE,
);

it(
  "edits by commands with completion, goes back and forth, and saves what it made",
  async () => {
    const page = await open("digits_cnn");
    await page.getByRole("tree").focus();
    await page.keyboard.press("e");
    const line = page.getByRole("combobox", { name: "Command" });
    await line.pressSequentially("pass fuse");
    await page.getByRole("option", { name: /fuseBatchNorm/ }).waitFor();
    await page.keyboard.press("Tab");
    expect(await line.inputValue()).toBe("pass fuseBatchNorm");
    await page.keyboard.press("Enter");
    await page.getByText("pass fuseBatchNorm: fuseBatchNorm changed the graph").waitFor();
    const count = () =>
      withElement(page, (element) => element.model?.items.filter(({ title }) => title === "batch_norm").length);
    expect(await count()).toBe(0);
    // What was there before is beside it: the weights of the convolution are others, and so is what it gives.
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/the values part at conv2d /).waitFor();
    await page.getByRole("button", { name: "Undo" }).click();
    await expect.poll(count).toBe(2);
    await page.getByRole("button", { name: "Redo" }).click();
    await expect.poll(count).toBe(0);
    await line.fill("erase relu");
    await line.press("Enter");
    await page.locator("tracefx-graph .console .refused").waitFor();
    await line.press("ArrowUp");
    expect(await line.inputValue()).toBe("erase relu");
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Save .pt2" }).click(),
    ]);
    const again = await withElement(
      page,
      async (element, bytes) => {
        await element.open(Uint8Array.from(bytes));
        return element.model?.items.some(({ title }) => title === "batch_norm");
      },
      [...readFileSync(await file.path())],
    );
    expect(again).toBe(false);
    expect(await withElement(page, async (element) => [await element.undo(), await element.redo()])).toEqual([
      false,
      false,
    ]);
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await expect.poll(() => line.isVisible()).toBe(false);
  },
  PATIENCE,
);

it(
  "shows the plan of a program as a graph, and the program again",
  async () => {
    const page = await open("resnet_block_tiny");
    const plan = page.getByRole("button", { name: "Plan" });
    await plan.click();
    await page.getByText(/^a plan of 10 steps took/).waitFor();
    expect(await plan.getAttribute("aria-pressed")).toBe("true");
    await withElement(page, (element) => element.select("relu__2"));
    expect(await page.locator("tracefx-graph .panel").innerText()).toMatch(/in the plan\s+[\d.]+ ms/);
    await plan.click();
    await page.getByText(/\d+ boxes/).waitFor();
    expect(await withElement(page, (element) => element.model?.items.some(({ title }) => title === "conv2d"))).toBe(
      true,
    );
  },
  PATIENCE,
);

it(
  "searches without opening weights until it is asked to",
  async () => {
    const page = await open("digits_cnn");
    const weights = page.getByRole("button", { name: "Weights" });
    expect(await weights.getAttribute("aria-pressed")).toBe("false");
    await page.getByRole("searchbox").fill("weight");
    await page.getByText(/^\d+ found$/).waitFor();
    expect(await weights.getAttribute("aria-pressed")).toBe("false");
    await page.getByRole("searchbox").press("Enter");
    await expect.poll(() => weights.getAttribute("aria-pressed")).toBe("true");
    await weights.click();
    await page.getByRole("searchbox").fill("");
  },
  PATIENCE,
);

it(
  "saves the picture as SVG and as PNG",
  async () => {
    const page = await open("digits_cnn");
    const [svg] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "SVG" }).click()]);
    const text = readFileSync(await svg.path(), "utf8");
    expect(text).toContain("max_pool2d");
    expect(
      await page.evaluate(
        (svgText) => new DOMParser().parseFromString(svgText, "image/svg+xml").querySelector("parsererror") === null,
        text,
      ),
    ).toBe(true);
    const [png] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "PNG" }).click()]);
    expect(
      readFileSync(await png.path())
        .subarray(1, 4)
        .toString("latin1"),
    ).toBe("PNG");
  },
  PATIENCE,
);

it(
  "refuses what is no program, and keeps what was open",
  async () => {
    const page = await open("digits_cnn");
    const before = await withElement(page, (element) => element.model?.items.length);
    const detail = await withElement(
      page,
      (element, src) =>
        new Promise<string>((resolve) => {
          element.addEventListener("tracefx-error", (event) => resolve(String((event as CustomEvent).detail.code)), {
            once: true,
          });
          element.setAttribute("src", src);
        }),
      `${server.url}tests/browser/explorer.html`,
    );
    expect(detail).toBe("FX0101");
    expect(await withElement(page, (element) => element.model?.items.length)).toBe(before);
  },
  PATIENCE,
);

it.each(["light", "dark"] as const)(
  "has no violation that axe finds, %s",
  async (colorScheme) => {
    const page = await open("resnet_block_tiny");
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await withElement(page, (element) => element.select("conv2d"));
    const console = page.getByRole("region", { name: "Edit" });
    if (!(await console.isVisible())) await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByLabel("Inputs of a run").selectOption("given");
    await page
      .getByLabel(/Source of /)
      .first()
      .waitFor();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/all nodes took/).waitFor();
    await page.getByRole("combobox", { name: "Command" }).fill("pass ");
    await page.locator("tracefx-graph .offers li").first().waitFor();
    // Axe reads the colours of the page, which has the scheme now.
    await page.evaluate(AXE);
    const found = await page.evaluate(async () => {
      const { violations } = await (
        globalThis as unknown as {
          axe: { run(): Promise<{ violations: { id: string; nodes: { html: string }[] }[] }> };
        }
      ).axe.run();
      return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
    });
    expect(found).toEqual([]);
  },
  PATIENCE,
);
