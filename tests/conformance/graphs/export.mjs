/**
 * The kind `export`: modules as programs, before and after `runDecompositions`, with signatures, sizes and ranges.
 *
 * @module
 */
import { exportProgram, SymExpr, TensorMeta, torch } from "tracefx";
import { Difference, encode, same } from "./corpus.mjs";
import { MODULES } from "./exportModules.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/** @typedef {[dtype: import("tracefx").DType, sizes: string[], strides: string[]]} RecordedVal */
/** @typedef {{ kind: string, arg: string, name: string, target: string | null, persistent?: boolean }} RecordedSpec */
/** @typedef {{ inputs: RecordedSpec[], outputs: RecordedSpec[] }} RecordedSignature */
/**
 * @typedef {{ name: string, options: { training: boolean, dynamic_shapes: string | null }, before: EncodedGraph,
 *   signature: RecordedSignature, vals: Record<string, RecordedVal>, range_constraints: Record<string, [string, string]>,
 *   after: EncodedGraph, signature_after: RecordedSignature, vals_after: Record<string, RecordedVal> }} Case
 */

/** Sizes that a dynamic one is an example of. */
const EXAMPLE = 3;

/** Exports the module of a case. */
export function checkExport(/** @type {Case} */ it) {
  const counterpart = MODULES[it.name.replace(/_\d+(?:_dynamic)?$/, "")];
  if (counterpart === undefined) throw new Difference(`${it.name} has no counterpart`);
  const { module: make, inputs, dynamic } = counterpart;
  const module = make().train(it.options.training);
  const [args, kwargs = {}] = inputs?.(inputOf(it)) ?? [userInputs(it).map(inputOf(it))];
  const isDynamic = it.options.dynamic_shapes !== null;
  const program = exportProgram(module, args, kwargs, isDynamic ? { dynamicShapes: dynamic?.() ?? null } : {});
  checkProgram(program, it.before, it.signature, it.vals, "the program");
  checkRanges(program, it);
  const core = program.runDecompositions();
  checkProgram(core, it.after, it.signature_after, it.vals_after, "the decomposed program");
}

/** @type {(it: Case) => string[]} */
function userInputs({ signature }) {
  return signature.inputs.filter(({ kind }) => kind === "USER_INPUT").map(({ name }) => name);
}

/** @type {(it: Case) => (name: string) => import("tracefx").Tensor} */
function inputOf({ vals }) {
  return (name) => {
    const [dtype, sizes] = vals[name] ?? ["float32", []];
    return torch.zeros(
      sizes.map((size) => (/^\d+$/.test(size) ? Number(size) : EXAMPLE)),
      { dtype },
    );
  };
}

/**
 * @param {import("tracefx").ExportedProgram} program
 * @param {EncodedGraph} graph
 * @param {RecordedSignature} signature
 * @param {Record<string, RecordedVal>} vals
 * @param {string} what
 */
function checkProgram(program, graph, signature, vals, what) {
  const { nodes } = encode(program.graph);
  const [ours, theirs] = [numbering(nodes), numbering(graph.nodes)];
  same(renamed(asRecorded(nodes), ours), renamed(graph.nodes, theirs), `${what}: the graph`);
  const { inputSpecs, outputSpecs } = program.graphSignature;
  const specs = (/** @type {RecordedSpec[]} */ them) => renamed(them.map(withoutNulls), theirs);
  same(renamed(inputSpecs.map(encodeSpec), ours), specs(signature.inputs), `${what}: the inputs`);
  same(renamed(outputSpecs.map(encodeSpec), ours), specs(signature.outputs), `${what}: the outputs`);
  const known = new Map(Object.entries(vals).map(([name, val]) => [theirs.get(name), val]));
  for (const node of program.graph.nodes) {
    const want = known.get(ours.get(node.name));
    if (want !== undefined) same(encodeVal(node.meta.get("val")), want, `${what}: what is known of ${node.name}`);
  }
}

/**
 * Names with the numbers that they get in the order of the nodes: PyTorch counts nodes of sizes too that are gone.
 * @type {(nodes: readonly unknown[]) => Map<string, string>}
 */
function numbering(nodes) {
  const counts = new Map();
  return new Map(
    nodes.map((node) => {
      const { name } = /** @type {{ name: string }} */ (node);
      const base = name.replace(/_\d+$/, "");
      const count = counts.get(base) ?? 0;
      counts.set(base, count + 1);
      return [name, `${base}_${count}`];
    }),
  );
}

/**
 * The same with other names of nodes.
 * @type {(value: unknown, names: ReadonlyMap<string, string>) => unknown}
 */
function renamed(value, names) {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((it) => renamed(it, names));
  return Object.fromEntries(
    Object.entries(value).map(([key, it]) => {
      const isName = (key === "name" || key === "$n") && typeof it === "string";
      return [key, isName ? (names.get(it) ?? it) : renamed(it, names)];
    }),
  );
}

/**
 * Ints as `JSON.parse` reads them, which rounds those that numbers do not hold.
 * @type {(value: unknown) => unknown}
 */
function asRecorded(value) {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(asRecorded);
  if ("$int" in value) return Number(value.$int);
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, asRecorded(it)]));
}

const ARGUMENTS = /** @type {Record<string, string>} */ ({
  tensor: "TensorArgument",
  symInt: "SymIntArgument",
  constant: "ConstantArgument",
});

/** @type {(spec: import("tracefx").InputSpec | import("tracefx").OutputSpec) => object} */
function encodeSpec(spec) {
  const { kind, arg, target } = spec;
  const persistent = "persistent" in spec && spec.persistent !== undefined ? { persistent: spec.persistent } : {};
  const value = arg.type === "constant" && "value" in arg.value ? { value: arg.value.value } : {};
  return {
    kind,
    arg: ARGUMENTS[arg.type],
    name: arg.name,
    ...value,
    ...(target !== undefined && { target }),
    ...persistent,
  };
}

/** @type {(spec: RecordedSpec) => object} */
function withoutNulls(spec) {
  return Object.fromEntries(Object.entries(spec).filter(([, value]) => value !== null));
}

/** @type {(val: unknown) => unknown} */
function encodeVal(val) {
  if (!(val instanceof TensorMeta)) return val;
  return [val.dtype, val.sizes.map(sizeText), val.strides.map(sizeText)];
}

/** @type {(size: import("tracefx").SymInt) => string} */
function sizeText(size) {
  return size instanceof SymExpr ? size.toString() : String(size);
}

/** @type {(program: import("tracefx").ExportedProgram, it: Case) => void} */
function checkRanges({ rangeConstraints }, { range_constraints: want }) {
  const ours = [...rangeConstraints].map(([name, { min, max }]) => [
    name,
    [String(min ?? "-int_oo"), String(max ?? "int_oo")],
  ]);
  same(Object.fromEntries(ours), want, "the ranges");
}
