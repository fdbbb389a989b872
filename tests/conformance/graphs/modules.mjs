/**
 * The modules of recorded cases.
 *
 * @module
 */
import { GraphModule, Module, Parameter, torch } from "tracefx";
import { build, encode, same } from "./corpus.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/**
 * @typedef {{ before: EncodedGraph,
 *   modules?: { readonly [path: string]: { kind?: string, shape?: number[], missing?: true } } }} Recorded
 */

/**
 * The module before the pass, with the attributes that were recorded.
 * @type {(recorded: Recorded) => GraphModule}
 */
export function moduleOf({ before, modules = {} }) {
  const graph = build(before);
  const owner = GraphModule.ofGraph(graph);
  for (const [path, { kind, shape = [] }] of Object.entries(modules)) {
    const at = path.lastIndexOf(".");
    if (at > 0 && owner.findAttribute(path.slice(0, at)) === undefined)
      owner.addSubmodule(path.slice(0, at), new Module());
    const holder = at < 0 ? owner : owner.getSubmodule(path.slice(0, at));
    const name = path.slice(at + 1);
    if (kind === "Parameter") holder.registerParameter(name, new Parameter(torch.ones(shape)));
    else if (kind === "Tensor") holder.registerBuffer(name, torch.full(shape, 0.5));
    else holder.addModule(name, new Module());
  }
  return owner;
}

/**
 * Compares a graph with a recorded one, and users where they were recorded.
 * @type {(got: GraphModule, want: EncodedGraph, what: string) => void}
 */
export function sameGraph(got, want, what) {
  const { nodes, users } = encode(got.graph);
  same(nodes, want.nodes, `${what}.nodes`);
  if (want.users !== undefined) same(users, want.users, `${what}.users`);
  same(
    got.graph.problems(got).map((it) => it.reason),
    [],
    `${what}.problems`,
  );
}

/**
 * Compares the modules that a pass made with those that were recorded.
 * @type {(got: GraphModule, want: { readonly [name: string]: EncodedGraph }) => void}
 */
export function sameParts(got, want) {
  for (const [name, graph] of Object.entries(want)) {
    sameGraph(/** @type {GraphModule} */ (got.getSubmodule(name)), graph, name);
  }
}
