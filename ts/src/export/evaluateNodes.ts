/**
 * Values of single nodes of a graph, without an interpreter: a trace around sees the calls alone, and not the nodes.
 *
 * @module
 */
import { callFunction } from "../functions/table.ts";
import { type Arg, argValue, isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import type { Module } from "../nn/module.ts";

/** Computes nodes of a graph from those that are known, which become more by it. */
export function evaluate(graph: Graph, module: Module, wanted: readonly Node[], known: Map<Node, unknown>): void {
  const needed = new Set(wanted);
  for (const node of Array.from(graph.nodes).toReversed()) {
    if (needed.has(node) && !known.has(node)) for (const it of node.allInputNodes) needed.add(it);
  }
  const valueOf = (node: Node): unknown => known.get(node);
  for (const node of graph.nodes) {
    if (!needed.has(node) || known.has(node)) continue;
    const args = node.args.map((it) => (isNode(it) ? valueOf(it) : argValue(it, valueOf)));
    const kwargs = Object.fromEntries(
      Object.entries(node.kwargs).map(([key, it]) => [key, isNode(it) ? valueOf(it) : argValue(it as Arg, valueOf)]),
    );
    if (node.op === "get_attr") known.set(node, attributeOf(module, node.target));
    // Nothing writes to what these graphs compute, so that a detached value need not be another one.
    else if (node.target === "torch.ops.aten.detach.default") known.set(node, args[0]);
    else known.set(node, callFunction(node.target, { args, kwargs }));
  }
}

function attributeOf(module: Module, path: string): unknown {
  const attribute = module.findAttribute(path);
  return attribute?.kind === "module" ? attribute.module : attribute?.tensor;
}
