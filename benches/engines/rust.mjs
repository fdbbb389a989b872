/**
 * Times a workload on tract or rten, by a program that is built once, outside of the workspace.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { watched } from "./process.mjs";
import { floatsOf } from "./torch.mjs";

const FOLDER = fileURLToPath(new URL("../../target/bench/peers/rust", import.meta.url));
const COMMAND = `${FOLDER}/target/release/peers`;
const MANIFEST = `[package]
name = "peers"
version = "0.0.0"
edition = "2024"

[workspace]

[dependencies]
rten = "=0.27.0"
rten-tensor = "=0.27.0"
safetensors = "=0.8.0"
serde_json = "=1.0.154"
tract-onnx = "=0.23.9"
`;

/** Builds the program where it is not there. */
export function buildRustPeers() {
  if (existsSync(COMMAND)) return;
  mkdirSync(`${FOLDER}/src`, { recursive: true });
  writeFileSync(`${FOLDER}/Cargo.toml`, MANIFEST);
  copyFileSync(fileURLToPath(new URL("../peers/main.rs", import.meta.url)), `${FOLDER}/src/main.rs`);
  execFileSync("nice", ["cargo", "build", "--release", "--target-dir", `${FOLDER}/target`], {
    cwd: FOLDER,
    stdio: "inherit",
  });
}

/** @type {(engine: "tract" | "rten") => import("./engines.mjs").Measure} */
export const measureWith =
  (engine) =>
  async ({ base, threads, seconds, scratch }) => {
    const output = `${scratch}/output.f32`;
    const env = { RAYON_NUM_THREADS: String(threads), RTEN_NUM_THREADS: String(threads) };
    const { printed } = await watched(COMMAND, [engine, base, String(seconds), output], env);
    return { ...JSON.parse(printed), output: floatsOf(output) };
  };
