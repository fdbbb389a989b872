/**
 * Runs commands and says how far they are: one line for each, with the time that it took, and its output in a log file.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { createWriteStream, mkdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The root of the repository. */
export const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));

/** Where scripts keep what they remember between runs; git ignores it. */
export const CACHE = join(ROOT, ".cache");

/** Something that a person has to mend; its message says how. */
export class Problem extends Error {}

const colours = process.stdout.isTTY && process.env["NO_COLOR"] === undefined;
const paint = (/** @type {number} */ code, /** @type {string} */ text) =>
  colours ? `\u001b[${code}m${text}\u001b[0m` : text;
const MARKS = { done: paint(32, "✓"), failed: paint(31, "✗"), running: paint(36, "…") };

/** `3.2 s`, or `2 min 05 s`. */
export function elapsed(/** @type {number} */ since) {
  const seconds = (performance.now() - since) / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${String(Math.floor(seconds % 60)).padStart(2, "0")} s`;
}

/** Prints the line of a step. */
export function report(
  /** @type {keyof typeof MARKS} */ mark,
  /** @type {string} */ name,
  /** @type {string} */ text = "",
) {
  console.log(`${MARKS[mark]} ${name.padEnd(22)} ${text}`.trimEnd());
}

/**
 * Runs a command to its end, with its output in `.cache/logs/NAME.log`.
 *
 * @param {string} name
 * @param {readonly string[]} command
 * @param {{ env?: Record<string, string>, append?: boolean }} [options]
 * @returns {Promise<{ code: number, log: string, missing: boolean }>} `missing` when there is no such program
 */
export function logged(name, command, { env = {}, append = false } = {}) {
  const log = join(CACHE, "logs", `${name.replaceAll(/[^a-zA-Z0-9]+/g, "-")}.log`);
  mkdirSync(dirname(log), { recursive: true });
  const [program, ...args] = command;
  if (program === undefined) throw new Error("a command has a program");
  return new Promise((resolve) => {
    const file = createWriteStream(log, { flags: append ? "a" : "w" });
    file.write(`$ ${command.join(" ")}\n`);
    const windows = process.platform === "win32";
    const child = spawn(program, args, { cwd: ROOT, env: { ...process.env, NO_COLOR: "1", ...env }, shell: windows });
    child.stdout.pipe(file, { end: false });
    child.stderr.pipe(file, { end: false });
    let missing = false;
    child.on("error", (error) => {
      missing = true;
      file.write(`${error.message}\n`);
    });
    child.on("close", (code) => file.end(() => resolve({ code: missing ? 127 : (code ?? 1), log, missing })));
  });
}

/** Lines that say only that something goes on. */
const NOISE = /^\s+(Compiling|Checking|Downloading|Downloaded|Running|Doc-tests) /;

/** The last lines of a log that say something, indented. */
export function tail(/** @type {string} */ log, lines = 40) {
  const all = readFileSync(log, "utf8")
    .trimEnd()
    .split("\n")
    .filter((line) => !NOISE.test(line));
  const shown = all.slice(-lines).map((line) => `    ${line}`);
  return [`    (${relative(ROOT, log)})`, ...shown].join("\n");
}
