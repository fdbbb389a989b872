/**
 * Runs a program that times itself, and watches its memory.
 *
 * @module
 */
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";

/**
 * What a program printed, and the most memory that it had, in bytes, where the system tells.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {NodeJS.ProcessEnv} [env]
 * @returns {Promise<{ printed: string, memory: number | undefined }>}
 */
export async function watched(command, args, env = {}) {
  const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let [printed, complaints] = ["", ""];
  child.stdout.on("data", (it) => (printed += it));
  child.stderr.on("data", (it) => (complaints += it));
  /** @type {number | undefined} */
  let memory;
  // The system keeps the peak, so that what is read last is enough.
  const timer = setInterval(() => (memory = peakOf(child.pid) ?? memory), 10);
  const code = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  clearInterval(timer);
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} failed: ${complaints.trim().slice(-500)}`);
  return { printed, memory };
}

/** The most memory that a process had, in bytes, where the system tells. */
export function peakOf(/** @type {number | undefined} */ pid) {
  try {
    const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024;
  } catch {
    return undefined;
  }
}
