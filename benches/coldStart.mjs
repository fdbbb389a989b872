/**
 * How long a page takes from its navigation to the first result of a model, beside ONNX Runtime's WebAssembly: in headless Chromium,
 * without a cache, from a server on this machine that compresses as servers do, as fast as it goes and as over a line.
 *
 *     node benches/coldStart.mjs [--python python3] [--only digits,mobilenet_v2] [--rounds 5]
 *
 * Each page is bundled by esbuild, makes an input of zeros, and is one thread. What is told is the median of the rounds, in which the pages take turns.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";
import { parseArgs } from "node:util";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { chromium } from "playwright-core";
import { ROOT } from "../scripts/progress.mjs";
import { chromium as chromiumPath } from "../scripts/toolchain.mjs";
import { readSafetensors } from "../ts/dist/index.js";
import { installPeers, makeModels, MODEL_FOLDER, PEER_FOLDER } from "./workloads.mjs";

const { values } = parseArgs({
  options: {
    python: { type: "string", default: "python3" },
    only: { type: "string", default: "digits,mobilenet_v2,encoder6" },
    rounds: { type: "string", default: "5" },
  },
});
const MODELS = values.only.split(",");
const OUT = join(ROOT, "target/bench/cold");

/** A line of many homes, in bits of a second and milliseconds. */
const LINE = { megabits: 50, latency: 20 };

const TYPES = /** @type {Record<string, string>} */ ({
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".wasm": "application/wasm",
});

/** The engines: the line that opens a model and gives its first result from `INPUTS`, and the files beside the bundle. */
const ENGINES = {
  "tracefx/runtime": {
    code: (/** @type {string} */ name) =>
      `import { load, tensor } from "tracefx/runtime"; const model = await load("/${name}.fxg"); const out = model(...INPUTS.map(({ data, shape, dtype }) => tensor(data, { shape, dtype }))); done(out.data[0]);`,
    files: ["runtime-simd.wasm", "runtime-relaxed.wasm", "runtime-rare.wasm"].map((it) => join(ROOT, "ts/wasm", it)),
  },
  "tracefx/load": {
    code: (/** @type {string} */ name) =>
      `import { loadModule, tensor } from "tracefx/load"; const model = await loadModule("/${name}.pt2"); const out = model(...INPUTS.map(({ data, shape, dtype }) => tensor(data, { shape, dtype }))); done(out.data[0]);`,
    files: ["engine-simd.wasm", "engine-relaxed.wasm", "engine-edit.wasm", "engine-rare.wasm"].map((it) =>
      join(ROOT, "ts/wasm", it),
    ),
  },
  "onnxruntime-web": {
    code: (/** @type {string} */ name) =>
      `import * as ort from "onnxruntime-web/wasm"; ort.env.wasm.numThreads = 1; ort.env.wasm.wasmPaths = "/"; const session = await ort.InferenceSession.create("/${name}.onnx", { executionProviders: ["wasm"] }); const feed = Object.fromEntries(INPUTS.map(({ name, data, shape, dtype }) => [name, new ort.Tensor(dtype, data, shape)])); done((await session.run(feed)).out0.data[0]);`,
    files: ["ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm"].map((it) =>
      join(PEER_FOLDER, "node_modules/onnxruntime-web/dist", it),
    ),
  },
};

const ARRAYS = /** @type {Record<string, string>} */ ({ float32: "Float32Array", int64: "BigInt64Array" });

/** JavaScript of the inputs of a model, which are zeros. */
function inputsOf(/** @type {string} */ name) {
  const { tensors } = readSafetensors(readFileSync(join(MODEL_FOLDER, `${name}.inputs.safetensors`)));
  const inputs = Array.from(tensors, ([key, { shape, dtype, data }]) => {
    const zeros = `new ${ARRAYS[dtype]}(${data.length})`;
    return `{ name: ${JSON.stringify(key)}, shape: [${shape}], dtype: "${dtype}", data: ${zeros} }`;
  });
  return `const INPUTS = [${inputs.join(", ")}]; const done = (first) => { globalThis.result = [performance.now(), Number(first)]; };\n`;
}

/** Bundles the page of an engine and a model, and gives its address. */
async function bundled(/** @type {string} */ engine, /** @type {string} */ model) {
  const { code } = ENGINES[/** @type {keyof typeof ENGINES} */ (engine)];
  const page = `${engine.replaceAll("/", "-")}-${model}`;
  await build({
    stdin: { contents: inputsOf(model) + code(model), resolveDir: ROOT, sourcefile: "page.js" },
    outfile: join(OUT, `${page}.js`),
    bundle: true,
    minify: true,
    format: "esm",
    conditions: ["browser", "default"],
    nodePaths: [join(PEER_FOLDER, "node_modules")],
    external: ["node:*"],
    logLevel: "error",
  });
  writeFileSync(
    join(OUT, `${page}.html`),
    `<!doctype html><title></title><script type="module" src="/${page}.js"></script>\n`,
  );
  return `${page}.html`;
}

/** Serves the folder, compressed but for the models. */
async function served() {
  /** @type {Map<string, { body: Buffer, headers: Record<string, string> }>} */
  const answers = new Map();
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? "/", "http://localhost").pathname;
    try {
      let answer = answers.get(path);
      if (answer === undefined) {
        const type = TYPES[extname(path)];
        const bytes = readFileSync(join(OUT, path));
        answer = {
          body: type === undefined ? bytes : gzipSync(bytes, { level: 9 }),
          headers: {
            "cache-control": "no-store",
            ...(type === undefined ? {} : { "content-type": type, "content-encoding": "gzip" }),
          },
        };
        answers.set(path, answer);
      }
      response.writeHead(200, answer.headers).end(answer.body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { url: `http://127.0.0.1:${port}/`, close: () => server.close() };
}

function median(/** @type {number[]} */ numbers) {
  const sorted = numbers.toSorted((a, b) => a - b);
  return /** @type {number} */ (sorted[Math.floor(sorted.length / 2)]);
}

makeModels(values.python, MODELS);
installPeers("onnxruntime-web");
rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });
for (const { files } of Object.values(ENGINES))
  for (const file of files) copyFileSync(file, join(OUT, file.slice(file.lastIndexOf("/"))));
const server = await served();
const executablePath = chromiumPath();
if (executablePath === undefined) throw new Error("there is no Chromium: node scripts/bootstrap.mjs --with-tests");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });

/** Milliseconds to the first result, and the kilobytes that came. */
async function opened(/** @type {string} */ page, /** @type {boolean} */ isSlow) {
  const context = await browser.newContext();
  try {
    const tab = await context.newPage();
    const session = await context.newCDPSession(tab);
    await session.send("Network.enable");
    let bytes = 0;
    session.on("Network.loadingFinished", ({ encodedDataLength }) => (bytes += encodedDataLength));
    if (isSlow) {
      const downloadThroughput = (LINE.megabits * 1e6) / 8;
      const conditions = { offline: false, latency: LINE.latency, downloadThroughput, uploadThroughput: -1 };
      await session.send("Network.emulateNetworkConditions", conditions);
    }
    await tab.goto(server.url + page);
    await tab.waitForFunction(() => "result" in globalThis, undefined, { timeout: 120_000 });
    const [ms] = /** @type {[number, number]} */ (await tab.evaluate("result"));
    return { ms, kilobytes: bytes / 1000 };
  } finally {
    await context.close();
  }
}

console.log(
  `| model | page | kB | here, ms | ${LINE.megabits} Mbit/s and ${LINE.latency} ms, ms |\n|---|---|--:|--:|--:|`,
);
for (const model of MODELS) {
  for (const ending of ["pt2", "onnx"])
    copyFileSync(join(MODEL_FOLDER, `${model}.${ending}`), join(OUT, `${model}.${ending}`));
  const inputs = ["--inputs", join(MODEL_FOLDER, `${model}.inputs.safetensors`)];
  execFileSync("node", [join(ROOT, "ts/bin/tracefx.mjs"), "compile", `${model}.pt2`, `${model}.fxg`, ...inputs], {
    cwd: OUT,
  });
  const pages = new Map();
  for (const engine of Object.keys(ENGINES)) pages.set(engine, await bundled(engine, model));
  /** @type {Map<string, { ms: number, kilobytes: number }[][]>} */
  const taken = new Map(Array.from(pages.keys(), (it) => [it, [[], []]]));
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [engine, page] of pages)
      for (const slow of [0, 1]) taken.get(engine)?.[slow]?.push(await opened(page, slow === 1));
  }
  for (const [engine, [here = [], line = []]] of taken) {
    const [fast, slow] = [here, line].map((it) => median(it.map(({ ms }) => ms)).toFixed(0));
    console.log(`| ${model} | ${engine} | ${median(here.map((it) => it.kilobytes)).toFixed(0)} | ${fast} | ${slow} |`);
  }
}
await browser.close();
server.close();
