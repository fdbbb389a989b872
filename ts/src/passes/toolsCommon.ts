/**
 * What passes ask of nodes: `torch.fx.passes.tools_common`.
 *
 * @module
 */
import { checkNode } from "../graph/args.ts";
import type { DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { type NamedTarget, targetOf } from "../graph/target.ts";
import { TensorMeta } from "../graph/val.ts";
import type { TensorMetadata } from "../engine/tensorMetadata.ts";
import type { Module } from "../nn/module.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";

/** Whether a node calls something. */
export function isCallable(node: Node): boolean {
  return node.op === "call_function" || node.op === "call_method" || node.op === "call_module";
}

/**
 * The name of a function or class for tables of supported operators: `get_acc_ops_name`. What is in a module of acc_ops loses
 * the rest of its path, and `torch._ops` is called by its public name.
 *
 * @example
 * ```ts
 * getAccOpsName("glow.fb.fx.acc_ops.linear"); // "acc_ops.linear"
 * ```
 */
export function getAccOpsName(target: string | NamedTarget): string {
  const name = targetOf(target);
  const dot = name.lastIndexOf(".");
  if (dot < 0) return name;
  const [path, last] = [name.slice(0, dot), name.slice(dot + 1)];
  return path.includes("acc_ops") ? `acc_ops.${last}` : `${path.replaceAll("torch._ops", "torch.ops")}.${last}`;
}

/**
 * What a node calls: the qualified name of a function, the name of a method, the class name of a module.
 *
 * @example
 * ```ts
 * getNodeTarget(gm.namedModules(), node); // "torch.add"
 * ```
 */
export function getNodeTarget(submodules: ReadonlyMap<string, Module>, node: Node): string {
  checkNode("getNodeTarget", node);
  if (!isCallable(node)) {
    throw fxError("InvalidArgument", `expected a node that calls something, found ${node.op}`, { node: node.name });
  }
  if (node.op === "call_method") return node.target;
  if (node.op === "call_function") return getAccOpsName(node.target);
  const module = submodules.get(node.target);
  if (module === undefined) {
    throw fxError("AttributeMissing", `there is no module \`${node.target}\``, { node: node.name });
  }
  return getAccOpsName(module.className);
}

/**
 * Whether the value of a node is a tensor, by what a shape propagation or an export noted about it.
 *
 * @example
 * ```ts
 * new ShapeProp(gm).propagate(x);
 * isNodeOutputTensor(node);
 * ```
 */
export function isNodeOutputTensor(node: Node): boolean {
  checkNode("isNodeOutputTensor", node);
  return dtypeOf(node) !== undefined;
}

/** The dtype of the value of a node, where it is known to be a tensor. */
export function dtypeOf(node: Node): DType | undefined {
  const noted = node.meta.get("tensor_meta") as TensorMetadata | undefined;
  if (noted?.dtype !== undefined) return noted.dtype;
  const val = node.meta.get("val");
  return val instanceof TensorMeta ? val.dtype : undefined;
}

/**
 * The groups of these nodes that must stay together, since they pass each other values that are no tensors: what
 * `FxNetAccFusionsFinder` finds. For each node of a group the group.
 *
 * @example
 * ```ts
 * const fusions = findAccFusions(gm, new Set(supported));
 * ```
 */
export function findAccFusions(module: GraphModule, accNodes: ReadonlySet<Node>): Map<Node, ReadonlySet<Node>> {
  checkGraphModule("findAccFusions", module);
  if (!(accNodes instanceof Set)) {
    throw fxError("InvalidArgument", "findAccFusions takes the nodes as a set", { help: "new Set(nodes)" });
  }
  const nodes = [...module.graph.nodes];
  const options = { isAcc: nodes.map((it) => accNodes.has(it)), isTensor: nodes.map(isNodeOutputTensor) };
  const { answer, before } = runPass<number[][], GraphModule>(module, "find_acc_fusions", { options });
  const groups = answer.map((places) => new Set(places.map((it) => before[it] as Node)));
  return new Map(groups.flatMap((group) => Array.from(group, (it) => [it, group] as const)));
}
