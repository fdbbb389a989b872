/**
 * The kind `edit_script`: edits of a graph, what each of them gave, and the graph afterwards.
 *
 * @module
 */
import { FxError } from "tracefx";
import { build, decode, Difference, encode, same } from "./corpus.mjs";

/** @typedef {import("tracefx").Node} Node */
/** @typedef {import("./corpus.mjs").Encoded} Encoded */
/** @typedef {import("./corpus.mjs").RecordedError} RecordedError */
/** @typedef {{ step: [verb: string, ...operands: Encoded[]], r?: Encoded, error?: RecordedError }} Step */
/**
 * @typedef {{ before: import("./corpus.mjs").EncodedGraph, steps: Step[], after: import("./corpus.mjs").EncodedGraph,
 *   final_lint: RecordedError | null, n_nodes: number, find_nodes: { readonly [target: string]: string[] } }} Case
 */

/**
 * Our code for each refusal that PyTorch recorded, by the beginning of its text.
 * @type {readonly (readonly [beginning: string, kind: import("tracefx").ErrorName])[]}
 */
const KINDS = [
  ["Tried to erase Node", "NodeHasUsers"],
  ["insert_args index", "GraphArgument"],
  ["list assignment index out of range", "GraphArgument"],
  ["Argument '", "GraphInvalid"],
];

/** Does the edits. */
export function checkEditScript(/** @type {Case} */ it) {
  const graph = build(it.before);
  same(encode(graph), it.before, "before");
  for (const [at, { step, r, error }] of it.steps.entries()) {
    const wanted = error === undefined ? { r } : { error: kindOf(error) };
    same(
      outcome(() => run(graph, step)),
      wanted,
      `step ${at}, ${JSON.stringify(step)}`,
    );
  }
  same(encode(graph), it.after, "after");
  same(graph.nodes.length, it.n_nodes, "the number of nodes");
  const lint = it.final_lint === null ? { r: null } : { error: kindOf(it.final_lint) };
  same(
    outcome(() => run(graph, ["lint"])),
    lint,
    "lint",
  );
  for (const [target, found] of Object.entries(it.find_nodes)) {
    same(names(graph.findNodes({ op: "call_function", target })), found, `findNodes of ${target}`);
  }
}

/** @type {(error: RecordedError) => string} */
function kindOf({ msg }) {
  const found = KINDS.find(([beginning]) => msg.startsWith(beginning));
  if (found === undefined) throw new Difference(`no code for ${msg}`);
  return found[1];
}

/** @type {(nodes: Iterable<Node>) => string[]} */
function names(nodes) {
  return Array.from(nodes, (it) => it.name);
}

/**
 * Does one step and gives what PyTorch recorded of it.
 * @type {(graph: import("tracefx").Graph, step: Step["step"]) => Encoded}
 */
function run(graph, [verb, ...operands]) {
  /** @type {(name: unknown) => Node} */
  const find = (name) => {
    const found = graph.find(String(name));
    if (found === undefined) throw new Difference(`there is no node ${String(name)}`);
    return found;
  };
  /** @type {(at: number) => Node} */
  const node = (at) => find(operands[at]);
  /** @type {(it: Encoded | undefined) => import("tracefx").ArgInput} */
  const value = (it) => decode(it ?? null, find);
  /** @type {(at: number) => import("tracefx").ArgInput[]} */
  const values = (at) => /** @type {Encoded[]} */ (operands[at]).map(value);
  switch (verb) {
    case "call_function": {
      const make = () => graph.callFunction(String(operands[0]), values(1));
      if (operands[2] === "before") return graph.insertingBefore(node(3), make).name;
      if (operands[2] === "after") return graph.insertingAfter(node(3), make).name;
      return make().name;
    }
    case "replace_all_uses_with": {
      const only = /** @type {string[] | null} */ (operands[2]);
      return names(node(0).replaceAllUsesWith(node(1), { filter: (it) => only === null || only.includes(it.name) }));
    }
    case "erase_node":
      graph.eraseNode(node(0));
      return null;
    case "set_args":
      node(0).args = values(1);
      return names(node(0).allInputNodes);
    case "set_kwargs": {
      const kwargs = Object.entries(/** @type {{ [key: string]: Encoded }} */ (operands[1]));
      node(0).kwargs = new Map(kwargs.map(([key, it]) => [key, value(it)]));
      return names(node(0).allInputNodes);
    }
    case "update_arg":
      node(0).updateArg(Number(operands[1]), value(operands[2]));
      return null;
    case "insert_arg":
      node(0).insertArg(Number(operands[1]), value(operands[2]));
      return null;
    case "replace_input_with":
      node(0).replaceInputWith(node(1), node(2));
      return null;
    case "prepend":
      node(0).prepend(node(1));
      return null;
    case "append":
      node(0).append(node(1));
      return null;
    case "node_copy":
      return graph.nodeCopy(node(0)).name;
    case "_rename":
      return node(0).rename(String(operands[1]));
    case "lint":
      graph.lint();
      return null;
    default:
      throw new Difference(`unknown verb ${verb}`);
  }
}

/** @type {(body: () => Encoded) => { r: Encoded } | { error: string }} */
function outcome(body) {
  try {
    return { r: body() };
  } catch (error) {
    if (error instanceof FxError) return { error: error.kind };
    throw error;
  }
}
