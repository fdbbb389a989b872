/**
 * Bundles `workload.ts` with the sources of the package, and runs it on modules that tell which of their functions were called.
 *
 *     node scripts/split/profile.mjs ENGINE.wasm RUNTIME.wasm OUT
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "../progress.mjs";

const [engine, runtime, out] = /** @type {[string, string, string]} */ (process.argv.slice(2));
const bundle = join(out, "workload.mjs");
await build({
  entryPoints: [join(ROOT, "scripts/split/workload.ts")],
  outfile: bundle,
  bundle: true,
  platform: "node",
  target: "node20",
  format: "esm",
  // What the package says of side effects is of its built files.
  ignoreAnnotations: true,
  alias: { tracefx: join(ROOT, "ts/src/index.ts") },
  logLevel: "error",
});
const fixtures = join(ROOT, "tests/fixtures/programs");
execFileSync("node", [bundle, engine, runtime, out, fixtures], { stdio: "inherit" });
