/**
 * How many recorded cases pass, which may only rise. `counts.json` holds it for each folder of cases and each way to run it,
 * with the names of the cases that do not pass, so that one that falls can be named.
 *
 * @module
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";

/** @typedef {import("./engine.mjs").Result} Result */
/** @typedef {{ passed: number, differs: number, others: Record<string, string> }} Counts */
/** @typedef {Record<string, Record<string, Counts>>} Table By folder and way. */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const FILE = fileURLToPath(new URL("counts.json", import.meta.url));

/** A folder's name in the table: its path from the repository, wherever beside it the folder lies. */
export function folderName(/** @type {string} */ dir) {
  return relative(ROOT, resolve(dir))
    .split(sep)
    .filter((it) => it !== "..")
    .join("/");
}

/** What came of all cases of a folder. @type {(results: readonly Result[]) => Counts} */
export function countsOf(results) {
  const others = results.filter((it) => it.status !== "passed").map((it) => [it.name, it.status]);
  return {
    passed: results.length - others.length,
    differs: others.filter(([, status]) => status === "differs").length,
    others: Object.fromEntries(others.toSorted()),
  };
}

/**
 * Why these counts must not take the place of the known ones; nothing where they may.
 * @type {(known: Counts | undefined, found: Counts) => string | undefined}
 */
export function fallOf(known, found) {
  const others = Object.entries(found.others);
  const failed = others.filter(([, status]) => status === "failed").map(([name]) => name);
  if (failed.length > 0) return `${failed.length} failed: ${failed.join(", ")}`;
  if (known === undefined || found.passed >= known.passed) return undefined;
  const fallen = others.filter(([name]) => known.others[name] === undefined).map(([name]) => name);
  const lost = known.passed - found.passed - fallen.length;
  const gone = lost > 0 ? [`at least ${lost} that are no longer in the folder`] : [];
  return `${found.passed} passed where ${known.passed} did before: ${[...fallen, ...gone].join(", ")}`;
}

/** The table that is committed. @type {(file?: string) => Table} */
export function readCounts(file = FILE) {
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : {};
}

/**
 * Writes the counts of a folder into the table.
 *
 * @throws Where they are lower than those before.
 * @type {(folder: string, way: string, found: Counts, file?: string) => void}
 */
export function recordCounts(folder, way, found, file = FILE) {
  const table = readCounts(file);
  const fall = fallOf(table[folder]?.[way], found);
  if (fall !== undefined) throw new Error(`the counts of ${folder} may only rise, and nothing is recorded: ${fall}`);
  table[folder] = { ...table[folder], [way]: found };
  writeFileSync(file, `${JSON.stringify(sorted(table), undefined, 2)}\n`);
}

/** A table with its keys in order, so that it is written alike whoever adds to it. @type {(value: any) => any} */
function sorted(value) {
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, it]) => [key, sorted(it)]);
  return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}
