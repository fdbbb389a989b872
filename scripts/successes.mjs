/**
 * What succeeded with which inputs, kept between runs in one file of `.cache`.
 *
 * @module
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { CACHE } from "./progress.mjs";

/** @typedef {import("./decide.mjs").Prints & { readonly passed?: number }} Success the tests that passed count again, if it is fresh */

const FILE = join(CACHE, "successes.json");

/** @type {Record<string, Success>} */
let known = {};
try {
  known = JSON.parse(readFileSync(FILE, "utf8"));
} catch {
  // There is none yet, or it was cut short: everything is run.
}

/** The last success of this name. */
export function lastSuccess(/** @type {string} */ name) {
  return Object.hasOwn(known, name) ? known[name] : undefined;
}

/** Remembers successes. */
export function succeeded(/** @type {Record<string, Success>} */ successes) {
  Object.assign(known, successes);
  mkdirSync(dirname(FILE), { recursive: true });
  writeFileSync(`${FILE}.new`, JSON.stringify(known));
  renameSync(`${FILE}.new`, FILE);
}
