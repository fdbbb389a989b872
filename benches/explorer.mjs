/**
 * Measures the explorer in headless Chromium: how long graphs take to open, and how long a frame takes while they are moved.
 *
 *     node benches/explorer.mjs [--json | --images DIR [--only IMAGE]]
 *
 * The graphs are made in the page: layers of a transformer, and the same nodes without modules. With `--images` nothing is measured: it
 * writes the screenshots of docs/explorer.md.
 *
 * @module
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";
import { serve } from "../scripts/serve.mjs";
import { chromium as chromiumPath } from "../scripts/toolchain.mjs";

/** @typedef {{ name: string, nodes: number, hasModules: boolean, opensAll: boolean }} Case */

/** @type {readonly Case[]} */
const CASES = [
  { name: "in modules", nodes: 1_000, hasModules: true, opensAll: false },
  { name: "in modules, all open", nodes: 1_000, hasModules: true, opensAll: true },
  { name: "in modules", nodes: 10_000, hasModules: true, opensAll: false },
  { name: "in modules, all open", nodes: 10_000, hasModules: true, opensAll: true },
  { name: "without modules", nodes: 10_000, hasModules: false, opensAll: false },
  { name: "in modules", nodes: 100_000, hasModules: true, opensAll: false },
  { name: "without modules", nodes: 100_000, hasModules: false, opensAll: false },
];

const { values } = parseArgs({
  options: { json: { type: "boolean" }, images: { type: "string" }, only: { type: "string" } },
});
const executablePath = chromiumPath();
if (executablePath === undefined) throw new Error("there is no Chromium: node scripts/bootstrap.mjs --with-tests");
const server = await serve();
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** Where recorded programs are. */
const PROGRAMS = `${server.url}tests/fixtures/programs`;
const DIGITS = `${PROGRAMS}/digits_cnn/model.pt2`;
const INT8 = `${server.url}tests/fixtures/explorer/digits_int8.pt2`;
const RESNET = `${PROGRAMS}/resnet_block_tiny/model.pt2`;
/** A transformer that is exported in the page. */
const TRANSFORMER = `${server.url}ts/dist/index.js`;

/** A page with the explorer, which fills it. */
async function newPage(/** @type {"light" | "dark"} */ colorScheme = "light") {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme });
  await page.goto(`${server.url}tests/browser/explorer.html`);
  await page.evaluate(async () => {
    await customElements.whenDefined("tracefx-graph");
    const element = /** @type {HTMLElement} */ (document.querySelector("tracefx-graph"));
    element.removeAttribute("permalink");
    Object.assign(element.style, { position: "fixed", inset: "0", height: "100vh" });
  });
  return page;
}

/** The number that a share of the numbers is below. */
function share(/** @type {readonly number[]} */ numbers, /** @type {number} */ of) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return (sorted[Math.floor(of * (sorted.length - 1))] ?? 0).toFixed(1);
}

/** Makes a graph in the page, opens it, and moves it for two seconds in each of two scales. */
async function measure(/** @type {Case} */ { nodes, hasModules, opensAll }) {
  const page = await newPage();
  const told = await page.evaluate(measureInPage, { nodes, hasModules, opensAll, root: server.url });
  await page.close();
  return told;
}

/** Runs in the page. */
async function measureInPage(
  /** @type {{ nodes: number, hasModules: boolean, opensAll: boolean, root: string }} */ {
    nodes,
    hasModules,
    opensAll,
    root,
  },
) {
  const { Graph, GraphModule, tuple } = await import(`${root}ts/dist/index.js`);
  const element = /** @type {import("../ts/dist/explorer/explorer.js").TracefxGraph} */ (
    document.querySelector("tracefx-graph")
  );
  const shadow = /** @type {ShadowRoot} */ (element.shadowRoot);
  const part = (/** @type {string} */ name) => /** @type {HTMLElement} */ (shadow.querySelector(name));
  const graph = new Graph();
  let hidden = graph.placeholder("x");
  const mask = graph.placeholder("mask");
  const add = (/** @type {string} */ target, /** @type {unknown[]} */ args, /** @type {readonly string[]} */ path) => {
    const node = graph.callFunction(`torch.ops.aten.${target}`, args);
    if (hasModules) {
      const entries = path.map((_, at) => path.slice(0, at + 1).join("."));
      node.meta.set("nn_module_stack", new Map(entries.map((it) => [`L__self___${it}`, [it, "model.Part"]])));
    }
    return node;
  };
  for (let layer = 0; layer < Math.floor(nodes / 24); layer++) {
    const at = [`group${Math.floor(layer / 32)}`, `layer${layer}`];
    const attention = [...at, "attention"];
    const normal = add("layer_norm.default", [hidden], [...at, "norm1"]);
    const [q, k, v] = ["q", "k", "v"].map((name) => {
      const linear = add("linear.default", [normal], [...attention, name]);
      const view = add("view.default", [linear], attention);
      return add("transpose.int", [view], attention);
    });
    const scores = add("matmul.default", [q, add("transpose.int", [k], attention)], attention);
    const masked = add("add.Tensor", [add("div.Scalar", [scores], attention), mask], attention);
    const mixed = add("matmul.default", [add("softmax.int", [masked], attention), v], attention);
    const out = add("linear.default", [add("view.default", [mixed], attention)], [...attention, "out"]);
    hidden = add("add.Tensor", [hidden, out], at);
    const up = add("linear.default", [add("layer_norm.default", [hidden], [...at, "norm2"])], [...at, "mlp", "up"]);
    const down = add("linear.default", [add("gelu.default", [up], [...at, "mlp"])], [...at, "mlp", "down"]);
    hidden = add("add.Tensor", [hidden, down], at);
  }
  graph.output(tuple(hidden));
  const module = new GraphModule({}, graph);

  // oxlint-disable-next-line unicorn/consistent-function-scoping -- the page has this function alone
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const start = performance.now();
  await element.open(module);
  await frame();
  await frame();
  let opened = performance.now() - start;
  if (opensAll) {
    const again = performance.now();
    part(".open-all").click();
    while (!part(".status").textContent?.includes("boxes")) await frame();
    await frame();
    opened = performance.now() - again;
  }
  const press = (/** @type {string} */ key) =>
    part(".tree").dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: true, bubbles: true }));
  const pan = async () => {
    /** @type {number[]} */
    const frames = [];
    /** @type {number[]} */
    const draws = [];
    let last = 0;
    for (let at = 0; at < 120; at++) {
      press(at < 60 ? "ArrowDown" : "ArrowUp");
      const now = Number(await frame());
      if (at > 0) frames.push(now - last);
      last = now;
      await new Promise((resolve) => setTimeout(resolve, 0));
      draws.push(element.drawTime);
    }
    return { frames, draws };
  };
  const near = await pan();
  part(".fit").click();
  await frame();
  const far = await pan();
  const boxes = Number(/(\d+) boxes/.exec(part(".status").textContent ?? "")?.[1]);
  return { opened, boxes, near, far };
}

try {
  if (values.images === undefined) await measureAll();
  else await takeImages(values.images);
} finally {
  await browser.close();
  await server.close();
}

async function measureAll() {
  /** @type {(Case & Awaited<ReturnType<typeof measure>>)[]} */
  const rows = [];
  for (const it of CASES) rows.push({ ...it, ...(await measure(it)) });
  if (values.json) {
    console.log(JSON.stringify(rows));
    return;
  }
  console.log(
    "| graph | boxes | opens in | frame near: median / 95 % (drawing) | frame of the whole |\n|---|--:|--:|--:|--:|",
  );
  for (const { name, nodes, boxes, opened, near, far } of rows) {
    const told = [near, far].map(
      ({ frames, draws }) => `${share(frames, 0.5)} / ${share(frames, 0.95)} ms (${share(draws, 0.5)})`,
    );
    const graph = `${nodes.toLocaleString("en")} nodes ${name}`;
    console.log(`| ${graph} | ${boxes} | ${(opened / 1000).toFixed(2)} s | ${told.join(" | ")} |`);
  }
}

/** @typedef {import("../ts/dist/explorer/explorer.js").TracefxGraph} Element */

/** Writes the screenshots. */
async function takeImages(/** @type {string} */ folder) {
  mkdirSync(folder, { recursive: true });
  const take = async (
    /** @type {string} */ image,
    /** @type {string} */ source,
    /** @type {(element: Element, other: string) => unknown} */ prepare,
    /** @type {"light" | "dark"} */ scheme = "light",
  ) => {
    if ((values.only ?? image) !== image) return;
    const page = await newPage(scheme);
    await page.setViewportSize({ width: 1024, height: 640 });
    const element = page.locator("tracefx-graph");
    await element.evaluate(openInPage, source);
    await element.evaluate(/** @type {any} */ (prepare), INT8);
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(folder, `explorer-${image}.png`) });
    await page.close();
  };
  await take("open", RESNET, (it) => it.select("conv2d_2"));
  await take("dark", RESNET, (it) => it.select("conv2d_2"), "dark");
  await take("closed", TRANSFORMER, (it) => {
    const close = /** @type {HTMLElement} */ (/** @type {ShadowRoot} */ (it.shadowRoot).querySelector(".close-all"));
    close.click();
  });
  await take("attention", TRANSFORMER, async (it) => {
    const items = it.model?.items ?? [];
    const attention = items.find((item) => item.caption === "MultiheadAttention");
    await it.select(
      items.find((item) => item.parent === attention?.index && item.title.includes("attention"))?.id ?? "",
    );
  });
  await take("heat", DIGITS, async (it) => {
    await it.select("conv2d");
    it.run();
  });
  await take("nan", DIGITS, (it) => {
    const program = /** @type {import("../ts/dist/index.js").ExportedProgram} */ (it.model?.source);
    program.stateDict.get("4.weight")?.fill_(Number.NaN);
    it.run();
  });
  await take("diff", DIGITS, async (it, other) => {
    await it.compare(new URL(other));
    it.run();
  });
  await take("plan", RESNET, async (it) => {
    const plan = /** @type {HTMLElement} */ (/** @type {ShadowRoot} */ (it.shadowRoot).querySelector(".plan"));
    plan.click();
    while (plan.ariaPressed !== "true") await new Promise((resolve) => setTimeout(resolve, 50));
    await it.select("relu__2");
  });
  await take("edit", DIGITS, async (it) => {
    const root = /** @type {ShadowRoot} */ (it.shadowRoot);
    const find = async (/** @type {string} */ name) => {
      let found = root.querySelector(name);
      for (; found === null; found = root.querySelector(name)) await new Promise((resolve) => setTimeout(resolve, 50));
      return /** @type {HTMLInputElement} */ (found);
    };
    (await find(".edit")).click();
    const line = await find(".command");
    line.value = "replace relu(x) with clamp_min(x, 0)";
    line.form?.requestSubmit();
    await find(".log p");
    await it.select("clamp_min_default");
    line.focus();
    line.value = "pass ";
    line.dispatchEvent(new Event("input"));
  });
}

/** Runs in the page: opens a file, or the transformer of a package. */
async function openInPage(/** @type {HTMLElement | SVGElement} */ it, /** @type {string} */ source) {
  const element = /** @type {Element} */ (/** @type {unknown} */ (it));
  if (source.endsWith(".pt2")) return await element.open(new URL(source));
  const { exportProgram, init, nn, torch } = /** @type {typeof import("../ts/dist/index.js")} */ (await import(source));
  await init();
  const layer = new nn.TransformerEncoderLayer(32, 4, { dimFeedforward: 64, batchFirst: true });
  const model = new nn.TransformerEncoder(layer, 6).eval();
  await element.open(exportProgram(model, [torch.randn(1, 16, 32)]));
}
