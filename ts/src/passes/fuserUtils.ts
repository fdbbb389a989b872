/**
 * The steps of `fuseByPartitions`, one by one: `torch.fx.passes.utils.fuser_utils`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkList, checkOptions, checkText } from "../base/given.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { isNode, tuple } from "../graph/args.ts";
import { checkGraph, Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { validatePartition } from "../graph/topological.ts";
import { type Val, ValSequence } from "../graph/val.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { liftSubgraphAsModule } from "./subgraphs.ts";

/** How {@link fuseAsGraphmodule} makes a module. */
export interface FuseAsOptions {
  /** Whether one result is given in a tuple, too. */
  readonly alwaysReturnTuple?: boolean;
}

/** Nodes as a module, with the nodes around that it is to be called with and that it stands for. */
export interface FusedNodes {
  readonly module: GraphModule;
  readonly inputs: readonly Node[];
  readonly outputs: readonly Node[];
}

/**
 * A module of copies of nodes, which are given in their order: `fuse_as_graphmodule`. The module that has them stays as it is.
 *
 * @example
 * ```ts
 * const { module, inputs, outputs } = fuseAsGraphmodule(gm, [conv, relu], "fused");
 * insertSubgm(gm, module, inputs, outputs);
 * eraseNodes(gm, [conv, relu]);
 * ```
 */
export function fuseAsGraphmodule(
  gm: GraphModule,
  nodes: readonly Node[],
  moduleName: string,
  options: FuseAsOptions = {},
): FusedNodes {
  checkGraphModule("fuseAsGraphmodule", gm);
  checkList("fuseAsGraphmodule", "nodes", nodes);
  checkText("fuseAsGraphmodule", "the name", moduleName);
  checkOptions("fuseAsGraphmodule", options, ["alwaysReturnTuple"]);
  for (const node of nodes) {
    if (node.graph === gm.graph && gm.graph.find(node.name) === node) continue;
    throw fxError("NodeForeign", `${node.name} is not found in graph module ${gm.className}`, { node: node.name });
  }
  if (!validatePartition(nodes)) throw fxError("GraphArgument", "Invalid partition, found dependency cycles");
  const subgraph = new Graph();
  const inside = new Map<Node, Node>();
  const inputs = new Map<Node, Node>();
  for (const node of nodes) {
    const copy = subgraph.nodeCopy(node, (it) => {
      const known = inside.get(it) ?? inputs.get(it);
      if (known !== undefined) return known;
      const input = inFrontOf(subgraph, it);
      inputs.set(it, input);
      return input;
    });
    inside.set(node, copy);
  }
  const outputs = nodes.filter((it) => [...it.users].some((user) => !inside.has(user)));
  const results = outputs.map((it) => inside.get(it) as Node);
  subgraph.output(
    results.length === 1 && options.alwaysReturnTuple !== true ? (results[0] as Node) : tuple(...results),
  );
  subgraph.lint();
  const { module } = liftSubgraphAsModule(gm, subgraph, { className: moduleName });
  return { module, inputs: [...inputs.keys()], outputs };
}

/** An input for a node around, behind those that there are. */
function inFrontOf(graph: Graph, { name, type, meta }: Node): Node {
  const input = graph.placeholder(name, type);
  for (const [key, value] of meta) input.meta.set(key, value);
  return input;
}

/**
 * Calls a module in a graph, and uses what it gives where some nodes are used: `insert_subgm`. It stands behind the last of them, or
 * behind `insertionPoint`.
 *
 * @example
 * ```ts
 * insertSubgm(gm, module, inputs, outputs);
 * ```
 */
export function insertSubgm(
  gm: GraphModule,
  subGm: GraphModule,
  origInputs: readonly Node[],
  origOutputs: readonly Node[],
  insertionPoint?: Node,
): GraphModule {
  checkGraphModule("insertSubgm", gm);
  checkGraphModule("insertSubgm", subGm);
  checkList("insertSubgm", "origInputs", origInputs);
  checkList("insertSubgm", "origOutputs", origOutputs);
  const outputs = new Set(origOutputs);
  const point = insertionPoint ?? Array.from(gm.graph.nodes).findLast((it) => outputs.has(it));
  if (point === undefined) {
    throw fxError(
      "GraphArgument",
      "Cannot determine insertion point: no insertion_point provided and orig_outputs is empty. Pass the last partition node as insertion_point.",
    );
  }
  const name = subGm.className;
  gm.addSubmodule(name, subGm);
  const call = gm.graph.insertingAfter(point, () => gm.graph.callModule(name, [...origInputs]));
  const [result] = subGm.graph.outputNode()?.args ?? [];
  const [only] = origOutputs;
  if (only === undefined) return gm;
  if (origOutputs.length === 1 && isNode(result)) {
    only.replaceAllUsesWith(call, { propagateMeta: true });
    return gm;
  }
  let last = call;
  for (const [at, output] of origOutputs.entries()) {
    const item = gm.graph.insertingAfter(last, () => gm.graph.callFunction("operator.getitem", [call, at]));
    output.replaceAllUsesWith(item, { propagateMeta: true });
    last = item;
  }
  const vals = origOutputs.map((it) => (it.meta.get("val") as Val | undefined) ?? null);
  call.meta.set("val", new ValSequence("tuple", vals));
  return gm;
}

/**
 * Erases nodes, the last one first: `erase_nodes`.
 *
 * @example
 * ```ts
 * eraseNodes(gm, [conv, relu]);
 * ```
 */
export function eraseNodes(gm: GraphModule, nodes: readonly Node[]): void {
  checkGraphModule("eraseNodes", gm);
  checkList("eraseNodes", "nodes", nodes);
  for (const node of nodes.toReversed()) gm.graph.eraseNode(node);
}

/**
 * Takes calls of `copy_` out that copy a tensor to itself: `remove_self_clone`.
 *
 * @example
 * ```ts
 * removeSelfClone(program.graph);
 * ```
 */
export function removeSelfClone(graph: Graph): void {
  checkGraph("removeSelfClone", graph);
  for (const node of Array.from(graph.nodes)) {
    const [self, source] = node.args;
    if (node.target !== "torch.ops.aten.copy_.default" || !isNode(self) || self !== source) continue;
    node.replaceAllUsesWith(self);
    graph.eraseNode(node);
  }
}

/**
 * A name that is one of Python's and that the module has nothing under: `get_unique_attr_name_in_module`.
 *
 * @example
 * ```ts
 * getUniqueAttrNameInModule(gm, "a.weight"); // "a_weight", or "a_weight_1"
 * ```
 */
export function getUniqueAttrNameInModule(module: GraphModule, name: string): string {
  checkGraphModule("getUniqueAttrNameInModule", module);
  checkText("getUniqueAttrNameInModule", "the name", name);
  let res = name.replaceAll(/\W+/g, "_");
  if (/^\d/.test(res)) res = `_${res}`;
  while (module.findAttribute(res) !== undefined || res in module) {
    const [, base, number] = /^(.*)_(\d+)$/.exec(res) ?? [];
    res = base === undefined ? `${res}_1` : `${base}_${Number(number) + 1}`;
  }
  return res;
}
