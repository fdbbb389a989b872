/**
 * The table of functions: what a `call_function` node calls, by its qualified name.
 *
 * A function of the table is an ordinary function with a name that graphs use. Called with a traced value among its
 * arguments it records a node; called with anything else it runs.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { keepSpelling } from "../graph/spelling.ts";
import type { NamedTarget } from "../graph/target.ts";
import { type Recorder, recorderOf } from "../record/record.ts";
import { enter, entering, isEntryWanted, leave } from "../record/stack.ts";
import { isOfNumbers, symbolicAmong } from "../base/symbolic.ts";
import { type CallArguments, joinArguments, pythonName, splitArguments } from "../base/naming.ts";

/** How a function is described to the table. */
export interface FunctionOptions {
  /**
   * Python's parameter list, such as `(input, dim=None, _stacklevel=3, dtype=None)`, which normalization uses. One that ends
   * in `/` takes no keyword arguments, so an object at the end is an argument like any other.
   */
  readonly signature?: string;
  /** Whether the keys of its options are recorded as they are; otherwise they get PyTorch's spelling. */
  readonly verbatim?: boolean;
  /** How a call with traced values is recorded; by default as a call of this function with the arguments as given. */
  readonly record?: (recorder: Recorder, call: CallArguments) => unknown;
}

interface Entry {
  readonly call: (...args: unknown[]) => unknown;
  /** The same, but recorded where an argument is traced. */
  readonly recording: (...given: unknown[]) => unknown;
  readonly signature: string | undefined;
  readonly verbatim: boolean;
  readonly takesOptions: boolean;
}

const table = new Map<string, Entry>();
/** The names of the functions, without what qualifies them. */
const names = new Set<string>();

/**
 * Puts a function into the table and gives it back as one that records itself.
 *
 * @example
 * ```ts
 * export const double = defineFunction("my.double", (x: Tensor): Tensor => torch.mul(x, 2), { signature: "(x)" });
 * ```
 */
export function defineFunction<F extends (...args: never[]) => unknown>(
  target: string,
  run: F,
  options: FunctionOptions = {},
): F & NamedTarget {
  if (table.has(target)) {
    throw fxError("InvalidOption", `there is a function called ${target} already`, {
      help: "give the function another name",
    });
  }
  const { recording } = enroll(target, run as unknown as Entry["call"], options);
  Object.defineProperties(recording, {
    name: { value: target.slice(target.lastIndexOf(".") + 1) },
    length: { value: run.length },
    target: { value: target, enumerable: true },
  });
  return recording as unknown as F & NamedTarget;
}

function enroll(
  target: string,
  call: Entry["call"],
  { signature, verbatim = false, record = recordCall(target) }: FunctionOptions,
): Entry {
  const takesOptions = signature === undefined || !signature.endsWith("/)");
  const takesNumbers = isOfNumbers(target);
  const unrecorded = (given: readonly unknown[]): unknown => {
    const symbolic = takesNumbers ? symbolicAmong(given) : undefined;
    return symbolic === undefined ? call(...given) : symbolic.compute(target, given);
  };
  const recording = (...given: unknown[]): unknown => {
    const recorder = recorderOf(given);
    if (recorder === undefined && !isEntryWanted()) return unrecorded(given);
    const outer = enter(recording);
    try {
      if (recorder === undefined) return unrecorded(given);
      return record(recorder, takesOptions ? splitArguments(given, verbatim) : { args: given, kwargs: {} });
    } finally {
      leave(outer);
    }
  };
  const entry = { call, recording, signature, verbatim, takesOptions };
  table.set(target, entry);
  if (verbatim) keepSpelling(target);
  names.add(target.slice(target.lastIndexOf(".") + 1));
  return entry;
}

function recordCall(target: string): NonNullable<FunctionOptions["record"]> {
  return (recorder, { args, kwargs }) => recorder.createProxy("call_function", target, args, kwargs);
}

/** Whether a function of this name is in the table. */
export function isDefined(target: string): boolean {
  return table.has(target);
}

/** The function of this name as it was given back when it was put into the table. */
export function functionOf(target: string): ((...args: unknown[]) => unknown) | undefined {
  return table.get(target)?.recording;
}

/** Whether some function has this name, in either spelling, whatever it is qualified with. */
export function hasFunctionNamed(name: string): boolean {
  return names.has(pythonName(name)) || names.has(name);
}

/** Python's parameter list of a function, where it is known. */
export function signatureOf(target: string): string | undefined {
  return table.get(target)?.signature;
}

/** Calls a function by its qualified name, with Python's positional and keyword arguments. */
export function callFunction(target: string, call: CallArguments): unknown {
  const entry = entryOf(target);
  // A traced value among the arguments is recorded under this very name.
  const recorder = recorderOf(call.args) ?? recorderOf(Object.values(call.kwargs));
  if (recorder !== undefined) return recorder.createProxy("call_function", target, call.args, call.kwargs);
  const symbolic = isOfNumbers(target) ? symbolicAmong(call.args) : undefined;
  if (symbolic !== undefined) return symbolic.compute(target, call.args);
  if (entry.takesOptions) return entry.call(...joinArguments(call, entry.verbatim));
  if (Object.keys(call.kwargs).length === 0) return entry.call(...call.args);
  throw fxError("SchemaMismatch", `${target}() takes no keyword arguments`, { op: target });
}

/**
 * The function of a qualified name, to be called as code calls it: with the keyword arguments in a trailing object. One
 * that is not there yet is looked for when it is called first.
 */
export function functionNamed(target: string): (...given: unknown[]) => unknown {
  let recording = table.get(target)?.recording;
  return recording ?? entering((...given: unknown[]) => (recording ??= entryOf(target).recording)(...given));
}

function entryOf(target: string): Entry {
  const entry = table.get(target) ?? resolve(target);
  if (entry !== undefined) return entry;
  throw fxError("NotImplemented", `there is no function called ${target}`, {
    op: target,
    help: "register a function of your own with wrap before you run the graph",
  });
}

/** Where functions are looked for that are not in the table, such as the overloads of operators. */
export type FunctionResolver = (target: string) => ((...args: unknown[]) => unknown) | undefined;

const resolvers: FunctionResolver[] = [];

/** Adds a place where functions are looked for; what it finds stays in the table. */
export function addResolver(resolver: FunctionResolver): void {
  resolvers.push(resolver);
}

function resolve(target: string): Entry | undefined {
  for (const resolver of resolvers) {
    const call = resolver(target);
    if (call === undefined) continue;
    return enroll(target, call, {});
  }
  return undefined;
}
