/**
 * Builds and runs a fuzz target with libFuzzer, on the stable toolchain.
 *
 *     node scripts/fuzz.mjs TARGET [SECONDS]
 *
 * The targets and what they start from are in fuzz/src, whose head says how to add one; CI runs a slice of all of them as a
 * test, without libFuzzer. A finding is written to fuzz/libfuzzer/artifacts/TARGET, and the script fails.
 *
 * @module
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ROOT } from "./progress.mjs";

const host = "x86_64-unknown-linux-gnu";
const flags = [
  "--cfg",
  "fuzzing",
  "-Cpasses=sancov-module",
  "-Cllvm-args=-sanitizer-coverage-level=4",
  "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
  "-Cllvm-args=-sanitizer-coverage-pc-table",
  "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

const files = readdirSync(join(ROOT, "fuzz/src/targets"));
const targets = files.map((file) => file.replace(/\.rs$/, "")).filter((it) => it !== "mod");
const [target = "", seconds = "60"] = process.argv.slice(2);
if (!targets.includes(target) || !/^[0-9]+$/.test(seconds)) {
  console.error(`usage: node scripts/fuzz.mjs TARGET [SECONDS]\ntargets: ${targets.join(", ")}`);
  process.exit(2);
}

const folder = join(ROOT, "fuzz/libfuzzer");
const corpus = join(folder, "corpus", target);
const artifacts = join(folder, "artifacts", target);
mkdirSync(corpus, { recursive: true });
mkdirSync(artifacts, { recursive: true });

// The flags are for the code that is fuzzed and not for build scripts, which --target keeps apart.
execFileSync("cargo", ["build", "--release", "--target", host], {
  cwd: folder,
  stdio: "inherit",
  env: { ...process.env, RUSTC_BOOTSTRAP: "1", CARGO_ENCODED_RUSTFLAGS: flags.join("\x1f") },
});
const run = spawnSync(
  join(folder, "target", host, "release/tracefx-libfuzzer"),
  [
    corpus,
    `-artifact_prefix=${artifacts}/`,
    `-max_total_time=${seconds}`,
    "-max_len=65536",
    "-timeout=10",
    "-rss_limit_mb=2048",
    "-print_final_stats=1",
  ],
  {
    cwd: ROOT,
    encoding: "utf8",
    maxBuffer: 1 << 28,
    env: { ...process.env, TRACEFX_FUZZ_TARGET: target, TRACEFX_FUZZ_CORPUS: corpus },
  },
);
const executions = /stat::number_of_executed_units:\s*([0-9]+)/.exec(run.stderr)?.[1];
if (run.status !== 0 || executions === undefined) {
  console.error(run.stderr.split("\n").slice(-60).join("\n"));
  console.error(`fuzz ${target}: a finding, see fuzz/libfuzzer/artifacts/${target}`);
  process.exit(1);
}
console.log(`fuzz ${target}: ${executions} executions in ${seconds} s, no finding`);
