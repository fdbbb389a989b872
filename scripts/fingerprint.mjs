/**
 * Says whether a step is up to date: whether its inputs are the ones of the last time that it succeeded.
 *
 * @module
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CACHE, ROOT } from "./progress.mjs";

/** Folders in which nothing is an input. */
const SKIPPED = new Set(["node_modules", "target", "tests", "benches", "fuzz"]);

/**
 * A hash over files and folders (by content) and over plain facts such as the version of a compiler.
 *
 * @param {readonly string[]} paths relative to the root; those that do not exist count as such
 * @param {readonly string[]} facts
 */
export function fingerprint(paths, facts = []) {
  const hash = createHash("sha256");
  for (const fact of facts) hash.update(`${fact}\0`);
  for (const path of paths) add(path);
  return hash.digest("hex");

  function add(/** @type {string} */ path) {
    const full = join(ROOT, path);
    if (!existsSync(full)) {
      hash.update(`${path}\0missing\0`);
    } else if (statSync(full).isDirectory()) {
      for (const name of readdirSync(full).toSorted()) if (!SKIPPED.has(name)) add(`${path}/${name}`);
    } else {
      hash.update(`${path}\0`).update(readFileSync(full)).update("\0");
    }
  }
}

const stampOf = (/** @type {string} */ name) => join(CACHE, "stamps", name);

/** Whether the step succeeded with these inputs and what it made is still there. */
export function isFresh(
  /** @type {string} */ name,
  /** @type {string} */ print,
  /** @type {readonly string[]} */ outputs,
) {
  const stamp = stampOf(name);
  return (
    existsSync(stamp) &&
    readFileSync(stamp, "utf8") === print &&
    outputs.every((output) => existsSync(join(ROOT, output)))
  );
}

/** Remembers that the step succeeded with these inputs. */
export function markFresh(/** @type {string} */ name, /** @type {string} */ print) {
  const stamp = stampOf(name);
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, print);
}

/** Forgets that the step ever succeeded. */
export function forget(/** @type {string} */ name) {
  rmSync(stampOf(name), { force: true });
}
