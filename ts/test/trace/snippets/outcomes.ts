/**
 * What a snippet is expected to come to, and how the files of snippets are loaded.
 *
 * A snippet is `[fn, outcome, concreteArgs?, built?]`: a function or module as users write it, what tracing it comes to,
 * the plain values that it is given, and what it comes to with the build plugin where that differs. The line that an error names has the mark `// ✗` in the source.
 *
 * @module
 */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { runInThisContext } from "node:vm";
import { rewrite } from "../../../src/plugin/rewrite.ts";
import { TraceError } from "../../../src/base/errors.ts";
import type { Graph } from "../../../src/graph/graph.ts";
import type { Node } from "../../../src/graph/node.ts";
import { formatArg } from "../../../src/graph/print.ts";
import { Module } from "../../../src/nn/module.ts";
import { Parameter } from "../../../src/nn/parameter.ts";
import { tensor, torch } from "../../../src/index.ts";
import { __tracefx } from "../../../src/trace/checked.ts";
import { cond, map, scan, whileLoop } from "../../../src/trace/controlFlow.ts";
import type { Traceable } from "../../../src/trace/tracer.ts";
import { Proxy } from "../../../src/trace/tracerBase.ts";

/** It is refused, with this kind of error and this advice. */
export interface Refused {
  readonly kind: string;
  readonly advice: string;
}

/** It is recorded: the calls in order, as {@link brief} prints them. */
export interface Recorded {
  readonly graph: string;
  /** A piece of the warning that is given. */
  readonly warns?: string;
  /** Why the graph is not run: a tensor cannot be called, or the code asks whether it is traced. */
  readonly isSymbolic?: boolean;
  /** The graph has one branch only, and the warning says so: what the build plugin is for. */
  readonly isBlind?: boolean;
  /** How many elements the inputs have. */
  readonly width?: number;
}

/** A snippet. */
export type Snippet = readonly [
  fn: Traceable,
  outcome: Refused | Recorded,
  concreteArgs?: Readonly<Record<string, unknown>>,
  built?: {
    /** The graph that it has once the build plugin has rewritten it, and looks at values where the analysis guesses. */
    readonly plugin?: string;
    /** The graph that it has once the build plugin has rewritten its operators. */
    readonly operators?: string;
  },
];

const OUTCOMES = {
  refused: (kind: string, advice: string): Refused => ({ kind, advice }),
  recorded: (graph: string, more: Omit<Recorded, "graph"> = {}): Recorded => ({ graph, ...more }),
};

const PACKAGE = { Module, Parameter, Proxy, TraceError, cond, map, scan, tensor, torch, whileLoop };

/** Loads a file as Node does, after the build plugin where that is asked for. */
export function loadFile(name: string, plugin?: { readonly operators: boolean }): Record<string, Snippet> {
  const path = pathOf(name);
  const written = readFileSync(path, "utf8");
  const source = plugin === undefined ? written : (rewrite(written, plugin)?.code ?? written);
  // The function around a CommonJS file, which Node adds too.
  const code = `(function (module, exports, require) {${source}\n})`;
  const module = { exports: {} };
  const require = (id: string): unknown => {
    if (id === "tracefx") return PACKAGE;
    if (id === "tracefx/checked") return { __tracefx };
    if (id === "outcomes") return OUTCOMES;
    if (id.startsWith("./")) return loadFile(`${id.slice(2)}.cjs`, plugin);
    return createRequire(path)(id);
  };
  const run: unknown = runInThisContext(code, { filename: path });
  (run as (...args: unknown[]) => void)(module, module.exports, require);
  return module.exports;
}

/** Where a file of snippets is. */
export function pathOf(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

/** The line that an error about a function should name: counted in its own text, and in the file. */
export function markedLine(name: string, fn: Function): { readonly own: number; readonly file: number } | undefined {
  const source = readFileSync(pathOf(name), "utf8");
  const text = fn.toString();
  const start = source.indexOf(text);
  const before = source.slice(0, start).split("\n").length - 1;
  // A mark behind the function is on its last line.
  const lines = source.slice(start).split("\n");
  const own = lines.findIndex((line, index) => line.includes("✗") && index < text.split("\n").length);
  return start < 0 || own < 0 ? undefined : { own: own + 1, file: before + own + 1 };
}

/** A graph in one line, without what checks plain arguments: `neg = x.neg(); add = operator.add(neg, 1); return add`. */
export function brief(graph: Graph): string {
  const nodes = [...graph.nodes].filter((node) => node.op !== "placeholder" && !isCheck(node));
  return nodes.map(call).join("; ").replaceAll("%", "");
}

/** Whether a node checks, or helps to check, that a plain argument has the value that it was traced with. */
function isCheck({ target, users }: Node): boolean {
  return /assert/.test(target) || (users.size > 0 && [...users.keys()].every(isCheck));
}

function call({ op, name, target, args, kwargs }: Node): string {
  const given = [...args.map(formatArg), ...Object.entries(kwargs).map(([key, value]) => `${key}=${formatArg(value)}`)];
  switch (op) {
    case "output":
      return `return ${given.join(", ")}`;
    case "get_attr":
      return `${name} = self.${target}`;
    case "call_method":
      return `${name} = ${given[0]}.${target}(${given.slice(1).join(", ")})`;
    case "call_module":
      return `${name} = self.${target}(${given.join(", ")})`;
    default:
      return `${name} = ${target}(${given.join(", ")})`;
  }
}
