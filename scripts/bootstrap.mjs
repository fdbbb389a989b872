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
import { chromium, installChromium, installWasmToolchain, rust, wasmToolchain } from "./toolchain.mjs";

/** The oldest Node that is supported. */
const NODE = { major: 20, minor: 19 };
const EXE = process.platform === "win32" ? ".exe" : "";
const WORKSPACE = ["Cargo.toml", "Cargo.lock"];
const CRATES = readdirSync(join(ROOT, "crates"))
  .filter((name) => name !== "cli" && name !== "wasm")
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
    const tools = ["xtask/src/wasm", "xtask/bindgen", "package-lock.json"];
    return fingerprint([...WORKSPACE, ...CRATES, "crates/wasm", ...tools], [rustVersion, wasmVersion]);
  },
  outputs: ["engine.js", "engine.d.ts", "engine-simd.wasm"].map((it) => `ts/wasm/${it}`),
  commands: [["cargo", "xtask", "wasm"]],
});

/** The TypeScript of the package, which needs the types of the engine. */
const SCRIPTS = {
  name: "package tracefx",
  print: () => {
    const config = ["tsconfig.base.json", "ts/tsconfig.build.json", "scripts/package.mjs", "package-lock.json"];
    return fingerprint(["ts/src", "bindings", "ts/wasm/engine.d.ts", ...config]);
  },
  outputs: ["ts/dist/index.js", "ts/dist/index.d.ts"],
  commands: [["npm", "run", "--silent", "build", "--workspace", "ts"]],
  clean: ["ts/dist"],
};

/**
 * Sets everything up; throws a {@link Problem} that says what to do where it cannot.
 *
 * @param {{ tests?: boolean }} [options]
 */
export async function bootstrap({ tests = false } = {}) {
  const since = performance.now();
  let worked = false;
  checkNode();

  await step(PACKAGES);
  const rustVersion = rust();
  if (wasmToolchain() === undefined) await install("WebAssembly compiler", installWasmToolchain);
  if (tests && chromium() === undefined) await install("Chromium", installChromium);

  // Each of these two keeps one processor busy for most of its time. Both are waited for, so that none goes on in the
  // background after the other has failed.
  const builds = [native(rustVersion), engine(rustVersion, wasmToolchain() ?? "")];
  const ends = await Promise.allSettled(builds.map(step));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  await step(SCRIPTS);
  report("done", "set-up", worked ? elapsed(since) : `up to date (${elapsed(since)})`);

  /** Runs a step unless it is fresh. */
  async function step(/** @type {Build} */ build) {
    const { name } = build;
    const key = name.replaceAll(/[^a-zA-Z]+/g, "-");
    const print = build.print();
    if (isFresh(key, print, build.outputs)) return;
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
