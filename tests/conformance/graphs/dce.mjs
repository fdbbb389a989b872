/**
 * The kind `dce`: what is left of a graph once its dead code is gone.
 *
 * @module
 */
import { GraphError, GraphModule, Module } from "tracefx";
import { build, Difference, encode, same } from "./corpus.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/** @typedef {EncodedGraph | { readonly [path: string]: EncodedGraph }} Graphs */
/**
 * @typedef {{ options: { impure_targets?: string[], impure_ops?: string[] }, before: Graphs,
 *   modules?: { readonly [path: string]: { impure?: boolean } }, after?: Graphs, changed?: boolean }} Case
 */

/** A module that says whether it is impure. */
class Told extends Module {
  #isImpure = false;

  /** @param {boolean} isImpure */
  constructor(isImpure) {
    super();
    this.#isImpure = isImpure;
  }

  /** @override */
  get isImpure() {
    return this.#isImpure;
  }
}

/** Eliminates. */
export function checkDce(/** @type {Case} */ { options, before, modules = {}, after, changed }) {
  const { main, ...inner } = graphsOf(before);
  if (main === undefined) throw new Difference("there is no main graph");
  const graph = build(main);
  const owner = GraphModule.ofGraph(graph);
  for (const [path, { impure = false }] of Object.entries(modules)) owner.addSubmodule(path, new Told(impure));
  const children = Object.entries(inner).map(([path, it]) => {
    const child = GraphModule.ofGraph(build(it));
    owner.addSubmodule(path, child);
    return /** @type {const} */ ([path, child]);
  });
  const { impure_targets: targets, impure_ops: ops = ["placeholder", "output"] } = options;
  const eliminate = () =>
    graph.eliminateDeadCode((node) =>
      targets === undefined ? node.isImpure() : ops.includes(node.op) || targets.includes(node.target),
    );
  if (after === undefined) {
    try {
      eliminate();
    } catch (error) {
      if (error instanceof GraphError) return;
      throw error;
    }
    throw new Difference("nothing was refused");
  }
  same(eliminate(), changed, "whether anything changed");
  const { main: wanted, ...others } = graphsOf(after);
  same(encode(graph).nodes, wanted?.nodes, "nodes");
  for (const [path, child] of children) same(encode(child.graph).nodes, others[path]?.nodes, `nodes of ${path}`);
}

/** @type {(graphs: Graphs) => { readonly [path: string]: EncodedGraph }} */
function graphsOf(graphs) {
  return "nodes" in graphs && Array.isArray(graphs.nodes)
    ? { main: /** @type {EncodedGraph} */ (graphs) }
    : /** @type {{ readonly [path: string]: EncodedGraph }} */ (graphs);
}
