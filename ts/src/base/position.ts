/**
 * Where in the user's files a function stands.
 *
 * JavaScript does not say where a function was written. V8 does for one that is running: a frame of the stack knows where
 * its function begins. So a function that is refused anyway is run up to the first thing that a trace would record, if it does
 * nothing else until then.
 *
 * @module
 */
import { builtinModule } from "./builtinModule.ts";

/** The part of V8's `CallSite` that is used here. */
export interface CallSite {
  getFunctionName(): string | null;
  getFileName(): string | null | undefined;
  getLineNumber(): number | null;
  getColumnNumber(): number | null;
  getEnclosingLineNumber?(): number | null;
  getEnclosingColumnNumber?(): number | null;
  /** How many characters stand before it in the text that was compiled. */
  getPosition?(): number;
  /** The hash of the text that was compiled: SHA-256, in hexadecimal digits. */
  getScriptHash?(): string;
}

/** What V8 adds to `Error`. */
interface StackErrors {
  stackTraceLimit: number;
  captureStackTrace(holder: object, below?: (...args: never[]) => unknown): void;
  prepareStackTrace?: ((error: Error, sites: readonly CallSite[]) => unknown) | undefined;
}

/** Ends a run whose only purpose is to find out where a function stands. */
export class Located extends Error {
  readonly sites: readonly CallSite[] = currentSites();
}

/** Where a function begins. */
export class FunctionPlace {
  readonly #site: CallSite;
  readonly #line: number;
  readonly #column: number;

  constructor(site: CallSite, line: number, column: number) {
    this.#site = site;
    this.#line = line;
    this.#column = column;
  }

  /** The file, line and column of a place in the function's own text, through the host's source maps. */
  at(line: number, column: number): string | undefined {
    const first = line === 1 ? this.#column - 1 : 0;
    return mapped(this.#site, this.#line + line - 1, first + column);
  }
}

/**
 * Runs a function until a trace would record something, and says where the function begins. Before that, the function must
 * do nothing that anybody could notice.
 */
export function locate(fn: Function, self: unknown, args: readonly unknown[]): FunctionPlace | undefined {
  const below = sitesBelow(locate).length;
  try {
    Reflect.apply(fn, self, args);
  } catch (error) {
    // Whatever else it throws, it is refused for what was found before.
    if (!(error instanceof Located)) return undefined;
    // This function is between that one and what is below.
    const site = error.sites[error.sites.length - below - 2];
    const [line, column] = [site?.getEnclosingLineNumber?.(), site?.getEnclosingColumnNumber?.()];
    if (site !== undefined && typeof line === "number" && typeof column === "number")
      return new FunctionPlace(site, line, column);
  }
  return undefined;
}

/** The frames of the stack; none where the engine is not V8. */
export function currentSites(): readonly CallSite[] {
  return sitesBelow(currentSites);
}

/** The frames of the stack below a function that is running, or the first of them; none where the engine is not V8. */
export function sitesBelow(
  below: (...args: never[]) => unknown,
  limit: number = Number.POSITIVE_INFINITY,
): readonly CallSite[] {
  const errors = Error as unknown as Partial<StackErrors>;
  if (errors.captureStackTrace === undefined) return [];
  const { prepareStackTrace, stackTraceLimit } = errors;
  const holder: { stack?: unknown } = {};
  try {
    errors.stackTraceLimit = limit;
    errors.prepareStackTrace = (_, sites) => sites;
    errors.captureStackTrace(holder, below);
    return Array.isArray(holder.stack) ? (holder.stack as CallSite[]) : [];
  } finally {
    errors.prepareStackTrace = prepareStackTrace;
    if (stackTraceLimit !== undefined) errors.stackTraceLimit = stackTraceLimit;
  }
}

/** The frames of a stack that was captured and of which nobody has read the text; undefined where the engine is not V8. */
export function sitesOf(holder: { readonly stack?: unknown }): readonly CallSite[] | undefined {
  const errors = Error as unknown as Partial<StackErrors>;
  if (errors.captureStackTrace === undefined) return undefined;
  const { prepareStackTrace } = errors;
  try {
    errors.prepareStackTrace = (_, sites) => sites;
    // It is made when it is first read, and stays.
    return Array.isArray(holder.stack) ? (holder.stack as CallSite[]) : undefined;
  } finally {
    errors.prepareStackTrace = prepareStackTrace;
  }
}

/** A frame as V8 writes it, at its place in the file that the user wrote. */
export function frameText(site: CallSite): string {
  const [file, line, column] = [site.getFileName(), site.getLineNumber(), site.getColumnNumber()];
  const text = `at ${String(site)}`;
  if (file === null || file === undefined || line === null || column === null) return text;
  return text.replace(`${file}:${line}:${column}`, (raw) => mapped(site, line, column) ?? raw);
}

/** The place in the file that the user wrote. */
export function mapped(site: CallSite, line: number, column: number): string | undefined {
  const file = site.getFileName();
  if (file === null || file === undefined) return undefined;
  return byHost(site, line, column) ?? byNode(file, line, column) ?? `${file}:${line}:${column}`;
}

/** Where the text stands that the user wrote, by the host's source maps; undefined where it has none for the file. */
export function writtenAt(
  site: CallSite,
  line: number,
  column: number,
): { readonly file: string; readonly line: number; readonly column: number } | undefined {
  const file = site.getFileName() ?? "";
  const text = byHost(site, line, column) ?? byNode(file, line, column);
  const [, original, row, at] = /^(.*):(\d+):(\d+)$/s.exec(text ?? "") ?? [];
  if (original === undefined) return undefined;
  return { file: original, line: Number(row), column: Number(at) };
}

/** Development servers and test runners map stacks by a function of their own, which takes any frame. */
function byHost(site: CallSite, line: number, column: number): string | undefined {
  const { prepareStackTrace } = Error as unknown as Partial<StackErrors>;
  if (prepareStackTrace === undefined) return undefined;
  const moved = new globalThis.Proxy(site, {
    get(target, key) {
      if (key === "getLineNumber") return () => line;
      if (key === "getColumnNumber") return () => column;
      // What a host prints that has no map for the file.
      if (key === "toString") return () => `${target.getFileName()}:${line}:${column}`;
      const member: unknown = Reflect.get(target, key, target);
      return typeof member === "function" ? (member.bind(target) as unknown) : member;
    },
  });
  try {
    const text = String(prepareStackTrace(new Error("place"), [moved]));
    return /(?:\(|\bat (?:async )?)([^()\n]+:\d+:\d+)\)?\s*$/.exec(text)?.[1];
  } catch {
    // A host's function may want more of a frame than this has.
    return undefined;
  }
}

/** Whether a loader has rewritten a file, so that every decision in it is checked when it is made. */
let isChecked: (file: string) => boolean = () => false;

/** A loader says which files it rewrites; what it makes of them is in no file, and hosts keep maps only where they are told to. */
export function setCheckedFiles(test: (file: string) => boolean): void {
  isChecked = test;
}

/** Whether a loader checks the decisions of a file, by its URL or path. */
export function isCheckedFile(file: string): boolean {
  return isChecked(file);
}

function byNode(file: string, line: number, column: number): string | undefined {
  const map = builtinModule("node:module")?.findSourceMap?.(file);
  const entry = map?.findEntry(line - 1, column - 1);
  if (entry === undefined || !("originalSource" in entry)) return undefined;
  const { originalSource, originalLine, originalColumn } = entry;
  return `${originalSource}:${originalLine + 1}:${originalColumn + 1}`;
}
