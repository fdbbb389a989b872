/**
 * What stands around a node, for messages: `torch.fx._utils`.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { checkNode } from "./args.ts";
import { checkGraph, type Graph } from "./graph.ts";
import type { Node } from "./node.ts";

/**
 * The lines of a node and of those before it, as the graph prints them: `get_node_context`.
 *
 * @example
 * ```ts
 * throw new Error(`unsupported:\n${getNodeContext(node, 3)}`);
 * ```
 */
export function getNodeContext(node: Node, numNodes = 2): string {
  checkNode("getNodeContext", node);
  checkGiven("getNodeContext", Number.isSafeInteger(numNodes) && numNodes >= 0, "a number of nodes as numNodes");
  const lines: string[] = [];
  for (let it: Node | undefined = node; it !== undefined && lines.length < numNodes; it = it.prev) {
    lines.unshift(it.formatNode());
  }
  return lines.join("\n");
}

/**
 * In which modules the first call of a function was recorded, of those that say it: `first_call_function_nn_module_stack`.
 *
 * @example
 * ```ts
 * firstCallFunctionNnModuleStack(gm.graph);
 * ```
 */
export function firstCallFunctionNnModuleStack(graph: Graph): unknown {
  checkGraph("firstCallFunctionNnModuleStack", graph);
  const found = graph.nodes.find((it) => it.op === "call_function" && it.meta.has("nn_module_stack"));
  return found?.meta.get("nn_module_stack") ?? null;
}
