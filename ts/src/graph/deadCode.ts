/**
 * Dead-code elimination, by the rules of `torch.fx.Graph.eliminate_dead_code`.
 *
 * @module
 */
import type { Module } from "../nn/module.ts";
import type { Graph } from "./graph.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "./node.ts";
import { stateOf } from "./nodeState.ts";

/** Erases what nothing uses and that is not impure, in this graph and the graphs that it refers to. */
export function eliminateDeadCode(graph: Graph, isImpure: (node: Node) => boolean): boolean {
  graph.lint();
  let isChanged = false;
  const read = new Set<string>();
  // A node that was erased still has one before it.
  for (let node = graph.last; node !== undefined; node = node.prev) {
    if (stateOf(node).isUsed() || isImpure(node)) {
      if (node.op === "get_attr") read.add(node.target);
      continue;
    }
    graph.eraseNode(node);
    isChanged = true;
  }
  // As in FX, these are judged by the rule that stands for any graph, whatever the predicate.
  for (const child of graphsOf(graph.owningModule, read)) isChanged = child.eliminateDeadCode() || isChanged;
  return isChanged;
}

/** The graphs among the owning module's children of these names. */
function graphsOf(owner: GraphModule | undefined, names: ReadonlySet<string>): Graph[] {
  return [...names].flatMap((name) => {
    const found = name.includes(".") ? undefined : owner?.findAttribute(name);
    return found?.kind === "module" && hasGraph(found.module) ? [found.module.graph] : [];
  });
}

/** Whether this is a `GraphModule`, told without its class, which needs graphs itself. */
export function hasGraph(module: Module): module is GraphModule {
  return "graphHooks" in module;
}
