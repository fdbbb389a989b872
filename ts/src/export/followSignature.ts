/**
 * Signatures of programs whose graphs were changed.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import { List, Tuple } from "../base/values.ts";
import { type Argument, GraphSignature } from "./signature.ts";

/** The signature with the names that inputs and results have in a graph that passes changed. */
export function followSignature(signature: GraphSignature, graph: Graph): GraphSignature {
  const inputs = graph.findNodes({ op: "placeholder" });
  if (inputs.length !== signature.inputSpecs.length) {
    throw changed("inputs", inputs.length, signature.inputSpecs.length);
  }
  const result = graph.outputNode()?.args[0];
  const results = result instanceof Tuple || result instanceof List ? [...result] : [];
  if (results.length !== signature.outputSpecs.length) {
    throw changed("outputs", results.length, signature.outputSpecs.length);
  }
  return new GraphSignature(
    signature.inputSpecs.map((spec, at) => ({ ...spec, arg: renamed(spec.arg, inputs[at]?.name) })),
    signature.outputSpecs.map((spec, at) => {
      const value = results[at] ?? null;
      return isNode(value) ? { ...spec, arg: renamed(spec.arg, value.name) } : spec;
    }),
  );
}

/** Constants and custom objects keep their names, as in PyTorch. */
function renamed(arg: Argument, name = arg.name): Argument {
  return arg.type === "constant" || arg.type === "customObj" ? arg : { ...arg, name };
}

function changed(what: string, now: number, before: number) {
  return fxError(
    "PassFailed",
    `Number of ${what} changed after transformation: there are ${now}, and there were ${before}`,
    {
      help: "a pass over a program keeps its inputs and results in their order",
    },
  );
}
