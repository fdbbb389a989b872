/**
 * The check of a function's source before it is traced.
 *
 * It stands between the analysis, which knows the source, and the tracer, which knows the values: which arguments are
 * traced and which are plain, which members of the module are recorded, and what its methods are.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import { type Attribute, Module } from "../nn/module.ts";
import { analyseFunction } from "./analysis/analysis.ts";
import { type BeginningContext, isBeginningIdle } from "./analysis/beginning.ts";
import { type CheckOptions, type CheckResult, checkFunction, type Found } from "./analysis/check.ts";
import { describeFinding, type Finding, FINDINGS } from "./analysis/findings.ts";
import { functionSignature } from "./analysis/signature.ts";
import type { UncheckedCall } from "./analysis/knowledge.ts";
import type { Readable } from "./analysis/parse.ts";
import { methodsOf } from "./methods.ts";
import type { FunctionPlace } from "../base/position.ts";
import { Participants, opaqueCall } from "./participants.ts";
import { isProxy, standsForNull, type TracedValue } from "./proxy.ts";
import { isKnownName, OpaqueCalls } from "./opaqueCalls.ts";
import { isMethodOfTensors } from "./writtenFunction.ts";

/** What the tracer knows of a function that is about to run. */
export interface SourceContext {
  /** The module whose `forward` it is. */
  readonly module?: Module;
  /** Whether reading a tensor of a module is recorded. */
  readonly isRecorded: (kind: Attribute["kind"]) => boolean;
  /** Whether a part of a parameter is known while tracing: its shape. */
  readonly isKnown: (part: string) => boolean;
  /** Whether a value is traced. */
  readonly isTracedValue: (value: unknown) => value is TracedValue;
  /** Whether somebody else looks at what is assigned to the module. */
  readonly seesAssignments: boolean;
  /** The members of traced values that are known, where any are. */
  readonly knownParts?: ReadonlySet<string> | undefined;
  /** Whether a call of the module becomes one node. */
  readonly isLeaf: (module: Module) => boolean;
  /** Whether the function runs before or after the one that is traced. */
  readonly isHook: boolean;
  /** Whether what is told otherwise is refused. */
  readonly isStrict: boolean;
  /** Where the function stands in its file, for which it is run. */
  readonly locate: () => FunctionPlace | undefined;
}

/** What is to be told of a function once it has been traced. */
export interface SourceNotes {
  /** The calls to watch, if there are any. */
  readonly calls: OpaqueCalls | undefined;
  /** The warnings, which are given once for each function. */
  warnings(): FxError[];
}

const NOTHING: SourceNotes = { calls: undefined, warnings: () => [] };

/** Refuses a function in whose source something is decided that the trace could not see. */
export function checkSource(fn: Function, args: readonly unknown[], context: SourceContext): SourceNotes {
  if (isUnremarkable(fn) && !readsGetter(fn, context.module)) return NOTHING;
  const result = checkFunction(fn, checkOptions(fn, args, context));
  const findings = context.seesAssignments ? result.findings.filter(({ at }) => at.kind !== "state") : result.findings;
  if (findings.length > 0) throw refusal(fn, args, findings, context);
  const known = WATCHED.get(fn);
  const isWatched = (callee: string): boolean => known?.has(callee) === true && !context.isStrict;
  // What has a name is the same function each time; a value may be another one.
  const unwatched = result.unchecked.filter(({ at }) => !(at.isNamed && isWatched(at.callee)));
  // What runs without being called, such as a getter, is met in the first run.
  if (result.notes.length === 0 && unwatched.length === 0 && known !== undefined && !context.isStrict) return NOTHING;
  const told: FxError[] = [];
  let refused: FxError | undefined;
  const refuse = (error: FxError, isAsync: boolean): void => {
    refused ??= error;
    if (!isAsync) throw error;
  };
  const tell = (error: FxError): void => void told.push(error);
  const participants = new Participants(result, { refuse, tell });
  const calls = new OpaqueCalls(unwatched, context.isHook ? undefined : fn, participants);
  return {
    calls,
    warnings: () => {
      // The user's code may have caught it, and gone on.
      if (refused !== undefined) throw refused;
      WATCHED.set(fn, new Set([...(known ?? []), ...unwatched.map(({ at }) => at.callee)]));
      const own = [...noted(result, context), ...opaque(calls.suspects(), context)];
      const all = [...own, ...told, ...participants.suspects()];
      if (context.isStrict) {
        const [first, ...others] = all;
        if (first !== undefined)
          throw fxError(first.kind, first.reason, { help: first.help, notes: others.map((it) => it.reason) });
      }
      return all.filter((it) => isNew(own.includes(it) ? fn : Participants, it));
    },
  };
}

/** The functions without source that each function has called while it was watched, which takes its time. */
const WATCHED = new WeakMap<Function, ReadonlySet<string>>();

/** What was told of each function. */
const TOLD = new WeakMap<Function, Set<string>>();

function isNew(fn: Function, { reason }: FxError): boolean {
  const told = TOLD.get(fn) ?? new Set();
  TOLD.set(fn, told);
  return told.size !== told.add(reason).size;
}

/** The functions in which nothing is that any trace could stumble over: of them nothing more is asked. */
const UNREMARKABLE = new WeakSet<Function>();

function isUnremarkable(fn: Function): boolean {
  if (UNREMARKABLE.has(fn)) return true;
  const analysis = analyseFunction(fn);
  if (typeof analysis === "string") return false;
  const { findings, unchecked, calls } = analysis;
  if (unchecked.length > 0 || findings.some(({ kind }) => FINDINGS[kind].level !== "seen")) return false;
  // What `call` calls may be a function as well as a module.
  if (!calls.every(({ root, path }) => root === "this" && path.at(-1) === "forward")) return false;
  UNREMARKABLE.add(fn);
  return true;
}

/** Whether a function reads a member that another function computes. */
function readsGetter(fn: Function, module: Module | undefined): boolean {
  const analysis = analyseFunction(fn);
  if (module === undefined || typeof analysis === "string") return false;
  for (const name of analysis.reads) if (getterOf(module, name) !== undefined) return true;
  return false;
}

function checkOptions(fn: Function, args: readonly unknown[], context: SourceContext): CheckOptions {
  const [concrete, given, structured] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const signature = functionSignature(fn);
  const params = typeof signature === "string" ? [] : signature.params;
  params.forEach(({ name, kind }, index) => {
    const value = kind === "rest" ? args.slice(index) : args[index];
    const traced = tracedIn(value, context.isTracedValue);
    if (traced.length === 0) concrete.add(name);
    else if (!context.isTracedValue(value)) structured.add(name);
    if (!traced.some((it) => isProxy(it) && standsForNull(it))) given.add(name);
  });
  if (tracedIn(args.slice(params.length), context.isTracedValue).length === 0) concrete.add("arguments");
  const { module, knownParts } = context;
  const known = { concrete, given, structured, knownParts, isRecorder };
  if (module === undefined) return known;
  return {
    ...known,
    isTraced: (path) => isTracedMember(module, path, context),
    getter: ([name]) => (name === undefined ? undefined : getterOf(module, name)),
    methods: methodsOf(module, context),
  };
}

/** Whether a traced value records the call of a method, or of itself. */
function isRecorder(method: string | undefined): boolean {
  return method === undefined || isKnownName(method) || isMethodOfTensors(method);
}

/** Containers deeper than this are not looked into, as when they are recorded. */
const MAX_DEPTH = 500;

/** The traced values in an argument, at any depth. */
function tracedIn(value: unknown, isTracedValue: SourceContext["isTracedValue"], depth = 0): TracedValue[] {
  if (isTracedValue(value)) return [value];
  if (typeof value !== "object" || value === null || value instanceof Module || depth > MAX_DEPTH) return [];
  const items = value instanceof Map || value instanceof Set ? [...value.values()] : Object.values(value);
  return items.flatMap((item) => tracedIn(item, isTracedValue, depth + 1));
}

function isTracedMember(root: Module, path: readonly string[], { isRecorded, isKnown }: SourceContext): boolean {
  let modules: readonly Module[] = [root];
  for (const [index, name] of path.entries()) {
    const attributes = modules.flatMap((module) => {
      const one = module.attributes.get(name);
      return name === "*" ? [...module.attributes.values()] : one === undefined ? [] : [one];
    });
    const part = path[index + 1];
    const isPartKnown = part !== undefined && isKnown(part);
    if (attributes.some((it) => it.kind !== "module" && !isPartKnown && isRecorded(it.kind))) return true;
    modules = attributes.flatMap((it) => (it.kind === "module" ? [it.module] : []));
  }
  return false;
}

/** The getter of a class of the user's. */
function getterOf(module: Module, name: string): Function | undefined {
  if (module.attributes.has(name)) return undefined;
  const end: unknown = Object.getPrototypeOf(Module.prototype);
  for (let it: unknown = module; it !== end && it !== null; it = Object.getPrototypeOf(it)) {
    const descriptor = Object.getOwnPropertyDescriptor(it, name);
    if (descriptor !== undefined) return descriptor.get;
  }
  return undefined;
}

/** One error for all that was found: the first place in its text, the others in its notes. */
function refusal(
  fn: Function,
  args: readonly unknown[],
  findings: readonly Found<Finding>[],
  context: SourceContext,
): FxError {
  const place = isBeginningIdle(fn, beginningOf(fn, args, context)) ? context.locate() : undefined;
  const lines = findings.map((it) => {
    const file = it.fn === fn ? place?.at(it.at.line, it.at.column) : undefined;
    return `${describeFinding(it.at)} (${placeOf(it.fn, it.at, context)}${file === undefined ? "" : `, ${file}`})`;
  });
  const { error, help } = FINDINGS[findings[0]?.at.kind ?? "test"];
  return fxError(error, lines[0] ?? "", { notes: lines.slice(1), help });
}

function beginningOf(fn: Function, args: readonly unknown[], context: SourceContext): BeginningContext {
  const signature = functionSignature(fn);
  const params = typeof signature === "string" ? [] : signature.params;
  const isTraced = (index: number): boolean => context.isTracedValue(args[index]);
  return {
    traced: new Set(params.flatMap(({ name }, index) => (isTraced(index) ? [name] : []))),
    endsAtUse: context.knownParts === undefined,
    member: (path) => memberKind(context.module, path),
  };
}

/** What reading a member of the module gives, without reading it. */
function memberKind(root: Module | undefined, path: readonly string[]): "module" | "tensor" | "plain" | "computed" {
  let module = root;
  for (const [index, name] of path.entries()) {
    const attribute = module?.attributes.get(name);
    if (attribute === undefined) {
      const isLast = index === path.length - 1;
      return isLast && module !== undefined && getterOf(module, name) === undefined ? "plain" : "computed";
    }
    if (attribute.kind !== "module") return "tensor";
    module = attribute.module;
  }
  return module === undefined ? "computed" : "module";
}

function noted({ notes }: CheckResult, context: SourceContext): FxError[] {
  return notes.map(({ fn, at }) => {
    const { error, help } = FINDINGS[at.kind];
    return fxError(error, `${describeFinding(at)} (${placeOf(fn, at, context)})`, { help });
  });
}

function opaque(calls: readonly Found<UncheckedCall>[], context: SourceContext): FxError[] {
  return calls.map(({ fn, at }) => opaqueCall(at.callee, placeOf(fn, at, context)));
}

function placeOf(
  fn: Readable,
  at: { readonly line: number; readonly column: number },
  { module }: SourceContext,
): string {
  const owner = module === undefined ? "" : ` of ${module.className}`;
  const name = fn.name === "" ? "the function" : fn.name;
  return `line ${at.line}, column ${at.column} of ${name}${owner}`;
}
