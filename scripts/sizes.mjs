/**
 * What a page downloads: the files of WebAssembly, and the JavaScript that programs have after a bundler. `tests/packaging` holds each
 * to its limit; a growth beyond it is a decision, not an accident.
 *
 *     npm run sizes [-- --record]      prints the table, and writes benches/sizes.md
 *
 * @module
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { ROOT } from "./progress.mjs";

const RECORD = "benches/sizes.md";

/** The limits of files below `wasm`, in bytes after gzip. */
const FILES = /** @type {const} */ ({
  "engine-simd.wasm": 3_800_000,
  "gpu.wasm": 400_000,
  "runtime-simd.wasm": 1_000_000,
});

/**
 * Programs, and what their JavaScript may take: bundled and minified by esbuild, in bytes after gzip. What is fetched later, as the
 * code for GPUs is, does not count, nor what a worker fetches.
 */
const PROGRAMS = /** @type {const} */ ({
  "run saved plans": {
    code: 'import { load, tensor } from "tracefx/runtime"; const model = await load("a.fxg"); console.log(model(tensor([1])));',
    limit: 16_500,
  },
  "build and edit graphs": {
    code: 'import { Graph } from "tracefx/graph"; const graph = new Graph(); graph.output(graph.placeholder("x")); graph.lint(); console.log(String(graph));',
    limit: 25_000,
  },
  "load and run": {
    code: 'import { loadModule, tensor } from "tracefx/load"; const model = await loadModule("a.pt2"); console.log(model(tensor([1])));',
    limit: 40_000,
  },
  "load and run in a worker": {
    code: 'import { EngineWorker, tensor } from "tracefx/worker"; const model = await new EngineWorker().loadModule("a.pt2"); console.log(await model.runAsync([tensor([1])]));',
    limit: 16_000,
  },
  layers: {
    code: 'import { Linear, ReLU, Sequential } from "tracefx/nn"; console.log(new Sequential(new Linear(2, 2), new ReLU()));',
    limit: 60_000,
  },
  trace: {
    code: 'import { F, symbolicTrace } from "tracefx/trace"; console.log(symbolicTrace((x) => F.relu(x)).code);',
    limit: 190_000,
  },
  everything: { code: 'export * from "tracefx";', limit: 350_000 },
});

/** @typedef {{ readonly name: string, readonly raw: number, readonly gzip: number, readonly limit: number }} Row */

/**
 * Measures the package that `tracefx` is in a folder, whose own folder is `installed`.
 *
 * @returns {Promise<Row[]>}
 */
export async function sizes(/** @type {string} */ folder, /** @type {string} */ installed) {
  const files = Object.entries(FILES).map(([name, limit]) => {
    return { name: `wasm/${name}`, ...weight([readFileSync(join(installed, "wasm", name))]), limit };
  });
  const programs = Object.entries(PROGRAMS).map(async ([name, { code, limit }]) => {
    return { name, ...weight(await bundled(folder, code)), limit };
  });
  return [...files, ...(await Promise.all(programs))];
}

function sum(/** @type {readonly Uint8Array[]} */ files) {
  return files.reduce((total, it) => total + it.length, 0);
}

function weight(/** @type {readonly Uint8Array[]} */ files) {
  return { raw: sum(files), gzip: sum(files.map((it) => gzipSync(it, { level: 9 }))) };
}

/** The files that a page with this program fetches before it begins. */
async function bundled(/** @type {string} */ folder, /** @type {string} */ code) {
  const { outputFiles, metafile } = await build({
    stdin: { contents: code, resolveDir: folder, sourcefile: "program.js" },
    absWorkingDir: folder,
    outdir: "out",
    bundle: true,
    minify: true,
    splitting: true,
    format: "esm",
    metafile: true,
    write: false,
    external: ["node:*"],
    logLevel: "error",
  });
  const first =
    Object.keys(metafile.outputs).find((it) => metafile.outputs[it]?.entryPoint === "program.js") ?? "out/stdin.js";
  const fetched = new Set([first]);
  for (const file of fetched) {
    for (const { path, kind } of metafile.outputs[file]?.imports ?? [])
      if (kind === "import-statement") fetched.add(path);
  }
  return outputFiles
    .filter((it) => [...fetched].some((file) => it.path === join(folder, file)))
    .map((it) => it.contents);
}

/** Thousands of bytes, with one decimal. */
function kilobytes(/** @type {number} */ bytes) {
  return `${(bytes / 1000).toFixed(1)} kB`.padStart(10);
}

function table(/** @type {readonly Row[]} */ rows) {
  const width = Math.max(...rows.map((it) => it.name.length));
  return [
    `| ${"".padEnd(width)} | ${"raw".padStart(10)} | ${"gzip".padStart(10)} | ${"limit".padStart(10)} |`,
    `|${"-".repeat(width + 2)}|${"-".repeat(11)}:|${"-".repeat(11)}:|${"-".repeat(11)}:|`,
    ...rows.map(
      (it) => `| ${it.name.padEnd(width)} | ${kilobytes(it.raw)} | ${kilobytes(it.gzip)} | ${kilobytes(it.limit)} |`,
    ),
  ].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const text = table(await sizes(ROOT, join(ROOT, "ts")));
  console.log(text);
  const files = readdirSync(join(ROOT, "ts/dist"), { recursive: true, encoding: "utf8" });
  if (process.argv.includes("--record")) {
    writeFileSync(
      join(ROOT, RECORD),
      `# Sizes of the package

Written by \`npm run sizes -- --record\` after a build. A host loads one of the \`.wasm\` files; \`gpu.wasm\` is fetched where a GPU is
asked for. Of programs, the JavaScript that a page fetches before it begins: bundled and minified by esbuild, the glue of
WebAssembly in it. The package itself is ${files.filter((it) => it.endsWith(".js")).length} files of JavaScript. \`tests/packaging\` holds the limits; the programs are in
\`scripts/sizes.mjs\`.

${text}
`,
    );
  }
}
