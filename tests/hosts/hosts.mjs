/**
 * The hosts that the packed package runs in, each with what it takes there. A host's project is a folder with `program.js`, what
 * this table says, and `node_modules` above it; the commands are those that a user types.
 *
 * @module
 */

import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { chromium } from "../../scripts/toolchain.mjs";

/**
 * @typedef {object} Host
 * @property {string} name
 * @property {Readonly<Record<string, string>>} [packages] what is installed beside the package, with exact versions
 * @property {Readonly<Record<string, string>>} files
 * @property {string} [program] the file of this folder that it runs, where that is not `program.js`
 * @property {readonly (readonly string[])[]} commands the last one prints the line of the program, where there is no page
 * @property {Readonly<Record<string, string>>} [env] what the commands have in their environment beside
 * @property {string} [page] what Chromium opens, below the project's folder or of `server`; the line becomes its title
 * @property {string} [server] what serves until the page, or the request, is answered; `$PORT` is its port
 * @property {string} [needs] a file below the project's folder without which the host is not there
 * @property {string} [configuration] the line that a user has to write, where there is one
 */

const MAIN = 'import { run } from "./program.js";\n';
const PRINTS = `${MAIN}console.log(await run());\n`;
const SHOWS = `${MAIN}run().then((line) => { document.title = line; });\n`;
const page = (/** @type {string} */ script) =>
  `<!doctype html><title></title><script type="module" src="${script}"></script>\n`;

const WORKER = {
  "main.js":
    'const worker = new Worker(new URL("./worker.js", import.meta.url), { type: "module" });\nworker.onmessage = ({ data }) => { document.title = data; };\n',
  "worker.js": `${MAIN}run().then((line) => postMessage(line));\n`,
};

const { platform, arch } = process;
const node = (/** @type {string} */ version) =>
  `npm:node-${platform === "win32" ? "win" : platform}-${arch}@${version}`;

/**
 * What has Dawn take the processor for a GPU that Chromium has beside it, where no other one is said: Debian's Mesa is older than what Dawn takes.
 *
 * @returns {Record<string, string>}
 */
function softwareGpu() {
  const path = chromium();
  if (platform !== "linux" || path === undefined || process.env["VK_ICD_FILENAMES"] !== undefined) return {};
  const folders = [dirname(realpathSync(path)), "/usr/lib/chromium", "/opt/google/chrome"];
  const found = folders.map((it) => join(it, "vk_swiftshader_icd.json")).find((it) => existsSync(it));
  return found === undefined ? {} : { VK_ICD_FILENAMES: found };
}

const FILES = "tracefx/wasm";
/** The engine's files: the module, and the parts that a call reads when it needs one. */
const ENGINE = ["engine-simd.wasm", "engine-edit.wasm", "engine-rare.wasm", "engine-relaxed.wasm"];

/** Puts the engine beside a bundle, for bundlers that leave files behind. */
const COPY = ENGINE.map((it) => `fs.copyFileSync("../node_modules/${FILES}/${it}", "dist/${it}")`).join("; ");

/** @type {readonly Host[]} */
const BASIC = [
  { name: "Node", files: { "main.mjs": PRINTS }, commands: [["node", "main.mjs"]] },
  {
    name: "Node 22",
    packages: { node22: node("22.23.3") },
    files: { "main.mjs": PRINTS },
    commands: [["../node_modules/node22/bin/node", "main.mjs"]],
  },
  {
    name: "Node 24",
    packages: { node24: node("24.21.0") },
    files: { "main.mjs": PRINTS },
    commands: [["../node_modules/node24/bin/node", "main.mjs"]],
  },
  {
    name: "Node, require",
    packages: { node22: node("22.23.3") },
    files: {
      "main.cjs":
        'const { engineVersion, init } = require("tracefx");\ninit().then(() => console.log("tracefx-host ok", engineVersion()));\n',
    },
    commands: [["../node_modules/node22/bin/node", "main.cjs"]],
  },
  {
    name: "Node worker",
    files: {
      "main.mjs":
        'import { Worker } from "node:worker_threads";\nnew Worker(new URL("./worker.mjs", import.meta.url)).on("message", console.log);\n',
      "worker.mjs": `import { parentPort } from "node:worker_threads";\n${MAIN}parentPort.postMessage(await run());\n`,
    },
    commands: [["node", "main.mjs"]],
  },
  ...["", " 24"].map((version) => ({
    name: `Node${version} with webgpu`,
    packages: { webgpu: "0.6.2", ...(version === "" ? {} : { node24: node("24.21.0") }) },
    program: "gpuProgram.js",
    files: { "main.mjs": PRINTS },
    // It has to end by itself.
    commands: [[version === "" ? "node" : "../node_modules/node24/bin/node", "main.mjs"]],
    env: softwareGpu(),
  })),
  {
    name: "Node executable",
    packages: { esbuild: "0.28.2", postject: "1.0.0-alpha.6" },
    files: {
      "main.js": `import sea from "node:sea";\n${MAIN}const [wasm, edit, rare, relaxed] = ${JSON.stringify(ENGINE)}.map((it) => sea.getAsset(it));\nrun({ wasm, parts: { edit, rare, relaxed } }).then(console.log);\n`,
      "sea.json": JSON.stringify({
        main: "main.cjs",
        output: "main.blob",
        disableExperimentalSEAWarning: true,
        assets: Object.fromEntries(ENGINE.map((it) => [it, `../node_modules/${FILES}/${it}`])),
      }),
    },
    commands: [
      [
        "esbuild",
        "main.js",
        "--bundle",
        "--platform=node",
        "--outfile=main.cjs",
        "--log-override:empty-import-meta=silent",
      ],
      ["node", "--experimental-sea-config", "sea.json"],
      ["node", "--eval", 'fs.copyFileSync(process.execPath, "program"); fs.chmodSync("program", 0o755)'],
      [
        "postject",
        "program",
        "NODE_SEA_BLOB",
        "main.blob",
        "--sentinel-fuse",
        "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2",
      ],
      ["./program"],
    ],
    configuration: 'init({ wasm: sea.getAsset("engine-simd.wasm"), parts: { edit: …, rare: …, relaxed: … } })',
  },
  { name: "tsx", packages: { tsx: "4.23.15" }, files: { "main.ts": PRINTS }, commands: [["tsx", "main.ts"]] },
  {
    name: "Vitest",
    packages: { vitest: "4.1.12" },
    files: {
      "main.test.js": `import { expect, test } from "vitest";\n${MAIN}test("runs", async () => { const line = await run(); console.log(line); expect(line).toMatch(/^tracefx-host ok/); });\n`,
    },
    commands: [["vitest", "run", "--root", "."]],
  },
  {
    name: "Jest",
    packages: { jest: "30.5.2" },
    files: {
      "package.json": JSON.stringify({ type: "module", jest: { transform: {} } }),
      "main.test.js": `${MAIN}test("runs", async () => { const line = await run(); console.log(line); expect(line).toMatch(/^tracefx-host ok/); });\n`,
    },
    commands: [["node", "--experimental-vm-modules", "../node_modules/jest/bin/jest.js", "--rootDir", "."]],
    configuration: 'node --experimental-vm-modules, and `"transform": {}`, which Jest asks for with all ES modules',
  },
  {
    name: "Deno",
    packages: { deno: "2.9.6" },
    files: { "main.js": PRINTS },
    commands: [["deno", "run", "--allow-all", "--node-modules-dir=manual", "main.js"]],
  },
  { name: "Bun", packages: { bun: "1.4.5" }, files: { "main.js": PRINTS }, commands: [["bun", "main.js"]] },
  {
    name: "Bun executable",
    packages: { bun: "1.4.5" },
    files: {
      "main.js": `${ENGINE.map((it, at) => `import file${at} from "${FILES}/${it}" with { type: "file" };\n`).join("")}${MAIN}const [wasm, edit, rare, relaxed] = await Promise.all([file0, file1, file2, file3].map((it) => Bun.file(it).arrayBuffer()));\nconsole.log(await run({ wasm, parts: { edit, rare, relaxed } }));\n`,
    },
    commands: [["bun", "build", "--compile", "main.js", "--outfile", "program"], ["./program"]],
    configuration: "init({ wasm: await Bun.file(file).arrayBuffer(), parts: { edit: …, rare: …, relaxed: … } })",
  },
  {
    name: "workerd",
    packages: { esbuild: "0.28.2", workerd: "1.20261117.1" },
    files: {
      "worker.js": `import wasm from "./engine-simd.wasm";\nimport edit from "./engine-edit.wasm";\nimport rare from "./engine-rare.wasm";\nimport relaxed from "./engine-relaxed.wasm";\n${MAIN}export default { fetch: async () => new Response(await run({ wasm, parts: { edit, rare, relaxed } })) };\n`,
      "config.capnp": `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [(name = "main", worker = .main)],
  sockets = [(name = "http", address = "127.0.0.1:$PORT", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [
    (name = "worker", esModule = embed "main.js"),
${ENGINE.map((it) => `    (name = "${it}", wasm = embed "../node_modules/${FILES}/${it}"),\n`).join("")}  ],
  compatibilityDate = "2026-01-01",
);
`,
    },
    commands: [
      [
        "esbuild",
        "worker.js",
        "--bundle",
        "--format=esm",
        "--conditions=workerd,worker,browser",
        "--external:*.wasm",
        "--outfile=main.js",
      ],
    ],
    server: "workerd serve config.capnp",
    configuration:
      'init({ wasm, parts: { edit, rare, relaxed } }), with `import wasm from "tracefx/wasm/engine-simd.wasm"` and so on',
  },
  {
    name: "static folder",
    files: {
      "index.html": `<!doctype html><title></title><script type="importmap">{ "imports": { "tracefx": "/node_modules/tracefx/dist/bundle/index.js", "tracefx/worker": "/node_modules/tracefx/dist/bundle/worker/engineWorker.js" } }</script><script type="module">${SHOWS}</script>\n`,
    },
    commands: [],
    page: "",
  },
  {
    name: "Vite",
    packages: { vite: "8.3.8" },
    files: { "index.html": page("/main.js"), "main.js": SHOWS },
    commands: [["vite", "build", "--base", "./"]],
    page: "dist/",
  },
  {
    name: "Vite, development",
    packages: { vite: "8.3.8" },
    files: { "index.html": page("/main.js"), "main.js": SHOWS },
    commands: [],
    server: "vite --port $PORT --strictPort",
    page: "",
  },
  {
    name: "Vite, worker",
    packages: { vite: "8.3.8" },
    files: { "index.html": page("/main.js"), ...WORKER },
    commands: [["vite", "build", "--base", "./"]],
    page: "dist/",
  },
  {
    name: "webpack",
    packages: { webpack: "5.112.2", "webpack-cli": "6.0.1" },
    files: { "index.html": page("dist/main.js"), "main.js": SHOWS },
    commands: [["webpack", "./main.js", "--mode", "production"]],
    page: "",
  },
  {
    name: "webpack, worker",
    packages: { webpack: "5.112.2", "webpack-cli": "6.0.1" },
    files: { "index.html": page("dist/main.js"), ...WORKER },
    commands: [["webpack", "./main.js", "--mode", "production"]],
    page: "",
  },
  {
    name: "Parcel",
    packages: { parcel: "2.16.4" },
    files: { "index.html": page("main.js"), "main.js": SHOWS },
    commands: [["parcel", "build", "index.html", "--no-cache", "--public-url", ".", "--dist-dir", "dist"]],
    page: "dist/",
  },
  {
    name: "esbuild",
    packages: { esbuild: "0.28.2" },
    files: { "index.html": page("dist/main.js"), "main.js": SHOWS },
    commands: [
      ["esbuild", "main.js", "--bundle", "--minify", "--splitting", "--format=esm", "--outdir=dist"],
      ["node", "--eval", COPY],
    ],
    page: "",
    configuration: "cp node_modules/tracefx/wasm/engine-*.wasm dist/",
  },
  {
    name: "Rollup",
    packages: { rollup: "4.68.8", "@rollup/plugin-node-resolve": "16.0.3" },
    files: { "index.html": page("dist/main.js"), "main.js": SHOWS },
    commands: [
      ["rollup", "main.js", "--plugin", "node-resolve", "--format", "es", "--dir", "dist"],
      ["node", "--eval", COPY],
    ],
    page: "",
    configuration: "cp node_modules/tracefx/wasm/engine-*.wasm dist/",
  },
  {
    name: "Rolldown",
    packages: { rolldown: "1.3.2" },
    files: { "index.html": page("dist/main.js"), "main.js": SHOWS },
    commands: [
      ["rolldown", "main.js", "--format", "es", "--dir", "dist", "--platform", "browser"],
      ["node", "--eval", COPY],
    ],
    page: "",
    configuration: "cp node_modules/tracefx/wasm/engine-*.wasm dist/",
  },
  ...["client", "server"].map((side) => ({
    name: `Next, ${side}`,
    packages: { next: "16.4.6", react: "19.3.1", "react-dom": "19.3.1" },
    files: {
      "app/layout.js": "export default ({ children }) => <html><body>{children}</body></html>;\n",
      "app/page.js":
        side === "client"
          ? '"use client";\nimport { useEffect, useState } from "react";\nimport { run } from "../program.js";\nexport default function Page() {\n  const [line, setLine] = useState("");\n  useEffect(() => { run().then(setLine); }, []);\n  return <title>{line}</title>;\n}\n'
          : 'import { run } from "../program.js";\nexport const dynamic = "force-dynamic";\nexport default async function Page() {\n  return <title>{await run()}</title>;\n}\n',
    },
    commands: [["next", "build"]],
    server: "next start --port $PORT",
    page: "",
  })),
  {
    name: "Electron",
    packages: { electron: "45.5.0" },
    files: {
      "main.mjs": `import { app } from "electron";\n${MAIN}await app.whenReady();\nconsole.log(await run());\napp.quit();\n`,
    },
    // Installing it downloads the program itself from GitHub.
    needs: "../node_modules/electron/dist/electron",
    commands: [["xvfb-run", "--auto-servernum", "electron", "--no-sandbox", "main.mjs"]],
  },
];

/** All hosts; some run the engine in a worker of the package's, too. @type {readonly Host[]} */
export const HOSTS = [
  ...BASIC,
  ...["Node", "Deno", "Bun", "static folder", "Vite", "Vite, development", "webpack"].map((name) => ({
    .../** @type {Host} */ (BASIC.find((it) => it.name === name)),
    name: `tracefx/worker: ${name}`,
    program: "workerProgram.js",
  })),
];
