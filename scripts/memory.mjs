/**
 * Measures what loading a program with 400 MB of weights takes: the process, and the engine's memory.
 *
 *     node scripts/memory.mjs [path|bytes|http]
 *
 * Writes a program to a temporary file, and loads it in a process of its own: from the path, from bytes that are read first,
 * or from a local server with ranges. `npm run build -w ts` makes the package that it measures.
 */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { exportProgram, init, load, nn, saveTo, torch } from "../ts/dist/index.js";
import { serve } from "./serve.mjs";

const SELF = fileURLToPath(import.meta.url);
const [verb = "path", path] = process.argv.slice(2);

if (path === undefined) {
  const folder = mkdtempSync(join(tmpdir(), "tracefx-memory-"));
  try {
    for (const step of ["write", verb]) {
      const args = ["--expose-gc", SELF, step, join(folder, "model.pt2")];
      if (spawnSync(process.execPath, args, { stdio: "inherit" }).status !== 0) throw new Error(`${step} failed`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
} else if (verb === "write") {
  await init();
  const net = new nn.Sequential(...[1, 2, 3, 4].map(() => new nn.Linear(5000, 5000)));
  await saveTo(exportProgram(net, [torch.zeros(1, 5000)]), path);
} else {
  await init();
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  const server = verb === "http" ? await serve({ root: dirname(path) }) : undefined;
  const url = server === undefined ? path : `${server.url}model.pt2`;
  const program = await load(verb === "bytes" ? readFileSync(path) : url);
  const peak = process.resourceUsage().maxRSS * 1024;
  console.log(`${megabytes(statSync(path).size)} of file, ${program.stateDict.size} weights, from ${verb}`);
  console.log(`the process: ${megabytes(before)} before, ${megabytes(peak)} at most, ${megabytes(peak - before)} more`);
  await server?.close();
}

/** @param {number} bytes */
function megabytes(bytes) {
  return `${(bytes / 1e6).toFixed(0)} MB`;
}
