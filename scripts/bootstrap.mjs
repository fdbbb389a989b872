/**
 * Sets the repository up on a fresh machine, and does nothing on one that is set up.
 *
 *     node scripts/bootstrap.mjs [--with-tests]
 *
 * Every step is skipped when what it makes is there and its inputs are the ones of the last time. Plain Node, no packages:
 * this runs before there are any.
 *
 * @module
 */
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { fingerprint, forget, isFresh, markFresh } from "./fingerprint.mjs";
import { elapsed, logged, Problem, report, ROOT, tail } from "./progress.mjs";
import { BUILT } from "./repository.mjs";
import {
  chromium,
  hasVulkan,
  installChromium,
  installVulkan,
  installWasmToolchain,
  rust,
  wasmToolchain,
} from "./toolchain.mjs";

/** The oldest Node that is supported. */
const NODE = { major: 20, minor: 19 };
const EXE = process.platform === "win32" ? ".exe" : "";
const XTASK = join("target", "debug", `xtask${EXE}`);
const WORKSPACE = ["Cargo.toml", "Cargo.lock"];
const CRATES = readdirSync(join(ROOT, "crates"))
  .filter((name) => name !== "cli" && name !== "wasm" && name !== "wasm-gpu")
  .map((name) => `crates/${name}`);

/** @typedef {{ name: string, print: () => string, outputs: string[], commands: string[][], clean?: string[], help?: string }} Build */

/** The npm packages of the repository. */
const PACKAGES = {
  name: "npm packages",
  print: () => fingerprint(["package-lock.json"], [process.version]),
  outputs: ["node_modules/.package-lock.json"],
  commands: [["npm", "ci", "--loglevel=error"]],
  help: "see https://docs.npmjs.com if the registry cannot be reached",
};

/** The native command. */
const native = (/** @type {string} */ rustVersion) => ({
  name: "command tracefx",
  print: () => fingerprint([...WORKSPACE, ...CRATES, "crates/cli"], [rustVersion]),
  outputs: [`target/release/tracefx${EXE}`],
  commands: [["cargo", "build", "--locked", "--release", "--package", "tracefx-cli"]],
});

/** The engine in all its variants. */
const engine = (/** @type {string} */ rustVersion, /** @type {string} */ wasmVersion) => ({
  name: "engine (WebAssembly)",
  print: () => {
    const tools = ["xtask/src/wasm", "xtask/bindgen", "xtask/split", "scripts/split", "package-lock.json"];
    return fingerprint(
      [...WORKSPACE, ...CRATES, "crates/wasm", "crates/wasm-gpu", ...tools],
      [rustVersion, wasmVersion],
    );
  },
  outputs: BUILT,
  // Not by way of cargo, which would wait for whoever builds at the same time.
  commands: [[XTASK, "wasm"]],
});

/** The TypeScript of the package, which needs the types of the engine. */
const SCRIPTS = {
  name: "package tracefx",
  print: () => {
    const config = ["tsconfig.base.json", "ts/tsconfig.build.json", "ts/package.json", "package-lock.json"];
    const scripts = ["scripts/package.mjs", "scripts/bundle.mjs"];
    return fingerprint(["ts/src", "bindings", "ts/wasm/engine.d.ts", ...config, ...scripts]);
  },
  outputs: ["ts/dist/index.js", "ts/dist/index.d.ts", "ts/dist/bundle/index.js"],
  commands: [["npm", "run", "--silent", "build", "--workspace", "ts"]],
  clean: ["ts/dist"],
};

/** The chores of the repository, which build the engine: built before anything else holds cargo's lock. */
const chores = (/** @type {string} */ rustVersion) => ({
  name: "chores (xtask)",
  print: () => fingerprint([...WORKSPACE, "xtask/Cargo.toml", "xtask/src"], [rustVersion]),
  outputs: [XTASK],
  commands: [["cargo", "build", "--locked", "--package", "xtask"]],
});

/**
 * Installs packages and tools, and returns what can be built with them; each is built once, when it is first asked for.
 * Throws a {@link Problem} that says what to do where something is missing.
 *
 * @param {{ engine?: boolean, browser?: boolean, gpu?: boolean }} [options] whether what the engine is built with is needed, a
 * browser, and a GPU, without which tests of it say so
 */
export async function begin({ engine: isEngineNeeded = true, browser = false, gpu = false } = {}) {
  let worked = false;
  checkNode();
  await step(PACKAGES);
  const rustVersion = rust();
  await step(chores(rustVersion));
  if (isEngineNeeded && wasmToolchain() === undefined) await install("WebAssembly compiler", installWasmToolchain);
  if (browser && chromium() === undefined) await install("Chromium", installChromium);
  if (gpu && process.platform === "linux" && !hasVulkan()) await install("driver of Vulkan", installVulkan);

  const engineOfNow = () => engine(rustVersion, wasmToolchain() ?? "");
  const buildScripts = once(() => step(SCRIPTS));
  return {
    rustVersion,
    /** Whether the engine that is built is of the sources of now. */
    isEngineFresh: () => isBuilt(engineOfNow()),
    /** Whether anything had to be done. */
    hasWorked: () => worked,
    command: once(() => step(native(rustVersion))),
    /** The package, on the engine that is built, be it of older sources. */
    scripts: buildScripts,
    package: once(async () => {
      await step(engineOfNow());
      await buildScripts();
    }),
  };

  /** Runs a step unless it is fresh. */
  async function step(/** @type {Build} */ build) {
    if (isBuilt(build)) return;
    const { name } = build;
    const key = keyOf(build);
    const print = build.print();
    worked = true;
    const start = performance.now();
    report("running", name);
    forget(key);
    for (const path of build.clean ?? []) rmSync(join(ROOT, path), { recursive: true, force: true });
    for (const command of build.commands) {
      const { code, log } = await logged(key, command);
      if (code === 0) continue;
      const help = build.help === undefined ? "" : `\n${build.help}`;
      throw new Problem(`${name}: \`${command.join(" ")}\` failed${help}\n${tail(log)}`);
    }
    markFresh(key, print);
    report("done", name, elapsed(start));
  }

  /** Installs a tool. */
  async function install(/** @type {string} */ name, /** @type {() => Promise<void>} */ body) {
    worked = true;
    const start = performance.now();
    report("running", name);
    await body();
    report("done", name, elapsed(start));
  }
}

/** The name under which a build is remembered. */
function keyOf(/** @type {Build} */ { name }) {
  return name.replaceAll(/[^a-zA-Z]+/g, "-");
}

function isBuilt(/** @type {Build} */ build) {
  return isFresh(keyOf(build), build.print(), build.outputs);
}

/** The same promise for every call. */
function once(/** @type {() => Promise<void>} */ body) {
  /** @type {Promise<void> | undefined} */
  let res;
  return () => (res ??= body());
}

/**
 * Sets everything up; throws a {@link Problem} that says what to do where it cannot.
 *
 * @param {{ tests?: boolean }} [options]
 */
export async function bootstrap({ tests = false } = {}) {
  const since = performance.now();
  const made = await begin({ browser: tests, gpu: tests });
  // Each of these two keeps one processor busy for most of its time. Both are waited for, so that none goes on in the
  // background after the other has failed.
  const ends = await Promise.allSettled([made.command(), made.package()]);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  report("done", "set-up", made.hasWorked() ? elapsed(since) : `up to date (${elapsed(since)})`);
}

function checkNode() {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  if (major > NODE.major || (major === NODE.major && minor >= NODE.minor)) return;
  throw new Problem(
    `Node ${process.versions.node} is too old, ${NODE.major}.${NODE.minor} is needed: https://nodejs.org`,
  );
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const args = process.argv.slice(2);
  const stray = args.find((arg) => arg !== "--with-tests");
  if (stray !== undefined) {
    console.error(`unknown argument ${stray}; usage: node scripts/bootstrap.mjs [--with-tests]`);
    process.exit(2);
  }
  try {
    await bootstrap({ tests: args.includes("--with-tests") });
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
    report("failed", "set-up", error.message);
    process.exit(1);
  }
}
