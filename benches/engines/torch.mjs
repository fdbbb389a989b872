/**
 * Times a workload on PyTorch: the module that `models.py` makes, eager or by `torch.compile`, which needs a C++ compiler.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { watched } from "./process.mjs";

/** @type {(way: "eager" | "compile") => import("./engines.mjs").Measure} */
export const measureWith =
  (way) =>
  async ({ base, threads, seconds, scratch, python }) => {
    const file = fileURLToPath(new URL("../torchMeasure.py", import.meta.url));
    const output = `${scratch}/output.f32`;
    const args = [file, basename(base), way, String(threads), String(seconds), output];
    const { printed } = await watched(python, args);
    return { ...JSON.parse(printed.trim().split("\n").at(-1) ?? ""), output: floatsOf(output) };
  };

/** The numbers of a file of float32. */
export function floatsOf(/** @type {string} */ file) {
  const { buffer, byteOffset, byteLength } = readFileSync(file);
  return new Float32Array(buffer.slice(byteOffset, byteOffset + byteLength));
}
