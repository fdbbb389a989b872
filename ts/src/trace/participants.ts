/**
 * The functions that take part in a trace, and that no analysis has met: they were reached through a value.
 *
 * When something is recorded, the stack says which functions are running. Those of them that were not read before the trace began
 * are read then, in their file. What their parameters are, the call says where it is known which call it is; else each of them
 * may be traced, and what would be decided about it is told and not refused.
 *
 * @module
 */
import { hasFunctionNamed } from "../functions/table.ts";
import { type FxError, fxError } from "../base/errors.ts";
import type { CheckResult, OpaqueCall } from "./analysis/check.ts";
import { describeFinding, type Finding, FINDINGS } from "./analysis/findings.ts";
import type { CallPlace } from "./analysis/knowledge.ts";
import { parseFunction, type Readable } from "./analysis/parse.ts";
import { parameter, readsArguments } from "./analysis/signature.ts";
import { extent, type FunctionSyntax, isFunction, type Syntax } from "./analysis/syntax.ts";
import { ALWAYS } from "./analysis/value.ts";
import { type CallSite, isCheckedFile } from "../base/position.ts";
import { placeOfSite, type Script, type ScriptPlace, type WrittenFunction } from "./scripts.ts";
import { isBundled } from "../base/frames.ts";
import {
  className,
  declarationOf,
  declares,
  type GivenToFunction,
  membersDeclared,
  functionDeclared,
  functionFrom,
  isImportedFromHere,
  isOfModule,
  keyOfGiven,
  nameOf,
  readWritten,
} from "./writtenFunction.ts";

/** What a call gives to the function that it calls. */
export interface GivenByCall {
  /** The name that the function is called by; undefined where it is called by none. */
  readonly name: string | undefined;
  /** Whether each argument is traced; undefined where that is not written out. */
  readonly traced: readonly boolean[] | undefined;
  /** Whether what it is called on is traced, or has traced values. */
  readonly isOnTraced: boolean;
}

/** Who hears of what is found. */
export interface Listener {
  /** Something is decided about a traced value; in an asynchronous function, where nobody may hear of what is thrown. */
  refuse(error: FxError, isAsync: boolean): void;
  /** Something is decided about what may be a traced value. */
  tell(error: FxError): void;
}

/** A call in a function that was read in its file. */
interface FileCall {
  readonly written: WrittenFunction;
  readonly found: OpaqueCall<FunctionSyntax>;
  isRecorded: boolean;
  isEntered: boolean;
}

/** A frame of the stack that is one of the user's code. */
export interface UserFrame {
  readonly site: CallSite;
  /** Who called it: the next frame of the user's code, a function of the package, or one of JavaScript's own. */
  readonly caller: "user" | "package" | "host";
}

/** What is known of a frame of the stack. */
interface Frame {
  readonly place: ScriptPlace | undefined;
  readonly written: WrittenFunction | undefined;
  /** Whether the function was read before the trace began, or checks every decision itself. */
  readonly isCovered: boolean;
  /** The functions around it that were read: what they run of it was read with them. */
  readonly coveredBy: readonly FunctionSyntax[];
}

/** How a function is run. */
interface Run {
  /** Whether it is not known that it has run, or what with. */
  readonly isUncertain?: boolean;
  /** The functions that are running around it. */
  readonly running?: readonly FunctionSyntax[];
  /** Whether what is thrown ends in a promise. */
  readonly isAsync?: boolean;
}

const UNCERTAIN: Run = { isUncertain: true };

/** The functions that take part in the run of one function. */
export class Participants {
  readonly #listener: Listener;
  /** The texts of the functions in those that were read of which no call was met. */
  readonly #uncalled: Set<string>;
  readonly #texts: ReadonlySet<string>;
  readonly #frames = new Map<string, Frame>();
  readonly #read = new Map<FunctionSyntax, Set<string>>();
  readonly #calls = new Map<FunctionSyntax, FileCall[]>();
  readonly #told = new Set<string>();

  constructor({ read, uncalled }: Pick<CheckResult, "read" | "uncalled">, listener: Listener) {
    this.#listener = listener;
    this.#texts = new Set(read.flatMap(textOfFunction));
    this.#uncalled = new Set(uncalled);
  }

  /**
   * Reads the functions of the frames of the user's code, the innermost first, that were not read before. `given` says by which call of
   * a function that was read before a frame was called.
   *
   * @returns whether each frame is one of a function that was read.
   */
  read(users: readonly UserFrame[], given: (depth: number) => GivenByCall | undefined): boolean[] {
    const frames = users.map(({ site }) => this.#frameOf(site));
    const isAsync = frames.some(({ written }) => written?.node.async === true);
    // From the outside: what a function is given, the one that calls it says.
    for (let depth = frames.length - 1; depth >= 0; depth--) {
      const { written, isCovered, coveredBy, place } = frames[depth] as Frame;
      if (written === undefined || isCovered) continue;
      // A function that another one runs was read with it; what it has given to somebody else is called with nobody knows what.
      const outer = frames.slice(depth + 1).flatMap((it) => it.written?.node ?? []);
      const isCalled = !this.#uncalled.has(written.script.textOf(written.node));
      if (isCalled && outer.some((it) => coveredBy.includes(it))) continue;
      if (!isCalled || !outer.some((it) => written.around.includes(it) && this.#read.has(it))) {
        const call =
          users[depth]?.caller === "package" ? undefined : (this.#callAt(frames[depth + 1]) ?? given(depth + 1));
        const isKnown = isCallOf(written, call, users[depth]?.caller);
        this.#readFunction(written, isKnown ? call : undefined, { running: outer, isAsync });
      }
      for (const it of this.#callsAt(written, place)) {
        if (depth === 0) it.isRecorded = true;
        else if (!frames.slice(0, depth).every((inner) => inner.isCovered || inner.written !== undefined))
          it.isEntered = true;
        else it.isRecorded = true;
      }
    }
    return frames.map(({ written, isCovered }) => isCovered || written !== undefined);
  }

  /** Whether a function was read with the one that it is written in; `at` is where it begins, counted from that one. */
  hasReadWithin(outer: Readable, at: { readonly line: number; readonly column: number }): boolean {
    const parsed = parseFunction(outer);
    if (typeof parsed === "string") return false;
    const { source, shift, node } = parsed;
    const fn = functionFrom(node, { ...at, column: at.column + (at.line === 1 ? shift : 0) });
    return fn !== undefined && !this.#uncalled.has(source.slice(...extent(fn)));
  }

  /** Reads the function that a call names, if it is declared in the file of the function that has the call. */
  reads(call: OpaqueCall): boolean {
    const [text] = textOfFunction(call.fn);
    const { callee, isPrototype = false } = call.at;
    if (!isPrototype && !(call.at.isNamed && /^[\w$]+$/.test(callee))) return false;
    for (const { written } of this.#frames.values()) {
      if (written === undefined) continue;
      const path = [...written.around, written.node];
      const at = path.findIndex((it) => isFunction(it) && written.script.textOf(it) === text);
      if (at < 0) continue;
      if (isPrototype) return this.#readMembers(callee, path.slice(0, at), written.script);
      const declared = declarationOf(callee, path.slice(0, at));
      const fn = declared && functionDeclared(declared);
      if (fn === undefined) return false;
      const [place = { args: undefined }] = call.at.places;
      // Whether it has run, nobody knows.
      if (fn !== "nothing") this.#readFunction({ script: written.script, ...fn }, givenBy(call, place), UNCERTAIN);
      return true;
    }
    return false;
  }

  /** The calls in the functions that were read here, of functions that nobody has read. */
  suspects(): FxError[] {
    return [...this.#calls.values()].flat().flatMap((it) => {
      const { callee } = it.found.at;
      const isKnown = hasFunctionNamed(lastName(callee)) || isImportedFromHere(it.written.script, callee);
      if (!it.isEntered && (it.isRecorded || isKnown)) return [];
      return [opaqueCall(callee, it.written.script.at(it.found.at))];
    });
  }

  /** Reads the functions of an object or a class that is declared in a file, of which an object with traced values has them. */
  #readMembers(callee: string, around: readonly Syntax[], script: Script): boolean {
    const members = membersDeclared(callee.replace(/\.prototype$/, ""), around);
    for (const fn of members ?? []) {
      const isConstructor =
        fn.around.at(-1)?.type === "MethodDefinition" && nameOf(fn.node, fn.around.at(-1)) === "constructor";
      if (!isConstructor)
        this.#readFunction({ script, ...fn }, { name: undefined, traced: undefined, isOnTraced: true }, UNCERTAIN);
    }
    return members !== undefined;
  }

  #frameOf(site: CallSite): Frame {
    const key = `${site.getFileName()}:${site.getLineNumber()}:${site.getColumnNumber()}`;
    const known = this.#frames.get(key);
    if (known !== undefined) return known;
    // In a bundle, nobody can tell the user's functions from those of the package.
    const place = isBundled ? undefined : placeOfSite(site);
    const at = place?.script.functionAt(place.line, place.column);
    const written = at !== undefined && isNamed(at, site) ? at : undefined;
    const isCovered =
      isCheckedFile(site.getFileName() ?? "") ||
      place?.script.isChecked === true ||
      (written !== undefined && this.#hasRead(written, written.node));
    const coveredBy = written?.around.filter(isFunction).filter((it) => this.#hasRead(written, it)) ?? [];
    const frame = { place, written, isCovered, coveredBy };
    this.#frames.set(key, frame);
    return frame;
  }

  #hasRead({ script }: WrittenFunction, node: FunctionSyntax): boolean {
    return this.#texts.has(script.textOf(node));
  }

  #callsAt({ node, around }: WrittenFunction, place: ScriptPlace | undefined): FileCall[] {
    if (place === undefined) return [];
    const calls = [node, ...around.filter(isFunction)].flatMap((it) => this.#calls.get(it) ?? []);
    return calls.filter(({ found }) => found.at.places.some((it) => contains(it, place)));
  }

  /** What the frame of a function that was read in its file gives to the one that it calls. */
  #callAt(frame: Frame | undefined): GivenByCall | undefined {
    const { written, place } = frame ?? {};
    const [call] = written === undefined ? [] : this.#callsAt(written, place);
    const at = place && call?.found.at.places.find((it) => contains(it, place));
    return call && at && givenBy(call.found, at);
  }

  #readFunction(written: WrittenFunction, call: GivenByCall | undefined, run: Run): void {
    const traced = tracedParameters(written, call);
    this.#readGiven(written, { traced, isOnTraced: false }, run);
    if (mayHaveTraced(written, call)) this.#readGiven(written, { traced, isOnTraced: true }, { ...run, ...UNCERTAIN });
  }

  #readGiven(written: WrittenFunction, given: GivenToFunction, run: Run): void {
    const { traced } = given;
    const key = keyOfGiven(given);
    const reads = this.#read.get(written.node) ?? new Set<string>();
    this.#read.set(written.node, reads);
    if (reads.has(key)) return;
    reads.add(key);
    const { findings, notes, unchecked, uncalled } = readWritten(written, given);
    for (const text of uncalled) this.#uncalled.add(text);
    const calls = this.#calls.get(written.node) ?? [];
    this.#calls.set(written.node, calls);
    for (const found of unchecked) {
      const { callee, isPrototype = false } = found.at;
      if (isPrototype && this.#readMembers(callee, [...written.around, written.node], written.script)) continue;
      if (!calls.some((it) => it.found.at.callee === found.at.callee))
        calls.push({ written, found, isRecorded: false, isEntered: false });
    }
    const inside = [...findings, ...notes].filter(({ at }) => isWithin(at, written.node));
    for (const { at } of inside) {
      const isNote = FINDINGS[at.kind].level === "note";
      // Of whose members a function is that is no method of the module, nobody knows; what it gives is looked at where it is used.
      if (at.kind === "generator" || (at.kind === "state" && !isOfModule(written.around))) continue;
      if (traced === undefined && isAboutText(at)) continue;
      const isTold = traced === undefined || run.isUncertain === true;
      // A variable of a function that is running is as new as the trace.
      if (isNote && isVariableOf(run.running ?? [], at, written)) continue;
      // One function may be run in several ways.
      const place = `${written.script.at(at)}:${at.kind}`;
      if (isTold && this.#told.has(place)) continue;
      this.#told.add(place);
      const error = toldOf(at, written, isTold && !isNote);
      if (isNote || isTold) this.#listener.tell(error);
      else this.#listener.refuse(error, run.isAsync === true);
    }
  }
}

/** The text of a function from its parameters on, as its file has it. */
function textOfFunction(fn: Readable): string[] {
  const parsed = parseFunction(fn);
  return typeof parsed === "string" ? [] : [parsed.source.slice(...extent(parsed.node))];
}

/** Whether the function at a place is the one of the frame, for all that their names say. */
function isNamed({ node, around }: WrittenFunction, site: CallSite): boolean {
  const running = lastName((site.getFunctionName() ?? "").replace(/^[gs]et /, ""));
  const name = nameOf(node, around.at(-1));
  return (
    running === "" || running.startsWith("<") || name === undefined || running === name || running === className(around)
  );
}

/** What a call gives, of a function of which it is known what is traced in it. */
export function givenBy({ at, active }: OpaqueCall<unknown>, { args }: Pick<CallPlace, "args">): GivenByCall {
  const name = /^[\w$.]+$/.test(at.callee) ? lastName(at.callee) : undefined;
  return { name, traced: args?.map((it) => (it & active) !== 0n), isOnTraced: (at.on & active) !== 0n };
}

/** Whether a call that is known is the one that runs a function: JavaScript's own functions call what they like, and go on with generators. */
function isCallOf({ node }: WrittenFunction, call: GivenByCall | undefined, caller: UserFrame["caller"] | undefined) {
  return caller === "user" ? !node.generator : node.generator && call?.name === "next";
}

/** Whether the object that a function is a member of may have traced values: that of an accessor always may. */
function mayHaveTraced({ node, around }: WrittenFunction, call: GivenByCall | undefined): boolean {
  if (node.type === "ArrowFunctionExpression") return false;
  const member = around.at(-1);
  if (member?.type !== "MethodDefinition" && member?.type !== "Property") return call?.isOnTraced === true;
  // What describes a property has its accessors under these names.
  const kind = member.kind === "get" || member.kind === "set" ? member.kind : nameOf(node, member);
  // Of modules, what is assigned to them is looked at.
  return call?.isOnTraced ?? ((kind === "get" || kind === "set") && !isOfModule(around));
}

/** Which parameters are traced; undefined where it is not known. */
function tracedParameters(
  { script, node, around }: WrittenFunction,
  call: GivenByCall | undefined,
): boolean[] | undefined {
  const params = node.params.map((it, index) => parameter(it, index, script.text));
  // What a generator is called with, it has been given before it goes on.
  if (node.generator) return params.length === 0 && call?.traced !== undefined ? [...call.traced] : undefined;
  if (params.length === 0 && !readsArguments(node)) return [];
  if (call?.traced === undefined || params.some(({ kind }) => kind === "rest")) return undefined;
  const { name, traced } = call;
  // These call a function with other arguments than their own.
  if (name !== undefined && /^(?:call|apply|bind|construct)$/.test(name)) return undefined;
  const isOwn = name !== undefined && [nameOf(node, around.at(-1)), className(around)].includes(name);
  // A bound function would be given what it is bound to in front of them.
  const wanted = params.filter((it) => it.default === undefined).length;
  if (traced.length < (isOwn ? wanted : params.length)) return undefined;
  return [...traced];
}

/** What counts whatever is traced counts only in the function itself, and not in those that it names. */
function isWithin(at: Finding, { loc }: FunctionSyntax): boolean {
  if (at.sources !== ALWAYS || !loc) return true;
  return contains(
    { line: loc.start.line, column: loc.start.column + 1, endLine: loc.end.line, endColumn: loc.end.column + 1 },
    at,
  );
}

/** Whether what is assigned is a variable of one of these functions. */
function isVariableOf(functions: readonly FunctionSyntax[], at: Finding, { around }: WrittenFunction): boolean {
  const [, name] = /^(?:\+\+|--)?([\w$]+)\b(?!\s*[.[])/.exec(at.snippet) ?? [];
  if (name === undefined) return false;
  const owner = around.findLast((it) => isFunction(it) && declares(it, name));
  return owner !== undefined && functions.some((it) => it === owner);
}

/** Whether something is compared with a text, which no tensor is. */
function isAboutText({ kind, snippet }: Finding): boolean {
  return kind === "comparison" && /^["'`]|["'`]$/.test(snippet.trim());
}

function toldOf(at: Finding, { script, node, around }: WrittenFunction, isUncertain: boolean): FxError {
  const { error, help } = FINDINGS[at.kind];
  const name = nameOf(node, around.at(-1)) ?? "a function";
  const condition = isUncertain ? ", if it is given a traced value" : "";
  return fxError(error, `${describeFinding(at)}${condition} (in ${name}, ${script.at(at)})`, {
    help,
  });
}

/** The warning of a call of which nobody knows what it does. */
export function opaqueCall(callee: string, where: string): FxError {
  return fxError("TraceControlFlow", `\`${callee}\` is given a traced value and its source cannot be seen (${where})`, {
    help:
      "if it decides something about the value, the trace has one branch only: check it with the lint rule or the " +
      "build plugin, or record it as one call with wrap()",
  });
}

function lastName(callee: string): string {
  return callee.slice(callee.lastIndexOf(".") + 1);
}

function contains(
  place: Pick<CallPlace, "line" | "column" | "endLine" | "endColumn">,
  { line, column }: { readonly line: number; readonly column: number },
): boolean {
  const isAfter = line > place.line || (line === place.line && column >= place.column);
  return isAfter && (line < place.endLine || (line === place.endLine && column < place.endColumn));
}
