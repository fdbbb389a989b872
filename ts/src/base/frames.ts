/**
 * The frames of stacks: which are the package's, and how they read.
 *
 * @module
 */
import { type CallSite, currentSites, frameText, sitesOf } from "./position.ts";

/**
 * Where this file is. Some hosts and bundlers have no such place, and some take `new URL(…, import.meta.url)` for a file to
 * be put into the bundle, so that it is read as a text.
 */
const HERE = String(import.meta.url);

/** Whether a file is this one, where the package has it: by itself, or in a chunk of the package's own bundle. */
const IS_THIS = /[\\/](?:base[\\/]frames\.[jt]s|bundle[\\/]chunks[\\/]tracefx-\w+\.js)$/;

/**
 * Whether this file is where the package has it, and not in a bundle with code of the user's. Some bundlers write into the
 * bundle where it was, so that the stack is asked where it is.
 */
const IS_ITSELF = IS_THIS.test(HERE) && IS_THIS.test(currentSites()[0]?.getFileName() ?? HERE);

/** Whether the package may be in one file with code of the user's. */
export const isBundled: boolean = !IS_ITSELF;

/** What frames of the package have in a bundle, once source maps have led them back. */
const OWN_FOLDER = /[\\/]tracefx[\\/](?:dist|src)[\\/]/;

/** The folder of this package, as stack traces spell it. */
const OWN_URL = HERE.replace(/(?:base|chunks)\/[^/]+$/, "");
const OWN_PATH = OWN_URL.startsWith("file://") ? decodeURI(OWN_URL.slice("file://".length)) : OWN_URL;

/** How many frames an error looks through for the user's line, and an export keeps. */
export const ERROR_FRAMES = 64;

/** What an engine that keeps V8's stack traces offers. */
export interface StackRecorder {
  stackTraceLimit?: number;
  captureStackTrace?: (holder: object, below?: (...args: never[]) => unknown) => void;
}

export type Entry = (...args: never[]) => unknown;

/** A stack that was captured. It is turned into text when somebody reads it, which is the dear part. */
export interface CapturedStack {
  readonly stack?: string | readonly CallSite[];
}

/** The stack below a function that is running. */
export function captureStack(frames: number, below: Entry): CapturedStack {
  const errors = Error as unknown as StackRecorder;
  if (errors.captureStackTrace === undefined) return new Error("stack");
  const limit = errors.stackTraceLimit;
  errors.stackTraceLimit = frames;
  const holder = {};
  errors.captureStackTrace(holder, below);
  if (limit !== undefined) errors.stackTraceLimit = limit;
  return holder;
}

/** A frame of a stack, as a line of text. */
export interface FrameLine {
  /** As the engine writes it. */
  readonly raw: string;
  /** At its place in the file that the user wrote: source maps are looked at when somebody reads it. */
  readonly text: string;
  /** Whether it is one of this package. */
  readonly isOurs: boolean;
}

class SiteLine implements FrameLine {
  readonly #site: CallSite;
  #text: string | undefined;
  #raw: string | undefined;

  constructor(site: CallSite) {
    this.#site = site;
  }

  get raw(): string {
    return (this.#raw ??= `at ${String(this.#site)}`);
  }

  get text(): string {
    return (this.#text ??= frameText(this.#site));
  }

  get isOurs(): boolean {
    // By the file that runs: source maps lead to files of which nobody knows whose they are.
    return IS_ITSELF ? isOwnFile(this.#site.getFileName() ?? "") : isOwn(this.text);
  }
}

/** The frames of a stack, innermost first. */
export function framesOf(captured: CapturedStack): FrameLine[] {
  const sites = sitesOf(captured);
  if (sites !== undefined) return sites.map((site) => new SiteLine(site));
  const lines = String(captured.stack ?? "")
    .split("\n")
    .filter((line) => /^\s*at |@/.test(line));
  return lines.map((line) => ({ raw: line.trim(), text: line.trim(), isOurs: isOwn(line) }));
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

/**
 * Has the stack of an error begin where the user's code called the package. Hosts keep ten frames, which are those of the
 * package where a layer calls a function that calls the engine. The text is made when somebody reads it.
 */
export function beginAtUser(error: Error, below: Entry): void {
  const { captureStackTrace, stackTraceLimit = 0 } = Error as unknown as StackRecorder;
  if (captureStackTrace === undefined || stackTraceLimit === 0) return;
  const captured = captureStack(Math.max(stackTraceLimit, ERROR_FRAMES), below);
  let text: unknown;
  const get = (): unknown => (text ??= stackOf(error, captured, stackTraceLimit));
  const set = (value: unknown): void => {
    text = value;
  };
  Object.defineProperty(error, "stack", { configurable: true, enumerable: false, get, set });
}

function stackOf(error: Error, captured: CapturedStack, limit: number): string {
  const frames = framesOf(captured);
  const users = frames.findIndex(({ isOurs, raw }) => !isOurs && !raw.endsWith("(<anonymous>)"));
  const shown = frames.slice(Math.max(users, 0)).slice(0, limit);
  return [`${error.name}: ${error.message}`, ...shown.map(({ text }) => `    ${text}`)].join("\n");
}
