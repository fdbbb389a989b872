/**
 * The kind `programs`: folders with `model.pt2`, inputs and what PyTorch answers.
 *
 * @module
 */
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { FxError, NotImplementedError, readSafetensors, Tensor } from "tracefx";
import { difference, EXACT, largestDifference } from "./compare.mjs";

/** @typedef {import("./engine.mjs").Engine} Engine */
/** @typedef {import("./engine.mjs").Input} Input */
/** @typedef {{ kind: string, value?: unknown, name?: string }} Leaf */
/** @typedef {{ inputs: Leaf[], outputs: Leaf[], mutated?: string[] }} Case */

/** A difference from what was recorded. */
class Difference extends Error {}

/**
 * @param {string} dir
 * @param {string | undefined} only
 * @param {Engine} engine
 * @param {import("./engine.mjs").Way} way With `decompose`, what PyTorch made of the programs is left out.
 * @returns {AsyncGenerator<import("./engine.mjs").Result>}
 */
export async function* programCases(dir, only, engine, way) {
  const { decompose, resaveTo } = way;
  await engine.define();
  for (const name of readdirSync(dir).toSorted()) {
    const folder = join(dir, name);
    if (!existsSync(join(folder, "model.pt2")) || (only !== undefined && !name.includes(only))) continue;
    if (decompose && name.endsWith("__core")) continue;
    try {
      if (resaveTo !== undefined) mkdirSync(join(resaveTo, name), { recursive: true });
      const kept = resaveTo === undefined ? way : { ...way, resaveTo: join(resaveTo, name) };
      yield { name, status: "passed", largest: await runProgram(folder, engine, kept) };
    } catch (error) {
      const status = error instanceof NotImplementedError ? "skipped" : "failed";
      yield { name, status, detail: error instanceof Error ? error.message : String(error) };
    }
  }
}

/** Gives how far floats of outputs lie at most from those recorded. */
async function runProgram(
  /** @type {string} */ folder,
  /** @type {Engine} */ engine,
  /** @type {import("./engine.mjs").Way} */ { decompose, resave, resaveTo },
) {
  const meta = { ...tensorsAlone(folder), ...JSON.parse(readFileSync(join(folder, "meta.json"), "utf8")) };
  const file = join(folder, "model.pt2");
  const before = resave ? (await engine.open(file, decompose, false)).graph : undefined;
  const again = resaveTo === undefined ? resave : join(resaveTo, "model.pt2");
  const { graph, operators, outputs } = await engine.open(file, decompose, again);
  if (before !== undefined) checkText(graph, before);
  const graphFile = join(folder, "graph.txt");
  const recordedGraph = existsSync(graphFile) ? readFileSync(graphFile, "utf8") : undefined;
  if (decompose) checkOperators(operators, folder, meta);
  else if (recordedGraph?.startsWith("graph():")) checkText(graph, recordedGraph);
  /** @type {Case[]} */
  const cases = meta.cases;
  let largest = 0;
  for (const [at, recorded] of cases.entries()) {
    if (at === 0 || !meta.sequence) await engine.start();
    largest = Math.max(largest, await runCase(folder, at, recorded, meta.tolerance_per_output, outputs, engine));
  }
  for (const [at, reject] of (meta.rejects ?? []).entries()) {
    if (reject.torch_says === null) continue;
    await engine.start();
    await checkRefused(folder, at, reject, engine);
  }
  return largest;
}

/** The one case of a program that was recorded with its tensors and no more. */
function tensorsAlone(/** @type {string} */ folder) {
  const leaves = (/** @type {string} */ file, /** @type {RegExp} */ name) =>
    [...readTensors(join(folder, file)).keys()].filter((it) => name.test(it)).map(() => ({ kind: "tensor" }));
  const [inputs, outputs] = [leaves("inputs.safetensors", /^in\d/), leaves("expected.safetensors", /^out\d/)];
  return { cases: [{ inputs, outputs }], tolerance_per_output: outputs.map(() => ({ rtol: 1e-5, atol: 1e-5 })) };
}

/**
 * @param {string} folder
 * @param {number} at
 * @param {Case} recorded
 * @param {({ rtol: number, atol: number } | null)[]} tolerances
 * @param {import("./engine.mjs").OutputSpec[]} specs
 * @param {Engine} engine
 */
async function runCase(folder, at, recorded, tolerances, specs, engine) {
  const suffix = at === 0 ? "" : `_${at}`;
  const expected = readTensors(join(folder, `expected${suffix}.safetensors`));
  const given = inputsOf(recorded.inputs, readTensors(join(folder, `inputs${suffix}.safetensors`)));
  const { outputs, inputs } = await engine.run(given);
  const place = `case ${at}`;
  const user = outputs.filter((_, i) => specs[i]?.kind === "USER_OUTPUT" || specs[i]?.kind === "LOSS_OUTPUT");
  if (outputs.length !== specs.length || user.length !== recorded.outputs.length) {
    throw new Difference(`${place}: ${user.length} outputs instead of ${recorded.outputs.length}`);
  }
  let largest = 0;
  recorded.outputs.forEach((leaf, i) => {
    const want = leaf.kind === "tensor" ? expected.get(`out${i}`) : plain(leaf);
    const got = user[i];
    check(`${place}, output ${i}`, got, want, tolerances[i] ?? EXACT);
    if (tolerances[i] && got instanceof Tensor && want instanceof Tensor && !want.dtype.startsWith("complex"))
      largest = Math.max(largest, largestDifference(got, want));
  });
  const names = [...expected.keys()].filter((it) => /^(buffer|param)\./.test(it));
  const state = names.length > 0 ? await engine.state(names.map((it) => it.replace(/^\w+\./, ""))) : new Map();
  const loosest = tolerances.find((it) => it !== null) ?? EXACT;
  for (const [key, want] of expected) {
    const [group = "", ...rest] = key.split(".");
    const name = rest.join(".");
    if (group === "input") check(`${place}, ${key} afterwards`, inputs[Number(name)], want, loosest);
    if (group === "buffer" || group === "param") check(`${place}, ${key} afterwards`, state.get(name), want, loosest);
  }
  const gradients = readTensors(join(folder, "grads.safetensors"));
  for (const [name, want] of gradients) {
    const index = specs.findIndex((it) => it.kind.startsWith("GRADIENT") && it.target === name);
    check(`${place}, gradient of ${name}`, outputs[index], want, loosest);
  }
  return largest;
}

async function checkRefused(
  /** @type {string} */ folder,
  /** @type {number} */ at,
  /** @type {{ why: string, inputs: Leaf[] }} */ reject,
  /** @type {Engine} */ engine,
) {
  const given = inputsOf(reject.inputs, readTensors(join(folder, `reject_${at}.safetensors`)));
  try {
    await engine.run(given);
  } catch (error) {
    if (error instanceof FxError && !(error instanceof NotImplementedError) && error.kind !== "Internal") return;
    throw error;
  }
  throw new Difference(`inputs that PyTorch refuses were accepted: ${reject.why}`);
}

/** @returns {Input[]} */
function inputsOf(/** @type {Leaf[]} */ leaves, /** @type {Map<string, import("tracefx").Tensor>} */ tensors) {
  return leaves.map((leaf, at) => {
    if (leaf.kind !== "tensor") return /** @type {Input} */ ({ kind: leaf.kind, value: plain(leaf) });
    const value = tensors.get(`in${at}`);
    if (value === undefined) throw new Error(`the recorded data has no in${at}`);
    return { kind: "tensor", value };
  });
}

/** The value of a leaf; floats that JSON does not have are strings. */
function plain(/** @type {Leaf} */ leaf) {
  if (leaf.kind === "none") return null;
  if (leaf.kind !== "float" || typeof leaf.value === "number") return leaf.value;
  return Number(String(leaf.value).replace("inf", "Infinity"));
}

function check(
  /** @type {string} */ place,
  /** @type {unknown} */ got,
  /** @type {unknown} */ want,
  /** @type {{ rtol: number, atol: number }} */ tolerance,
) {
  const found = difference(got, want, tolerance);
  if (found !== undefined) throw new Difference(`${place}: ${found}`);
}

function checkText(/** @type {string} */ got, /** @type {string} */ want) {
  const [a, b] = [got.trimEnd().split("\n"), want.trimEnd().split("\n")];
  const at = b.findIndex((line, i) => line !== a[i]);
  if (at >= 0)
    throw new Difference(`the printed graph differs at line ${at + 1}:\n  ${a[at]}\n  instead of\n  ${b[at]}`);
  if (a.length !== b.length) throw new Difference(`the printed graph has ${a.length} lines instead of ${b.length}`);
}

/** What PyTorch decomposes by default, from `tests/oracle/gen_decompositions.py`. */
const TAKEN_APART = new Set(
  readFileSync(fileURLToPath(new URL("../fixtures/decompositions/default.txt", import.meta.url)), "utf8").split("\n"),
);

/**
 * No operator may be left that PyTorch's table decomposes, unless PyTorch itself left it in this program. So what is left
 * are core operators, and those that PyTorch has no decomposition of.
 */
function checkOperators(
  /** @type {string[]} */ operators,
  /** @type {string} */ folder,
  /** @type {{ ops_core?: Record<string, number> }} */ meta,
) {
  const core = join(`${folder}__core`, "meta.json");
  const byPyTorch = existsSync(core) ? JSON.parse(readFileSync(core, "utf8")).ops : (meta.ops_core ?? {});
  const names = operators.map((it) => it.replace(/^torch\.ops\./, ""));
  const left = names.find((it) => TAKEN_APART.has(it) && !(it in byPyTorch));
  if (left !== undefined) throw new Difference(`PyTorch takes ${left} apart, and it is left`);
  const python = names.find((it) => it.startsWith("torch._functorch.") && !(it in byPyTorch));
  if (python !== undefined) throw new Difference(`${python} is left`);
}

/** The tensors of a file by name; none where it is not there. */
export function readTensors(/** @type {string} */ file) {
  return existsSync(file) ? readSafetensors(readFileSync(file)).tensors : new Map();
}
