/**
 * Functions whose source nobody could read, and what came of calling them with traced values.
 *
 * From outside, a function of this package, or one that `wrap` gave, looks like any other, and bundlers leave neither its
 * file nor its name. But each says that it was called, with itself as the end of the stack: if the code below is the very
 * call, the call is one of the package. If that code was called by it, a function of the user's ran, and may have decided
 * something.
 *
 * @module
 */
import { hasFunctionNamed } from "../functions/table.ts";
import type { Found } from "./analysis/check.ts";
import type { CallPlace, UncheckedCall } from "./analysis/knowledge.ts";
import type { Readable } from "./analysis/parse.ts";
import { type CallSite, sitesBelow } from "./position.ts";
import { beginUserCode, type EntryWatcher, isOwnFile } from "./stack.ts";

type Unread = Found<UncheckedCall>;
type Entry = (...args: never[]) => unknown;

/** The names of functions that record what they are given, and are in no table. */
const CONTROL_FLOW: ReadonlySet<string> = new Set(["cond", "whileLoop", "map", "scan"]);

/** Calls that are watched while a function is traced. */
export class UnreadCalls implements EntryWatcher {
  readonly #calls: readonly Unread[];
  /** The function that is traced; undefined where it is called by one of which the stack says no more. */
  readonly #root: Readable | undefined;
  /** The functions of the package that were called at each place. */
  readonly #own = new Map<CallPlace, Set<Entry>>();
  readonly #entered = new Set<Unread>();
  /** How many frames there are below the function that is traced. */
  #below: number | undefined;

  constructor(calls: readonly Unread[], root: Readable | undefined) {
    this.#calls = calls;
    this.#root = root;
  }

  begins(): void {
    if (this.#root !== undefined) this.#below ??= sitesBelow(beginUserCode).length;
  }

  enters(by: Entry): void {
    if (this.#calls.every((it) => this.#isOwn(it))) return;
    const sites = sitesBelow(by);
    // What is below the function is somebody else's.
    const users = sites.slice(0, sites.length - (this.#below ?? 0)).filter((site) => {
      // Built-in functions have no file.
      const file = site.getFileName() ?? "";
      return file !== "" && !isOwnFile(file);
    });
    for (const call of this.#calls) {
      for (let depth = 0; depth < users.length; depth++) {
        const place = this.#placeOf(call, users, depth);
        if (place === undefined) continue;
        const own = this.#own.get(place);
        if (depth === 0) this.#own.set(place, (own ?? new Set()).add(by));
        // What the package calls for the user is called from the same place.
        else if (own === undefined || place.callees > 1) this.#entered.add(call);
      }
    }
  }

  /** The calls that may have decided something; where the engine tells nothing of its stack, names decide. */
  suspects(): Unread[] {
    return this.#calls.filter((call) => {
      if (this.#entered.has(call)) return true;
      return !this.#isOwn(call) && !isKnownName(call.at.callee.slice(call.at.callee.lastIndexOf(".") + 1));
    });
  }

  /** Whether it is known that the package was called; where several functions are, all of them must be its own. */
  #isOwn({ at }: Unread): boolean {
    return at.places.some((it) => (this.#own.get(it)?.size ?? 0) >= it.callees);
  }

  /** The place of the call at which a frame of the stack is. */
  #placeOf({ fn, at }: Unread, users: readonly CallSite[], depth: number): CallPlace | undefined {
    const frame = frameOf(users[depth]);
    if (frame === undefined) return undefined;
    return at.places.find((place) => {
      if (place.inside === undefined) return contains(place, frame.own) && this.#isFrameOf(fn, users, depth);
      // A function that is written in the function: its frame says where that one begins, which is running, too.
      const inner = { ...place, ...relative(place, place.inside), ...endOf(place, place.inside) };
      if (!contains(inner, frame.own)) return false;
      const { inside } = place;
      return users.some((_, below) => {
        const around = below > depth && this.#isFrameOf(fn, users, below) ? frameOf(users[below]) : undefined;
        return (
          around !== undefined && around.file === frame.file && isSame(relative(frame.start, around.start), inside)
        );
      });
    });
  }

  #isFrameOf(fn: Readable, users: readonly CallSite[], depth: number): boolean {
    if (fn === this.#root && this.#below !== undefined) return depth === users.length - 1;
    return fn.name === "" || (users[depth]?.getFunctionName() ?? "").endsWith(fn.name);
  }
}

/** All of these as one; undefined where there are none. */
export function watchers(all: readonly EntryWatcher[]): EntryWatcher | undefined {
  if (all.length <= 1) return all[0];
  return {
    begins: () => {
      for (const it of all) it.begins();
    },
    enters: (by) => {
      for (const it of all) it.enters(by);
    },
  };
}

function isKnownName(name: string): boolean {
  return hasFunctionNamed(name) || CONTROL_FLOW.has(name);
}

/** A line and a column, both from 1. */
interface Position {
  readonly line: number;
  readonly column: number;
}

/** A frame of the stack: where its function begins, and where in that function it stands. */
interface Frame {
  readonly file: string;
  readonly start: Position;
  readonly own: Position;
}

function frameOf(site: CallSite | undefined): Frame | undefined {
  const [startLine, startColumn] = [site?.getEnclosingLineNumber?.(), site?.getEnclosingColumnNumber?.()];
  const [line, column] = [site?.getLineNumber() ?? undefined, site?.getColumnNumber() ?? undefined];
  if (typeof startLine !== "number" || typeof startColumn !== "number") return undefined;
  if (line === undefined || column === undefined) return undefined;
  const start = { line: startLine, column: startColumn };
  return { file: site?.getFileName() ?? "", start, own: relative({ line, column }, start) };
}

/** A position, counted from another one. */
function relative({ line, column }: Position, from: Position): Position {
  return { line: line - from.line + 1, column: line === from.line ? column - from.column + 1 : column };
}

function endOf({ endLine, endColumn }: CallPlace, from: Position): Pick<CallPlace, "endLine" | "endColumn"> {
  const { line, column } = relative({ line: endLine, column: endColumn }, from);
  return { endLine: line, endColumn: column };
}

function isSame(a: Position, b: Position): boolean {
  return a.line === b.line && a.column === b.column;
}

function contains(place: CallPlace, { line, column }: Position): boolean {
  const isAfter = line > place.line || (line === place.line && column >= place.column);
  return isAfter && (line < place.endLine || (line === place.endLine && column < place.endColumn));
}
