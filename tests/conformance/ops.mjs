/**
 * The kind `ops`: operators as PyTorch's own operator tests call them. Each case runs twice, the second time on copies of
 * its inputs that lie differently in memory, and each time without data too: what is known of the results must be true.
 *
 * @module
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { init, NotImplementedError, readSafetensors, Tensor } from "tracefx";
import { difference } from "./compare.mjs";
import { gathered, restrided } from "./strides.mjs";

/** @typedef {import("./engine.mjs").Engine} Engine */
/** @typedef {import("./engine.mjs").Answer} Answer */
/** @typedef {import("./engine.mjs").Result} Result */
/** @typedef {Map<string, Tensor>} Tensors */
/** @typedef {{ tensor: string, dtype: string, size: number[], stride?: number[] }} RecordedTensor */

/**
 * A recorded case.
 * @typedef {{ op: string, args: any[], kwargs: Record<string, any>, result?: any, error?: unknown, seed?: number }} Case
 */

/**
 * Which cases differ on purpose, and what of which operators is not compared: `byStrides`, operators that ask for strides, so
 * that another layout of the same elements may have another result or none; `freeSigns`, operators whose results are free
 * up to the signs of vectors; `freeStrides`, operators whose results lie in memory in another way than PyTorch's, by the reason
 * for it.
 */
const EXCEPTIONS = JSON.parse(readFileSync(new URL("ops.json", import.meta.url), "utf8"));

const FREE_STRIDES = new Set(Object.values(EXCEPTIONS.freeStrides).flat());

/** The copies of a case's inputs. */
const WAYS = ["as recorded", "re-strided"];

/**
 * @param {string} dir
 * @param {string | undefined} only
 * @param {Engine} engine
 * @returns {AsyncGenerator<Result>}
 */
export async function* opCases(dir, only, engine) {
  await init();
  for (const file of readdirSync(dir).toSorted()) {
    const overload = file.replace(/\.jsonl$/, "");
    if (overload === file || (only !== undefined && !overload.includes(only))) continue;
    const data = join(dir, `${overload}.safetensors`);
    const tensors = existsSync(data) ? readSafetensors(readFileSync(data)).tensors : new Map();
    const lines = readFileSync(join(dir, file), "utf8").split("\n");
    /** @type {Case[]} */
    const cases = lines.filter((it) => it !== "").map((it) => JSON.parse(it));
    yield* casesOf(overload, cases, tensors, engine);
  }
}

/** @type {(overload: string, cases: Case[], tensors: Tensors, engine: Engine) => AsyncGenerator<Result>} */
async function* casesOf(overload, cases, tensors, engine) {
  const all = new Map(tensors);
  const copy = (/** @type {RecordedTensor} */ it) => {
    const tensor = tensors.get(it.tensor);
    if (tensor === undefined) throw new Error(`the data of ${overload} has no tensor ${it.tensor}`);
    const { flat, ...view } = restrided(tensor, it);
    all.set(`${it.tensor}.restrided`, flat);
    return { tensor: `${it.tensor}.restrided`, dtype: it.dtype, ...view };
  };
  const runs = cases.flatMap((it, at) => {
    // Numbers are drawn in the order of memory.
    const keepsStrides = it.seed !== undefined || EXCEPTIONS.byStrides.includes(it.op);
    return WAYS.slice(0, keepsStrides ? 1 : 2).map((way) => {
      const change = (/** @type {unknown} */ value) => (way === WAYS[0] ? value : mapTensors(value, copy));
      const kwargs = Object.entries(it.kwargs).map(([key, value]) => [key, change(value)]);
      return {
        at,
        way,
        call: { op: it.op, args: it.args.map(change), kwargs: Object.fromEntries(kwargs), seed: it.seed },
      };
    });
  });
  const answers = await engine.call(
    runs.map((it) => it.call),
    all,
  );
  /** @type {Map<number, Result>} */
  const results = new Map();
  for (const [index, { at, way }] of runs.entries()) {
    const result = { name: `${overload}:${at + 1}`, ...verdict(cases[at], answers[index], way === WAYS[0], tensors) };
    if (way !== WAYS[0] && result.detail !== undefined) result.detail = `${way}: ${result.detail}`;
    // One case is one result: that of the first way in which it did not pass.
    if (results.get(at)?.status !== undefined && results.get(at)?.status !== "passed") continue;
    results.set(at, result);
  }
  yield* results.values();
}

/**
 * What came of one run.
 * @param {Case} recorded
 * @param {Answer} answer
 * @param {boolean} hasStrides Whether the inputs lay in memory as they lay when this was recorded.
 * @param {Tensors} tensors
 * @returns {Pick<Result, "status" | "detail">}
 */
function verdict(recorded, answer, hasStrides, tensors) {
  const { op, args } = recorded;
  const [, , reason] =
    EXCEPTIONS.different.find((/** @type {string[]} */ it) => it[0] === op && it[1] === args[0]?.tensor) ?? [];
  if (reason !== undefined) return { status: "differs", detail: reason };
  const { results, error } = answer;
  if (error instanceof NotImplementedError) return { status: "skipped", detail: error.message };
  const expected = recorded.error ?? undefined;
  if (error !== undefined || results === undefined) {
    const isRefusal = expected !== undefined && error?.code !== "FX0902";
    return isRefusal ? { status: "passed" } : { status: "failed", detail: String(error) };
  }
  if (expected !== undefined) {
    return { status: "failed", detail: `PyTorch refuses this: ${JSON.stringify(expected)}` };
  }
  const found = results.length === 1 ? results[0] : results;
  const compared = {
    values: !answer.drew || recorded.seed !== undefined,
    magnitudes: EXCEPTIONS.freeSigns.includes(op),
    strides: hasStrides && !FREE_STRIDES.has(op),
    tensors,
  };
  const detail =
    valueDifference(found, recorded.result, compared, "result") ?? brokenPromise(answer.promised, results, new Map());
  return detail === undefined ? { status: "passed" } : { status: "failed", detail };
}

/**
 * @typedef {{ values: boolean, magnitudes: boolean, strides: boolean, tensors: Tensors }} Compared
 * @type {(got: any, want: any, how: Compared, at: string) => string | undefined}
 */
function valueDifference(got, want, how, at) {
  if (Array.isArray(want)) {
    if (!Array.isArray(got) || got.length !== want.length) return `${at}: not ${want.length} values`;
    return firstOf(want, (it, index) => valueDifference(got[index], it, how, `${at}[${index}]`));
  }
  if (want?.tensor !== undefined) return tensorDifference(got, want, how, at);
  const kinds = [got, want].map((it) => (it !== null && typeof it === "object" ? Object.keys(it)[0] : typeof it));
  if (kinds[0] !== kinds[1]) return `${at}: ${JSON.stringify(got)} instead of ${JSON.stringify(want)}`;
  const [a, b] = [got, want].map(plain);
  const [rtol, atol] = got?.tolerance ?? [0, 0];
  const problem = difference(a, b, { rtol, atol });
  return problem === undefined ? undefined : `${at}: ${problem}`;
}

/** A number without its kind. */
function plain(/** @type {any} */ value) {
  if (value === null || typeof value !== "object") return value;
  if ("int" in value) return BigInt(value.int);
  if ("float" in value) return Number(String(value.float).replace("inf", "Infinity"));
  return Object.values(value)[0];
}

/** @type {(got: any, want: RecordedTensor, how: Compared, at: string) => string | undefined} */
function tensorDifference(got, want, how, at) {
  if (!(got?.tensor instanceof Tensor)) return `${at}: ${JSON.stringify(got)} instead of a tensor`;
  const recorded = how.tensors.get(want.tensor);
  if (recorded === undefined) return `${at}: nothing is recorded under ${want.tensor}`;
  const wanted = want.stride === undefined ? recorded : gathered(recorded, { size: want.size, stride: want.stride });
  if (got.dtype !== want.dtype || String(got.size) !== String(want.size)) {
    return `${at}: ${got.dtype}[${got.size}] instead of ${want.dtype}[${want.size}]`;
  }
  if (how.strides && !haveSameStrides(got, want)) {
    return `${at}: strides [${got.stride}] instead of [${want.stride ?? "of a contiguous tensor"}]`;
  }
  if (!how.values) return undefined;
  const [rtol, atol] = got.tolerance;
  const pair = how.magnitudes ? [got.tensor, wanted].map((it) => it.abs()) : [got.tensor, wanted];
  const problem = difference(pair[0], pair[1], { rtol, atol });
  return problem === undefined ? undefined : `${at}: ${problem}`;
}

/** Whether the strides are those that were recorded, where there is more than one element to step over. */
function haveSameStrides(
  /** @type {{ size: number[], stride: number[] }} */ got,
  /** @type {{ size: number[], stride?: number[] }} */ want,
) {
  const count = got.size.reduce((a, b) => a * b, 1);
  const span = got.size.reduce((sum, size, dim) => sum + (size - 1) * (got.stride[dim] ?? 0), 1);
  // Without strides the result was contiguous, or too sparse to be recorded with its gaps.
  if (count === 0 || (want.stride === undefined && span > 4 * count)) return true;
  let expected = 1;
  for (let dim = got.size.length - 1; dim >= 0; dim--) {
    const size = got.size[dim] ?? 1;
    if (size !== 1 && got.stride[dim] !== (want.stride?.[dim] ?? expected)) return false;
    expected *= size;
  }
  return true;
}

/**
 * Where results are not what was known of them without data; sizes that only the data tells are strings, each of which
 * stands for one number.
 * @type {(promised: any, results: any, found: Map<string, number>) => string | undefined}
 */
function brokenPromise(promised, results, found) {
  if (promised?.error !== undefined) {
    if (promised.error.code === "FX0401") return undefined;
    return `without data it is refused: ${promised.error.message}`;
  }
  const isEqual = (/** @type {unknown} */ dim, /** @type {number} */ got) => {
    if (typeof dim !== "string" || !/^[a-z]+\d+$/.test(dim)) return typeof dim === "string" || dim === got;
    if (!found.has(dim)) found.set(dim, got);
    return found.get(dim) === got;
  };
  const agrees = (/** @type {any} */ promise, /** @type {any} */ got) => {
    if (Array.isArray(got)) {
      return Array.isArray(promise) && promise.length === got.length && got.every((it, at) => agrees(promise[at], it));
    }
    if (got === null || typeof got !== "object" || "float" in got) return (promise === null) === (got === null);
    if ("int" in got) return isEqual(promise.int, got.int);
    const steps = (/** @type {number} */ size) => size > 1 && !got.size.includes(0);
    return (
      promise.dtype === got.dtype &&
      promise.size?.length === got.size?.length &&
      (got.size ?? []).every(
        (/** @type {number} */ size, /** @type {number} */ dim) =>
          isEqual(promise.size[dim], size) && (!steps(size) || isEqual(promise.stride[dim], got.stride[dim])),
      )
    );
  };
  if (agrees(promised, results)) return undefined;
  return `without data it is ${shown(promised)}, and it is ${shown(results)}`;
}

/** A value without the data of its tensors. */
function shown(/** @type {unknown} */ value) {
  return JSON.stringify(value, (_, it) => (it instanceof Tensor ? "" : it));
}

/** A value with its tensors replaced. @type {(value: any, map: (it: any) => unknown) => unknown} */
function mapTensors(value, map) {
  if (Array.isArray(value)) return value.map((it) => mapTensors(it, map));
  return value?.tensor === undefined ? value : map(value);
}

/** @template T, R @type {(items: T[], map: (it: T, at: number) => R | undefined) => R | undefined} */
function firstOf(items, map) {
  for (const [at, it] of items.entries()) {
    const found = map(it, at);
    if (found !== undefined) return found;
  }
  return undefined;
}
