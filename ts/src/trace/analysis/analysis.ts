/**
 * What the source of a function says about how it would be traced.
 *
 * An analysis belongs to the function and serves every trace of it: what it finds is told together with the sources
 * that would have to be traced for it to count, and `check.ts` asks for those.
 *
 * @module
 */
import type { Finding } from "./findings.ts";
import { type ParsedFunction, parseFunction, type Readable, type Unparsed } from "./parse.ts";
import { Scope } from "./scope.ts";
import { type FunctionSignature, parameter, readsArguments, signatureOf } from "./signature.ts";
import type { ClassSyntax, FunctionSyntax, Syntax } from "./syntax.ts";
import { ALWAYS, Cell, type FunctionShape, shaped, type Source, type Sources, tracedBy, type Value } from "./value.ts";
import type { CallPlace, MethodCall, UncheckedCall } from "./knowledge.ts";
import { Walk } from "./walk.ts";

/** What was found in a function. */
export interface Analysis {
  readonly signature: FunctionSignature;
  /** The parameters that may be null, as the function says. */
  readonly optional: ReadonlySet<string>;
  /** What counts if one of its sources is traced. */
  readonly findings: readonly Finding[];
  /** Calls of functions that were not read. */
  readonly unchecked: readonly UncheckedCall[];
  /** Calls of methods of the module, which are functions to read too. */
  readonly calls: readonly MethodCall[];
  /** The members of the module that are read. */
  readonly reads: ReadonlySet<string>;
  /** The texts of the functions in it of which no call was met: what they are given, nobody knows. */
  readonly uncalled: readonly string[];
  /** What the result comes from. */
  readonly returns: Sources;
  /** What the bits of {@link Sources} stand for. */
  readonly sources: readonly Source[];
}

/** How the parameters are given. */
export interface AnalysisOptions {
  /** The parameters that are arrays or objects with traced values in them, and no traced values themselves. */
  readonly structured?: ReadonlySet<string>;
  /** The members of traced values that are known while tracing, such as their shape; none by default. */
  readonly knownParts?: ReadonlySet<string> | undefined;
}

/**
 * The analysis of a function, or why its source cannot be seen. A second one of the same function is free.
 */
export function analyseFunction(fn: Readable, options: AnalysisOptions = {}): Analysis | Unparsed {
  const key = [options.structured, options.knownParts].map((it) => [...(it ?? [])].toSorted().join()).join(";");
  const cached = ANALYSES.get(fn);
  const known = cached?.get(key);
  if (known !== undefined) return known;
  const parsed = parseFunction(fn);
  const analysis = typeof parsed === "string" ? parsed : analyse(parsed, options);
  if (cached === undefined) ANALYSES.set(fn, new Map([[key, analysis]]));
  else cached.set(key, analysis);
  return analysis;
}

const ANALYSES = new WeakMap<Readable, Map<string, Analysis | Unparsed>>();

/**
 * The analysis of a function that was parsed, and that can call the functions of its file, and the methods of the class that it is in,
 * where those are given.
 */
export function analyse(
  parsed: ParsedFunction,
  options: AnalysisOptions,
  file: readonly Syntax[] = [],
  owner?: ClassSyntax,
): Analysis {
  const { source, shift, node } = parsed;
  const walk = new Walk(source, options.knownParts);
  const around = new Scope(walk);
  around.declareBlock(file);
  // The function first: where the file defines it, `this` is not known.
  const self = new Cell(walk);
  self.add(shaped(walk.path("this", [])));
  const scope = new Scope(walk, around, undefined, self);
  const shape = enter(walk, node, scope, source, options);
  // What the class inherits, the functions say that are running.
  if (owner !== undefined) {
    const made = walk.classMembers(owner, around);
    self.add(made);
    // Its methods make objects of it.
    if (owner.id) around.declare(owner.id.name).add(made);
  }
  for (const statement of file) walk.statement(statement, around);
  walk.run();
  return {
    signature: signatureOf(parsed),
    optional: optionalParameters(node, source),
    findings: [...refused(node, source), ...walk.findings.values()].map((it) => shifted(it, shift)),
    unchecked: [...walk.unchecked.values()].map((it) => ({ ...shifted(it, shift), places: placesOf(it, shift) })),
    calls: [...walk.calls.values()].map((it) => ({ ...it, places: placesOf(it, shift) })),
    reads: walk.reads,
    uncalled: walk.uncalled(shape),
    returns: walk.taint(shape.returns.value),
    sources: walk.sources,
  };
}

/** Makes a function one that is traced: every parameter is a source. */
function enter(
  walk: Walk,
  node: FunctionSyntax,
  scope: Scope,
  text: string,
  { structured }: AnalysisOptions = {},
): FunctionShape {
  const shape = walk.functionOf(node, scope);
  walk.root = node;
  node.params.forEach((param, index) => {
    // TypeScript's declaration of what `this` is.
    if (param.type === "Identifier" && param.name === "this") return;
    const it = parameter(param, index, text);
    const traced = walk.sourceOf({ kind: "parameter", name: it.name });
    let given: Value = { ...tracedBy(traced), nullable: traced };
    if (it.kind === "rest" || structured?.has(it.name) === true) {
      const held = walk.container(it.kind === "rest" ? "array" : "object", param);
      held.elements.add(given);
      given = shaped(held);
    }
    shape.given[index]?.add(given);
  });
  if (node.generator) shape.sent.add(tracedBy(walk.sourceOf({ kind: "parameter", name: "yield" })));
  // What stands behind the parameters is read from `arguments`.
  if (readsArguments(node)) shape.extra.add(tracedBy(walk.sourceOf({ kind: "parameter", name: "arguments" })));
  return shape;
}

/** What makes a function no traceable one, whatever stands in it. */
function refused(node: FunctionSyntax, text: string): Finding[] {
  const kind = node.generator ? "generator" : "async";
  if (!node.generator && !node.async) return [];
  const { line, column } = node.loc?.start ?? { line: 1, column: 0 };
  const head =
    text
      .slice(node.range?.[0] ?? node.start)
      .split("{")[0]
      ?.trim() ?? "";
  const at = { line, column: column + 1, endLine: line, endColumn: column + 1 };
  return [{ kind, construct: kind, snippet: head, ...at, sources: ALWAYS }];
}

/** The parameters that may be null, for all that the source says: by their default, or with TypeScript's question mark. */
function optionalParameters(node: FunctionSyntax, text: string): ReadonlySet<string> {
  const optional = node.params.filter((param, index) => {
    if ("optional" in param && param.optional === true) return true;
    const { default: given } = parameter(param, index, text);
    return given?.isConstant === true && (given.value === null || given.value === undefined);
  });
  return new Set(optional.map((param) => parameter(param, node.params.indexOf(param), text).name));
}

function placesOf({ places }: { readonly places: readonly CallPlace[] }, shift: number): CallPlace[] {
  return places.map((place) => ({
    ...shifted(place, shift),
    endColumn: place.endLine === 1 ? place.endColumn - shift : place.endColumn,
    inside: place.inside && shifted(place.inside, shift),
  }));
}

/** Takes off what stands in front of the function's own text on its first line. */
function shifted<T extends { readonly line: number; readonly column: number }>(it: T, shift: number): T {
  return it.line === 1 ? { ...it, column: it.column - shift } : it;
}
