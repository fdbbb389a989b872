/**
 * The kind `modules`: modules of torch.nn as PyTorch's own tests call them. Each is made, takes its recorded state by name,
 * and is called three times: by itself, traced, and as a leaf of a module that is traced.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { init, Module, nn, NotImplementedError, readSafetensors, symbolicTrace, Tensor, TraceError } from "tracefx";
import { difference, EXACT } from "./compare.mjs";
import { decode } from "./values.mjs";

/** @typedef {import("./engine.mjs").Result} Result */
/** @typedef {import("./compare.mjs").Tolerance} Tolerance */
/** @typedef {Map<string, Tensor>} Tensors */

/**
 * A recorded case.
 * @typedef {object} Case
 * @property {string} module
 * @property {unknown[]} args
 * @property {Record<string, unknown>} kwargs
 * @property {boolean} training
 * @property {Record<string, unknown>} state
 * @property {unknown[]} inputs
 * @property {Record<string, unknown>} input_kwargs
 * @property {unknown} output
 * @property {Record<string, unknown>} [state_after]
 */

/** @typedef {{ positional: unknown[], named: Record<string, unknown> }} Call */

/** Modules whose path depends on their input, which neither PyTorch nor tracefx traces by themselves. */
const LEAVES = new Set(
  ["RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention", "Transformer", "Softmax2d"]
    .concat(["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"])
    .concat(["CircularPad1d", "CircularPad2d", "CircularPad3d"])
    .concat(["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"])
    .map((name) => `nn.${name}`),
);

/** How PyTorch's own tests compare each dtype of floats. */
const TOLERANCES = /** @type {Record<string, Tolerance>} */ ({
  float16: { rtol: 1e-3, atol: 1e-5 },
  bfloat16: { rtol: 1.6e-2, atol: 1e-5 },
  float32: { rtol: 1.3e-6, atol: 1e-5 },
  float64: { rtol: 1e-7, atol: 1e-7 },
});

/**
 * @param {string} dir
 * @param {string | undefined} only
 * @returns {AsyncGenerator<Result>}
 */
export async function* moduleCases(dir, only) {
  await init();
  const { tensors } = readSafetensors(readFileSync(join(dir, "tensors.safetensors")));
  const counts = /** @type {Map<string, number>} */ (new Map());
  for (const line of readFileSync(join(dir, "cases.jsonl"), "utf8").split("\n")) {
    if (line === "") continue;
    const it = /** @type {Case} */ (JSON.parse(line));
    const at = counts.get(it.module) ?? 0;
    counts.set(it.module, at + 1);
    const name = `${it.module}/${at}`;
    if (only === undefined || name.includes(only)) yield moduleCase(name, it, tensors);
  }
}

/**
 * Checks one case.
 * @type {(name: string, it: Case, tensors: Tensors) => Result}
 */
export function moduleCase(name, it, tensors) {
  try {
    for (const [way, run] of Object.entries(WAYS)) {
      const problem = run(it, tensors);
      if (problem !== undefined) return { name, status: "failed", detail: `${way}: ${problem}` };
    }
    return { name, status: "passed" };
  } catch (error) {
    const status = error instanceof NotImplementedError ? "skipped" : "failed";
    return { name, status, detail: error instanceof Error ? (error.stack ?? error.message) : String(error) };
  }
}

/** @type {Record<string, (it: Case, tensors: Tensors) => string | undefined>} */
const WAYS = {
  called: (it, tensors) => {
    const module = made(it, tensors);
    const { positional, named } = callOf(it, tensors);
    const output = module.call(...positional, ...(Object.keys(named).length === 0 ? [] : [named]));
    return disagreement(it, tensors, module, output);
  },
  traced: (it, tensors) => {
    const module = made(it, tensors);
    let graph;
    try {
      graph = symbolicTrace(module);
    } catch (error) {
      if (error instanceof TraceError && LEAVES.has(it.module)) return undefined;
      throw error;
    }
    if (LEAVES.has(it.module)) return "it can be traced, and is listed as one that cannot";
    const { positional, named } = callOf(it, tensors);
    const placeholders = [...graph.graph.nodes].filter((node) => node.op === "placeholder");
    const values = placeholders.map(({ target }, at) => positional[at] ?? named[camelCase(target)]);
    while (values.at(-1) === undefined) values.pop();
    return disagreement(it, tensors, graph, graph.forward(...values));
  },
  "as a leaf": (it, tensors) => {
    const module = made(it, tensors);
    const { positional, named } = callOf(it, tensors);
    const names = Object.keys(named);
    const Caller = CALLERS[positional.length + names.length];
    if (Caller === undefined) return "it has more inputs than any other";
    const graph = symbolicTrace(new Caller(module, positional.length, names));
    if (![...graph.graph.nodes].some((node) => node.op === "call_module")) return "it is no leaf";
    return disagreement(it, tensors, module, graph.forward(...positional, ...Object.values(named)));
  },
};

/** A module that calls another one with all that it is given. */
class Caller extends Module {
  /** @param {Module} inner @param {number} positional @param {string[]} names */
  constructor(inner, positional, names) {
    super();
    this.inner = inner;
    this.positional = positional;
    this.names = names;
  }

  /** @param {unknown[]} given */
  use(given) {
    const named = Object.fromEntries(this.names.map((name, at) => [name, given[this.positional + at]]));
    return this.inner.call(...given.slice(0, this.positional), ...(this.names.length === 0 ? [] : [named]));
  }
}

/** By the number of inputs, since a trace has one placeholder for each. */
const CALLERS = [
  Caller,
  class extends Caller {
    /** @override @param {unknown} a */
    forward(a) {
      return this.use([a]);
    }
  },
  class extends Caller {
    /** @override @param {unknown} a @param {unknown} b */
    forward(a, b) {
      return this.use([a, b]);
    }
  },
  class extends Caller {
    /** @override @param {unknown} a @param {unknown} b @param {unknown} c */
    forward(a, b, c) {
      return this.use([a, b, c]);
    }
  },
  class extends Caller {
    /** @override @param {unknown} a @param {unknown} b @param {unknown} c @param {unknown} d */
    forward(a, b, c, d) {
      return this.use([a, b, c, d]);
    }
  },
  class extends Caller {
    /** @override @param {unknown} a @param {unknown} b @param {unknown} c @param {unknown} d @param {unknown} e */
    forward(a, b, c, d, e) {
      return this.use([a, b, c, d, e]);
    }
  },
  class extends Caller {
    /** @override @param {unknown} a @param {unknown} b @param {unknown} c @param {unknown} d @param {unknown} e @param {unknown} f */
    forward(a, b, c, d, e, f) {
      return this.use([a, b, c, d, e, f]);
    }
  },
];

/** The module of a case, with its state. @type {(it: Case, tensors: Tensors) => Module} */
function made(it, tensors) {
  const classes = /** @type {Record<string, new (...args: unknown[]) => Module>} */ (/** @type {unknown} */ (nn));
  const Class = classes[it.module.replace(/^nn\./, "")];
  if (Class === undefined) throw new Error(`there is no ${it.module}`);
  const args = it.args.map((arg) => decode(arg, tensors));
  const module = new Class(...args, options(it.kwargs, tensors));
  // PyTorch's tests convert each module to the dtype that they test; the recorded state has that dtype.
  module.loadStateDict(
    options(it.state, tensors, (name) => name),
    { assign: true },
  );
  return module.train(it.training);
}

/** What a case is called with. @type {(it: Case, tensors: Tensors) => Call} */
function callOf(it, tensors) {
  const positional = it.inputs.map((input) => decode(input, tensors));
  return { positional, named: options(it.input_kwargs, tensors) };
}

/** @type {(values: Record<string, unknown>, tensors: Tensors, spelled?: (name: string) => string) => Record<string, unknown>} */
function options(values, tensors, spelled = camelCase) {
  return Object.fromEntries(Object.entries(values).map(([name, it]) => [spelled(name), decode(it, tensors)]));
}

/** JavaScript's spelling of a name of PyTorch. */
function camelCase(/** @type {string} */ name) {
  return name.replace(/(?<=[A-Za-z0-9])_([a-z])/g, (_, letter) => letter.toUpperCase());
}

/** How an output and the state afterwards differ from what was recorded. @type {(it: Case, tensors: Tensors, module: Module, output: unknown) => string | undefined} */
function disagreement(it, tensors, module, output) {
  const problem = differenceOf(output, decode(it.output, tensors));
  if (problem !== undefined) return `the output: ${problem}`;
  const state = module.stateDict();
  for (const [name, value] of Object.entries(it.state_after ?? it.state)) {
    const changed = differenceOf(state.get(name), decode(value, tensors));
    // A traced module holds only what its graph refers to.
    if (changed !== undefined && state.has(name)) return `the state ${name}: ${changed}`;
  }
  return undefined;
}

/** @type {(got: unknown, want: unknown) => string | undefined} */
function differenceOf(got, want) {
  if (Array.isArray(want)) {
    if (!Array.isArray(got) || got.length !== want.length) return `${String(got)} instead of ${want.length} values`;
    return want.map((it, at) => differenceOf(got[at], it)).find((it) => it !== undefined);
  }
  return difference(got, want, want instanceof Tensor ? (TOLERANCES[want.dtype] ?? EXACT) : EXACT);
}
