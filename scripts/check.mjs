/**
 * The inner loop: what a change concerns, in less than two minutes.
 *
 * @module
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { begin } from "./bootstrap.mjs";
import { crateUnits, decide, digest, testUnits } from "./decide.mjs";
import { elapsed, Problem, report, ROOT, tail } from "./progress.mjs";
import { filesOfRepository, packagesOfWorkspace, textOf } from "./repository.mjs";
import { factsOf, factsOfMachine, inLanes, isAsBefore, run, STAGES, VITEST } from "./stages.mjs";
import { lastSuccess, succeeded } from "./successes.mjs";

const HELP = `npm run check [-- --dependants]

Checks what changed since it last succeeded, here or in npm test: format, types, lints, the generated files, and the tests
of the crates and the files of tests whose own inputs changed. What is fresh is not run again.

What stands on a change is compiled, type-checked and linted, and its tests are left to npm test, which runs everything;
with --dependants they run here. The tests of the package run on the engine that is built: npm test and npm start build it
again. Left to npm test are also: docs, the browser, the suite without eval, advisories.`;

/** The checks of the loop; tests are chosen one by one. */
const CHECKS = ["rustfmt", "biome", "oxlint", "tsc", "tidy", "clippy", "codegen"];

/** @typedef {import("./stages.mjs").Stage} Stage */
/** @typedef {Awaited<ReturnType<typeof run>>} Result */
/** @typedef {{ readonly lane: Stage["lane"], readonly run: () => Promise<Result> }} Job */

/** `1 crate`, or `2 crates`. */
function sum(/** @type {number} */ n, /** @type {string} */ what) {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

async function main() {
  const { values } = parseArgs({ options: { dependants: { type: "boolean" }, help: { type: "boolean" } } });
  if (values.help === true) {
    console.log(HELP);
    return 0;
  }
  const start = performance.now();
  const made = await begin({ engine: false });
  if (!existsSync(join(ROOT, "ts/wasm/engine.d.ts"))) {
    throw new Problem("the engine was never built, and types and tests need it; run: npm start");
  }
  await made.scripts();
  const files = filesOfRepository();
  if (files === undefined) throw new Problem("git tells what changed, and is not there; run: npm test");
  const machine = factsOfMachine(made.rustVersion);
  const print = digest(files, () => true);
  const options = { dependants: values.dependants === true };

  /** @type {Job[]} */
  const jobs = [];
  /** @type {string[]} */
  const left = [];
  for (const stage of STAGES) {
    const { reads, own = reads } = stage;
    if (!CHECKS.includes(stage.name) || reads === undefined || own === undefined) continue;
    const facts = factsOf(stage, machine);
    const unit = {
      name: `stage ${stage.name}`,
      prints: { own: digest(files, own, facts), all: digest(files, reads, facts) },
    };
    const state = decide([unit], lastSuccess, options);
    if (state.fresh.length > 0) report("done", stage.name, "fresh");
    if (state.left.length > 0) left.push(stage.name);
    const success = { [unit.name]: { ...unit.prints, passed: 1 } };
    if (state.run.length > 0) jobs.push({ lane: stage.lane, run: () => remembered(stage, success, print) });
  }
  const crates = decide(crateUnits(files, textOf, packagesOfWorkspace(), machine), lastSuccess, options);
  for (const { name, prints, separate } of crates.run) {
    const test = ["cargo", "test", "--locked", "--package", name];
    const commands = [[...test, "--no-fail-fast"], ...separate.map((it) => [...test, "--test", it])];
    jobs.push({ lane: "cargo", run: () => remembered({ name, commands, count: "cargo" }, { [name]: prints }, print) });
  }
  const tests = decide(testUnits(files, textOf, machine), lastSuccess, options);
  if (tests.run.length > 0) {
    const commands = [[...VITEST, ...tests.run.map((it) => it.name)]];
    const prints = Object.fromEntries(tests.run.map((it) => [it.name, it.prints]));
    jobs.push({ lane: "node", run: () => remembered({ name: "vitest", commands, count: "vitest" }, prints, print) });
  }
  if (crates.fresh.length > 0) report("done", "cargo test", `${sum(crates.fresh.length, "crate")} fresh`);
  if (tests.fresh.length > 0) report("done", "vitest", `${sum(tests.fresh.length, "file")} fresh`);

  const results = await inLanes(jobs);
  for (const result of results) {
    if (result.failed > 0) console.log(`\n${result.name}:\n${tail(result.log)}`);
  }
  const names = crates.left.map((it) => it.name.replace("tracefx-", ""));
  if (names.length > 0) left.push(`the tests of ${names.join(", ")}`);
  if (tests.left.length > 0) left.push(`${sum(tests.left.length, "file")} of vitest`);
  if (left.length > 0) console.log(`\nleft to npm test, or to --dependants: ${left.join("; ")}`);
  if (!made.isEngineFresh()) {
    console.log("\nthe engine that is built is of other sources than those of now; npm test and npm start build it");
  }
  const failed = results.filter((it) => it.failed > 0).map((it) => it.name);
  const outcome = failed.length === 0 ? "checked" : `failed: ${failed.join(", ")}`;
  console.log(`\n${outcome}, in ${elapsed(start)}`);
  return failed.length === 0 ? 0 : 1;
}

/**
 * Runs a stage, and remembers its inputs where it succeeds.
 *
 * @param {Parameters<typeof run>[0]} stage
 * @param {Parameters<typeof succeeded>[0]} successes
 * @param {string} print of all files before
 */
async function remembered(stage, successes, print) {
  const result = await run(stage);
  if (result.failed === 0 && isAsBefore(() => true, [], print)) succeeded(successes);
  return result;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  report("failed", "check", error.message);
  process.exitCode = 1;
}
