/**
 * The kind `graphs`: a folder of recorded graphs, one file of cases for each kind of them.
 *
 * @module
 */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { init, NotImplementedError } from "tracefx";
import { DIFFERENCES, isCase, KINDS } from "./graphs/kinds.mjs";

/** @typedef {import("./engine.mjs").Result} Result */

/**
 * @param {string} dir
 * @param {string | undefined} only
 * @returns {AsyncGenerator<Result>}
 */
export async function* graphCases(dir, only) {
  await init();
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
 * What the crates, without TypeScript, make of the same cases.
 * @param {string} dir
 * @param {string | undefined} only
 * @returns {Generator<Result>}
 */
export function* rustGraphCases(dir, only) {
  const args = ["run", "-q", "-p", "tracefx-conformance", "--", resolve(dir), ...(only === undefined ? [] : [only])];
  const { status, stdout } = spawnSync("cargo", args, {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    encoding: "utf8",
    maxBuffer: 2 ** 30,
    stdio: ["ignore", "pipe", "inherit"],
  });
  if (status !== 0) throw new Error(`the crates did not answer: ${stdout.trim().split("\n").pop()}`);
  for (const line of stdout.split("\n")) if (line !== "") yield JSON.parse(line);
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
