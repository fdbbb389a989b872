/**
 * Sizes of nodes, and other targets for nodes: `torch.fx.passes.graph_manipulation`.
 *
 * @module
 */
import { checkNode } from "../graph/args.ts";
import type { SizeAnswer, TensorNote } from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import type { Opcode } from "../base/opcode.ts";
import { type NamedTarget, targetOf } from "../graph/target.ts";
import { TensorMeta } from "../graph/val.ts";
import { ShapeProp } from "./shapeProp.ts";
import type { TensorMetadata } from "../engine/tensorMetadata.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkList } from "../base/given.ts";

/** How many bytes a node needs: FX's `size_bytes`. */
export type SizeBytes = Readonly<SizeAnswer>;

/**
 * The size of every node before the output: `get_size_of_all_nodes`. Where inputs are given, `ShapeProp` runs first. FX notes
 * the sizes on the nodes; here they are returned.
 *
 * @example
 * ```ts
 * const sizes = getSizeOfAllNodes(gm, [x]);
 * sizes.get(node)?.totalSize;
 * ```
 */
export function getSizeOfAllNodes(module: GraphModule, args?: readonly unknown[]): Map<Node, SizeBytes> {
  checkGraphModule("getSizeOfAllNodes", module);
  if (args !== undefined) checkList("getSizeOfAllNodes", "args", args);
  if (args !== undefined) new ShapeProp(module).propagate(...args);
  return sizesWith(module, tensorNotes(module));
}

/**
 * The size of one node: `get_size_of_node`. A node without parameters has the size of its result.
 *
 * @example
 * ```ts
 * new ShapeProp(gm).propagate(x);
 * getSizeOfNode(gm, node).outputSize;
 * ```
 */
export function getSizeOfNode(module: GraphModule, node: Node): SizeBytes {
  checkGraphModule("getSizeOfNode", module);
  getTensorMeta(node);
  // Nothing has to be known of the others.
  const unknown = { dtype: "float32", shape: [0] };
  const tensors = Array.from(module.graph.nodes, (it) => (it === node ? tensorNote(it) : unknown));
  const found = sizesWith(module, tensors).get(node);
  if (found === undefined) throw fxError("NodeForeign", `${node.name} is not in the graph`, { node: node.name });
  return found;
}

/**
 * What is known of the tensor that a node gives: `get_tensor_meta`. What a shape propagation noted goes before what an export
 * did.
 *
 * @example
 * ```ts
 * new ShapeProp(gm).propagate(x);
 * getTensorMeta(node).dtype;
 * ```
 */
export function getTensorMeta(node: Node): TensorMetadata | TensorMeta {
  checkNode("getTensorMeta", node);
  const noted = notedTensor(node) ?? node.meta.get("val");
  if (noted instanceof TensorMeta) return noted;
  if (noted !== undefined) return noted as TensorMetadata;
  throw fxError("PassFailed", `Node ${node.name} has no tensor metadata associated with it!`, {
    node: node.name,
    help: "Check that shape propagation has run.",
  });
}

/**
 * Gives every node of this op and target another op and target, with its name and arguments: `replace_target_nodes_with`.
 *
 * @example
 * ```ts
 * replaceTargetNodesWith(gm, "call_function", "torch.relu", "call_method", "relu");
 * ```
 */
export function replaceTargetNodesWith(
  module: GraphModule,
  oldOp: Opcode,
  oldTarget: string | NamedTarget,
  newOp: Opcode,
  newTarget: string | NamedTarget,
): void {
  const options = { oldOp, oldTarget: targetOf(oldTarget), newOp, newTarget: targetOf(newTarget) };
  runPass<null, GraphModule>(module, "replace_target_nodes_with", { options, notes: true });
}

/** For each node what a shape propagation noted about its tensor: the engine takes `val` where it noted nothing. */
export function tensorNotes(module: GraphModule): (TensorNote | null)[] {
  return Array.from(module.graph.nodes, tensorNote);
}

function tensorNote(node: Node): TensorNote | null {
  const noted = notedTensor(node);
  return noted === undefined ? null : { dtype: noted.dtype, shape: [...noted.shape] };
}

/** What a shape propagation noted, where the value is a single tensor. */
function notedTensor(node: Node): TensorMetadata | undefined {
  const noted = node.meta.get("tensor_meta") as TensorMetadata | undefined;
  return noted?.dtype === undefined || noted.shape === undefined ? undefined : noted;
}

function sizesWith(module: GraphModule, tensors: readonly (TensorNote | null)[]): Map<Node, SizeBytes> {
  const how = { options: { tensors }, notes: true };
  const { answer, before } = runPass<(SizeAnswer | null)[], GraphModule>(module, "get_size_of_all_nodes", how);
  return new Map(answer.flatMap((it, at) => (it === null ? [] : [[before[at] as Node, it] as const])));
}
