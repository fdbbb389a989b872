/**
 * Runs recorded PyTorch data of one kind through an engine and says what differs.
 *
 *     npm run -s conformance -- KIND DIR [--engine native|wasm] [--only NAME] [--report FILE.json]
 *
 * The last line is `N passed, N failed, N skipped`. Skipped means that something is not implemented, by a typed error; a
 * wrong answer always counts as failed.
 *
 * @module
 */
import { writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { nativeEngine } from "./native.mjs";
import { programCases } from "./programs.mjs";
import { wasmEngine } from "./wasm.mjs";

/** @typedef {{ name: string, status: "passed" | "failed" | "skipped", detail?: string }} Result */
/** @typedef {import("./engine.mjs").Engine} Engine */

const USAGE = "usage: npm run -s conformance -- KIND DIR [--engine native|wasm] [--only NAME] [--report FILE.json]";

/** @type {Record<string, (dir: string, only: string | undefined, engine: Engine) => AsyncIterable<Result>>} */
const KINDS = { programs: programCases };

/** @type {Record<string, () => Promise<Engine>>} */
const ENGINES = { native: nativeEngine, wasm: wasmEngine };

async function main() {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      engine: { type: "string", default: "wasm" },
      only: { type: "string" },
      report: { type: "string" },
    },
  });
  const [kind = "", dir] = positionals;
  const cases = Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined;
  if (cases === undefined || dir === undefined || positionals.length > 2) {
    throw new Error(`${USAGE}\nthe kinds are ${Object.keys(KINDS).join(", ")}`);
  }
  const start = Object.hasOwn(ENGINES, values.engine) ? ENGINES[values.engine] : undefined;
  if (start === undefined) throw new Error(`${USAGE}\nthe engines are ${Object.keys(ENGINES).join(", ")}`);

  const engine = await start();
  /** @type {Result[]} */
  const results = [];
  try {
    for await (const result of cases(dir, values.only, engine)) {
      results.push(result);
      if (result.status !== "passed") console.log(`${result.status}  ${result.name}: ${result.detail}`);
    }
  } finally {
    await engine.close();
  }
  const count = (/** @type {Result["status"]} */ status) => results.filter((it) => it.status === status).length;
  if (values.report !== undefined) {
    writeFileSync(values.report, `${JSON.stringify({ kind, engine: values.engine, results }, undefined, 1)}\n`);
  }
  if (results.length === 0) throw new Error(`there is nothing of the kind ${kind} in ${dir}`);
  console.log(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
  process.exitCode = count("failed") > 0 ? 1 : 0;
}

main().catch((error) => {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
});
