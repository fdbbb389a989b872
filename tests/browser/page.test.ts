/** The page in a real browser: opens a program, classifies digits, refuses what is no program. */
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { serve } from "../../scripts/serve.mjs";
import { chromium as chromiumPath } from "../../scripts/toolchain.mjs";

const FIXTURES = fileURLToPath(new URL("../fixtures/programs", import.meta.url));
const PATIENCE = 60_000;

let server: Awaited<ReturnType<typeof serve>>;
let browser: Browser;

/** The page with the digits program open; complaints of the browser are collected. */
async function open(): Promise<{ page: Page; complaints: string[] }> {
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") complaints.push(message.text());
  });
  await page.goto(`${server.url}web/`);
  await page.getByText("the digits program: 33 nodes").waitFor({ timeout: PATIENCE });
  return { page, complaints };
}

/** The targets of the nodes that the explorer has. */
async function targets(page: Page): Promise<string[]> {
  return await page.evaluate(() => {
    const { model } = document.querySelector("#graph") as unknown as {
      model: { items: { node?: { target: string } }[] };
    };
    return model.items.flatMap(({ node }) => node?.target ?? []);
  });
}

beforeAll(async () => {
  server = await serve();
  const executablePath = chromiumPath();
  if (executablePath === undefined) throw new Error("there is no Chromium: node scripts/bootstrap.mjs --with-tests");
  browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
}, PATIENCE);

afterAll(async () => {
  await browser?.close();
  await server?.close();
});

it(
  "shows the graph of the digits program",
  async () => {
    const { page, complaints } = await open();
    expect(await targets(page)).toHaveLength(33);
    expect(await targets(page)).toContain("torch.ops.aten.conv2d.default");
    expect(await page.locator("#graph .status").innerText()).toBe("15 nodes, 15 boxes");
    expect(await page.locator("#report").innerText()).toContain("All operators are supported.");
    expect(complaints).toEqual([]);
  },
  PATIENCE,
);

it(
  "classifies test images as their labels say",
  async () => {
    const { page } = await open();
    for (let i = 0; i < 5; i++) {
      await page.getByRole("button", { name: "Pick a test image" }).click();
      await page.locator("#truth", { hasText: "somebody wrote" }).waitFor();
      const label = (await page.locator("#truth").innerText()).match(/a (\d)\.$/)?.[1];
      expect(await page.locator("#answer").innerText()).toBe(label);
    }
  },
  PATIENCE,
);

it(
  "classifies what is drawn",
  async () => {
    const { page } = await open();
    const box = await page.locator("#canvas").boundingBox();
    if (box === null) throw new Error("the canvas is shown");
    await page.mouse.move(box.x + 0.5 * box.width, box.y + 0.1 * box.height);
    await page.mouse.down();
    await page.mouse.move(box.x + 0.5 * box.width, box.y + 0.9 * box.height, { steps: 12 });
    await page.mouse.up();
    expect(await page.locator("#answer").innerText()).toBe("1");
    await page.getByRole("button", { name: "Clear" }).click();
    expect(await page.locator("#answer").innerText()).toBe("–");
  },
  PATIENCE,
);

it(
  "opens a file that is chosen, and says why another one is refused",
  async () => {
    const { page } = await open();
    await page.locator("#file").setInputFiles(`${FIXTURES}/cond_simple/model.pt2`);
    await page.getByText("model.pt2: 12 nodes").waitFor();
    expect(await targets(page)).toContain("torch.ops.higher_order.cond");
    expect(await page.locator("#digits").isVisible()).toBe(false);

    await page.locator("#file").setInputFiles({
      name: "<img src=x onerror=alert(1)>.pt2",
      mimeType: "application/octet-stream",
      buffer: Buffer.from("<!doctype html>"),
    });
    await page.locator("#problem", { hasText: "ArchiveError: FX0101" }).waitFor();
    expect(await targets(page)).toContain("torch.ops.higher_order.cond");
    expect(await page.locator("img").count()).toBe(0);

    await page.getByRole("button", { name: "Back to the digits program" }).click();
    await page.getByText("the digits program: 33 nodes").waitFor();
  },
  PATIENCE,
);
