/**
 * The kind `graphs`: a folder of recorded graphs, one file of cases for each kind of them.
 *
 * @module
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { NotImplementedError } from "tracefx";
import { DIFFERENCES, isCase, KINDS } from "./graphs/kinds.mjs";

/** @typedef {import("./engine.mjs").Result} Result */

/**
 * @param {string} dir
 * @param {string | undefined} only
 * @returns {AsyncGenerator<Result>}
 */
export async function* graphCases(dir, only) {
  for (const kind of Object.keys(KINDS)) {
    const file = join(dir, `${kind}.jsonl`);
    if (!existsSync(file)) throw new Error(`there is no ${file}`);
    for (const line of readFileSync(file, "utf8").split("\n")) {
      if (line === "") continue;
      const it = JSON.parse(line);
      const name = `${kind}/${it.name}`;
      if (isCase(kind, it) && (only === undefined || name.includes(only))) yield await graphCase(kind, it);
    }
  }
}

/**
 * Checks one case. A case that is listed as a difference must differ.
 * @type {(kind: string, it: { name: string }) => Promise<Result>}
 */
export async function graphCase(kind, it) {
  const name = `${kind}/${it.name}`;
  const reason = DIFFERENCES[name];
  try {
    await KINDS[kind]?.(it);
  } catch (error) {
    if (reason !== undefined) return { name, status: "differs", detail: reason };
    const status = error instanceof NotImplementedError ? "skipped" : "failed";
    return { name, status, detail: error instanceof Error ? error.message : String(error) };
  }
  if (reason === undefined) return { name, status: "passed" };
  return { name, status: "failed", detail: "is listed as a difference and does not differ" };
}
