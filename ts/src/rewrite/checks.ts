/**
 * What passes are given: what is no traced module, graph or node is refused by what to do.
 *
 * @module
 */
import { fxError } from "../errors.ts";
import { isNode } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../graph/module.ts";
import type { Node } from "../graph/node.ts";

/**
 * Refuses what has no graph, such as a module that was not traced.
 *
 * @example
 * ```ts
 * checkGraphModule("splitModule", module);
 * ```
 */
export function checkGraphModule(what: string, module: GraphModule): void {
  if (module instanceof GraphModule) return;
  throw fxError("InvalidArgument", `${what} takes a GraphModule`, {
    help: "symbolicTrace(module) makes one of a module or a function",
  });
}

/**
 * Refuses what is no graph, such as the module that has one.
 *
 * @example
 * ```ts
 * checkGraph("getSourcePartitions", graph);
 * ```
 */
export function checkGraph(what: string, graph: Graph): void {
  if (graph instanceof Graph) return;
  const help = (graph as unknown) instanceof GraphModule ? "give the graph of the module: gm.graph" : undefined;
  throw fxError("InvalidArgument", `${what} takes a Graph`, { help });
}

/**
 * Refuses what is no node, such as the name of one.
 *
 * @example
 * ```ts
 * checkNode("getTensorMeta", node);
 * ```
 */
export function checkNode(what: string, node: Node): void {
  if (isNode(node)) return;
  const help = 'find one in the graph: graph.findNodes({ op: "call_function" })';
  throw fxError("InvalidArgument", `${what} takes a Node`, { help });
}
