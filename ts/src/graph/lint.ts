/**
 * What makes a graph well formed.
 *
 * @module
 */
import { fxError, type ErrorName, type FxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import { hasAttributeValue } from "./attribute.ts";
import type { Graph } from "./graph.ts";
import type { Module } from "../nn/module.ts";
import type { Node } from "./node.ts";
import { stateOf } from "./nodeState.ts";

/**
 * Everything that is wrong with the graph, in order: uses before the definition, and with a module, attributes that are
 * not there. No name is there twice, which the graph sees to. As in FX, several outputs, no output, and inputs after calls are well formed.
 */
export function findProblems(graph: Graph, owner: Module | undefined, what: string): FxError[] {
  // Told without its class, which needs graphs itself.
  const isModule = owner === undefined || (owner as Module | null)?.attributes instanceof Map;
  checkGiven(what, isModule, "a Module", "leave it out for the module that owns the graph");
  const problems: FxError[] = [];
  const problem = (node: Node, kind: ErrorName, reason: string): void => {
    problems.push(fxError(kind, reason, { node: node.name }));
  };
  for (let node = graph.first; node !== undefined; node = node.next) {
    const { inputs, label } = stateOf(node);
    for (let at = 0; at < inputs.length; at++) {
      const input = inputs[at] as Node;
      if (input.isErased) {
        problem(node, "GraphInvalid", `Node '${node.name}' uses a node that was erased`);
      } else if (input.graph !== graph || stateOf(input).label >= label) {
        problem(
          node,
          "GraphInvalid",
          `Argument '${input.name}' of Node '${node.name}' was used before it has been defined! Please check that Nodes in the graph are topologically ordered`,
        );
      }
    }
    const missing = owner === undefined ? undefined : targetProblem(node, owner);
    if (missing !== undefined) problem(node, "AttributeMissing", missing);
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
