/**
 * Times kernels and models on tracefx and on other engines, in turn on one machine, and prints a table.
 *
 *     npm run bench -- [--table native|wasm|browser|decode] [--python python3] [--only mm1024,resnet18] [--engines native,tract]
 *                      [--rounds 3] [--seconds 1] [--threads 1,2]
 *
 * It takes the native command and the package (`npm start` builds both), and a Python with torch, onnx and onnxscript, which
 * makes the models once. The peers are installed from npm beside them, and those in Rust are built there, in target/bench; after that
 * nothing is fetched. `native` has one and two threads; WebAssembly has as many as `--threads` says in Node 22 and later, and one in a page of Chromium.
 * Every engine must give PyTorch's numbers. Each round measures every engine in a process of its own, so that a busy
 * machine disturbs all alike; what is printed is the shortest call of all rounds, which others on the machine lengthened
 * least. `peak` is the share of the multiplications and additions that the first engine makes in a product of 1,024.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { ENGINES } from "./engines/engines.mjs";
import { buildRustPeers } from "./engines/rust.mjs";
import { installPeers, MODEL_FOLDER, makeModels, PEER_FOLDER, toleranceOf } from "./workloads.mjs";

/** Kernels, models, and steps of decoding; `models.py` says what they are. */
const KERNELS = [
  "mm512",
  "mm1024",
  "gemv4096",
  "conv1x1",
  "conv3x3",
  "dwconv3x3",
  "layernorm",
  "softmax",
  "gelu",
  "ewchain",
];
const IMAGES = ["resnet18", "resnet50", "mobilenet_v2", "efficientnet_b0"];
const MODELS = [...IMAGES, "resnet50_int8", "encoder6", "vit_b16", "gpt2", "llama", "digits", "digits397"];
const STEPS = ["gpt2_step64", "gpt2_step1024", "llama16_step"];

/** What each table compares: tracefx first, then its peers. */
const TABLES = {
  native: {
    engines: ["native", "onnxruntime-node", "torch eager", "torch.compile", "tract", "rten"],
    workloads: [...KERNELS, ...MODELS],
    threads: "1,2",
  },
  wasm: { engines: ["wasm", "onnxruntime-web", "tfjs"], workloads: [...KERNELS, ...MODELS], threads: "1" },
  browser: {
    engines: ["wasm in Chromium", "onnxruntime-web in Chromium", "tfjs in Chromium"],
    workloads: MODELS,
    threads: "1",
  },
  decode: { engines: ["native", "onnxruntime-node", "torch eager", "torch.compile"], workloads: STEPS, threads: "1" },
};
/** The workloads of an engine that has not all. */
const ONLY = {
  tfjs: IMAGES,
  "tfjs in Chromium": IMAGES,
  tract: [...KERNELS, ...IMAGES],
  rten: [...KERNELS, ...MODELS],
};
/** Engines with one thread here. */
const SINGLE = ["tract"];

const { values } = parseArgs({
  options: {
    table: { type: "string", default: "native" },
    python: { type: "string", default: "python3" },
    only: { type: "string" },
    engines: { type: "string" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "1" },
    threads: { type: "string" },
  },
});
const path = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

/** @typedef {{ ms: number, load: number, memory: number | undefined }} Best */

if (!(values.table in TABLES)) throw new Error(`there is no table ${values.table}: ${Object.keys(TABLES).join(", ")}`);
const table = TABLES[/** @type {keyof typeof TABLES} */ (values.table)];
const engines = values.engines?.split(",") ?? table.engines;
const workloads = values.only?.split(",") ?? table.workloads;
const threads = (values.threads ?? table.threads).split(",");
const [own = ""] = engines;
prepare();

const product = measured("mm1024", [own], threads[0] ?? "1").get(own);
const perThread = product === undefined ? Number.NaN : flopsOf("mm1024") / product.ms / Number(threads[0] ?? 1);

console.log(
  `${cpus()[0]?.model}, ${cpus().length} CPUs, Node ${process.version}; ${((perThread * 1e3) / 1e9).toFixed(1)} GFLOP/s a thread in mm1024. ` +
    "The shortest call; until the first result; the most memory of the process\n",
);
const isDecoding = values.table === "decode";
console.log(
  `| workload | engine | ms | ${own} / engine | peak | ${isDecoding ? "tokens/s | " : ""}first result, ms | MB |`,
);
console.log(`|---|---|--:|--:|--:|${isDecoding ? "--:|" : ""}--:|--:|`);
for (const name of workloads) {
  const flops = flopsOf(name);
  for (const n of threads) {
    const able = engines.filter((it) => !(it in ONLY) || ONLY[/** @type {keyof typeof ONLY} */ (it)].includes(name));
    const found = measured(name, n === "1" ? able : able.filter((it) => !SINGLE.includes(it)), n);
    const ours = found.get(own);
    for (const [engine, { ms, load, memory }] of found) {
      const cells = [
        `${name}${threads.length > 1 ? `, ${n} thread${n === "1" ? "" : "s"}` : ""}`,
        engine,
        ms.toPrecision(3),
        ours === undefined || engine === own ? "" : (ours.ms / ms).toFixed(2),
        flops === 0 ? "" : `${((100 * flops) / ms / (perThread * Number(n))).toFixed(0)} %`,
        ...(isDecoding ? [(1000 / ms).toFixed(1)] : []),
        load.toFixed(0),
        memory === undefined ? "" : (memory / 1e6).toFixed(0),
      ];
      console.log(`| ${cells.join(" | ")} |`);
    }
  }
}

/** Makes what is missing: models and peers. */
function prepare() {
  if (!existsSync(path("../target/release/tracefx")) || !existsSync(path("../ts/dist/index.js"))) {
    throw new Error("the engine is not built: run npm start first");
  }
  const unknown = engines.filter((it) => !(it in ENGINES));
  if (unknown.length > 0)
    throw new Error(`there is no engine ${unknown.join(", ")}: ${Object.keys(ENGINES).join(", ")}`);
  makeModels(values.python, [...new Set([...workloads, "mm1024"])]);
  installPeers();
  if (engines.includes("tract") || engines.includes("rten")) buildRustPeers();
}

/** Multiplications and additions of a call. */
function flopsOf(/** @type {string} */ name) {
  const base = join(MODEL_FOLDER, name);
  const args = ["--json", "explain", `${base}.pt2`, "--inputs", `${base}.inputs.safetensors`];
  const printed = execFileSync(path("../target/release/tracefx"), args, { encoding: "utf8", maxBuffer: 1 << 28 });
  /** @type {{ flops: number }[]} */
  const { steps } = JSON.parse(printed);
  return steps.reduce((sum, { flops }) => sum + flops, 0);
}

/**
 * The best of all rounds for each engine that can run the workload.
 *
 * @type {(name: string, able: string[], threads: string) => Map<string, Best>}
 */
function measured(name, able, n) {
  /** @type {Map<string, Best>} */
  const best = new Map();
  /** @type {Set<string>} */
  const failed = new Set();
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const engine of able.filter((it) => !failed.has(it))) {
      const args = [
        path("measure.mjs"),
        engine,
        join(MODEL_FOLDER, name),
        n,
        values.seconds,
        PEER_FOLDER,
        values.python,
      ];
      try {
        const output = execFileSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
        const { difference, ...found } = JSON.parse(output.trim().split("\n").at(-1) ?? "");
        if (!(difference <= toleranceOf(name))) throw new Error(`it is off by ${difference}`);
        const before = best.get(engine) ?? found;
        const least = (/** @type {keyof Best} */ it) => Math.min(before[it], found[it]);
        best.set(engine, {
          ms: least("ms"),
          load: least("load"),
          memory: found.memory === undefined ? undefined : least("memory"),
        });
      } catch (error) {
        // What an engine cannot run, or runs wrongly, is told, and has no row.
        if (engine === own) throw error;
        failed.add(engine);
        best.delete(engine);
        const { stderr, message } = /** @type {{ stderr?: string, message: string }} */ (error);
        const lines = (stderr || message).trim().split("\n");
        console.error(`${engine} in ${name}: ${lines.find((it) => /error/i.test(it)) ?? lines[0]}`);
      }
    }
  }
  return best;
}
