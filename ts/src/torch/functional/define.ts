/**
 * How the functions of `torch.nn.functional` are defined: with PyTorch's parameter lists, recorded as PyTorch records
 * them.
 *
 * @module
 */
import { type BoundFunction, defineBound, type RecordBound, recordByName } from "../../functions/bound.ts";
import { addResolver, functionNamed } from "../../functions/table.ts";
import { fxError } from "../../base/errors.ts";
import { kindOf } from "../../base/members.ts";
import { Tensor } from "../../tensor/tensor.ts";
import { tidy } from "../../tensor/tidy.ts";

/** The options of a function whose parameters are all given by position. */
export type NoOptions = Readonly<Record<string, never>>;

/** Options of a function that can work in place. */
export interface InplaceOptions {
  /** Whether the result is written into `input`, which is given back; default `false`. */
  readonly inplace?: boolean;
}

/**
 * A function that PyTorch has written in Python. Traced, it is recorded with the arguments that it requires by position and
 * all others by name, as PyTorch records it.
 */
export function define<P extends readonly unknown[], O = NoOptions, R = Tensor, K extends readonly unknown[] = []>(
  name: string,
  signature: string,
  run: (...args: [...Required<P>, ...K]) => R,
  record: RecordBound = recordNamed(() => name),
): BoundFunction<P, O, R> {
  return defineBound<P, O, R, K>(functional(name), signature, tidied(name, run), { record });
}

/**
 * Records a call of the function of this module that `nameOf` finds by the keyword arguments: what is required goes by
 * position, all else by name.
 */
export function recordNamed(nameOf: (kwargs: Readonly<Record<string, unknown>>) => string): RecordBound {
  return recordByName((kwargs) => functional(nameOf(kwargs)));
}

/** Records a call of a method of the first argument. */
export function recordMethod(method: string): RecordBound {
  return (recorder, [self]) => recorder.createProxy("call_method", method, [self], {});
}

/** A function that PyTorch has written in C++: `target` is its own name, under which it is recorded as it was called. */
export function defineBuiltin<
  P extends readonly unknown[],
  O = NoOptions,
  R = Tensor,
  K extends readonly unknown[] = [],
>(
  name: string,
  target: string,
  signature: string,
  run: (...args: [...Required<P>, ...K]) => R,
): BoundFunction<P, O, R> {
  targets.set(functional(name), target);
  return defineBound<P, O, R, K>(target, signature, tidied(name, run));
}

/**
 * The function, which frees the tensors in between that its result is made of. What comes first is a tensor in each of them, be
 * it called `input`, `query` or `theta`.
 */
function tidied<A extends readonly unknown[], R>(name: string, run: (...args: A) => R): (...args: A) => R {
  return (...args) => {
    if (!(args[0] instanceof Tensor)) {
      throw fxError("InputType", `${name}(): the first argument must be Tensor, not ${kindOf(args[0])}`);
    }
    return tidy(() => run(...args));
  };
}

/** The functions that have another name of their own, by their name in this module. */
const targets = new Map<string, string>([["torch.nn.functional.threshold", "torch.nn.functional._threshold"]]);

addResolver((name) => {
  const target = targets.get(name);
  return target === undefined ? undefined : functionNamed(target);
});

function functional(name: string): string {
  return `torch.nn.functional.${name}`;
}
