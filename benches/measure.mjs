/**
 * Times one workload of `bench.mjs` on one engine, in a process of its own, and prints JSON: the milliseconds of the shortest call
 * after a warm-up, those from the file to the first result, the most memory of the process in bytes, and the largest difference
 * from what PyTorch gave.
 *
 *     node benches/measure.mjs ENGINE BASE THREADS SECONDS PEERS PYTHON
 *
 * @module
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readSafetensors } from "../ts/dist/index.js";
import { differenceOf } from "./engines/difference.mjs";
import { ENGINES } from "./engines/engines.mjs";

const [engine = "", base = "", threads = "1", seconds = "1", peers = ".", python = "python3"] = process.argv.slice(2);
const measure = ENGINES[engine];
if (measure === undefined) throw new Error(`there is no engine ${engine}`);
const scratch = mkdtempSync(join(tmpdir(), "tracefx-"));
try {
  const request = { base, threads: Number(threads), seconds: Number(seconds), peers, python, scratch };
  const { output, ...measured } = await measure(request);
  const wanted = readSafetensors(readFileSync(`${base}.expected.safetensors`)).tensors.get("out0")?.data;
  if (wanted === undefined) throw new Error(`${base} has no expected output`);
  console.log(JSON.stringify({ ...measured, difference: differenceOf(output, wanted) }));
} finally {
  rmSync(scratch, { recursive: true });
}
// The threads of a peer would keep the process.
process.exit(0);
