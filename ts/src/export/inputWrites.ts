/**
 * Writes of control flow to what it is given: PyTorch's higher-order operators take functions without them, since a graph that
 * is called on a condition could not say what it changed.
 *
 * @module
 */
import { WRITING_OPERATORS } from "../../../bindings/effects.ts";
import type { FxError } from "../base/errors.ts";
import { schemasOf } from "../functions/schemas.ts";
import { type Arg, forEachNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { traceError } from "../record/stack.ts";

/**
 * Refuses a graph of control flow that writes to one of its inputs, or to a view of one; what it writes to values of its own is
 * its business.
 *
 * @example
 * ```ts
 * refuseInputWrites(tracer.traceSubgraph(fn, names, call).graph);
 * ```
 */
export function refuseInputWrites(
  graph: Graph,
  refusal: (node: Node, input: Node) => FxError | undefined = refused,
): void {
  for (const [node, input] of inputWrites(graph, ["placeholder"])) {
    const error = refusal(node, input);
    if (error !== undefined) throw error;
  }
}

/** Each node that may write to an input or to a view of one, with that input; inputs are the nodes of these kinds. */
export function* inputWrites(
  graph: Graph,
  kinds: readonly ("placeholder" | "get_attr")[],
): IterableIterator<readonly [node: Node, input: Node]> {
  // For each node the inputs in whose memory it may lie.
  const inputsOf = new Map<Node, ReadonlySet<Node>>();
  for (const node of graph.nodes) {
    if (kinds.some((it) => it === node.op)) inputsOf.set(node, new Set([node]));
    if (node.op !== "call_function") continue;
    const reached = new Set<Node>();
    for (const { value, isMutated, isAliased } of memoryOf(node)) {
      const inputs: Node[] = [];
      forEachNode(value, (it) => {
        for (const input of inputsOf.get(it) ?? []) inputs.push(input);
      });
      for (const input of inputs) {
        if (isMutated) yield [node, input];
        if (isAliased) reached.add(input);
      }
    }
    if (reached.size > 0) inputsOf.set(node, reached);
  }
}

interface Touched {
  readonly value: Arg;
  readonly isMutated: boolean;
  readonly isAliased: boolean;
}

/** What a call does to the memory of its arguments: whether it writes there, and whether its results lie there. */
function memoryOf({ target, args, kwargs }: Node): Touched[] {
  if (target === "operator.getitem") return [{ value: args[0] as Arg, isMutated: false, isAliased: true }];
  const operator = target.slice("torch.ops.".length);
  const [namespace = "", called = "", overload = ""] = operator.split(".");
  const schema = schemasOf(namespace === "aten" ? called : `${namespace}.${called}`).find(
    (it) => it.overload === (overload === "default" ? "" : overload),
  );
  const training = WRITING_OPERATORS[operator];
  // Normalizations update their running statistics in training, which their schemas do not say.
  const updates = training !== undefined && training >= 0 && args[training] === true;
  return (schema?.parameters ?? []).flatMap((parameter, at) => {
    const value = args[at] ?? kwargs[parameter.key];
    if (value === undefined) return [];
    const isMutated = parameter.isMutated || (updates && /^running_(mean|var)$/.test(parameter.key));
    return [{ value, isMutated, isAliased: parameter.isAliased }];
  });
}

function refused(node: Node, input: Node): FxError {
  return traceError(
    "TraceUnsupported",
    "Higher order ops do not support input mutation: a function of control flow writes to its input",
    {
      node: input.name,
      op: node.target.replace(/^torch\.ops\./, ""),
      help: "return the new value from the function, and write it to the input outside; or write to a clone()",
    },
  );
}
