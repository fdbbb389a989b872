/** The explorer in a real browser: opens programs, closes and opens modules, searches, runs, compares, exports, and is accessible. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serve } from "../../scripts/serve.mjs";
import { chromium as chromiumPath } from "../../scripts/toolchain.mjs";
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
    await page.getByRole("button", { name: "Close all" }).click();
    const closed = Number((await status(page).innerText()).match(/(\d+) boxes/)?.[1]);
    await tree.focus();
    await withElement(page, (element) =>
      element.select(element.model?.items.find((item) => item.kind === "module")?.id ?? ""),
    );
    const active = page.locator('tracefx-graph [aria-selected="true"]');
    expect(await active.getAttribute("aria-expanded")).toBe("false");
    await page.keyboard.press("ArrowRight");
    await expect.poll(() => active.getAttribute("aria-expanded")).toBe("true");
    expect(Number((await status(page).innerText()).match(/(\d+) boxes/)?.[1])).toBeGreaterThan(closed);
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
        const [tensor] = (source as ExportedProgram).stateDict.values();
        await element.compare(new URL(other as string));
        const isKept = tensor?.isDisposed === false;
        await element.open(new URL(one as string));
        const isGone = tensor?.isDisposed === true;
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
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText(/all nodes took/).waitFor();
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
