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
import type { OpaqueCall } from "./analysis/check.ts";
import type { CallPlace } from "./analysis/knowledge.ts";
import type { Readable } from "./analysis/parse.ts";
import { givenBy, type Participants, type UserFrame } from "./participants.ts";
import { type CallSite, sitesBelow } from "../base/position.ts";
import { isBundled, isOwnFile } from "../base/frames.ts";
import { beginUserCode, type EntryWatcher } from "../record/stack.ts";

type Opaque = OpaqueCall;
type Entry = (...args: never[]) => unknown;

/** The names of functions that record what they are given, and are in no table. */
const CONTROL_FLOW: ReadonlySet<string> = new Set(["cond", "whileLoop", "map", "scan"]);

/** Where each function that was traced was seen to stand when it called something. */
const POSITIONS = new WeakMap<Readable, Set<string>>();

/** How many frames most calls have between the package and the function that is traced. */
const NEAR_FRAMES = 8;

/** Calls that are watched while a function is traced. */
export class OpaqueCalls implements EntryWatcher {
  readonly #calls: readonly Opaque[];
  /** The function that is traced; undefined where it is called by one of which the stack says no more. */
  readonly #root: Readable | undefined;
  /** The functions of the package that were called at each place. */
  readonly #own = new Map<CallPlace, Set<Entry>>();
  /** The calls below which a function ran that nobody could read, and those below which all of them were read. */
  readonly #entered = new Set<Opaque>();
  readonly #followed = new Set<Opaque>();
  readonly #participants: Participants;
  /** The stacks that were looked at. */
  readonly #seen = new Map<Entry, Set<string>>();
  /** How many calls are running of the function that is traced, and of those that run as a part of it. */
  #running = 0;
  /** Where the function that is traced was seen to stand, in this trace or in another one. */
  readonly #positions: Set<string>;
  /** How many frames there are below the function that is traced. */
  #below: number | undefined;

  constructor(calls: readonly Opaque[], root: Readable | undefined, participants: Participants) {
    this.#calls = calls;
    this.#root = root;
    this.#participants = participants;
    this.#positions = (root && POSITIONS.get(root)) ?? new Set();
    if (root !== undefined) POSITIONS.set(root, this.#positions);
  }

  begins(): void {
    this.#running += 1;
    if (this.#root !== undefined) this.#below ??= sitesBelow(beginUserCode).length;
  }

  ends(): void {
    this.#running -= 1;
  }

  enters(by: Entry): readonly CallSite[] | undefined {
    // Hooks of its module run before and after it.
    if (this.#root !== undefined && this.#running === 0) return undefined;
    const sites = this.#nearest(by) ?? this.#above(by);
    this.#look(by, sites);
    return this.#root === undefined || sites.length === 0 ? undefined : sites;
  }

  /** The frames down to the function that is traced; what is below it is somebody else's. */
  #above(by: Entry): readonly CallSite[] {
    const sites = sitesBelow(by);
    const above = sites.slice(0, sites.length - (this.#below ?? 0));
    const last = above.at(-1);
    if (this.#root !== undefined && last !== undefined) this.#positions.add(positionOf(last));
    return above;
  }

  /**
   * The same, by a look at no more frames than are there for most calls: V8 takes its time for each. Undefined where the function
   * is further below, or stands at a place where nobody has seen it yet.
   */
  #nearest(by: Entry): readonly CallSite[] | undefined {
    if (this.#root === undefined || isBundled) return undefined;
    const sites = sitesBelow(by, NEAR_FRAMES);
    // Where it calls itself, the package has called the outermost one.
    const at = sites.findIndex(
      (it, index) => isOwnFile(sites[index + 1]?.getFileName() ?? "") && this.#positions.has(positionOf(it)),
    );
    return at < 0 ? undefined : sites.slice(0, at + 1);
  }

  /** Looks at a stack, of the user's code that called a function of the package. */
  #look(by: Entry, sites: readonly CallSite[]): void {
    const seen = this.#seen.get(by) ?? new Set<string>();
    this.#seen.set(by, seen);
    const key = sites.map(positionOf).join();
    if (seen.has(key)) return;
    seen.add(key);
    const frames = sites.flatMap((site, at): UserFrame[] =>
      isUsers(site) ? [{ site, caller: callerOf(sites, at) }] : [],
    );
    const users = frames.map(({ site }) => site);
    const places = users.map((_, depth) =>
      this.#calls.flatMap((call) => {
        const place = this.#placeOf(call, users, depth);
        return place === undefined ? [] : [{ call, place }];
      }),
    );
    const read = this.#root === undefined ? [] : this.#participants.read(frames, (depth) => given(places[depth]?.[0]));
    // Of what runs around a hook, the stack says no more.
    const isRead = read.map((it, depth) => it || this.#isWithinRoot(users, depth));
    places.forEach((at, depth) => {
      const isFollowed = depth > 0 && isRead.length > 0 && isRead.slice(0, depth).every(Boolean);
      for (const { call, place } of at) {
        const own = this.#own.get(place);
        if (depth === 0) this.#own.set(place, (own ?? new Set()).add(by));
        else if (isFollowed) this.#followed.add(call);
        else if (!this.#isByPackage(frames[depth - 1], place)) this.#entered.add(call);
      }
    });
  }

  /** Whether the function of a frame is written in the one that is traced, and was read with it. */
  #isWithinRoot(users: readonly CallSite[], depth: number): boolean {
    const [inner, outer] = [frameOf(users[depth]), frameOf(users.at(-1))];
    if (this.#root === undefined || this.#below === undefined || inner === undefined || outer === undefined)
      return false;
    return (
      inner.file === outer.file && this.#participants.hasReadWithin(this.#root, relative(inner.start, outer.start))
    );
  }

  /** Whether it is a function of the package that the call at a place calls, and that has called the function of a frame. */
  #isByPackage(frame: UserFrame | undefined, place: CallPlace): boolean {
    // In a bundle, the frames of the package look like the user's.
    if (isBundled) return this.#own.has(place) && place.callees <= 1;
    return frame?.caller === "package";
  }

  /** The calls that may have decided something; where the engine tells nothing of its stack, names decide. */
  suspects(): Opaque[] {
    return this.#calls.filter((call) => {
      if (this.#entered.has(call)) return true;
      // What runs while the call is made need not be what it calls: an iterator of what it makes.
      if (this.#isOwn(call) || this.#participants.reads(call) || this.#followed.has(call)) return false;
      return call.at.isPrototype === true || !isKnownName(call.at.callee.slice(call.at.callee.lastIndexOf(".") + 1));
    });
  }

  /** Whether it is known that the package was called; where several functions are, all of them must be its own. */
  #isOwn({ at }: Opaque): boolean {
    return at.places.some((it) => (this.#own.get(it)?.size ?? 0) >= it.callees);
  }

  /** The place of the call at which a frame of the stack is. */
  #placeOf({ fn, at }: Opaque, users: readonly CallSite[], depth: number): CallPlace | undefined {
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
    ends: () => {
      for (const it of all) it.ends();
    },
    enters: (by) => {
      const taken = all.map((it) => it.enters(by)).filter((it) => it !== undefined);
      return taken.toSorted((a, b) => b.length - a.length)[0];
    },
  };
}

/** Whether a function of this name records what it is given. */
export function isKnownName(name: string): boolean {
  return hasFunctionNamed(name) || CONTROL_FLOW.has(name);
}

function given(at: { readonly call: Opaque; readonly place: CallPlace } | undefined) {
  return at && givenBy(at.call, at.place);
}

function isUsers(site: CallSite | undefined): boolean {
  // Built-in functions have no file.
  const file = site?.getFileName() ?? "";
  return file !== "" && !isOwnFile(file);
}

/** Who called the function of a frame of the stack. */
function callerOf(sites: readonly CallSite[], at: number): UserFrame["caller"] {
  let below = at + 1;
  while (below < sites.length && !isUsers(sites[below])) {
    if (isOwnFile(sites[below]?.getFileName() ?? "")) return "package";
    below += 1;
  }
  return below === at + 1 ? "user" : "host";
}

/** The numbers of files, which make short keys. */
const FILES = new Map<string, number>();

/** A place in a file; asking for a line takes V8 much longer. */
function positionOf(site: CallSite): string {
  const file = site.getFileName() ?? "";
  let number = FILES.get(file);
  if (number === undefined) FILES.set(file, (number = FILES.size));
  return `${number}:${site.getPosition?.() ?? `${site.getLineNumber()}:${site.getColumnNumber()}`}`;
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
