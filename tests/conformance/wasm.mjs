/**
 * The engine as JavaScript users have it: the package, through WebAssembly.
 *
 * @module
 */
import {
  Float,
  float,
  functionNamed,
  FxError,
  inferOperator,
  load,
  operatorTolerance,
  save,
  saveTo,
  SymExpr,
  Tensor,
  TensorMeta,
  torch,
} from "tracefx";
import { RESULTS } from "./engine.mjs";
import { defineOperators } from "./library.mjs";
import { decode } from "./values.mjs";

/** @returns {Promise<import("./engine.mjs").Engine>} */
export async function wasmEngine() {
  /** @type {import("tracefx").ExportedProgram | undefined} */
  let program;
  /** @type {import("tracefx").ProgramModule | undefined} */
  let module;
  const started = () => {
    if (module === undefined) throw new Error("no program is started");
    return module;
  };
  return {
    async open(file, decompose, resave) {
      module?.dispose();
      [program, module] = [undefined, undefined];
      program = await load(file);
      if (decompose) program = program.runDecompositions();
      if (typeof resave === "string") {
        await saveTo(program, resave);
        program = await load(resave);
      } else if (resave) {
        program = await load(save(program));
      }
      const outputs = program.graphSignature.outputSpecs.filter((it) => RESULTS.has(it.kind));
      const modules = program.graphModule.graphModules().map(([, it]) => it);
      const calls = modules.flatMap((it) => [...it.graph.nodes].filter((node) => node.op === "call_function"));
      return { graph: String(program.graph), operators: calls.map((it) => String(it.target)), outputs };
    },
    async define() {
      defineOperators();
    },
    async start() {
      module?.dispose();
      module = undefined;
      module = program?.module();
    },
    async run(inputs) {
      const leaves = inputs.map((it) => (it.kind === "float" ? float(Number(it.value)) : it.value));
      const outputs = /** @type {import("./engine.mjs").Output[]} */ (started().runFlat(leaves));
      return { outputs, inputs: leaves.map((it) => (it instanceof Tensor ? it : undefined)) };
    },
    async call(calls, tensors) {
      return calls.map((it) => answerOf(it, tensors));
    },
    async state(names) {
      return new Map(names.map((name) => [name, started().getTensor(name)]));
    },
    async close() {
      module?.dispose();
    },
  };
}

/** @typedef {Map<string, Tensor>} Tensors */

/** @type {(it: import("./engine.mjs").Call, tensors: Tensors) => import("./engine.mjs").Answer} */
function answerOf({ op, args, kwargs, seed }, tensors) {
  const given = () => {
    const named = Object.entries(kwargs).map(([key, value]) => [key, decode(value, tensors)]);
    return { args: args.map((it) => decode(it, tensors)), kwargs: Object.fromEntries(named) };
  };
  const promised = attempt(() => {
    const call = given();
    return [described(op, inferOperator(op, call.args, call.kwargs))];
  });
  if (seed !== undefined) torch.manualSeed(seed);
  const before = String(torch.getRngState().data);
  const results = attempt(() => {
    const call = given();
    const run = /** @type {(...args: unknown[]) => unknown} */ (functionNamed(`torch.ops.${op}`));
    return [described(op, run(...call.args, call.kwargs))];
  });
  const drew = String(torch.getRngState().data) !== before;
  const known = promised instanceof FxError ? { error: promised } : promised;
  return results instanceof FxError ? { error: results, promised: known } : { results, drew, promised: known };
}

/** What comes of it, or why it was refused. @template T @type {(body: () => T) => T | FxError} */
function attempt(body) {
  try {
    return body();
  } catch (error) {
    if (error instanceof FxError) return error;
    throw error;
  }
}

/** A result as the native engine describes it. @type {(op: string, value: unknown) => any} */
function described(op, value) {
  const near = (/** @type {import("tracefx").DType} */ it) => Object.values(operatorTolerance(op, it));
  if (Array.isArray(value)) return value.map((it) => described(op, it));
  if (value instanceof Tensor) {
    const { shape } = value;
    return {
      tensor: value,
      dtype: value.dtype,
      size: [...shape],
      stride: [...value.stride()],
      tolerance: near(value.dtype),
    };
  }
  if (value instanceof TensorMeta) {
    return { dtype: value.dtype, size: value.sizes.map(dimOf), stride: value.strides.map(dimOf) };
  }
  if (value instanceof SymExpr) return { int: dimOf(value) };
  if (value instanceof Float) return { float: value.value, tolerance: near("float64") };
  if (typeof value === "bigint") return { int: String(value) };
  if (typeof value !== "number") return value;
  return Number.isInteger(value) ? { int: value } : { float: value, tolerance: near("float64") };
}

/** A size as a number, or by name where it is not known. @type {(dim: import("tracefx").SymInt) => number | string} */
function dimOf(dim) {
  return dim instanceof SymExpr ? dim.srepr.replace(/^Symbol\('(\w+)'.*\)$/, "$1") : Number(dim);
}
