/**
 * Parts of graphs as modules, and whether two graphs are the same: `torch.fx.passes.utils.common`.
 *
 * @module
 */
import { checkOptions } from "../base/given.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { checkGraph, type Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { SubgraphMatcher } from "../rewrite/matcher.ts";

/** How {@link liftSubgraphAsModule} calls what it makes. */
export interface LiftOptions {
  /** The name that the part will have, which stands before the paths of the mapping; none by default. */
  readonly compName?: string;
  /** The class name of the module. */
  readonly className?: string;
}

/** A part of a graph module, and where what it refers to has gone. */
export interface LiftedSubgraph {
  readonly module: GraphModule;
  /** For each path in the whole module the path below the part: `linear` is in `part.linear`. */
  readonly origToSplitFqnMapping: Map<string, string>;
}

/**
 * A module of a graph of copies of some nodes, with what they refer to in the module that they are of:
 * `lift_subgraph_as_module`. Tensors and sub-modules are shared.
 *
 * @example
 * ```ts
 * const part = new Graph();
 * const x = part.placeholder("x");
 * part.output(part.callModule("linear", [x]));
 * const { module } = liftSubgraphAsModule(gm, part, { compName: "first" });
 * ```
 */
export function liftSubgraphAsModule(gm: GraphModule, subgraph: Graph, options: LiftOptions = {}): LiftedSubgraph {
  checkGraphModule("liftSubgraphAsModule", gm);
  checkGraph("liftSubgraphAsModule", subgraph);
  checkOptions("liftSubgraphAsModule", options, ["compName", "className"]);
  const { compName = "", className = "GraphModule" } = options;
  const module = new GraphModule(gm, subgraph, className);
  module.training = true;
  const paths = subgraph.nodes.filter(({ op }) => op === "call_module" || op === "get_attr").map((it) => it.target);
  return { module, origToSplitFqnMapping: new Map(paths.map((it) => [it, `${compName}.${it}`])) };
}

/**
 * Whether two graphs are the same: as many inputs and outputs in the same order, and the same nodes between them:
 * `compare_graphs`.
 *
 * @example
 * ```ts
 * compareGraphs(gm.graph, gm.graph.clone()); // true
 * ```
 */
export function compareGraphs(left: Graph, right: Graph): boolean {
  checkGraph("compareGraphs", left);
  checkGraph("compareGraphs", right);
  const graphs = withoutUnusedInputs(left, right);
  if (graphs === undefined) return false;
  return new SubgraphMatcher(graphs[0], { matchOutput: true, matchPlaceholder: true }).match(graphs[1]).length > 0;
}

/** The graphs without the inputs that neither of them uses, which a pattern cannot have; nothing where one uses what the other does not. */
function withoutUnusedInputs(left: Graph, right: Graph): readonly [Graph, Graph] | undefined {
  const pairs = [left, right].map((it) => it.findNodes({ op: "placeholder" }));
  const [inputs = [], others = []] = pairs;
  const unused = inputs.flatMap((it, at) => (it.users.size === 0 ? [at] : []));
  if (unused.length === 0) return [left, right];
  if (inputs.length !== others.length || unused.some((at) => others[at]?.users.size !== 0)) return undefined;
  return [without(left, unused), without(right, unused)];
}

function without(graph: Graph, inputs: readonly number[]): Graph {
  const res = graph.clone();
  const placeholders = res.findNodes({ op: "placeholder" });
  for (const at of inputs) res.eraseNode(placeholders[at] as Node);
  return res;
}
