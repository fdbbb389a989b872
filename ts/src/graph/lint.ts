/**
 * What makes a graph well formed.
 *
 * @module
 */
import { fxError, type ErrorName, type FxError } from "../errors.ts";
import { hasAttributeValue } from "../interpret/attribute.ts";
import type { Graph } from "./graph.ts";
import type { Module } from "../nn/module.ts";
import type { Node } from "./node.ts";

/**
 * Everything that is wrong with the graph, in order: uses before the definition, names given twice, and with a module,
 * attributes that are not there. As in FX, several outputs, no output, and inputs after calls are well formed.
 */
export function findProblems(graph: Graph, owner?: Module): FxError[] {
  const problems: FxError[] = [];
  const names = new Set<string>();
  const defined = new Set<Node>();
  for (const node of graph.nodes) {
    const problem = (kind: ErrorName, reason: string): void => {
      problems.push(fxError(kind, reason, { node: node.name }));
    };
    if (names.has(node.name)) problem("GraphInvalid", `Node redefined name ${node.name}!`);
    names.add(node.name);
    for (const input of node.allInputNodes) {
      if (input.isErased) {
        problem("GraphInvalid", `Node '${node.name}' uses a node that was erased`);
      } else if (!defined.has(input)) {
        problem(
          "GraphInvalid",
          `Argument '${input.name}' of Node '${node.name}' was used before it has been defined! Please check that Nodes in the graph are topologically ordered`,
        );
      }
    }
    defined.add(node);
    const missing = owner === undefined ? undefined : targetProblem(node, owner);
    if (missing !== undefined) problem("AttributeMissing", missing);
  }
  return problems;
}

function targetProblem(node: Node, owner: Module): string | undefined {
  if (node.op !== "get_attr" && node.op !== "call_module") return undefined;
  const head = `Node ${node.name} target ${node.target}`;
  if (!hasAttributeValue(owner, node.target)) return `${head} references nonexistent attribute ${node.target}`;
  if (node.op === "call_module" && owner.findAttribute(node.target)?.kind !== "module") {
    return `${head} does not reference an nn.Module`;
  }
  return undefined;
}
