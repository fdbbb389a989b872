/**
 * Everything that CI checks, after the set-up that it needs.
 *
 *     npm test [-- [--only STAGE,STAGE] [--all]]
 *
 * Stages run side by side in two lanes, cargo's and node's, each as soon as what it needs is built. A stage whose inputs are
 * those of its last success is not run again, but with `--all` and in CI; its tests count. Each writes its output to
 * `.cache/logs` and one line to the terminal. A stage that fails does not stop the others. The last line is the sum, `N
 * passed, N failed`: a check counts as one, a suite as its tests.
 *
 * @module
 */
import { parseArgs } from "node:util";
import { begin } from "./bootstrap.mjs";
import { crateUnits, digest, testUnits } from "./decide.mjs";
import { elapsed, Problem, report, tail } from "./progress.mjs";
import { filesOfRepository, packagesOfWorkspace, textOf } from "./repository.mjs";
import { factsOf, factsOfMachine, inLanes, isAsBefore, run, STAGES, sums } from "./stages.mjs";
import { lastSuccess, succeeded } from "./successes.mjs";

/** @typedef {import("./stages.mjs").Stage} Stage */

/** The stages of these names; all without one. */
function chosen(/** @type {string | undefined} */ only) {
  const names = only?.split(",");
  const stray = names?.find((name) => STAGES.every((stage) => stage.name !== name));
  if (stray !== undefined) {
    throw new Problem(`no stage is called ${stray}; there are ${STAGES.map((stage) => stage.name).join(", ")}`);
  }
  return STAGES.filter((stage) => names?.includes(stage.name) ?? true);
}

/**
 * Runs a stage, unless it is fresh.
 *
 * @param {Stage} stage
 * @param {readonly string[]} machine
 * @param {boolean} again whether it runs even then
 */
async function runStage(stage, machine, again) {
  const { name, count, reads, own = reads } = stage;
  const facts = factsOf(stage, machine);
  // What is read is told before the run: a file that changes meanwhile makes the stage stale.
  const files = reads && filesOfRepository();
  const print = files && digest(files, reads, facts);
  const last = lastSuccess(`stage ${name}`);
  if (!again && print !== undefined && last?.all === print) {
    const counts = { passed: last.passed ?? 1, failed: 0 };
    report("done", name, `${sums(count, counts)}unchanged since its last success`);
    return { name, log: "", ...counts };
  }
  const units = files === undefined ? [] : unitsOf(name, files, machine);
  const result = await run(stage);
  if (result.failed > 0 || files === undefined || reads === undefined || own === undefined) return result;
  if (print !== undefined && isAsBefore(reads, facts, print)) {
    const prints = units.map((it) => /** @type {const} */ ([it.name, it.prints]));
    succeeded({
      ...Object.fromEntries(prints),
      [`stage ${name}`]: { own: digest(files, own, facts), all: print, passed: result.passed },
    });
  }
  return result;
}

/** What `npm run check` need not run after this stage. */
function unitsOf(
  /** @type {string} */ stage,
  /** @type {import("./repository.mjs").Files} */ files,
  /** @type {readonly string[]} */ machine,
) {
  if (stage === "vitest") return testUnits(files, textOf, machine);
  // The crate of the fuzz targets has a test that is not run with the others: it has succeeded where both have.
  const isSeparate = stage === "fuzz";
  if (!isSeparate && stage !== "cargo test") return [];
  if (isSeparate && !hasSucceeded("cargo test", files, machine)) return [];
  return crateUnits(files, textOf, packagesOfWorkspace(), machine).filter(
    (it) => it.separate.length > 0 === isSeparate,
  );
}

/** Whether a stage has succeeded on these files. */
function hasSucceeded(
  /** @type {string} */ name,
  /** @type {import("./repository.mjs").Files} */ files,
  /** @type {readonly string[]} */ machine,
) {
  const stage = STAGES.find((it) => it.name === name);
  if (stage?.reads === undefined) return false;
  return lastSuccess(`stage ${name}`)?.all === digest(files, stage.reads, factsOf(stage, machine));
}

async function main() {
  const { values } = parseArgs({ options: { only: { type: "string" }, all: { type: "boolean", default: false } } });
  const start = performance.now();
  const stages = chosen(values.only);
  const isEngineNeeded = stages.some((it) => it.needs === "package");
  const has = (/** @type {string} */ name) => stages.some((stage) => stage.name === name);
  const made = await begin({ engine: isEngineNeeded, browser: has("browser"), gpu: has("cargo test") });
  const machine = factsOfMachine(made.rustVersion);
  const needs = { packages: async () => {}, package: made.package };
  const again = values.all || (process.env["CI"] ?? "") !== "";
  const results = await inLanes(
    stages.map((stage) => ({
      lane: stage.lane,
      run: async () => {
        if (stage.needs !== undefined) await needs[stage.needs]();
        return await runStage(stage, machine, again);
      },
    })),
  );
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
