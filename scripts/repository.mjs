/**
 * What is in the repository now: its files, their contents, its crates.
 *
 * @module
 */
import { execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { join, posix, relative, sep } from "node:path";
import { ROOT } from "./progress.mjs";

/** @typedef {ReadonlyMap<string, string>} Files a hash of the content of each file, by its path from the root, in order */
/**
 * @typedef {object} Package a crate of the workspace
 * @property {string} name
 * @property {string} folder
 * @property {readonly string[]} dependencies the folders of those that it depends on, in tests or otherwise
 * @property {readonly string[]} separate the names of its tests that run only when they are named
 */

/** What is built here and read by tests, though it is no part of the repository: what `cargo xtask wasm` makes. */
export const BUILT = [
  "engine.js",
  "engine.d.ts",
  "engine-simd.wasm",
  "engine-edit.wasm",
  "engine-rare.wasm",
  "engine-relaxed.wasm",
  "runtime.js",
  "runtime.d.ts",
  "runtime-simd.wasm",
  "runtime-rare.wasm",
  "runtime-relaxed.wasm",
  "gpu.js",
  "gpu.d.ts",
  "gpu.wasm",
].map((it) => `ts/wasm/${it}`);

/**
 * The files of the repository, with those that git does not know yet but would; undefined where there is no git to ask.
 *
 * @returns {Files | undefined}
 */
export function filesOfRepository() {
  const args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
  const { status, stdout } = spawnSync("git", args, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 28 });
  if (status !== 0) return undefined;
  const paths = new Set([...stdout.split("\0").filter((it) => it !== ""), ...BUILT]);
  /** @type {Map<string, string>} */
  const res = new Map();
  for (const path of [...paths].toSorted()) {
    const full = join(ROOT, path);
    if (!statSync(full, { throwIfNoEntry: false })?.isFile()) continue;
    res.set(path, createHash("sha256").update(readFileSync(full)).digest("hex"));
  }
  return res;
}

/** The text of a file. */
export function textOf(/** @type {string} */ path) {
  return readFileSync(join(ROOT, path), "utf8");
}

/**
 * The crates of the workspace.
 *
 * @returns {Package[]}
 */
export function packagesOfWorkspace() {
  const command = ["metadata", "--no-deps", "--format-version", "1", "--offline"];
  const text = execFileSync("cargo", command, { cwd: ROOT, encoding: "utf8", maxBuffer: 1 << 26 });
  /** @type {{ packages: { name: string, manifest_path: string, dependencies: { path?: string }[], targets: { name: string, kind: string[], test: boolean }[] }[] }} */
  const { packages } = JSON.parse(text);
  return packages.map(({ name, manifest_path: manifest, dependencies, targets }) => ({
    name,
    folder: posix.dirname(fromRoot(manifest)),
    dependencies: dependencies.flatMap(({ path }) => (path === undefined ? [] : [fromRoot(path)])),
    separate: targets.filter((it) => it.kind.includes("test") && !it.test).map((it) => it.name),
  }));
}

/** A path of this machine from the root of the repository, as git writes it. */
function fromRoot(/** @type {string} */ path) {
  return relative(ROOT, path).split(sep).join("/");
}
