/**
 * The kind `namespace`: the names that nodes are given.
 *
 * @module
 */
import { Graph } from "tracefx";
import { build, Difference, same } from "./corpus.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/** @typedef {{ pass: string, options: { existing?: string[] }, before: any, after: string | string[] }} Case */

/** Gives the names. */
export function checkNamespace(/** @type {Case} */ it) {
  same(answer(it), it.after, "names");
}

/** @type {(it: Case) => string | string[]} */
function answer({ pass, options, before }) {
  const graph = new Graph();
  switch (pass) {
    case "_Namespace.create_name":
      return createNames(before);
    case "Graph.create_node names":
      return /** @type {[import("tracefx").Opcode, string, string | null][]} */ (before).map(
        ([op, target, name]) => graph.createNode(op, target, [], {}, name ?? undefined).name,
      );
    case "Graph": {
      const x = graph.placeholder("x");
      return [0, 1, 2].map(() => {
        const node = graph.callFunction("torch.neg", [x]);
        graph.eraseNode(node);
        return node.name;
      });
    }
    case "graph_copy":
      for (const name of options.existing ?? []) graph.placeholder(name);
      graph.graphCopy(build(before));
      return Array.from(graph.nodes, (node) => node.name);
    case "deepcopy":
      return Array.from(build(before).clone().nodes, (node) => node.name);
    case "deepcopy+create_node": {
      // As PyTorch made it: through the namespace, which then knows the suffixes.
      graph.graphCopy(build(before));
      const copy = graph.clone();
      return copy.callFunction("torch.neg", [copy.first ?? null]).name;
    }
    default:
      throw new Difference(`unknown pass ${pass}`);
  }
}

/**
 * Candidates come alone, or with an object that keeps the name it was given first, as FX's `obj` argument does.
 * @type {(candidates: (string | [string, number])[]) => string[]}
 */
function createNames(candidates) {
  const { names } = new Graph();
  /** @type {Map<number, string>} */
  const given = new Map();
  return candidates.map((it) => {
    if (typeof it === "string") return names.createName(it);
    const [candidate, object] = it;
    const name = given.get(object) ?? names.createName(candidate);
    given.set(object, name);
    return name;
  });
}
