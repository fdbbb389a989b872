/**
 * What a page downloads: the files of WebAssembly, and the JavaScript that programs have after a bundler. `tests/packaging` holds each
 * to its limit; a growth beyond it is a decision, not an accident.
 *
 *     npm run sizes [-- --record]      prints the table, and writes benches/sizes.md
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";
import { ROOT } from "./progress.mjs";

const RECORD = "benches/sizes.md";

/** The limits of files below `wasm`, in bytes after gzip. */
const FILES = /** @type {const} */ ({
  "engine-simd.wasm": 1_300_000,
  "engine-edit.wasm": 280_000,
  "engine-rare.wasm": 2_400_000,
  "engine-relaxed.wasm": 4_000,
  "runtime-simd.wasm": 425_000,
  "runtime-rare.wasm": 620_000,
  "runtime-relaxed.wasm": 4_000,
  "gpu.wasm": 400_000,
});

/** What browsers compile at once on the main thread of a page, in bytes: a part is compiled so when a call needs it. */
export const COMPILED_AT_ONCE = 8 << 20;

const FIXTURE = join(ROOT, "tests/fixtures/programs/digits_cnn");
/** The images that the fixture was recorded with have these sizes. */
const IMAGE = "tensor(new Float32Array(256), { shape: [4, 1, 8, 8] })";

/**
 * Programs, and what their JavaScript may take: bundled and minified by esbuild, in bytes after gzip. What is fetched later, as the
 * code for GPUs is, does not count, nor what a worker fetches. Each is run, and says `says`: a bundler that drops too much makes small bundles.
 */
const PROGRAMS = /** @type {const} */ ({
  "run saved plans": {
    code: 'import { load, tensor } from "tracefx/runtime"; const model = await load("a.fxg"); console.log(model(IMAGE).shape.join());',
    says: "4,10",
    limit: 18_500,
  },
  "build and edit graphs": {
    code: 'import { Graph } from "tracefx/graph"; const graph = new Graph(); graph.output(graph.placeholder("x")); graph.lint(); console.log(String(graph));',
    says: "placeholder[target=x]",
    limit: 25_000,
  },
  "load and run": {
    code: 'import { loadModule, tensor } from "tracefx/load"; const model = await loadModule("a.pt2"); console.log(model(IMAGE).shape.join());',
    says: "4,10",
    limit: 40_000,
  },
  "load and run in a worker": {
    code: 'import { EngineWorker, tensor } from "tracefx/worker"; const model = await new EngineWorker().loadModule("a.pt2"); console.log((await model.runAsync([IMAGE])).shape.join());',
    says: "4,10",
    limit: 16_000,
  },
  layers: {
    code: 'import { Linear, ReLU, Sequential } from "tracefx/nn"; console.log(String(new Sequential(new Linear(2, 2), new ReLU())));',
    says: "in_features=2",
    limit: 60_000,
  },
  trace: {
    code: 'import { F, symbolicTrace } from "tracefx/trace"; console.log(symbolicTrace((x) => F.relu(x)).code);',
    says: "F.relu(",
    limit: 192_000,
  },
  torch: {
    code: 'import { torch } from "tracefx/torch"; console.log(torch.add.target);',
    says: "torch.add",
    limit: 200_000,
  },
  explorer: {
    code: 'import { TracefxGraph } from "tracefx/explorer"; console.log(typeof TracefxGraph);',
    says: "function",
    limit: 265_000,
  },
  everything: {
    code: 'import * as tracefx from "tracefx"; console.log(String(tracefx.symbolicTrace((x) => tracefx.torch.relu(x)).code), Object.keys(tracefx).length);',
    says: "torch.relu(",
    limit: 367_000,
  },
});

/** Of what is printed which parts of the package it consists. */
const TAKEN_APART = ["trace", "everything"];

/**
 * @typedef {{ readonly name: string, readonly raw: number, readonly gzip: number, readonly limit: number, readonly parts?: ReadonlyMap<string, number> }} Row
 */

/**
 * Measures the package that `tracefx` is in a folder, whose own folder is `installed`.
 *
 * @returns {Promise<Row[]>}
 */
export async function sizes(/** @type {string} */ folder, /** @type {string} */ installed) {
  const files = Object.entries(FILES).map(([name, limit]) => {
    return { name: `wasm/${name}`, ...weight([readFileSync(join(installed, "wasm", name))]), limit };
  });
  const programs = Object.entries(PROGRAMS).map(async ([name, { code, says, limit }]) => {
    const { first, all, parts } = await bundled(folder, code.replace("IMAGE", IMAGE));
    checkRun(name, all, installed, says);
    return { name, ...weight(first), limit, parts };
  });
  return [...files, ...(await Promise.all(programs))];
}

/** Runs what was bundled in Node, with the engine and the worker of the package beside it. */
function checkRun(
  /** @type {string} */ name,
  /** @type {readonly import("esbuild").OutputFile[]} */ files,
  /** @type {string} */ installed,
  /** @type {string} */ says,
) {
  const home = mkdtempSync(join(tmpdir(), "tracefx-sizes-"));
  try {
    writeFileSync(join(home, "package.json"), '{ "type": "module" }');
    for (const file of files) writeFileSync(join(home, basename(file.path)), file.contents);
    for (const wasm of Object.keys(FILES)) symlinkSync(join(installed, "wasm", wasm), join(home, wasm));
    writeFileSync(join(home, "serve.js"), `import ${JSON.stringify(join(installed, "dist/bundle/worker/serve.js"))};`);
    copyFileSync(join(FIXTURE, "model.pt2"), join(home, "a.pt2"));
    if (PROGRAMS[/** @type {keyof typeof PROGRAMS} */ (name)].code.includes("a.fxg")) {
      const inputs = ["--inputs", join(FIXTURE, "inputs.safetensors")];
      execFileSync("node", [join(installed, "bin/tracefx.mjs"), "compile", "a.pt2", "a.fxg", ...inputs], { cwd: home });
    }
    const said = execFileSync("node", ["stdin.js"], { cwd: home, encoding: "utf8" });
    if (!said.includes(says)) throw new Error(`${name}: the bundle says ${JSON.stringify(said)}, and not ${says}`);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function sum(/** @type {readonly Uint8Array[]} */ files) {
  return files.reduce((total, it) => total + it.length, 0);
}

function weight(/** @type {readonly Uint8Array[]} */ files) {
  return { raw: sum(files), gzip: sum(files.map((it) => gzipSync(it, { level: 9 }))) };
}

/**
 * What a program is bundled to: the files that a page fetches before it begins, all files, and what the first consist of.
 */
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
  const isFirst = (/** @type {string} */ path) => [...fetched].some((file) => path === join(folder, file));
  /** @type {Map<string, number>} */
  const parts = new Map();
  for (const file of fetched) {
    for (const [input, { bytesInOutput }] of Object.entries(metafile.outputs[file]?.inputs ?? {})) {
      const name = input.includes("/dist/") ? (/\/dist\/(\w+\/)?/.exec(input)?.[1] ?? "files in none") : "wasm/";
      parts.set(name, (parts.get(name) ?? 0) + bytesInOutput);
    }
  }
  return { first: outputFiles.filter((it) => isFirst(it.path)).map((it) => it.contents), all: outputFiles, parts };
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

function size(/** @type {Row} */ row, /** @type {string} */ name) {
  return row.parts?.get(name) ?? 0;
}

/** What programs consist of, by the folders of the package. */
function partsTable(/** @type {readonly Row[]} */ rows) {
  const shown = rows.filter((it) => TAKEN_APART.includes(it.name));
  const names = new Set(shown.flatMap((it) => [...(it.parts?.keys() ?? [])]));
  const last = /** @type {Row} */ (shown.at(-1));
  const sorted = [...names].toSorted((a, b) => size(last, b) - size(last, a));
  return [
    `| ${"folder".padEnd(20)} | ${shown.map((it) => it.name.padStart(10)).join(" | ")} |`,
    `|${"-".repeat(22)}|${shown.map(() => `${"-".repeat(11)}:`).join("|")}|`,
    ...sorted.map((it) => `| ${it.padEnd(20)} | ${shown.map((row) => kilobytes(size(row, it))).join(" | ")} |`),
  ].join("\n");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const rows = await sizes(ROOT, join(ROOT, "ts"));
  const text = table(rows);
  console.log(text);
  const files = readdirSync(join(ROOT, "ts/dist"), { recursive: true, encoding: "utf8" });
  if (process.argv.includes("--record")) {
    writeFileSync(
      join(ROOT, RECORD),
      `# Sizes of the package

Written by \`npm run sizes -- --record\` after a build. A host loads \`engine-simd.wasm\` or \`runtime-simd.wasm\`. Their parts
\`edit\` and \`rare\` are fetched when a call needs one, \`relaxed\` with the module by hosts that have relaxed SIMD, and \`gpu.wasm\` where a GPU is asked for. Of programs, which are run, the
JavaScript that a page fetches before it begins: bundled and minified by esbuild, the glue of WebAssembly in it. The package itself is ${files.filter((it) => it.endsWith(".js")).length} files of JavaScript. \`tests/packaging\` holds the limits; the programs are in
\`scripts/sizes.mjs\`.

${text}

What two of them consist of, by the folders of \`ts/src\`, minified and before gzip:

${partsTable(rows)}
`,
    );
  }
}
