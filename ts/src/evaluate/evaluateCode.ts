/**
 * Running generated code: an import of its own, `tracefx/evaluate`, since it evaluates text as JavaScript, which a page
 * with a strict content security policy forbids. Nothing else in the package does.
 *
 * @module
 */
import { addContext, fxError } from "../base/errors.ts";
import { functionNamed } from "../functions/table.ts";
import { type CodeGlobal, functionPath } from "../graph/codegen/globals.ts";
import { isIdentifier } from "../graph/codegen/text.ts";
import { type BodyTransformer, CodeGen } from "../graph/codegen/codegen.ts";
import type { GeneratedCode } from "../graph/codegen/generate.ts";
import type { Graph } from "../graph/graph.ts";
import { placeKeywords } from "../graph/keywords.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import * as exported from "../index.ts";
import { hasAttributeValue } from "../graph/attribute.ts";
import { missingInput, placeOf } from "../fx/interpreter.ts";

/** A graph as a JavaScript function. */
export type EvaluatedFunction = (...args: readonly unknown[]) => unknown;

/** Where a function is: the number of the node whose statement runs. */
interface Position {
  at: number;
}

/** One evaluated function, and what it was made of. */
interface Evaluated {
  readonly run: EvaluatedFunction;
  readonly graph: Graph;
  readonly version: number;
  readonly codegen: CodeGen;
  readonly transformer: BodyTransformer | undefined;
  /** What the graph refers to. */
  readonly paths: readonly string[];
  readonly nodes: readonly Node[];
  readonly position: Position;
}

/** The name of the {@link Position} in the code; no variable of generated code begins with a dollar sign. */
const POSITION = "$position";

let files = 0;

/**
 * The graph of a module as a JavaScript function, made of the code that `gm.code` shows. It takes what the module takes
 * and gives the same; after an edit of the graph the next call evaluates it again.
 *
 * Tensors in between are left to the garbage collector, unlike in `gm.forward`; `tidy(() => run(x))` disposes them.
 *
 * @example
 * ```ts
 * import { evaluateCode } from "tracefx/evaluate";
 *
 * const run = evaluateCode(symbolicTrace(model));
 * const logits = run(image);
 * ```
 */
export function evaluateCode(module: GraphModule): EvaluatedFunction {
  let evaluated = evaluate(module);
  return (...args) => {
    if (isStale(evaluated, module.graph)) evaluated = evaluate(module);
    return call(module, evaluated, args);
  };
}

function isStale({ graph, version, codegen, transformer }: Evaluated, now: Graph): boolean {
  if (graph !== now || version !== now.version) return true;
  return codegen !== now.codegen || transformer !== now.bodyTransformer;
}

function call(module: GraphModule, evaluated: Evaluated, args: readonly unknown[]): unknown {
  const { run, graph, paths, nodes, position } = evaluated;
  // Code finds undefined where an attribute is missing; the interpreter says which one.
  if (!paths.every((path) => hasAttributeValue(module, path))) return module.forward(...args);
  const given = placeKeywords(graph, args);
  checkInputs(graph, given);
  const outer = position.at;
  try {
    return run.apply(module, [...given]);
  } catch (error) {
    const node = nodes[position.at];
    if (node !== undefined && error instanceof Error) addContext(error, node.name, placeOf(node));
    throw error;
  } finally {
    // A call inside a call of the same function must not change where the outer one is.
    position.at = outer;
  }
}

/** Asks for the inputs that the interpreter asks for; in JavaScript what is left out is undefined. */
function checkInputs(graph: Graph, given: readonly unknown[]): void {
  if (graph.codegen.processInputs !== CodeGen.prototype.processInputs) return;
  let at = 0;
  for (const node of graph.nodes) {
    if (node.op !== "placeholder") continue;
    if (node.target.startsWith("*")) return;
    if (at++ < given.length || node.args.length > 0) continue;
    const error = missingInput(node.target);
    addContext(error, node.name, placeOf(node));
    throw error;
  }
}

function evaluate(module: GraphModule): Evaluated {
  const { graph } = module;
  const { codegen, version, bodyTransformer: transformer } = graph;
  const nodes = [...graph.nodes];
  const position = { at: -1 };
  const { source, globals } = located(graph, nodes);
  const names = [...globals.keys()];
  for (const name of names) {
    if (!isIdentifier(name)) throw fxError("Internal", "generated code refers to something that is no identifier");
  }
  const make = functionOf(
    [POSITION, ...names],
    `"use strict"; return ${source}\n//# sourceURL=tracefx-graph-${files++}.js`,
  );
  const values = Array.from(globals, ([name, global]) => valueOf(name, global, graph));
  const paths = new Set(nodes.filter(({ op }) => op === "get_attr" || op === "call_module").map((it) => it.target));
  const run = make(position, ...values) as EvaluatedFunction;
  return { run, graph, version, codegen, transformer, paths: [...paths], nodes, position };
}

/** The code of a graph that notes before each statement which node it computes. */
function located(graph: Graph, nodes: readonly Node[]): GeneratedCode {
  const numbers = new Map(nodes.map((node, at) => [node, at]));
  using _located = graph.onGenerateCode((current) => (body) => {
    const lines = current?.(body) ?? body;
    return lines.flatMap((line) => {
      const at = line.node === undefined ? undefined : numbers.get(line.node);
      return at === undefined ? [line] : [{ text: `${POSITION}.at = ${at};` }, line];
    });
  });
  return graph.generateCode();
}

function functionOf(names: readonly string[], body: string): (...values: unknown[]) => unknown {
  try {
    // oxlint-disable-next-line no-new-func -- evaluating code is what this entry is for
    return new Function(...names, body) as (...values: unknown[]) => unknown;
  } catch (cause) {
    if (!(cause instanceof EvalError)) throw cause;
    throw fxError("NotImplemented", "this host forbids making functions of text", {
      cause,
      help: "run the graph without generated code, gm.forward(...); or allow it: 'unsafe-eval' in the content security policy",
    });
  }
}

/** The value of a free name of generated code. */
function valueOf(name: string, global: CodeGlobal, graph: Graph): unknown {
  switch (global.kind) {
    case "export":
      return namespaceOf(name, graph) ?? Reflect.get(exported, name);
    case "function":
      return functionNamed(global.target);
    case "value":
      return global.value;
    default:
      return global satisfies never;
  }
}

/** The export of this name with the functions that the graph calls, so that they need not be there already. */
function namespaceOf(name: string, graph: Graph): object | undefined {
  const targets = new Map<string, string>();
  for (const { op, target } of graph.nodes) {
    const path = op === "call_function" ? functionPath(target) : undefined;
    if (path?.[0] !== name) continue;
    const other = targets.get(path.join("."));
    if (other !== undefined && other !== target) {
      throw fxError("GraphArgument", `${other} and ${target} have the same name in code`, {
        help: "gm.forward(...) runs the graph without generated code",
      });
    }
    targets.set(path.join("."), target);
  }
  if (targets.size === 0) return undefined;
  const res = extended(Reflect.get(exported, name));
  for (const [path, target] of targets) put(res, path.split(".").slice(1), functionNamed(target));
  return res;
}

/** An object of its own with the members of another one, if it is one. */
function extended(value: unknown): object {
  const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
  return Object.create(isObject ? value : null) as object;
}

/** Puts a value at the end of a path of members, and objects on the way to it. */
function put(object: object, [name = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    Object.defineProperty(object, name, { value });
    return;
  }
  if (!Object.hasOwn(object, name)) Object.defineProperty(object, name, { value: extended(Reflect.get(object, name)) });
  put(Reflect.get(object, name) as object, rest, value);
}
