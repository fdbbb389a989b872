/**
 * Where in the user's source something was recorded or refused.
 *
 * @module
 */
import { type ErrorDetails, type ErrorName, fxError, type FxError } from "../errors.ts";

/** Whether this file is where the package has it, and not in a bundle with code of the user's. */
const IS_ITSELF = /\/trace\/stack\.[jt]s$/.test(import.meta.url);

/** What frames of the package have in a bundle, once source maps have led them back. */
const OWN_FOLDER = /[\\/]tracefx[\\/](?:dist|src)[\\/]/;

/** The folder of this package, as stack traces spell it. */
const OWN_URL = new URL("..", import.meta.url).href;
const OWN_PATH = OWN_URL.startsWith("file://") ? decodeURI(new URL(OWN_URL).pathname) : OWN_URL;

/** How many frames are kept of a call that is recorded. Each costs time in every trace. */
const CALL_FRAMES = 2;
/** How many frames an error looks through for the user's line. */
const ERROR_FRAMES = 64;

/** What an engine that keeps V8's stack traces offers. */
interface StackRecorder {
  stackTraceLimit?: number;
  captureStackTrace?: (holder: object, below?: (...args: never[]) => unknown) => void;
}

type Entry = (...args: never[]) => unknown;

/** A stack that was captured. It is turned into text when somebody reads it, which is the dear part. */
export interface CapturedStack {
  readonly stack?: string;
}

let isWanted = false;
let current: CapturedStack | undefined;

/** Runs `body`, in which stacks of recorded calls are captured, or not. */
export function withStacks<T>(wanted: boolean, body: () => T): T {
  const [wasWanted, outer] = [isWanted, current];
  isWanted = wanted;
  current = undefined;
  try {
    return body();
  } finally {
    isWanted = wasWanted;
    current = outer;
  }
}

/**
 * Notes that the user's code came in through this function, with the stack below it; {@link leave} undoes it. It is called
 * as near to that function as can be: V8 takes its time for every frame in between.
 */
export function enter(by: Entry): CapturedStack | undefined {
  const outer = current;
  if (isWanted) current = captureStack(CALL_FRAMES, by);
  return outer;
}

/** {@link enter} from deep inside the package: the stack reaches down to the user's code, however far that is. */
export function enterDeep(by: Entry): CapturedStack | undefined {
  const outer = current;
  if (isWanted) current = captureStack(ERROR_FRAMES, by);
  return outer;
}

/**
 * {@link enter} for the function that calls this and that the user's code called. V8 is faster at keeping two frames that
 * are dropped from the text than at walking over them, and calls of modules are most of a trace.
 */
export function enterHere(): CapturedStack | undefined {
  const outer = current;
  if (isWanted) {
    const errors = Error as unknown as StackRecorder;
    const limit = errors.stackTraceLimit;
    // Two of its own and the line of the caller; the modules around have stacks themselves.
    errors.stackTraceLimit = 3;
    current = new Error();
    if (limit !== undefined) errors.stackTraceLimit = limit;
  }
  return outer;
}

/** Goes back to what {@link enter} gave. */
export function leave(outer: CapturedStack | undefined): void {
  current = outer;
}

/** Where the user's code called what is being recorded. */
export function currentStack(): CapturedStack {
  return current ?? captureStack(ERROR_FRAMES, currentStack);
}

function captureStack(frames: number, below: Entry): CapturedStack {
  const errors = Error as unknown as StackRecorder;
  if (errors.captureStackTrace === undefined) return new Error("stack");
  const limit = errors.stackTraceLimit;
  errors.stackTraceLimit = frames;
  const holder = {};
  errors.captureStackTrace(holder, below);
  if (limit !== undefined) errors.stackTraceLimit = limit;
  return holder;
}

/** The frames of the user's code in stacks, the innermost stack and frame first, a line each as the host writes them. */
export function stackText(stacks: readonly CapturedStack[]): string {
  // An error begins with two frames of the package: what made it, and the caller of that.
  const frames = stacks.flatMap((it) => userFrames(it.stack ?? "", it instanceof Error ? 2 : 0));
  // Where a stack reaches down to the next one, the frames that they share are told once.
  return frames.filter((frame, at) => frame !== frames[at - 1]).join("\n");
}

/**
 * The frames of the user's code, up to the call that began the trace; all frames where everything is one file, as in a
 * bundle.
 */
function userFrames(stack: string, own: number): string[] {
  const frames = stack
    .split("\n")
    .filter((line) => /^\s*at |@/.test(line))
    .slice(own);
  const traced = frames.findLastIndex((frame) => isOwn(frame) && /\btrace\b/.test(frame));
  const inner = traced < 0 ? frames : frames.slice(0, traced);
  const others = inner.filter((frame) => !isOwn(frame) && !/node:internal\/|<anonymous>\)?$/.test(frame));
  const shown = others.length === 0 && !inner.some(isOwn) ? inner : others;
  // V8 names the receiver of a call, which a trace puts a proxy around.
  return shown.map((frame) => frame.trim().replace(/^at (?:async )?Proxy\./, "at "));
}

/** Whether a file is one of this package. */
export function isOwnFile(file: string): boolean {
  return IS_ITSELF ? file.startsWith(OWN_URL) || file.startsWith(OWN_PATH) : OWN_FOLDER.test(file);
}

function isOwn(frame: string): boolean {
  if (!IS_ITSELF) return OWN_FOLDER.test(frame);
  // Tests of the package lie beside its source, not in it.
  return frame.includes(OWN_URL) || frame.includes(`(${OWN_PATH}`) || frame.includes(` ${OWN_PATH}`);
}

/** A refusal of a trace that names the user's line. */
export function traceError(kind: ErrorName, reason: string, details: ErrorDetails = {}): FxError {
  const [frame] = stackText([captureStack(ERROR_FRAMES, traceError)]).split("\n");
  const notes = [...(frame === undefined || frame === "" ? [] : [frame]), ...(details.notes ?? [])];
  return fxError(kind, reason, { ...details, notes });
}
