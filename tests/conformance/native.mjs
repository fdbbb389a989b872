/**
 * The native engine: the command `tracefx session` (its requests are described in `crates/cli/src/session.rs`).
 *
 * @module
 */
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { fxError, init, readSafetensors, writeSafetensors } from "tracefx";
import { bodyFile, OWN_OPERATORS } from "./library.mjs";

const SUFFIX = process.platform === "win32" ? ".exe" : "";
const COMMAND = fileURLToPath(new URL(`../../target/release/tracefx${SUFFIX}`, import.meta.url));

/**
 * @param {string} [device] What plans run on.
 * @returns {Promise<import("./engine.mjs").Engine>}
 */
export async function nativeEngine(device) {
  if (!existsSync(COMMAND)) throw new Error("the native command is not built: run npm start first");
  const child = spawn(COMMAND, ["session"], { stdio: ["pipe", "pipe", "inherit"] });
  const replies = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  // A command that stopped says so where its reply is waited for.
  child.stdin.on("error", () => {});
  const dir = mkdtempSync(join(tmpdir(), "tracefx-"));
  const [data, results] = [join(dir, "data.safetensors"), join(dir, "results.safetensors")];

  /** @type {(string | null)[]} */
  const steps = [];

  const ask = async (/** @type {Record<string, unknown>} */ request) => {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    const { value, done } = await replies.next();
    if (done) throw new Error(`the command stopped at ${JSON.stringify(request)}`);
    const reply = JSON.parse(value);
    if (reply.error === undefined) return reply.ok;
    throw errorOf(reply.error);
  };

  return {
    open: async (file, decompose, resave) => await ask({ do: "open", file, decompose, resave }),
    async define() {
      await init();
      const file = join(dir, "body.fxg");
      for (const operator of OWN_OPERATORS) {
        writeFileSync(file, bodyFile(operator));
        await ask({ do: "define", schema: `${operator.name}${operator.schema}`, file });
      }
    },
    start: async () => await ask({ do: "start", device }),
    steps: () => steps,
    async run(inputs) {
      /** @type {Map<string, import("tracefx").Tensor>} */
      const tensors = new Map();
      const values = inputs.map((it, at) => {
        if (it.kind === "tensor") {
          tensors.set(`in${at}`, it.value);
          return { tensor: `in${at}` };
        }
        if (it.kind === "int" || it.kind === "float") return { [it.kind]: String(it.value) };
        return it.value;
      });
      writeFileSync(data, writeSafetensors(tensors));
      const { outputs, steps: placed } = await ask({ do: "run", data, inputs: values, results });
      steps.push(...(placed ?? []));
      const { tensors: found } = readSafetensors(readFileSync(results));
      return {
        outputs: outputs.map((/** @type {Record<string, unknown>} */ it) => outputOf(it, found)),
        inputs: inputs.map((_, at) => found.get(`input.${at}`)),
      };
    },
    async call(calls, tensors) {
      writeFileSync(data, writeSafetensors(tensors));
      const answers = await ask({ do: "call", data, calls, results });
      const { tensors: found } = readSafetensors(readFileSync(results));
      return answers.map((/** @type {Record<string, any>} */ it) => ({
        ...it,
        ...(it.error === undefined ? {} : { error: errorOf(it.error) }),
        ...(it.results === undefined ? {} : { results: it.results.map((result) => withTensors(result, found)) }),
      }));
    },
    async state(names) {
      await ask({ do: "state", names, results });
      return readSafetensors(readFileSync(results)).tensors;
    },
    async close() {
      child.stdin.end();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** @param {Record<string, any>} problem */
export function errorOf({ name, message, node, op, notes, help }) {
  const details = Object.entries({ node, op, notes, help }).filter(([, it]) => it !== null);
  return fxError(name, message, Object.fromEntries(details));
}

/**
 * A result with its tensors in place.
 * @param {any} value
 * @param {Map<string, import("tracefx").Tensor>} tensors
 * @returns {any}
 */
function withTensors(value, tensors) {
  if (Array.isArray(value)) return value.map((it) => withTensors(it, tensors));
  return value?.tensor === undefined ? value : { ...value, tensor: tensors.get(value.tensor) };
}

/**
 * @param {any} value
 * @param {Map<string, import("tracefx").Tensor>} tensors
 * @returns {import("./engine.mjs").Output}
 */
function outputOf(value, tensors) {
  if (typeof value !== "object" || value === null) return value;
  if ("tensor" in value) return tensors.get(value.tensor) ?? null;
  if ("float" in value) return Number(value.float.replace("inf", "Infinity"));
  return typeof value.int === "string" ? BigInt(value.int) : value.int;
}
