/**
 * The stages of the checks: what each runs, what it reads, and what has to be there before.
 *
 * `test.mjs` runs them all and `check.mjs` those that a change concerns. What a stage is for is told in ARCHITECTURE.md.
 *
 * @module
 */
import { existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { digest } from "./decide.mjs";
import { CACHE, elapsed, logged, report } from "./progress.mjs";
import { filesOfRepository } from "./repository.mjs";
import { hasVulkan } from "./toolchain.mjs";

/** @typedef {{ passed: number, failed: number }} Counts */
/** @typedef {"packages" | "package"} Need what set-up makes, see bootstrap.mjs */
/**
 * @typedef {object} Stage
 * @property {string} name
 * @property {readonly string[][]} commands
 * @property {"check" | "cargo" | "vitest"} count
 * @property {Record<string, string>} [env]
 * @property {"cargo" | "node"} lane stages of one lane run one after another: cargo locks its folder, vitest takes all processors
 * @property {Need} [needs]
 * @property {(path: string) => boolean} [reads] whether a file of the repository can change the result; without it, the
 * world can, too
 * @property {(path: string) => boolean} [own] of that, what `npm run check` runs the stage for; without it, all
 */

/** A program of a package, as the shell of every system finds it. */
const bin = (/** @type {string} */ name) => join("node_modules", ".bin", name);

const isRust = (/** @type {string} */ path) => /\.rs$|(^|\/)(Cargo|rustfmt|clippy)\.(toml|lock)$|^\.cargo\//.test(path);
const isScript = (/** @type {string} */ path) =>
  /\.(ts|mts|cts|mjs|cjs|js|json)$/.test(path) && !/^tests\/(fixtures|golden)\//.test(path);
const isDocument = (/** @type {string} */ path) => /\.md$|\.png$/.test(path);
/** The documents whose examples in Rust are run. */
const isRustDocument = (/** @type {string} */ path) =>
  /^docs\/(passes|rust)\.md$|^crates\/tracefx\/README\.md$/.test(path);
/** What Rust's tests do not read: the package, its tools and the other documents. */
const isReadByRust = (/** @type {string} */ path) =>
  isRustDocument(path) ||
  !(/^(ts|scripts|web|examples|docs|python|tests\/(browser|packaging))\//.test(path) || isDocument(path));
/** The package is tested on the engine that is built, so that its tests read no source of Rust. */
const isReadByScripts = (/** @type {string} */ path) => !/^(crates|fuzz|python|xtask)\//.test(path);

/** What code generation writes, and what it is known to print that from. */
const isPrinted = (/** @type {string} */ path) =>
  /^(bindings\/|docs\/(ops|errors)\.md$|crates\/cli\/src\/completions\.rs$|tests\/fixtures\/dtypes\/)/.test(path);
const PRINTED_FROM =
  /^(xtask\/codegen\/|crates\/(ops\/src\/|engine\/src\/(command\.rs|passes\/)|exec\/src\/functions\.rs|rewrite\/src\/|core\/src\/d(type|iagnostic)\.rs|wire\/src\/format\.rs))/;

/** The arguments of vitest that every run of the suite in Node shares. */
export const VITEST = [bin("vitest"), "run", "--project", "node"];

/** @type {readonly Stage[]} */
export const STAGES = [
  {
    name: "rustfmt",
    count: "check",
    lane: "node",
    commands: [
      ["cargo", "fmt", "--all", "--check"],
      ["cargo", "fmt", "--manifest-path", "xtask/bindgen/Cargo.toml", "--check"],
      ["cargo", "fmt", "--manifest-path", "python/Cargo.toml", "--check"],
    ],
    reads: isRust,
  },
  {
    name: "biome",
    count: "check",
    lane: "node",
    needs: "packages",
    commands: [[bin("biome"), "format", "."]],
    reads: (path) => isScript(path) || /\.(html|css)$/.test(path),
  },
  {
    name: "oxlint",
    count: "check",
    lane: "node",
    needs: "packages",
    commands: [[bin("oxlint"), "--deny-warnings"]],
    reads: isScript,
  },
  { name: "tidy", count: "check", lane: "cargo", commands: [["cargo", "xtask", "tidy"]], reads: () => true },
  {
    name: "clippy",
    count: "check",
    lane: "cargo",
    commands: [["cargo", "clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]],
    reads: (path) => isRust(path) || isRustDocument(path),
  },
  {
    name: "codegen",
    count: "check",
    lane: "cargo",
    commands: [["cargo", "xtask", "codegen", "--check"]],
    reads: (path) => isRust(path) || isPrinted(path) || path.endsWith("/surface.txt"),
    // Any crate could change what is printed, but hardly does; to know means to build the engine.
    own: (path) => isPrinted(path) || PRINTED_FROM.test(path),
  },
  {
    name: "cargo test",
    count: "cargo",
    lane: "cargo",
    // A driver that set-up has installed is there for the tests, or they fail.
    get env() {
      return hasVulkan() ? { TRACEFX_GPU: "1" } : {};
    },
    commands: [["cargo", "test", "--locked", "--workspace", "--no-fail-fast"]],
    reads: isReadByRust,
  },
  {
    // A fixed number of mutations of each fuzz target, which counts as one test; built as the tests were.
    name: "fuzz",
    count: "cargo",
    lane: "cargo",
    commands: [["cargo", "test", "--locked", "--workspace", "--test", "fuzz"]],
    reads: isReadByRust,
  },
  {
    // The scripts and the examples are typed against the package as it is published.
    name: "tsc",
    count: "check",
    lane: "node",
    needs: "package",
    commands: [
      [bin("tsc"), "-p", "ts"],
      [bin("tsc"), "-p", "."],
    ],
    reads: (path) => isScript(path),
  },
  { name: "vitest", count: "vitest", lane: "node", needs: "package", commands: [VITEST], reads: isReadByScripts },
  {
    // What makes code of text, or starts a process that may, once more where the host evaluates none: a page with a strict
    // CSP, a worker at the edge. ts/test/withoutEval.ts lists the files; each is watched, so that the list is whole.
    name: "vitest without eval",
    count: "vitest",
    lane: "node",
    needs: "package",
    env: { NODE_OPTIONS: "--disallow-code-generation-from-strings" },
    commands: [VITEST],
    reads: isReadByScripts,
  },
  {
    name: "docs",
    count: "check",
    lane: "node",
    needs: "package",
    commands: [["npm", "run", "-s", "docs"]],
    reads: isReadByScripts,
  },
  {
    name: "browser",
    count: "vitest",
    lane: "node",
    needs: "package",
    commands: [[bin("vitest"), "run", "--project", "browser"]],
    reads: isReadByScripts,
  },
  {
    // What cannot be asked here is told of, and is no answer. What is known of a package changes without a change here.
    name: "advisories",
    count: "check",
    lane: "node",
    needs: "packages",
    commands: [["node", "scripts/advisories.mjs"]],
  },
];

/** The variables of the environment that change what is compiled or which cases are tested. */
const SETTINGS = /^(CARGO_|RUST|PROPTEST_|TRACEFX_|NODE_OPTIONS$)/;

/**
 * What a result depends on beside the files: the versions of the tools, the system, and the settings of the environment.
 *
 * @param {string} rustVersion
 */
export function factsOfMachine(rustVersion) {
  const settings = Object.entries(process.env).filter(([name]) => SETTINGS.test(name));
  return [
    process.version,
    process.platform,
    process.arch,
    rustVersion,
    ...settings.map((it) => it.join("=")).toSorted(),
  ];
}

/** Of these facts and what a stage itself runs, those on which its result depends. */
export function factsOf(/** @type {Stage} */ stage, /** @type {readonly string[]} */ machine) {
  return [...machine, JSON.stringify([stage.commands, stage.env ?? {}])];
}

/**
 * Whether the files of these prints are what they were: who edits while a test runs has not tested what is there then.
 *
 * @param {(path: string) => boolean} reads
 * @param {readonly string[]} facts
 * @param {string} print
 */
export function isAsBefore(reads, facts, print) {
  const files = filesOfRepository();
  return files !== undefined && digest(files, reads, facts) === print;
}

/**
 * Runs jobs side by side, those of one lane one after another. All end before this does, even where one throws.
 *
 * @template T
 * @param {readonly { readonly lane: Stage["lane"], readonly run: () => Promise<T> }[]} jobs
 * @returns {Promise<T[]>}
 */
export async function inLanes(jobs) {
  /** @type {T[]} */
  const results = [];
  const lanes = new Set(jobs.map((it) => it.lane));
  const ends = await Promise.allSettled(
    [...lanes].map(async (lane) => {
      for (const job of jobs) if (job.lane === lane) results.push(await job.run());
    }),
  );
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return results;
}

/**
 * Runs a stage and counts its tests: a check counts as one, a suite as its tests.
 *
 * @param {Pick<Stage, "name" | "commands" | "count" | "env">} stage
 * @returns {Promise<Counts & { name: string, log: string }>}
 */
export async function run({ name, commands, count, env = {} }) {
  const start = performance.now();
  report("running", name);
  const json = join(CACHE, `${name.replaceAll(/[^a-zA-Z0-9]+/g, "-")}.json`);
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
  report(counts.failed === 0 ? "done" : "failed", name, `${sums(count, counts)}${elapsed(start)}`);
  if (count === "check") {
    for (const [line] of readFileSync(log, "utf8").matchAll(/^skipped: .*$/gm)) report("done", name, line);
  }
  return { name, log, ...counts };
}

/** The numbers of a suite, for its line; a check has none. */
export function sums(/** @type {Stage["count"]} */ count, /** @type {Counts} */ { passed, failed }) {
  return count === "check" ? "" : `${passed} passed, ${failed} failed, `;
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
