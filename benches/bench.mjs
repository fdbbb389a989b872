/**
 * Times kernels and models on tracefx and on ONNX Runtime, in turn on one machine, and prints times and ratios.
 *
 *     npm run bench -- [--python python3] [--only mm1024,resnet18] [--rounds 3] [--seconds 1] [--threads 1,2]
 *
 * It takes the native command and the package (`npm start` builds both), and a Python with torch, onnx and onnxscript, which
 * makes the models once. The peers are installed from npm beside them, in target/bench. The native engine runs beside
 * onnxruntime-node, with one and two threads; WebAssembly, where tracefx has one thread, beside onnxruntime-web.
 * Every engine must give PyTorch's numbers. Each round measures every engine in a process of its own, so that a busy
 * machine disturbs all alike; what is printed is the shortest call of all rounds, which others on the machine lengthened
 * least.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const PEERS = ["onnxruntime-node@1.30.0", "onnxruntime-web@1.30.0"];
/** Kernels first, then models; `models.py` says what they are. */
const WORKLOADS = [
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
  "resnet18",
  "mobilenet_v2",
  "encoder6",
  "resnet50",
  "resnet50_int8",
  "efficientnet_b0",
  "vit_b16",
  "gpt2",
  "llama",
];
/** The largest difference from PyTorch's numbers, which are of the order of one to a hundred. */
const TOLERANCE = 5e-3;

const { values } = parseArgs({
  options: {
    python: { type: "string", default: "python3" },
    only: { type: "string", default: WORKLOADS.join(",") },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "1" },
    threads: { type: "string", default: "1,2" },
  },
});
const path = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));
const folder = path("../target/bench");
const [models, peers] = [join(folder, "models"), join(folder, "peers")];
const workloads = values.only.split(",");
const threads = values.threads.split(",");

if (!existsSync(path("../target/release/tracefx")) || !existsSync(path("../ts/dist/index.js"))) {
  throw new Error("the engine is not built: run npm start first");
}
const missing = workloads.filter((name) => !existsSync(join(models, `${name}.expected.safetensors`)));
if (missing.length > 0) {
  execFileSync(values.python, [path("models.py"), models, ...missing], { stdio: ["ignore", "inherit", "ignore"] });
}
if (!existsSync(join(peers, "node_modules/onnxruntime-web"))) {
  mkdirSync(peers, { recursive: true });
  writeFileSync(join(peers, "package.json"), "{}");
  // The scripts of onnxruntime-node download libraries for GPUs.
  execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...PEERS], {
    cwd: peers,
    stdio: "inherit",
  });
}

/** @type {(times: [number, number]) => string} */
const print = ([ours, theirs]) => `${ours.toPrecision(3)} | ${theirs.toPrecision(3)} | ${(ours / theirs).toFixed(1)}`;

/** @type {(name: string, engines: [string, string], threads: string) => [number, number]} */
function compare(name, engines, n) {
  /** @type {[number, number]} */
  const times = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY];
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [at, engine] of engines.entries()) {
      const args = [path("measure.mjs"), engine, join(models, name), n, values.seconds, peers];
      const output = execFileSync(process.execPath, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
      const { ms, difference } = JSON.parse(output.trim().split("\n").at(-1) ?? "");
      if (!(difference <= TOLERANCE)) throw new Error(`${engine} is off by ${difference} in ${name}`);
      times[at] = Math.min(/** @type {number} */ (times[at]), ms);
    }
  }
  return times;
}

console.log(
  `${cpus()[0]?.model}, ${cpus().length} CPUs, Node ${process.version}; milliseconds of the shortest call, ours / theirs\n`,
);
console.log("| workload | native | onnxruntime-node | ratio | WebAssembly | onnxruntime-web | ratio |");
console.log("|---|--:|--:|--:|--:|--:|--:|");
for (const name of workloads) {
  for (const n of threads) {
    const native = compare(name, ["native", "onnxruntime-node"], n);
    const cells = [native];
    if (n === "1") cells.push(compare(name, ["wasm", "onnxruntime-web"], n));
    console.log(
      `| ${name}, ${n} thread${n === "1" ? "" : "s"} | ${cells.map(print).join(" | ")}${n === "1" ? "" : " | | |"} |`,
    );
  }
}
