/**
 * Functions whose arguments are put in their places by a Python parameter list.
 *
 * Such a function takes positional arguments as in Python and then, at any point, one object with the others by name.
 * What runs gets every parameter by position, with its default where nothing was given.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import type { NamedTarget } from "../graph/target.ts";
import { dtype } from "../base/values.ts";
import type { Recorder } from "../record/record.ts";
import { type CallArguments, splitArguments } from "../base/naming.ts";
import { bind, parseSignature, type Signature } from "./signature.ts";
import { defineFunction } from "./table.ts";

/** Parameters without the last one, where it has a default. */
type Shorter<P extends readonly unknown[]> = P extends readonly []
  ? never
  : P extends readonly [...unknown[], unknown]
    ? never
    : P extends readonly [...infer First, unknown?]
      ? First
      : never;

/** The positional arguments of a call: all of them, or fewer where those on the right have a default. */
export type PositionalOf<P extends readonly unknown[]> =
  | P
  | ([Shorter<P>] extends [never] ? never : PositionalOf<Shorter<P>>);

/**
 * The arguments of a call: the positional ones, of which those with a default may be left out from the right, and then
 * options.
 */
export type CallOf<P extends readonly unknown[], O> = [...PositionalOf<P>, options?: O];

/** A function of positional parameters `P`, those with a default being optional, and options `O`. */
export type BoundFunction<P extends readonly unknown[], O, R> = ((...args: CallOf<P, O>) => R) & NamedTarget;

/** How a call with traced values is recorded, given the arguments in the order of the parameters. */
export type RecordBound = (recorder: Recorder, bound: readonly unknown[], signature: Signature) => unknown;

/**
 * Records a call of the function that `targetOf` finds by the keyword arguments, as PyTorch records its functions that are
 * written in Python: what is required goes by position, all else by name.
 */
export function recordByName(targetOf: (kwargs: Readonly<Record<string, unknown>>) => string): RecordBound {
  return (recorder, bound, signature) => {
    const args: unknown[] = [];
    const kwargs: Record<string, unknown> = {};
    for (const [at, parameter] of signature.entries()) {
      const value = named(parameter.name, bound[at]);
      if (parameter.default === undefined && parameter.kind !== "keyword") args.push(value);
      else kwargs[parameter.name] = value;
    }
    return recorder.createProxy("call_function", targetOf(kwargs), args, kwargs);
  };
}

/** A dtype may be given by its name; a graph has the dtype itself. */
function named(parameter: string, value: unknown): unknown {
  return parameter === "dtype" && typeof value === "string" ? dtype(value as DType) : value;
}

/** How a {@link defineBound} function differs from others. */
export interface BoundOptions {
  /** How a call with traced values is recorded; by default as it was made. */
  readonly record?: RecordBound;
}

/**
 * Puts a function with a Python parameter list into the table. `P` are its positional parameters, `O` its options, `K` its
 * keyword-only parameters in order.
 *
 * @example
 * ```ts
 * const scale = defineBound<[input: Tensor, by?: number], { by?: number }, Tensor>("my.scale", "(input, by=2)", (input, by) =>
 *   torch.mul(input, by),
 * );
 * scale(x, { by: 3 });
 * ```
 */
export function defineBound<P extends readonly unknown[], O, R, K extends readonly unknown[] = []>(
  target: string,
  signature: string,
  run: (...args: [...Required<P>, ...K]) => R,
  { record }: BoundOptions = {},
): BoundFunction<P, O, R> {
  const name = target.slice(target.lastIndexOf(".") + 1);
  let parsed: Signature | undefined;
  const parameters = (): Signature => (parsed ??= parseSignature(signature));
  const places = (call: CallArguments): unknown[] => bind(parameters(), name, call);
  const eager = (...given: unknown[]): R => run(...(places(splitArguments(given)) as [...Required<P>, ...K]));
  const recorded = record && ((by: Recorder, call: CallArguments) => record(by, places(call), parameters()));
  return defineFunction(target, eager, { signature, ...(recorded && { record: recorded }) }) as BoundFunction<P, O, R>;
}
