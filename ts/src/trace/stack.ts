/**
 * Where in the user's source something was recorded or refused.
 *
 * @module
 */
import { type ErrorDetails, type ErrorName, fxError, type FxError } from "../errors.ts";

/** The folder of this package, as stack traces spell it. */
const OWN_URL = new URL("..", import.meta.url).href;
const OWN_PATH = OWN_URL.startsWith("file://") ? decodeURI(new URL(OWN_URL).pathname) : OWN_URL;

/** How many frames a node keeps. Each costs time in every trace, and the path of modules is noted anyway. */
const NODE_FRAMES = 4;
/** How many frames an error looks through for the user's line. */
const ERROR_FRAMES = 64;

/** What an engine that keeps V8's stack traces offers. */
interface StackRecorder {
  stackTraceLimit?: number;
  captureStackTrace?: (holder: object, below?: (...args: never[]) => unknown) => void;
}

type Entry = (...args: never[]) => unknown;

let entry: Entry | undefined;

/** Notes that the user's code came in through this function, so that stacks begin below it; {@link leave} undoes it. */
export function enter(by: Entry | undefined): Entry | undefined {
  const outer = entry;
  entry = by;
  return outer;
}

/** Goes back to what {@link enter} gave. */
export function leave(outer: Entry | undefined): void {
  entry = outer;
}

/** A stack that was captured and is only turned into text when somebody reads it, which is the dear part. */
export class CapturedStack {
  #holder: { readonly stack?: string };
  #text: string | undefined;

  constructor(frames: number = NODE_FRAMES, below: Entry | undefined = entry) {
    const errors = Error as unknown as StackRecorder;
    if (errors.captureStackTrace === undefined) {
      this.#holder = new Error("stack");
      return;
    }
    const limit = errors.stackTraceLimit;
    errors.stackTraceLimit = below === undefined ? ERROR_FRAMES : frames;
    const holder = {};
    errors.captureStackTrace(holder, below);
    this.#holder = holder;
    if (limit !== undefined) errors.stackTraceLimit = limit;
  }

  /** The frames of the user's code, innermost first, a line each as the host writes them. */
  toString(): string {
    this.#text ??= userFrames(this.#holder.stack ?? "").join("\n");
    return this.#text;
  }
}

/**
 * The frames of the user's code, up to the call that began the trace; all frames where everything is one file, as in a
 * bundle.
 */
function userFrames(stack: string): string[] {
  const frames = stack.split("\n").filter((line) => /^\s*at |@/.test(line));
  const traced = frames.findLastIndex((frame) => isOwn(frame) && /\btrace\b/.test(frame));
  const inner = traced < 0 ? frames : frames.slice(0, traced);
  const others = inner.filter((frame) => !isOwn(frame) && !/node:internal\/|<anonymous>\)?$/.test(frame));
  return (others.length === 0 && !inner.some(isOwn) ? inner : others).map((frame) => frame.trim());
}

function isOwn(frame: string): boolean {
  // Tests of the package lie beside its source, not in it.
  return frame.includes(OWN_URL) || frame.includes(`(${OWN_PATH}`) || frame.includes(` ${OWN_PATH}`);
}

/** A refusal of a trace that names the user's line. */
export function traceError(kind: ErrorName, reason: string, details: ErrorDetails = {}): FxError {
  const [frame] = new CapturedStack(ERROR_FRAMES, traceError).toString().split("\n");
  const notes = [...(frame === undefined || frame === "" ? [] : [frame]), ...(details.notes ?? [])];
  return fxError(kind, reason, { ...details, notes });
}
