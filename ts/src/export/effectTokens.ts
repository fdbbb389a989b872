/**
 * Effect tokens: values that carry nothing and keep calls with effects in order.
 *
 * A call with an effect is `with_effects(token, op, *args)` in a functional program, and gives the next token before its
 * results. A graph that runs from top to bottom needs no tokens: PyTorch takes them out of what `module()` gives as well.
 *
 * @module
 */
import { fxError, type FxError } from "../base/errors.ts";
import { isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { ValSequence } from "../graph/val.ts";
import { OpArg } from "../base/values.ts";

/** Calls what `with_effects` calls directly, so that nothing uses the tokens but what returns them. */
export function removeEffectTokens(graph: Graph): void {
  const target = "torch.ops.higher_order.with_effects";
  for (const node of graph.findNodes({ op: "call_function", target })) removeToken(graph, node);
}

function removeToken(graph: Graph, node: Node): void {
  const [token, op, ...args] = node.args;
  const val = node.meta.get("val");
  if (!isNode(token) || !(op instanceof OpArg)) throw invalid(node, "with_effects takes a token and an operator");
  if (!(val instanceof ValSequence)) throw invalid(node, "nothing is known of what with_effects gives");
  const [, first = null, ...others] = val.items;
  const call = graph.insertingBefore(node, () => graph.callFunction(op.name, args, node.kwargs));
  for (const [key, value] of node.meta) call.meta.set(key, value);
  call.meta.set("val", others.length > 0 ? new ValSequence(val.kind, [first, ...others]) : first);
  for (const user of Array.from(node.users)) {
    const [, index] = user.args;
    if (user.target !== "operator.getitem" || typeof index !== "number") {
      throw invalid(user, "the results of with_effects are taken one by one");
    }
    if (index > 0 && others.length > 0) {
      const known = user.meta.get("val");
      user.args = [call, index - 1];
      user.meta.set("val", known);
      continue;
    }
    for (const it of Array.from(user.users)) {
      const known = it.meta.get("val");
      it.replaceInputWith(user, index === 0 ? token : call);
      if (known !== undefined) it.meta.set("val", known);
    }
    graph.eraseNode(user);
  }
  graph.eraseNode(node);
}

function invalid({ name }: Node, what: string): FxError {
  return fxError("GraphInvalid", what, { node: name });
}
