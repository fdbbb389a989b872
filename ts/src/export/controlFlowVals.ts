/**
 * What is known of the results of control flow, from what its graphs give.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { type Arg, isNode } from "../graph/args.ts";
import { formatExpression } from "../graph/expression.ts";
import type { Graph } from "../graph/graph.ts";
import { SymExpr, type SymInt, TensorMeta, type Val } from "../graph/val.ts";
import { traceError } from "../record/stack.ts";

/** A call of graphs. */
export interface ControlFlowCall {
  /** The graphs, in their order. */
  readonly graphs: readonly (Graph | undefined)[];
  /** What is known of the operands, list by list. */
  readonly operands: readonly (readonly Val[])[];
  /** What is known of so many results of single slices, stacked. */
  readonly stack: (slice: TensorMeta, count: SymInt) => TensorMeta;
}

/** What is known of the results of a call, given the qualified name of what is called. */
export function valsOfControlFlow(target: string, { graphs, operands, stack }: ControlFlowCall): readonly Val[] {
  const [given = [], others = []] = graphs.map(outputsOf);
  const [first = [], second = []] = operands;
  const stacked = (slices: readonly Val[], [xs]: readonly Val[]): Val[] => {
    const count = xs instanceof TensorMeta ? (xs.sizes[0] ?? 0) : 0;
    return slices.map((it) => (it instanceof TensorMeta ? stack(it, count) : it));
  };
  switch (target) {
    case "torch.ops.higher_order.cond":
      return agreed(given, others);
    case "torch.ops.higher_order.while_loop":
      return first;
    case "torch.ops.higher_order.map_impl":
      return stacked(given, first);
    case "torch.ops.higher_order.scan":
      return [...first, ...stacked(given.slice(first.length), second)];
    default:
      throw fxError("Internal", `nothing is known of what ${target} gives`);
  }
}

/** What is known of the outputs of a graph. */
function outputsOf(graph: Graph | undefined): readonly Val[] {
  const leaves = graph?.outputNode()?.args[0];
  if (isNode(leaves)) return [leaves.meta.get("val") as Val];
  return Array.from((leaves ?? []) as readonly Arg[], (it) => (isNode(it) ? (it.meta.get("val") as Val) : (it as Val)));
}

/** What two branches give alike; anything else is refused. */
function agreed(onTrue: readonly Val[], onFalse: readonly Val[]): readonly Val[] {
  for (const [at, val] of onTrue.entries()) {
    const other = onFalse[at];
    if (!(val instanceof TensorMeta) || !(other instanceof TensorMeta) || describe(val) === describe(other)) continue;
    throw traceError(
      "TraceUnsupported",
      `the branches of cond give ${describe(val)} and ${describe(other)} for result ${at}`,
      { help: "give tensors of one dtype and shape from both functions" },
    );
  }
  return onTrue;
}

function describe({ dtype, sizes }: TensorMeta): string {
  return `${dtype}[${sizes.map((it) => (it instanceof SymExpr ? formatExpression(it) : it)).join(", ")}]`;
}
