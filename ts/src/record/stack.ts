/**
 * Where in the user's source something was recorded or refused.
 *
 * @module
 */
import { type ErrorDetails, type ErrorName, fxError, type FxError } from "../base/errors.ts";
import {
  type CapturedStack,
  captureStack,
  type Entry,
  ERROR_FRAMES,
  type FrameLine,
  framesOf,
  type StackRecorder,
} from "../base/frames.ts";
import type { CallSite } from "../base/position.ts";

export { type CapturedStack, ERROR_FRAMES, isOwnFile } from "../base/frames.ts";

/** How many frames are kept of a call that is recorded, unless more are asked for. Each costs time in every trace. */
const CALL_FRAMES = 2;

/** Who is told by which functions of the package the user's code comes in. */
export interface EntryWatcher {
  /** The next function that is called is the one that is watched, or one that runs as a part of it. */
  begins(): void;
  /** That function has given its result, or has thrown. */
  ends(): void;
  /** The user's code called this function of the package. Gives the frames of that code, the innermost first, if it has looked at them. */
  enters(by: Entry): readonly CallSite[] | undefined;
}

let isWanted = false;
let frameLimit: number = CALL_FRAMES;
/** The stack below the function of the package that the user's code called; none while that code itself runs. */
let current: CapturedStack | undefined;
let watcher: EntryWatcher | undefined;

/** Stands for a stack that nobody wants. */
const UNWANTED: CapturedStack = {};

/** Runs `body`, in which stacks of recorded calls are captured with that many frames, or not. */
export function withStacks<T>(wanted: boolean, body: () => T, depth: number = CALL_FRAMES): T {
  const [wasWanted, outerLimit] = [isWanted, frameLimit];
  isWanted = wanted;
  frameLimit = depth;
  try {
    return withUserCode(undefined, body);
  } finally {
    isWanted = wasWanted;
    frameLimit = outerLimit;
  }
}

/** Whether somebody wants to know by which functions of the package the user's code comes in. */
export function isEntryWanted(): boolean {
  return isWanted || watcher !== undefined;
}

/** Who is told now. */
export function currentWatcher(): EntryWatcher | undefined {
  return watcher;
}

/** Runs a function of the user's, and tells the watcher by which functions of the package it comes in. */
export function withUserCode<T>(next: EntryWatcher | undefined, body: () => T): T {
  const [outer, outerWatcher] = [current, watcher];
  current = undefined;
  watcher = next;
  try {
    return body();
  } finally {
    current = outer;
    watcher = outerWatcher;
  }
}

/** Says, right before it is called, that the next function is one of the user's that a trace runs. */
export function beginUserCode(): void {
  if (current === undefined) watcher?.begins();
}

/** Says that the function has given its result, or has thrown. */
export function endUserCode(): void {
  if (current === undefined) watcher?.ends();
}

/**
 * Notes that the user's code came in through this function, with the stack below it; {@link leave} undoes it. It is called
 * as near to that function as can be: V8 takes its time for every frame in between. Where the package calls itself, the
 * stack stays that of the user's call.
 */
export function enter(by: Entry): CapturedStack | undefined {
  const outer = current;
  if (outer !== undefined) return outer;
  const sites = watcher?.enters(by);
  if (isWanted) current = sites === undefined ? captureStack(frameLimit, by) : keep(sites);
  else if (watcher !== undefined) current = UNWANTED;
  return outer;
}

/** The frames of a stack that somebody has taken already, as many as are kept of a call. */
function keep(sites: readonly CallSite[]): CapturedStack {
  return { stack: sites.slice(0, frameLimit) };
}

/** {@link enter} from deep inside the package: the stack reaches down to the user's code, however far that is. */
export function enterDeep(by: Entry): CapturedStack | undefined {
  const outer = current;
  if (isWanted && outer === undefined) current = captureStack(ERROR_FRAMES, by);
  return outer;
}

/**
 * {@link enter} for the function `by`, which calls this and which the user's code called. V8 is faster at keeping two frames
 * that are dropped from the text than at walking over them, and calls of modules are most of a trace.
 */
export function enterHere(by: Entry): CapturedStack | undefined {
  const outer = current;
  if (outer !== undefined) return outer;
  const sites = watcher?.enters(by);
  if (isWanted && sites !== undefined) current = keep(sites);
  else if (isWanted) {
    const errors = Error as unknown as StackRecorder;
    const limit = errors.stackTraceLimit;
    // Two of its own and, of two, the line of the caller; the modules around have stacks themselves.
    errors.stackTraceLimit = frameLimit + 1;
    current = new Error();
    if (limit !== undefined) errors.stackTraceLimit = limit;
  } else if (watcher !== undefined) current = UNWANTED;
  return outer;
}

/** A function of the package that calls one that records itself: the stack is that of the user's call. */
export function entering<A extends readonly unknown[], R>(call: (...args: A) => R): (...args: A) => R {
  const entered = (...args: A): R => {
    const outer = enter(entered as unknown as Entry);
    try {
      return call(...args);
    } finally {
      leave(outer);
    }
  };
  return entered;
}

/**
 * Notes that the user's code called this function of the package, which records nothing itself: it gives back what it was
 * given, or calls functions of the user's.
 */
export function pass(by: Entry): void {
  if (watcher !== undefined && current === undefined) watcher.enters(by);
}

/** Goes back to what {@link enter} gave. */
export function leave(outer: CapturedStack | undefined): void {
  current = outer;
}

/** Where the user's code called what is being recorded. */
export function currentStack(): CapturedStack {
  return current ?? captureStack(ERROR_FRAMES, currentStack);
}

/** The frames of the user's code in stacks, the innermost stack and frame first, a line each as the host writes them. */
export function stackText(stacks: readonly CapturedStack[]): string {
  // An error begins with two frames of the package: what made it, and the caller of that.
  const frames = stacks.flatMap((it) => userFrames(it, it instanceof Error ? 2 : 0).map(textOf));
  // Where a stack reaches down to the next one, the frames that they share are told once.
  return frames.filter((frame, at) => frame !== frames[at - 1]).join("\n");
}

/**
 * The frames of the user's code, up to the call that began the trace; all frames where everything is one file, as in a
 * bundle.
 */
function userFrames(captured: CapturedStack, own: number): FrameLine[] {
  const frames = framesOf(captured).slice(own);
  const traced = frames.findLastIndex(({ isOurs, raw }) => isOurs && /\btrace\b/.test(raw));
  const inner = traced < 0 ? frames : frames.slice(0, traced);
  const others = inner.filter(({ isOurs, raw }) => !isOurs && !/node:internal\/|<anonymous>\)?$/.test(raw));
  return others.length === 0 && !inner.some(({ isOurs }) => isOurs) ? inner : others;
}

/** A frame as text. V8 names the receiver of a call, which a trace puts a proxy around. */
function textOf({ text }: FrameLine): string {
  return text.replace(/^at (?:async )?Proxy\./, "at ");
}

/** A refusal of a trace that names the user's line. */
export function traceError(kind: ErrorName, reason: string, details: ErrorDetails = {}): FxError {
  const called = current === UNWANTED ? undefined : current;
  const [frame] = userFrames(called ?? captureStack(ERROR_FRAMES, traceError), called instanceof Error ? 2 : 0);
  const notes = [...(frame === undefined ? [] : [textOf(frame)]), ...(details.notes ?? [])];
  return fxError(kind, reason, { ...details, notes });
}
