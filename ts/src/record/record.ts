/**
 * How a function finds out that it is being traced: by a traced value among its arguments.
 *
 * This folder decides whether a call is recorded and where the user's code made it. What is recorded is the recorder's to say.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { Opcode } from "../base/opcode.ts";
import { Slice } from "../base/values.ts";
import { isOptions } from "../base/naming.ts";

/** What records calls; a tracer. */
export interface Recorder {
  /** Whether inputs are taken to have the number of dimensions that a module wants, which a trace cannot check. */
  readonly assumesInputs?: boolean;
  createProxy(
    op: Opcode,
    target: string,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    name?: string,
    type?: string,
  ): unknown;
}

/** The key under which a traced value has its recorder. */
export const RECORDER: unique symbol = Symbol("recorder");

/** The key under which a tensor of an export says that it has no elements. */
export const WITHOUT_ELEMENTS: unique symbol = Symbol("without elements");

/** Whether this value stands for one that a trace will know only when the graph runs. */
export function isTraced(value: unknown): boolean {
  // A traced value can be called, so it is a function; tensors and numbers are told from it without a look-up.
  return typeof value === "function" && recorderOfValue(value) !== undefined;
}

/** Whether this is a traced value of which nothing is checked. */
export function isAssumed(value: unknown): boolean {
  return typeof value === "function" && recorderOfValue(value)?.assumesInputs === true;
}

function recorderOfValue(value: object): Recorder | undefined {
  return (value as { readonly [RECORDER]?: Recorder })[RECORDER];
}

/** The recorder of the traced values among these arguments, at any depth; `undefined` where there are none. */
export function recorderOf(args: readonly unknown[]): Recorder | undefined {
  let found: Recorder | undefined;
  for (const arg of args) {
    const recorder = recorderIn(arg, 0);
    if (recorder === undefined || recorder === found) continue;
    if (found !== undefined) {
      throw fxError("TraceUnsupported", "the arguments of one call are traced by two different tracers", {
        help: "a traced value must not outlive its trace: look for one that was stored in a variable or a module",
      });
    }
    found = recorder;
  }
  return found;
}

/** Containers deeper than this are not looked into: they hold themselves, and creating the node refuses them. */
const MAX_DEPTH = 500;

function recorderIn(value: unknown, depth: number): Recorder | undefined {
  if (typeof value === "function") return recorderOfValue(value);
  if (typeof value !== "object" || value === null || depth > MAX_DEPTH) return undefined;
  const inside = itemsOf(value);
  if (inside === undefined) return undefined;
  let found: Recorder | undefined;
  for (const item of inside) found ??= recorderIn(item, depth + 1);
  return found;
}

function itemsOf(value: object): Iterable<unknown> | undefined {
  if (Array.isArray(value)) return value as unknown[];
  if (value instanceof Map) return value.values();
  if (value instanceof Slice) return [value.start, value.stop, value.step];
  if (isOptions(value)) return Object.values(value);
  return undefined;
}
