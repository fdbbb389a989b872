/**
 * The inputs of a trace: a placeholder for each parameter of the traced function.
 *
 * @module
 */
import type { Graph } from "../graph/graph.ts";
import { Module, unboundForwardOf } from "../nn/module.ts";
import { functionSignature } from "./analysis/signature.ts";
import { traceError } from "./stack.ts";
import type { Traceable, TraceOptions } from "./tracer.ts";
import type { TracerBase } from "./tracerBase.ts";

/** Values that are fixed while tracing, by the name of the parameter or in order. */
export type ConcreteArgs = Readonly<Record<string, unknown>> | readonly unknown[];

/** The inputs of a trace. */
export interface Inputs {
  /** Calls the function with them. */
  run(fn: (...args: unknown[]) => unknown): unknown;
  /** Notes in the graph how its inputs and outputs are to be packed. */
  finish(graph: Graph): void;
}

/** Makes the placeholders of a function. */
export function createInputs(tracer: TracerBase, root: Traceable, { annotations = {} }: TraceOptions): Inputs {
  const fn = root instanceof Module ? unboundForwardOf(root) : root;
  const signature = functionSignature(fn);
  if (typeof signature === "string") {
    throw traceError("TraceUnsupported", `the parameters of ${nameOf(root)} are not known: ${signature}`, {
      help: "trace a function that is written in JavaScript: (x, y) => fn(x, y)",
    });
  }
  if (signature.isAsync || signature.isGenerator) {
    throw traceError("TraceUnsupported", `${nameOf(root)} is ${signature.isAsync ? "async" : "a generator"}`, {
      help: "a function that is traced must be synchronous and give its result at once",
    });
  }
  const placeholder = (name: string, defaults: readonly unknown[]): unknown =>
    tracer.createProxy("placeholder", name, defaults, {}, undefined, annotations[name]);
  const args = signature.params.map((param) => {
    const { name, kind } = param;
    if (kind === "rest") {
      throw traceError("TraceUnsupported", `${nameOf(root)} takes any number of arguments, as \`...${name}\``, {
        help: `say how many with concreteArgs: { ${name}: [PH, PH] }, or name the parameters`,
      });
    }
    const { default: given } = param;
    return placeholder(name, given?.isConstant === true && given.value !== undefined ? [given.value] : []);
  });
  return { run: (call) => call(...args), finish: () => undefined };
}

function nameOf(root: Traceable): string {
  return root instanceof Module ? `forward of ${root.className}` : root.name || "the function";
}
