/**
 * The constants of an exported module, which are inputs of the graph.
 *
 * @module
 */
import type { Node } from "../graph/node.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** A constant that the module uses and that became an input of the graph. */
export interface LiftedConstant {
  readonly node: Node;
  /** Its qualified name: where the module has it, or a new one. */
  readonly fqn: string;
  readonly tensor: Tensor;
}

/** What becomes of a tensor of numbers before anything uses it. */
const LITERAL_COPIES = new Set(["torch.ops.aten.lift_fresh_copy.default", "torch.ops.aten.detach_.default"]);

/** The constants that the graph uses, with their names; `pathOf` says where the module has them. The others are taken out. */
export function usedConstants(
  lifted: readonly { readonly node: Node; readonly tensor: Tensor }[],
  pathOf: (tensor: Tensor) => string | undefined,
): LiftedConstant[] {
  let count = 0;
  return lifted
    .filter(({ node }) => !removeUnused(node))
    .map(({ node, tensor }) => ({ node, tensor, fqn: pathOf(tensor) ?? `lifted_tensor_${count++}` }));
}

/** Takes out a constant that is copied at most, and whether it was one. */
function removeUnused(node: Node): boolean {
  const chain = [node];
  for (let at = node; at.users.size > 0; ) {
    const [user] = at.users;
    if (at.users.size > 1 || user === undefined || !LITERAL_COPIES.has(user.target)) return false;
    chain.push(user);
    at = user;
  }
  for (const it of chain.toReversed()) it.graph.eraseNode(it);
  return true;
}
