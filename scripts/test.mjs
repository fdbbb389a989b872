/**
 * Everything that CI checks, after the set-up that it needs.
 *
 *     node scripts/test.mjs [--only STAGE,STAGE]
 *
 * Each stage writes its output to `.cache/logs` and one line to the terminal. A stage that fails does not stop the others.
 * The last line is the sum, `N passed, N failed`: a check counts as one, a suite as its tests.
 *
 * @module
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { bootstrap } from "./bootstrap.mjs";
import { CACHE, elapsed, logged, Problem, report, tail } from "./progress.mjs";

/** @typedef {{ passed: number, failed: number }} Counts */
/** @typedef {{ name: string, commands: string[][], count: "check" | "cargo" | "vitest", env?: Record<string, string> }} Stage */

const BIN = "node_modules/.bin";

/** @type {readonly Stage[]} */
const STAGES = [
  {
    name: "rustfmt",
    count: "check",
    commands: [
      ["cargo", "fmt", "--all", "--check"],
      ["cargo", "fmt", "--manifest-path", "xtask/bindgen/Cargo.toml", "--check"],
    ],
  },
  { name: "biome", count: "check", commands: [[`${BIN}/biome`, "format", "."]] },
  { name: "oxlint", count: "check", commands: [[`${BIN}/oxlint`, "--deny-warnings"]] },
  {
    name: "tsc",
    count: "check",
    commands: [
      [`${BIN}/tsc`, "-p", "ts"],
      [`${BIN}/tsc`, "-p", "."],
    ],
  },
  { name: "codegen", count: "check", commands: [["cargo", "xtask", "codegen", "--check"]] },
  { name: "tidy", count: "check", commands: [["cargo", "xtask", "tidy"]] },
  {
    name: "clippy",
    count: "check",
    commands: [["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]],
  },
  {
    name: "cargo test",
    count: "cargo",
    commands: [["cargo", "test", "--locked", "--workspace", "--no-fail-fast"]],
  },
  // A fixed number of mutations of each fuzz target, which counts as one test; built as the tests were.
  { name: "fuzz", count: "cargo", commands: [["cargo", "test", "--locked", "--workspace", "--test", "fuzz"]] },
  { name: "vitest", count: "vitest", commands: [[`${BIN}/vitest`, "run", "--project", "node"]] },
  {
    // The same suite where the host evaluates no text: a page with a strict CSP, a worker at the edge.
    name: "vitest without eval",
    count: "vitest",
    env: { NODE_OPTIONS: "--disallow-code-generation-from-strings" },
    commands: [[`${BIN}/vitest`, "run", "--project", "node", "ts/test"]],
  },
  // What cannot be asked here is told of, and is no answer.
  { name: "advisories", count: "check", commands: [["node", "scripts/advisories.mjs"]] },
  { name: "docs", count: "check", commands: [["npm", "run", "-s", "docs"]] },
  { name: "browser", count: "vitest", commands: [[`${BIN}/vitest`, "run", "--project", "browser"]] },
];

/** Runs a stage and counts its tests. */
async function run(/** @type {Stage} */ { name, commands, count, env = {} }) {
  const start = performance.now();
  report("running", name);
  const json = join(CACHE, `${name}.json`);
  rmSync(json, { force: true });
  let code = 0;
  let log = "";
  for (const [index, command] of commands.entries()) {
    const extra = count === "vitest" ? ["--reporter=default", "--reporter=json", `--outputFile.json=${json}`] : [];
    const result = await logged(`test ${name}`, [...command, ...extra], { append: index > 0, env });
    code ||= result.code;
    log = result.log;
  }
  const counts = countsOf(count, log, json);
  // A suite that ends badly has failed, even where no single test did.
  if (code !== 0 && counts.failed === 0) counts.failed = 1;
  else if (count === "check" && code === 0) counts.passed = 1;
  else if (counts.passed + counts.failed === 0) counts.failed = 1;
  const sums = count === "check" ? "" : `${counts.passed} passed, ${counts.failed} failed, `;
  report(counts.failed === 0 ? "done" : "failed", name, `${sums}${elapsed(start)}`);
  if (count === "check") {
    for (const [line] of readFileSync(log, "utf8").matchAll(/^skipped: .*$/gm)) report("done", name, line);
  }
  return { name, log, ...counts };
}

/** @returns {Counts} */
function countsOf(/** @type {Stage["count"]} */ count, /** @type {string} */ log, /** @type {string} */ json) {
  if (count === "cargo") {
    const lines = readFileSync(log, "utf8").matchAll(/^test result: \w+\. (\d+) passed; (\d+) failed/gm);
    return [...lines].reduce(
      (sum, [, passed, failed]) => ({ passed: sum.passed + Number(passed), failed: sum.failed + Number(failed) }),
      { passed: 0, failed: 0 },
    );
  }
  if (count === "vitest" && existsSync(json)) {
    const { numPassedTests, numFailedTests } = JSON.parse(readFileSync(json, "utf8"));
    return { passed: numPassedTests, failed: numFailedTests };
  }
  return { passed: 0, failed: 0 };
}

/** The stages of these names; all without one. */
function chosen(/** @type {string | undefined} */ only) {
  const names = only?.split(",");
  const stray = names?.find((name) => STAGES.every((stage) => stage.name !== name));
  if (stray !== undefined) {
    throw new Problem(`no stage is called ${stray}; there are ${STAGES.map((stage) => stage.name).join(", ")}`);
  }
  return STAGES.filter((stage) => names?.includes(stage.name) ?? true);
}

async function main() {
  const { values } = parseArgs({ options: { only: { type: "string" } } });
  const start = performance.now();
  const stages = chosen(values.only);
  await bootstrap({ tests: stages.some((stage) => stage.name === "browser") });
  const results = [];
  for (const stage of stages) results.push(await run(stage));
  for (const result of results) {
    if (result.failed > 0) console.log(`\n${result.name}:\n${tail(result.log)}`);
  }
  const passed = results.reduce((sum, it) => sum + it.passed, 0);
  const failed = results.reduce((sum, it) => sum + it.failed, 0);
  console.log(`\nall stages took ${elapsed(start)}`);
  console.log(`${passed} passed, ${failed} failed`);
  return failed === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  report("failed", "tests", error.message);
  console.log("0 passed, 1 failed");
  process.exitCode = 1;
}
