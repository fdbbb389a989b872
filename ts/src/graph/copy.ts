/**
 * Copies of graphs: whole, into another graph, and in the place of a call.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { freezeArg, mapArg, mapArgs, mapKwargs, type Arg, type ArgInput } from "./args.ts";
import type { Graph } from "./graph.ts";
import { copyNotes, orderUsers, setArguments, type Node } from "./node.ts";

/** What a graph returns once it was copied, and its output node; `undefined` where it has none. */
export type CopiedOutput = readonly [result: Arg | undefined, output: Node] | undefined;

/** Copies the nodes before the output that `valMap` does not know, and adds them to it. */
export function copyInto(graph: Graph, source: Graph, valMap: Map<Node, Arg>): CopiedOutput {
  // A graph may be copied into itself, where the walk would go on over the copies.
  const sources = [...source.nodes];
  for (const node of sources) {
    if (valMap.has(node)) continue;
    const mapped = (it: Node): Arg => {
      const value = valMap.get(it);
      if (value !== undefined) return value;
      throw fxError("GraphInvalid", `Argument '${it.name}' was used before it has been defined`, { node: node.name });
    };
    if (node.op === "output") return [node.args[0] === undefined ? undefined : mapArg(node.args[0], mapped), node];
    valMap.set(node, graph.nodeCopy(node, mapped));
  }
  return undefined;
}

/** Copies a graph with these values for its inputs, in order, or their defaults. */
export function inlineInto(graph: Graph, callee: Graph, inputs: readonly ArgInput[]): Arg | undefined {
  const placeholders = callee.findNodes({ op: "placeholder" });
  if (inputs.length > placeholders.length) {
    throw fxError("InputCount", `the graph takes ${placeholders.length} inputs, and ${inputs.length} were given`);
  }
  const values = placeholders.map((it, at): readonly [Node, Arg] => {
    const value = inputs[at] === undefined ? it.args[0] : inputs[at];
    if (value !== undefined) return [it, freezeArg(value)];
    throw fxError("InputCount", `the input ${it.name} was not given and has no default`, { node: it.name });
  });
  return copyInto(graph, callee, new Map(values))?.[0];
}

/** Copies everything into a graph that has nothing yet: nodes, names, users and hooks. */
export function cloneInto(res: Graph, source: Graph): Graph {
  const copies = new Map<Node, Node>();
  for (const node of source.nodes) {
    copies.set(node, res.createNamedNode(node.op, node.target, [], {}, node.name));
  }
  const copyOf = (it: Node): Node => copies.get(it) as Node;
  for (const [node, copy] of copies) {
    setArguments(copy, mapArgs(node.args, copyOf), mapKwargs(node.kwargs, copyOf));
    copyNotes(node, copy);
  }
  for (const [node, copy] of copies) {
    orderUsers(copy, Array.from(node.users, copyOf));
  }
  res.setNames(source.names.clone());
  res.hooks.addAll(source.hooks);
  res.setCodegen(source.codegen);
  const { bodyTransformer } = source;
  if (bodyTransformer !== undefined) res.onGenerateCode(() => bodyTransformer);
  return res;
}
