/**
 * What of an analysis counts for one trace.
 *
 * A finding counts if what it is about is traced: a parameter that was not given as a concrete value, a member of the
 * module that is a tensor, or the result of a method that gives one of those. Methods of the module are read in turn,
 * with those parameters traced that they are given traced values for.
 *
 * @module
 */
import { type Analysis, type AnalysisOptions, analyseFunction } from "./analysis.ts";
import type { Readable, Unparsed } from "./parse.ts";
import { type Finding, FINDINGS } from "./findings.ts";
import { ALWAYS, type Source, type Sources } from "./value.ts";
import { joinSources, type MethodCall, type UncheckedCall } from "./knowledge.ts";

/** How the parameters of a function are given. */
export interface Given extends AnalysisOptions {
  /** The parameters that are given as plain values. */
  readonly concrete?: ReadonlySet<string>;
  /**
   * The parameters that are traced and never stand for null: comparing them with null is no question. Without it, those
   * for which the source does not say that they may be left out.
   */
  readonly given?: ReadonlySet<string>;
}

/** What is known of a function, a function of JavaScript or its syntax, and of the module that it belongs to. */
export interface CheckContext<F> {
  /** The analysis of a function, or why there is none. */
  readonly analyse: (fn: F, given: Given) => Analysis | Unparsed;
  /** What to call a function. */
  readonly nameOf: (fn: F) => string;
  /**
   * Whether a member of the module is traced, or a part of one that is: `["bn", "weight"]`, `["bn", "weight", "grad"]`.
   * A `*` in the path stands for any element.
   */
  readonly isTraced?: (path: readonly string[]) => boolean;
  /** The function behind a member of the module that is computed when it is read. */
  readonly getter?: (path: readonly string[]) => F | undefined;
  /** The functions that a call of a method in a function may reach, of those that the trace runs through. */
  readonly methods?: (call: MethodCall, from: F) => readonly Reached<F>[];
  /** Whether a traced value records a call of a method of this name, or of itself; it does, where nobody says otherwise. */
  readonly isRecorder?: (method: string | undefined) => boolean;
}

/** What a call reaches: a function, something that nobody can read, or a container that keeps what it is given. */
export type Reached<F> =
  | {
      readonly fn: F;
      /** Whether its arguments are others than those of the call, so that anything may be given: `method.bind(this)`. */
      readonly isIndirect?: boolean;
    }
  | "opaque"
  | "kept";

/** What a trace knows of a function and of the module that it belongs to. */
export interface CheckOptions extends Given, Omit<CheckContext<Readable>, "analyse" | "nameOf"> {}

/** Where something was found: in which function, and what. */
export interface Found<T, F = Readable> {
  readonly fn: F;
  readonly at: T;
}

/** A call with traced arguments of a function that was not read. */
export interface OpaqueCall<F = Readable> extends Found<UncheckedCall, F> {
  /** The sources that are traced. */
  readonly active: Sources;
}

/** What counts for a trace. */
export interface CheckResult<F = Readable> {
  /** What makes the trace wrong, in no way that the trace itself could see. */
  readonly findings: readonly Found<Finding, F>[];
  /** What would refuse by itself while tracing. */
  readonly seen: readonly Found<Finding, F>[];
  /** What is worth knowing. */
  readonly notes: readonly Found<Finding, F>[];
  /** Calls with traced arguments of functions that could not be read. */
  readonly unchecked: readonly OpaqueCall<F>[];
  /** The functions that were read. */
  readonly read: readonly F[];
  /** The texts of the functions in them of which no call was met. */
  readonly uncalled: ReadonlySet<string>;
}

/** Checks a function, and the methods of the module that it calls, before it is traced. */
export function checkFunction(fn: Readable, options: CheckOptions = {}): CheckResult {
  const { knownParts } = options;
  const analyse = (it: Readable, given: Given): Analysis | Unparsed => analyseFunction(it, { ...given, knownParts });
  return check(fn, options, { ...options, analyse, nameOf: (it) => it.name || "the function" });
}

/** Checks a function and the methods that it calls. */
export function check<F extends object>(fn: F, given: Given, context: CheckContext<F>): CheckResult<F> {
  const visit = new Check(context);
  visit.run(fn, given);
  const { unseen, seen, note } = visit.found;
  const unchecked = [...visit.unchecked.values()];
  const [findings, notes] = [[...unseen.values()], [...note.values()]];
  return { findings, seen: [...seen.values()], notes, unchecked, read: [...visit.read], uncalled: visit.uncalled };
}

class Check<F extends object> {
  readonly found = {
    unseen: new Map<Finding, Found<Finding, F>>(),
    seen: new Map<Finding, Found<Finding, F>>(),
    note: new Map<Finding, Found<Finding, F>>(),
  };
  readonly unchecked = new Map<UncheckedCall | MethodCall, OpaqueCall<F>>();
  readonly read = new Set<F>();
  readonly uncalled = new Set<string>();
  readonly #options: CheckContext<F>;
  readonly #kept = new Map<MethodCall, Finding>();
  readonly #visited = new Map<F, Map<string, boolean>>();

  constructor(options: CheckContext<F>) {
    this.#options = options;
  }

  /** Checks a function that is given that; says whether its result is traced. */
  run(fn: F, given: Given): boolean {
    const key = keyOf(given);
    const visits = this.#visited.get(fn) ?? new Map<string, boolean>();
    this.#visited.set(fn, visits);
    const known = visits.get(key);
    if (known !== undefined) return known;
    // A method that calls itself is taken to give a traced value until it is known what it gives.
    visits.set(key, true);
    const analysis = this.#options.analyse(fn, given);
    if (typeof analysis === "string") {
      const place = { line: 1, column: 1, sources: ALWAYS, places: [], on: 0n, isNamed: true };
      const at = { callee: this.#options.nameOf(fn), ...place };
      if (analysis !== "class") this.unchecked.set(at, { fn, at, active: ALWAYS });
      return true;
    }
    this.read.add(fn);
    for (const text of analysis.uncalled) this.uncalled.add(text);
    for (const name of analysis.reads) {
      const getter = this.#options.getter?.([name]);
      if (getter !== undefined) this.run(getter, {});
    }
    const nullable = nullableSources(analysis, given);
    const active = this.#active(fn, analysis, given, nullable);
    for (const at of analysis.findings) {
      const { level } = FINDINGS[at.kind];
      const counts = (at.sources & active & (at.kind === "nullish" ? nullable : ALWAYS)) !== 0n;
      if (counts) this.found[level].set(at, { fn, at });
    }
    for (const at of analysis.unchecked) {
      if ((at.sources & active) === 0n || this.#isRecorded(at, active)) continue;
      this.unchecked.set(at, { fn, at, active: active | (this.unchecked.get(at)?.active ?? 0n) });
    }
    const gives = (analysis.returns & active) !== 0n;
    visits.set(key, gives);
    return gives;
  }

  /** The sources of an analysis that are traced, and the bit that every trace has. */
  #active(fn: F, analysis: Analysis, { concrete }: Given, nullable: Sources): Sources {
    // The bit above all sources stands for what counts in every trace.
    let active = 1n << BigInt(analysis.sources.length);
    const methods: [Sources, MethodCall][] = [];
    analysis.sources.forEach((source, index) => {
      const bit = 1n << BigInt(index);
      if (source.kind === "parameter") active |= concrete?.has(source.name) === true ? 0n : bit;
      else if (this.#isComputed(source)) active |= bit;
      else if (source.kind === "member") active |= this.#isTraced(source.path) ? bit : 0n;
      else if (source.kind === "part")
        active |= this.#isTraced(source.path) && this.#isTraced(source.path.slice(0, -1)) ? bit : 0n;
      else methods.push([bit, callOf(analysis, source)]);
    });
    // What a method gives may be an argument of another one, so this is repeated until nothing is added.
    for (let before = 0n; before !== active; ) {
      before = active;
      for (const [bit, call] of methods)
        if ((active & bit) === 0n && this.#gives(fn, call, active, nullable)) active |= bit;
    }
    return active;
  }

  /** Whether a source is a member that is computed from something traced. */
  #isComputed(source: Source): boolean {
    if (source.kind !== "member" && source.kind !== "part") return false;
    const getter = this.#options.getter?.(source.path);
    return getter !== undefined && this.run(getter, {});
  }

  /** Whether what is called, or what has the method, is traced. */
  #isRecorded({ on, method }: UncheckedCall, active: Sources): boolean {
    return (on & active) !== 0n && this.#options.isRecorder?.(method) !== false;
  }

  #isTraced(path: readonly string[]): boolean {
    return this.#options.isTraced?.(path) === true;
  }

  /** Notes the call of a method that nobody could read. */
  #noteOpaque(fn: F, call: MethodCall, active: Sources): void {
    const [{ line, column } = { line: 1, column: 1 }] = call.places;
    const callee = [call.root, ...call.path].join(".").replaceAll(".*", "[…]");
    const sources = joinSources(call.args, (it) => it);
    const at = { callee, line, column, sources, places: call.places, on: 0n, isNamed: false };
    this.unchecked.set(call, { fn, at, active });
  }

  /** Notes the call of a method that keeps what it is given. */
  #noteKept(fn: F, call: MethodCall): void {
    const [{ line, column, endLine, endColumn } = { line: 1, column: 1, endLine: 1, endColumn: 1 }] = call.places;
    const snippet = [call.root, ...call.path].join(".");
    const known = this.#kept.get(call);
    const place = { line, column, endLine, endColumn };
    const at: Finding = known ?? { kind: "leak", construct: "call", snippet, ...place, sources: ALWAYS };
    this.#kept.set(call, at);
    this.found.note.set(at, { fn, at });
  }

  /** Whether a call gives a traced value. */
  #gives(from: F, call: MethodCall, active: Sources, nullable: Sources): boolean {
    const isTraced = this.#isTraced(call.path);
    const isGiven = call.args.some((sources) => (sources & active) !== 0n);
    const reached = this.#options.methods?.(call, from) ?? [];
    if (isTraced && reached.every((it) => typeof it === "string")) return true;
    if (reached.length === 0) return isGiven;
    // All are checked, so the results are taken before they are looked at.
    return reached
      .map((it) => {
        if (it === "opaque") {
          if (isGiven) this.#noteOpaque(from, call, active);
          return isGiven;
        }
        if (it === "kept") {
          if (isGiven) this.#noteKept(from, call);
          return isGiven;
        }
        const { fn, isIndirect = false } = it;
        const analysis = this.#options.analyse(fn, {});
        if (typeof analysis === "string") return isGiven;
        return this.run(fn, isIndirect ? {} : givenBy(analysis, call, active, nullable));
      })
      .some((gives) => gives || isTraced);
  }
}

/** What a call gives for the parameters of a method. */
function givenBy({ signature }: Analysis, call: MethodCall, active: Sources, nullable: Sources): Given {
  const [concrete, given] = [new Set<string>(), new Set<string>()];
  const isGivenMore = call.args.slice(signature.params.length).some((sources) => (sources & active) !== 0n);
  if (!isGivenMore) concrete.add("arguments");
  signature.params.forEach(({ name, kind }, index) => {
    const end = kind === "rest" ? call.args.length : index + 1;
    if (call.args.slice(index, end).every((sources) => (sources & active) === 0n)) concrete.add(name);
    if (call.nullable.slice(index, end).every((sources) => (sources & active & nullable) === 0n)) given.add(name);
  });
  return { concrete, given };
}

/** The sources that may stand for null. */
function nullableSources(analysis: Analysis, { given }: Given): Sources {
  let sources = 0n;
  analysis.sources.forEach((source, index) => {
    if (source.kind !== "parameter") return;
    const mayBeNull = given === undefined ? analysis.optional.has(source.name) : !given.has(source.name);
    if (mayBeNull) sources |= 1n << BigInt(index);
  });
  return sources;
}

function keyOf({ concrete, given, structured }: Given): string {
  return [concrete, given, structured].map((names) => [...(names ?? [])].toSorted().join()).join(";");
}

function callOf(analysis: Analysis, source: Source & { readonly kind: "method" }): MethodCall {
  const name = source.path.join(".");
  const call = analysis.calls.find((it) => (it.root === "super" ? ["super", ...it.path] : it.path).join(".") === name);
  return call ?? { root: "this", path: source.path, args: [], nullable: [], places: [] };
}
