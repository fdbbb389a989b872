/**
 * What the benchmarks run, and beside what: models that `models.py` makes, and peers of npm, in target/bench.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const path = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

/** The folder of the models. */
export const MODEL_FOLDER = path("../target/bench/models");
/** The folder that the peers are installed in. */
export const PEER_FOLDER = path("../target/bench/peers");

/** The peers, with the versions that the tables name. */
const PACKAGES = [
  "onnxruntime-node@1.30.0",
  "onnxruntime-web@1.30.0",
  "@tensorflow/tfjs-core@4.22.0",
  "@tensorflow/tfjs-backend-wasm@4.22.0",
];
/** The largest difference from PyTorch's numbers, which are of the order of one to a hundred. */
const TOLERANCE = 5e-3;
/** The same in float16. */
const TOLERANCE_OF_HALVES = 5e-2;

/** How far from PyTorch's numbers those of a workload may be. */
export const toleranceOf = (/** @type {string} */ name) => (name.includes("16_") ? TOLERANCE_OF_HALVES : TOLERANCE);

/** Makes those of the models that are missing. */
export function makeModels(/** @type {string} */ python, /** @type {string[]} */ names) {
  const missing = names.filter((name) => !existsSync(join(MODEL_FOLDER, `${name}.expected.safetensors`)));
  if (missing.length === 0) return;
  execFileSync(python, [path("models.py"), MODEL_FOLDER, ...missing], { stdio: ["ignore", "inherit", "ignore"] });
}

/** Installs those of the peers that are missing, and whose names begin so. */
export function installPeers(begin = "") {
  const wanted = PACKAGES.filter((it) => it.startsWith(begin));
  if (wanted.every((it) => existsSync(join(PEER_FOLDER, "node_modules", it.slice(0, it.lastIndexOf("@")))))) return;
  mkdirSync(PEER_FOLDER, { recursive: true });
  if (!existsSync(join(PEER_FOLDER, "package.json"))) writeFileSync(join(PEER_FOLDER, "package.json"), "{}");
  // The scripts of onnxruntime-node download libraries for GPUs.
  execFileSync("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", ...wanted], {
    cwd: PEER_FOLDER,
    stdio: "inherit",
  });
}
