/**
 * Functions whose source nobody could read, and what came of calling them with traced values.
 *
 * From outside, a function that records itself (one of this package, or one that `wrap` gave) looks like any other. What
 * it records tells: if the user's code that is innermost when a node is made is the very call, the function recorded itself;
 * if there is code of the user's further inside, the function ran, and may have decided something.
 *
 * @module
 */
import { hasFunctionNamed } from "../functions/table.ts";
import type { Found } from "./analysis/check.ts";
import type { CallPlace, UncheckedCall } from "./analysis/knowledge.ts";
import { type CallSite, currentSites } from "./position.ts";
import { isOwnFile } from "./stack.ts";

type Unread = Found<UncheckedCall>;

/** The names of functions that record what they are given, and are in no table. */
const CONTROL_FLOW: ReadonlySet<string> = new Set(["cond", "whileLoop", "map", "scan"]);

/** Runs a function whose calls are watched. */
export function watched<T>(run: () => T): T {
  return run();
}

/** Calls that are watched while a function is traced. */
export class UnreadCalls {
  readonly #calls: readonly Unread[];
  readonly #recorded = new Set<Unread>();
  readonly #entered = new Set<Unread>();

  constructor(calls: readonly Unread[]) {
    this.#calls = calls;
  }

  /** Notes that a node is recorded, below the code that is running. */
  note(): void {
    const sites = currentSites();
    // What is below the run of the function is somebody else's.
    const end = sites.findIndex((site) => site.getFunctionName() === watched.name);
    const users = sites.slice(0, end < 0 ? 0 : end).filter((site) => {
      // Built-in functions have no file.
      const file = site.getFileName() ?? "";
      return file !== "" && !isOwnFile(file);
    });
    users.forEach((site, depth) => {
      const call = this.#calls.find((it) => isAt(it, site));
      if (call !== undefined) (depth === 0 ? this.#recorded : this.#entered).add(call);
    });
  }

  /** The calls that may have decided something; where the engine tells nothing of its stack, names decide. */
  suspects(): Unread[] {
    return this.#calls.filter((call) => {
      if (this.#entered.has(call)) return true;
      return !this.#recorded.has(call) && !isKnownName(call.at.callee.slice(call.at.callee.lastIndexOf(".") + 1));
    });
  }
}

function isKnownName(name: string): boolean {
  return hasFunctionNamed(name) || CONTROL_FLOW.has(name);
}

/** Whether a frame of the stack is at one of the calls. */
function isAt({ fn, at }: Unread, site: CallSite): boolean {
  const [startLine, startColumn] = [site.getEnclosingLineNumber?.(), site.getEnclosingColumnNumber?.()];
  const [line, column] = [site.getLineNumber(), site.getColumnNumber()];
  if (typeof startLine !== "number" || typeof startColumn !== "number" || line === null || column === null)
    return false;
  const name = site.getFunctionName() ?? "";
  if (fn.name !== "" && !name.endsWith(fn.name)) return false;
  const own = { line: line - startLine + 1, column: line === startLine ? column - startColumn + 1 : column };
  return at.places.some((place) => contains(place, own));
}

function contains(place: CallPlace, { line, column }: { readonly line: number; readonly column: number }): boolean {
  const isAfter = line > place.line || (line === place.line && column >= place.column);
  return isAfter && (line < place.endLine || (line === place.endLine && column < place.endColumn));
}
