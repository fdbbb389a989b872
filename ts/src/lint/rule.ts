/**
 * The lint rule `tracefx/no-untraceable`.
 *
 * It makes the analysis that a trace makes before it runs, while the code is written: of the `forward` of modules, of
 * the methods and functions of the file that it calls, and of functions that are given to `symbolicTrace`. It knows less
 * than the trace does about values, and more about source: helper functions of the same file, and TypeScript's types.
 *
 * @module
 */
import type { AnyNode, Program } from "acorn";
import { type Analysis, analyse } from "../trace/analysis/analysis.ts";
import { check } from "../trace/analysis/check.ts";
import { describeFinding, type Finding, FINDINGS } from "../trace/analysis/findings.ts";
import type { MethodCall } from "../trace/analysis/knowledge.ts";
import type { FunctionSyntax } from "../trace/analysis/syntax.ts";
import { ALWAYS } from "../trace/analysis/value.ts";
import { factsOf, type ModuleClass, type TracedFunction } from "./file.ts";

/** What the rule needs of a linter; ESLint and oxlint have more. */
export interface RuleContext {
  readonly sourceCode: { readonly text: string };
  readonly options: readonly unknown[];
  report(problem: {
    readonly loc: Location;
    readonly messageId: string;
    readonly data: Data;
    readonly fix?: (fixer: Fixer) => unknown;
  }): void;
}

/** What makes an edit of the source. */
interface Fixer {
  insertTextAfterRange(range: readonly [number, number], text: string): unknown;
}

interface Location {
  readonly start: { readonly line: number; readonly column: number };
  readonly end: { readonly line: number; readonly column: number };
}

type Data = Readonly<Record<string, string>>;

/** A lint rule. */
export interface RuleModule {
  readonly meta: {
    readonly type: "problem";
    readonly docs: { readonly description: string; readonly url: string };
    readonly fixable?: "code";
    readonly messages: Readonly<Record<string, string>>;
    readonly schema: readonly object[];
    readonly defaultOptions: readonly object[];
  };
  create(context: RuleContext): { readonly Program: (program: unknown) => void };
}

/** The rule. */
export const noUntraceable: RuleModule = {
  meta: {
    type: "problem",
    docs: {
      description: "Disallow constructs of which a symbolic trace would record one outcome only, or none",
      url: "https://github.com/tracefx/tracefx/blob/main/docs/control-flow.md",
    },
    messages: {
      untraceable: "{{what}}. {{help}}.",
      unchecked:
        "`{{callee}}` is given a traced value, and its source is in another file: record it as one call with wrap()",
    },
    schema: [
      {
        type: "object",
        properties: {
          unchecked: { type: "boolean", description: "Whether calls of functions of other files are reported." },
        },
        additionalProperties: false,
      },
    ],
    defaultOptions: [{ unchecked: false }],
  },
  create(context) {
    return {
      Program(program) {
        report(program as Program, context);
      },
    };
  },
};

function report(program: Program, context: RuleContext): void {
  const { text } = context.sourceCode;
  const told = new Set<string>();
  const [options] = context.options;
  const isStrict =
    typeof options === "object" && options !== null && "unchecked" in options && options.unchecked === true;
  const { traced, own } = factsOf(program);
  for (const it of traced) {
    const { findings, seen, notes, unchecked } = checkTraced(it, program, text);
    for (const { at, fn } of [...findings, ...seen, ...notes]) {
      const key = `${at.line}:${at.column}:${at.kind}`;
      if (told.has(key) || !isWithin(at, fn)) continue;
      told.add(key);
      const what = describeFinding(at);
      const data = { what: what[0]?.toUpperCase() + what.slice(1), help: FINDINGS[at.kind].help };
      context.report({ loc: locationOf(at), messageId: "untraceable", data });
    }
    if (!isStrict) continue;
    for (const { at } of unchecked) {
      if (own.has(at.callee.split(".")[0] ?? "")) continue;
      const loc = locationOf({ ...at, endLine: at.line, endColumn: at.column + at.callee.length });
      context.report({ loc, messageId: "unchecked", data: { callee: at.callee } });
    }
  }
}

function checkTraced({ node, module, concrete }: TracedFunction, program: Program, text: string) {
  const analyses = new Map<FunctionSyntax, Analysis>();
  return check<FunctionSyntax>(
    node,
    { concrete },
    {
      analyse: (fn) => {
        const known =
          analyses.get(fn) ?? analyse({ source: text, shift: 0, node: fn, isMethod: false }, {}, program.body);
        analyses.set(fn, known);
        return known;
      },
      nameOf: (fn) => fn.id?.name ?? "the function",
      isTraced: ([name]) => name !== undefined && hasParameter(module, name),
      getter: ([name]) => (name === undefined ? undefined : find(module, "getters", name)),
      methods: (call, from) => {
        const fn = methodOf(module, call, from);
        return fn === undefined ? [] : [{ fn }];
      },
    },
  );
}

function hasParameter(module: ModuleClass | undefined, name: string): boolean {
  return module !== undefined && (module.parameters.has(name) || hasParameter(module.base, name));
}

function methodOf(module: ModuleClass | undefined, call: MethodCall, from: FunctionSyntax): FunctionSyntax | undefined {
  const [name] = call.path;
  if (name === undefined || call.path.length > 1) return undefined;
  if (call.root === "this") return name === "forward" ? undefined : find(module, "methods", name);
  let owner = module;
  while (owner !== undefined && ![...owner.methods.values()].includes(from)) owner = owner.base;
  return find(owner?.base, "methods", name);
}

function find(module: ModuleClass | undefined, kind: "methods" | "getters", name: string): FunctionSyntax | undefined {
  return module === undefined ? undefined : (module[kind].get(name) ?? find(module.base, kind, name));
}

/** What counts in every function counts only in those that are traced, and the file has others. */
function isWithin(at: Finding, fn: AnyNode): boolean {
  if (at.sources !== ALWAYS) return true;
  const { start, end } = fn.loc ?? {};
  if (start === undefined || end === undefined) return true;
  const isAfter = at.line > start.line || (at.line === start.line && at.column > start.column);
  return isAfter && (at.line < end.line || (at.line === end.line && at.column <= end.column));
}

function locationOf({
  line,
  column,
  endLine,
  endColumn,
}: Omit<Finding, "kind" | "construct" | "snippet" | "sources">): Location {
  return { start: { line, column: column - 1 }, end: { line: endLine, column: endColumn - 1 } };
}
