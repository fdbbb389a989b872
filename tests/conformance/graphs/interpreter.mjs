/**
 * The kind `interpreter`: the value of every node, the output, and where values are released.
 *
 * The graph is run by the interpreter, with and without releasing values, and its code has the outline of PyTorch's.
 *
 * @module
 */
import { FxError, GraphModule, init, Interpreter, lastUses, Module, Tensor, tensor } from "tracefx";
import { javaScriptOutline, pythonOutline } from "./codeOutline.mjs";
import { build, Difference, same } from "./corpus.mjs";

/** @typedef {{ shape: number[], stride: number[], dtype: string, v: number[] }} RecordedTensor */
/** @typedef {null | number | RecordedTensor | Recorded[] | { [key: string]: Recorded }} Recorded */
/**
 * @typedef {{ options: { inputs?: RecordedTensor[] }, before: import("./corpus.mjs").EncodedGraph,
 *   node_values?: [name: string, value: Recorded][], output?: Recorded, freed_after?: { [name: string]: string[] },
 *   code?: string, error?: import("./corpus.mjs").RecordedError }} Case
 */

/** Values were recorded with six digits behind the point. */
const TOLERANCE = 2e-6;

/** Remembers what each node gave, as it was then. */
class Recording extends Interpreter {
  /** @type {[name: string, value: unknown][]} */
  values = [];

  /** @override @type {Interpreter["runNode"]} */
  runNode(node) {
    const value = super.runNode(node);
    if (node.op !== "output") this.values.push([node.name, plain(value)]);
    return value;
  }
}

/** Runs. */
export async function checkInterpreter(/** @type {Case} */ it) {
  await init();
  const graph = build(it.before);
  const gm = GraphModule.ofGraph(graph);
  // The recorded modules have the modules that paths lead through, and nothing in them.
  for (const { target } of graph.findNodes({ op: "get_attr" })) {
    const at = target.lastIndexOf(".");
    if (at > 0) gm.addSubmodule(target.slice(0, at), new Module());
  }
  const inputs = (it.options.inputs ?? []).map(({ v, dtype: name, shape }) => {
    if (shape.length !== 1) throw new Difference("the inputs are not of one dimension");
    return tensor(v, { dtype: /** @type {any} */ (name) });
  });
  if (it.error !== undefined) {
    same(
      refusalOf(() => new Interpreter(gm).run(...inputs)),
      it.error.msg.split("\n")[0],
      "the refusal",
    );
    return;
  }
  for (const garbageCollectValues of [true, false]) {
    const interpreter = new Recording(gm, { garbageCollectValues });
    close(plain(interpreter.run(...inputs)), it.output, "the output");
    if (it.node_values === undefined) continue;
    const wanted = it.node_values;
    same(
      interpreter.values.map(([name]) => name),
      wanted.map(([name]) => name),
      "the nodes that ran",
    );
    for (const [at, [name, value]] of wanted.entries()) close(interpreter.values[at]?.[1], value, name);
    const left = Array.from(interpreter.env.keys(), (node) => node.name);
    same(garbageCollectValues ? left.length < wanted.length : left.length === wanted.length + 1, true, "what is kept");
  }
  if (it.freed_after !== undefined) {
    const freed = Array.from(lastUses(graph), ([user, values]) => [user.name, values.map((value) => value.name)]);
    same(Object.fromEntries(freed), it.freed_after, "what is released");
  }
  if (it.code !== undefined) {
    const names = new Set(Array.from(graph.nodes, (node) => node.name));
    same(javaScriptOutline(gm.code, names), pythonOutline(it.code, names), "the code");
  }
}

/**
 * A value in the encoding of the corpus.
 * @type {(value: unknown) => unknown}
 */
function plain(value) {
  if (value instanceof Tensor) {
    const elements = /** @type {unknown[]} */ ([value.toArray()]).flat(Infinity);
    return { shape: [...value.shape], stride: [...value.stride()], dtype: value.dtype, v: elements };
  }
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, plain(item)]));
}

/**
 * As `same`, with numbers as near as they were recorded.
 * @type {(got: unknown, want: unknown, what: string) => void}
 */
function close(got, want, what) {
  same(rounded(got, want), want, what);
}

/**
 * The value, with the numbers that were recorded in the place of those that are near them.
 * @type {(got: unknown, want: unknown) => unknown}
 */
function rounded(got, want) {
  if (typeof got === "number" && typeof want === "number") return Math.abs(got - want) <= TOLERANCE ? want : got;
  if (Array.isArray(got) && Array.isArray(want)) return got.map((it, at) => rounded(it, want[at]));
  if (typeof got !== "object" || typeof want !== "object" || got === null || want === null) return got;
  const theirs = new Map(Object.entries(want));
  return Object.fromEntries(Object.entries(got).map(([key, it]) => [key, rounded(it, theirs.get(key))]));
}

/** @type {(body: () => unknown) => string} */
function refusalOf(body) {
  try {
    body();
  } catch (error) {
    if (error instanceof FxError) return error.reason;
    throw error;
  }
  return "nothing was refused";
}
