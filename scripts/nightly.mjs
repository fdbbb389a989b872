/**
 * What takes longer than CI may: the same properties on many more cases, others in every run, 10,000 faults, libFuzzer on every target, the
 * command as it is released, the packed package in every host, and the wheel of Python. CI runs a slice of each: the 256 cases that are proptest's
 * default (some properties take a multiple or a part of them, by what a case costs), graphs of 100,000 nodes instead of a million,
 * the first mutations of the fuzz targets, and the package in Node, Chromium and four bundlers.
 *
 *     npm run nightly [-- SECONDS]      of libFuzzer for each target, 60 without it
 *
 * @module
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { begin } from "./bootstrap.mjs";
import { elapsed, Problem, report, ROOT, tail } from "./progress.mjs";
import { run } from "./stages.mjs";

/** @typedef {Parameters<typeof run>[0]} Stage */

const PROGRAMS = "tests/fixtures/programs";
const PROPERTIES = ["ir", "sym", "wire", "pt2", "engine"];
const TEST = ["cargo", "test", "--locked", "--no-fail-fast", "--test", "it"];
const test = (/** @type {string[]} */ ...crates) => [
  ...TEST,
  ...crates.flatMap((it) => ["--package", `tracefx-${it}`]),
];

/** @returns {Stage[]} */
function stages(/** @type {string} */ seconds) {
  const targets = readdirSync(join(ROOT, "fuzz/src/targets")).map((it) => it.replace(/\.rs$/, ""));
  // Days since 1970: other mutations in every night, and the same again for who looks into a finding.
  const seed = String(Math.floor(Date.now() / 86_400_000));
  return [
    {
      name: "properties",
      count: "cargo",
      commands: [test(...PROPERTIES), ["cargo", "test", "--locked", "--lib", "--package", "tracefx-cpu"]],
      env: { PROPTEST_CASES: "5120", TRACEFX_NODES: "1000000" },
    },
    {
      name: `archives, seed ${seed}`,
      count: "cargo",
      commands: [[...test("engine"), "mutations::"]],
      env: { TRACEFX_MUTATIONS: "50000", TRACEFX_SEED: seed },
    },
    {
      name: `faults, seed ${seed}`,
      count: "check",
      commands: [["npx", "vitest", "run", "--project", "node", "ts/test/faults"]],
      env: { TRACEFX_FAULTS: "10000", TRACEFX_SEED: seed },
    },
    {
      name: "the released command",
      count: "check",
      commands: [["npm", "run", "-s", "conformance", "--", "programs", PROGRAMS, "--engine", "native"]],
    },
    {
      // A rule of tidy sees what is missing; this finds what a registry would not take.
      name: "crates",
      count: "check",
      commands: [["cargo", "publish", "--dry-run", "--locked", "--workspace", "--no-verify", "--allow-dirty"]],
    },
    { name: "hosts", count: "check", commands: [["npm", "run", "-s", "hosts"]] },
    { name: "python", count: "check", commands: [["npm", "run", "-s", "python"]] },
    ...targets
      .filter((it) => it !== "mod")
      .map((it) => ({
        name: `libFuzzer ${it}`,
        count: /** @type {const} */ ("check"),
        commands: [["node", "scripts/fuzz.mjs", it, seconds]],
      })),
  ];
}

async function main() {
  const [seconds = "60", ...stray] = process.argv.slice(2);
  if (!/^[0-9]+$/.test(seconds) || stray.length > 0) throw new Problem("usage: npm run nightly [-- SECONDS]");
  const start = performance.now();
  const made = await begin({ browser: true });
  await made.command();
  await made.package();
  const results = [];
  for (const stage of stages(seconds)) results.push(await run(stage));
  const failed = results.filter((it) => it.failed > 0);
  for (const result of failed) console.log(`\n${result.name}:\n${tail(result.log)}`);
  console.log(`\n${results.length - failed.length} passed, ${failed.length} failed, in ${elapsed(start)}`);
  return failed.length === 0 ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  if (!(error instanceof Problem)) throw error;
  report("failed", "nightly", error.message);
  process.exitCode = 1;
}
