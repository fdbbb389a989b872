/**
 * Dead-code elimination, by the rules of `torch.fx.Graph.eliminate_dead_code`.
 *
 * @module
 */
import type { Module } from "../nn/module.ts";
import type { Graph } from "./graph.ts";
import type { GraphModule } from "./module.ts";
import type { Node } from "./node.ts";

/** Erases what nothing uses and that is not impure, in this graph and the graphs that it refers to. */
export function eliminateDeadCode(graph: Graph, isImpure: (node: Node) => boolean): boolean {
  graph.lint();
  let isChanged = false;
  for (const node of graph.nodes.reversed()) {
    if (node.users.size > 0 || isImpure(node)) continue;
    graph.eraseNode(node);
    isChanged = true;
  }
  // As in FX, these are judged by the rule that stands for any graph, whatever the predicate.
  for (const child of referredGraphs(graph)) isChanged = child.eliminateDeadCode() || isChanged;
  return isChanged;
}

/** The graphs of the owning module's children that a `get_attr` node names. */
function referredGraphs(graph: Graph): Graph[] {
  const owner = graph.owningModule;
  if (owner === undefined) return [];
  const names = new Set(graph.findNodes({ op: "get_attr" }).map(({ target }) => target));
  return [...names].flatMap((name) => {
    const found = name.includes(".") ? undefined : owner.findAttribute(name);
    return found?.kind === "module" && hasGraph(found.module) ? [found.module.graph] : [];
  });
}

/** Whether this is a `GraphModule`, told without its class, which needs graphs itself. */
function hasGraph(module: Module): module is GraphModule {
  return "graphHooks" in module;
}
