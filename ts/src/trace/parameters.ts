/**
 * What a traced function takes, from its source or from the graph that it runs.
 *
 * @module
 */
import type { ArgInput } from "../graph/args.ts";
import { PyTreeCodeGen } from "../graph/codegen/pytree.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { Interpreter } from "../fx/interpreter.ts";
import { Module, unboundForwardOf } from "../nn/module.ts";
import { functionSignature, type Parameter, type ParameterDefault } from "./analysis/signature.ts";
import { InputPacking, type PackedPart } from "./packing.ts";
import { traceError } from "../record/stack.ts";
import type { Traceable } from "./tracer.ts";

/** A parameter, or a property of an options parameter. */
interface Named {
  readonly name: string;
  readonly default?: ArgInput | undefined;
  readonly type?: string | undefined;
}

/** What a traced function takes: one value, any number of them, or options by name. */
export type InputParameter =
  | (Named & { readonly kind: "single" })
  | (Named & { readonly kind: "rest" /** How many there are, where that is known. */; readonly count?: number })
  | (Named & { readonly kind: "options"; readonly properties: readonly Named[] });

/** The parameters of a function. */
export interface Parameters {
  readonly list: readonly InputParameter[];
  /** What the function is called in messages. */
  readonly what: string;
}

/** The function that a trace of this runs: of a module, the method. */
export function tracedFunction(root: Traceable, method: string): (...args: unknown[]) => unknown {
  if (!(root instanceof Module)) return root as (...args: unknown[]) => unknown;
  if (root instanceof GraphModule && method === "forward" && takesRest(root)) {
    // `*args` is one traced value here, and would otherwise take all arguments that follow.
    return (...args) => new Interpreter(root).boxedRun(args);
  }
  const found: unknown = method === "forward" ? unboundForwardOf(root) : Reflect.get(root, method);
  if (typeof found === "function") return found as (...args: unknown[]) => unknown;
  throw traceError("TraceUnsupported", `traced method "${method}" doesn't exist in ${root.className}`, {
    help: "tracedMethod is the name of a method of the module that is traced",
  });
}

/** The parameters of what is traced. */
export function parametersOf(root: Traceable, method: string): Parameters {
  const what = root instanceof Module ? `${method} of ${root.className}` : root.name || "the function";
  if (root instanceof GraphModule && method === "forward") return { list: ofGraph(root), what };
  const signature = functionSignature(tracedFunction(root, method));
  if (typeof signature === "string") {
    throw traceError("TraceUnsupported", `the parameters of ${what} are not known: ${signature}`, {
      help: "trace a function that is written in JavaScript: (x, y) => fn(x, y)",
    });
  }
  if (signature.isAsync || signature.isGenerator) {
    throw traceError("TraceUnsupported", `${what} is ${signature.isAsync ? "async" : "a generator"}`, {
      help: "a function that is traced must be synchronous and give its result at once",
    });
  }
  const { params } = signature;
  if (params.length === 0 && signature.readsArguments) {
    throw traceError("TraceUnsupported", `${what} reads \`arguments\` and has no parameters: nobody knows its inputs`, {
      help: "name the parameters: (x, y) => …; a trace has an input for each",
    });
  }
  return { list: params.map((it, at) => ofParameter(it, at === params.length - 1)), what };
}

/** A graph module takes what its graph was traced from: a retrace gets one input for each of its parameters. */
function ofGraph({ graph }: GraphModule): InputParameter[] {
  const { codegen } = graph;
  const placeholders = graph.findNodes({ op: "placeholder" });
  const packing = codegen instanceof PyTreeCodeGen ? codegen.info.inSpec : undefined;
  if (!(packing instanceof InputPacking)) {
    return placeholders.map(({ target, args, type }) => ({ kind: "single", name: target, default: args[0], type }));
  }
  let at = 0;
  const defaultOf = ({ spec }: PackedPart): ArgInput | undefined => {
    const [node] = placeholders.slice(at, (at += spec.numLeaves));
    return spec.isLeaf ? node?.args[0] : undefined;
  };
  return packing.parameters.map(({ name, kind, parts }) => {
    const defaults = parts.map(defaultOf);
    if (kind === "options") {
      return { kind, name, properties: parts.map((it, index) => ({ name: it.name, default: defaults[index] })) };
    }
    return kind === "rest" ? { kind, name, count: parts.length } : { kind, name, default: defaults[0] };
  });
}

function takesRest({ graph }: GraphModule): boolean {
  return graph.findNodes({ op: "placeholder" }).some(({ target }) => target.startsWith("*"));
}

function ofParameter({ name, kind, default: given, properties }: Parameter, isLast: boolean): InputParameter {
  if (kind === "rest") return { kind, name };
  if (properties === undefined || !isLast) return { kind: "single", name, default: valueOf(given) };
  // Where the whole object has a default with values, what a property has when it is not given depends on the call.
  const isPlain = given === undefined || /^\{\s*\}$/.test(given.source);
  return {
    kind: "options",
    name,
    properties: properties.map((it) => ({ name: it.key, default: isPlain ? valueOf(it.default) : undefined })),
  };
}

function valueOf(given: ParameterDefault | undefined): ArgInput | undefined {
  // A parameter that is undefined unless it is given may be left out, so it has a default all the same.
  return given?.isConstant === true ? (given.value ?? null) : undefined;
}
