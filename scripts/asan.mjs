/**
 * Runs the tests of the CPU kernels under AddressSanitizer: the properties that compare what is written for each instruction
 * set with plain loops, and with them the code that is `unsafe`.
 *
 *     node scripts/asan.mjs [TEST...]
 *
 * It takes rustup's nightly, whose runtime of the sanitizer needs no other tool. Without names it runs the tests of the
 * modules that hold `unsafe` code and of what calls them.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { ROOT } from "./progress.mjs";

const host = "x86_64-unknown-linux-gnu";
const modules = ["isa", "thread_pool", "output_view", "scratch", "parallel", "gemm", "conv", "attention", "agreement"];
const tests = process.argv.slice(2);

// The flags are for the code that is checked and not for build scripts, which --target keeps apart.
const args = ["+nightly", "test", "--package", "tracefx-cpu", "--lib", "--target", host, "--target-dir", "target/asan"];
const run = spawnSync("cargo", [...args, "--", ...(tests.length > 0 ? tests : modules)], {
  cwd: ROOT,
  stdio: "inherit",
  env: { ...process.env, RUSTFLAGS: "-Zsanitizer=address" },
});
process.exit(run.status ?? 1);
