/**
 * The kind `transforms`: functions of one operator under `func.vjp`, `func.jvp` and `func.vmap`, and what PyTorch's `torch.func` gives.
 * The folder has what `tests/oracle/gen_transforms.py` recorded, and the folder `gradients` beside it the calls, with their gradients.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { func, init, NotImplementedError, readSafetensors, Tensor, torch } from "tracefx";
import { difference } from "./compare.mjs";
import { decode } from "./values.mjs";

/** @typedef {import("./engine.mjs").Result} Result */
/** @typedef {Map<string, Tensor>} Tensors */
/** @typedef {{ op: string, args: any[], kwargs: Record<string, any>, grads: any[], result: any[] }} Call */
/** @typedef {{ call: [file: "cases" | "more", line: number], op: string, jvp?: any[], vmap?: any[] }} Case */

/**
 * A call as a function of what it is differentiated by: with others in its place, the tensors themselves, the gradient of each, and what the
 * results are multiplied with, or null for those without gradients.
 * @typedef {{ call: (leaves: readonly unknown[]) => unknown, primals: Tensor[], gradients: Tensor[], cotangents: (Tensor | null)[] }} Given
 */

/** The transforms in the order in which they are told. */
const TRANSFORMS = /** @type {const} */ (["vjp", "jvp", "vmap"]);

/** How near numbers are: `jvp` needs second derivatives here, which lose digits that PyTorch keeps by going forward once. */
const NEAR = { rtol: 1e-5, atol: 1e-7 };

/**
 * What differs, by transform and operator, and why. A run of all cases fails on an entry that none of them needs.
 * @type {Record<string, string>}
 */
const DIFFERENT = JSON.parse(readFileSync(new URL("transforms.json", import.meta.url), "utf8"));

/**
 * @param {string} dir
 * @param {string | undefined} only
 * @returns {AsyncGenerator<Result>}
 */
export async function* transformCases(dir, only) {
  await init();
  const unmet = new Set(Object.keys(DIFFERENT));
  for (const { transform, op, run } of recordedTransforms(dir)) {
    if (only !== undefined && !op.includes(only)) continue;
    const result = run();
    if (result.status === "differs") unmet.delete(`${transform} ${op}`);
    yield result;
  }
  if (only !== undefined) return;
  for (const name of unmet) yield { name, status: "failed", detail: "is listed as a difference and does not differ" };
}

/**
 * The recorded transforms of calls, each of which runs when it is asked to.
 * @param {string} dir
 * @returns {Generator<{ transform: (typeof TRANSFORMS)[number], op: string, run: () => Result }>}
 */
export function* recordedTransforms(dir) {
  const recorded = tensorsOf(join(dir, "cases.safetensors"));
  const calls = new Map(["cases", "more"].map((it) => [it, callsOf(join(dir, "..", "gradients"), it)]));
  for (const line of readFileSync(join(dir, "cases.jsonl"), "utf8").trimEnd().split("\n")) {
    const it = /** @type {Case} */ (JSON.parse(line));
    const { lines, tensors } = /** @type {ReturnType<typeof callsOf>} */ (calls.get(it.call[0]));
    const call = /** @type {Call} */ (lines[it.call[1] - 1]);
    for (const transform of TRANSFORMS) {
      // What PyTorch refuses is not recorded.
      if (transform !== "vjp" && it[transform] === undefined) continue;
      yield { transform, op: it.op, run: () => transformCase(transform, it, call, tensors, recorded) };
    }
  }
}

/**
 * What comes of one transform of one call.
 * @param {(typeof TRANSFORMS)[number]} transform
 * @param {Case} recorded
 * @param {Call} call
 * @param {Tensors} tensors Of the calls.
 * @param {Tensors} results Of what was recorded of them.
 * @returns {Result}
 */
function transformCase(transform, recorded, call, tensors, results) {
  const name = `${transform} ${recorded.op}:${recorded.call.join(":")}`;
  const reason = DIFFERENT[`${transform} ${recorded.op}`];
  try {
    const problem = WAYS[transform](givenOf(call, tensors), recorded, results);
    if (problem === undefined) return { name, status: "passed" };
    return reason === undefined
      ? { name, status: "failed", detail: problem }
      : { name, status: "differs", detail: reason };
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    if (error instanceof NotImplementedError) return { name, status: "skipped", detail };
    return { name, status: reason === undefined ? "failed" : "differs", detail: reason ?? detail };
  }
}

/** @type {Record<(typeof TRANSFORMS)[number], (given: Given, it: Case, results: Tensors) => string | undefined>} */
const WAYS = {
  vjp({ call, primals, gradients, cotangents }) {
    const isWanted = cotangents.map((it) => it !== null);
    const f = (/** @type {unknown[]} */ ...leaves) => chosen(call(leaves), isWanted);
    const [outputs, pullBack] = func.vjp(f, primals);
    const given = cotangents.filter((it) => it !== null);
    if (/** @type {unknown[]} */ (outputs).length !== given.length) return "another number of results";
    return firstDifference(pullBack(given), gradients);
  },
  jvp(given, { jvp = [] }, results) {
    const { primals } = given;
    const [, changes] = func.jvp(functionOf(given, isFloat), primals, primals.map(changeOf));
    return firstDifference(
      /** @type {Tensor[]} */ (changes),
      jvp.map((it) => valueOf(it, results)),
    );
  },
  vmap(given, { vmap = [] }, results) {
    const f = functionOf(given, isTensor);
    const pairs = given.primals.map((it) => torch.stack([it, torch.mul(it, 0.5)]));
    return firstDifference(
      /** @type {Tensor[]} */ (func.vmap(f)(...pairs)),
      vmap.map((it) => valueOf(it, results)),
    );
  },
};

/** A call as a function of the tensors that it is differentiated by. @type {(call: Call, tensors: Tensors) => Given} */
function givenOf({ op, args, kwargs, grads, result }, tensors) {
  /** @type {Map<unknown, number>} */
  const places = new Map();
  /** @type {Tensor[]} */
  const gradients = [];
  const open = (/** @type {unknown} */ value, /** @type {unknown} */ gradient) => {
    if (Array.isArray(value)) {
      for (const [at, it] of value.entries()) open(it, Array.isArray(gradient) ? gradient[at] : null);
    } else if (value instanceof Tensor && gradient instanceof Tensor) {
      places.set(value, gradients.push(gradient) - 1);
    }
  };
  const positional = args.map((it) => valueOf(it, tensors));
  for (const [at, it] of positional.entries()) open(it, valueOf(result[at], tensors));
  const named = Object.entries(kwargs).map(([key, it]) => [key, valueOf(it, tensors)]);
  const last = named.length === 0 ? [] : [Object.fromEntries(named)];
  const operator = operatorOf(op);
  const call = (/** @type {readonly unknown[]} */ leaves) =>
    operator(...positional.map((it) => filled(it, places, leaves)), ...last);
  const cotangents = flat(grads.map((it) => valueOf(it, tensors)));
  const primals = /** @type {Tensor[]} */ ([...places.keys()]);
  return { call, primals, gradients, cotangents: /** @type {(Tensor | null)[]} */ (cotangents) };
}

/**
 * An argument with these in the places of primals.
 * @type {(value: unknown, places: ReadonlyMap<unknown, number>, leaves: readonly unknown[]) => unknown}
 */
function filled(value, places, leaves) {
  if (Array.isArray(value)) return value.map((it) => filled(it, places, leaves));
  const place = places.get(value);
  return place === undefined ? value : leaves[place];
}

/** @type {(it: unknown) => boolean} */
function isTensor(it) {
  return it instanceof Tensor;
}

/** @type {(it: unknown) => boolean} */
function isFloat(it) {
  return it instanceof Tensor && (it.isFloatingPoint() || it.isComplex());
}

/**
 * The results of a call that are wanted. A function that is traced must not ask what they are, so that they are looked at before.
 * @type {(given: Given, isWanted: (it: unknown) => boolean) => (...leaves: unknown[]) => unknown[]}
 */
function functionOf({ call, primals }, isWanted) {
  const known = flat([call(primals)]).map(isWanted);
  return (...leaves) => chosen(call(leaves), known);
}

/** @type {(value: unknown, isWanted: readonly boolean[]) => unknown[]} */
function chosen(value, isWanted) {
  return flat([value]).filter((_, at) => isWanted[at]);
}

/** @type {(op: string) => (...args: unknown[]) => unknown} */
function operatorOf(op) {
  const [namespace = "", name = "", overload = ""] = op.split(".");
  return /** @type {any} */ (torch.ops)[namespace][name][overload];
}

/** @type {(value: unknown[]) => unknown[]} */
function flat(value) {
  return value.flat(Number.POSITIVE_INFINITY);
}

/** The change of a tensor: numbers from -5/8 to 5/8. @type {(it: Tensor) => Tensor} */
function changeOf(it) {
  const count = it.numel();
  const numbers = torch.tensor(
    Array.from({ length: count }, (_, at) => (((at * 7) % 11) - 5) / 8),
    { dtype: "float64" },
  );
  const whole = it.isComplex() ? torch.complex(numbers, numbers) : numbers;
  return whole.reshape(it.shape).to(it.dtype);
}

/** @type {(got: readonly unknown[], want: readonly unknown[]) => string | undefined} */
function firstDifference(got, want) {
  if (got.length !== want.length) return `${got.length} tensors instead of ${want.length}`;
  for (const [at, it] of want.entries()) {
    const problem = difference(got[at], it, NEAR);
    if (problem !== undefined) return `${at}: ${problem}`;
  }
  return undefined;
}

/** A recorded value; tensors are stored flat, complex ones as pairs. @type {(it: any, tensors: Tensors) => unknown} */
function valueOf(it, tensors) {
  if (it === undefined) return null;
  if (Array.isArray(it)) return it.map((item) => valueOf(item, tensors));
  if (it?.tensor === undefined) return decode(it, tensors);
  const stored = tensors.get(it.tensor);
  if (stored === undefined) throw new Error(`there is no tensor ${it.tensor}`);
  const data = it.dtype.startsWith("complex") ? torch.viewAsComplex(stored.reshape([-1, 2])) : stored;
  return it.stride === undefined ? data.reshape(it.size) : torch.asStrided(data, it.size, it.stride, 0);
}

/** @type {(file: string) => Tensors} */
function tensorsOf(file) {
  return /** @type {Tensors} */ (readSafetensors(readFileSync(file)).tensors);
}

/** @type {(dir: string, name: string) => { lines: Call[], tensors: Tensors }} */
function callsOf(dir, name) {
  const lines = readFileSync(join(dir, `${name}.jsonl`), "utf8")
    .trimEnd()
    .split("\n");
  return { lines: lines.map((it) => JSON.parse(it)), tensors: tensorsOf(join(dir, `${name}.safetensors`)) };
}
