/**
 * Calls whose intermediate values PyTorch computes again for gradients: `torch.utils.checkpoint`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkFunction, checkGiven } from "../base/given.ts";
import { isOptions } from "../base/naming.ts";
import { pass } from "../record/stack.ts";

/** What {@link checkpoint} takes behind the arguments. Each says how PyTorch computes again, so that none changes a number here. */
export interface CheckpointOptions {
  /** Which of PyTorch's two ways is meant. `false`, the default here, is the one that takes keyword arguments. */
  readonly useReentrant?: boolean;
  /** Whether random numbers are the same when the function is called again. It is called once. */
  readonly preserveRngState?: boolean;
  /** What is compared when the function is called again: `"default"` or `"none"`. */
  readonly determinismCheck?: "default" | "none";
  /** Whether errors of a second call tell the operators of both. */
  readonly debug?: boolean;
  /** Whether a second call ends as soon as everything is there. */
  readonly earlyStop?: boolean;
}

const FLAGS = ["useReentrant", "preserveRngState", "debug", "earlyStop"] as const;

/**
 * Calls a function or a module: `torch.utils.checkpoint.checkpoint`. PyTorch keeps no intermediate values of it, and computes them again
 * for gradients, which saves memory and changes no number. Here gradients are graphs that {@link func} and `exportForwardBackward`
 * make, and what a graph keeps is decided when it is planned: the operators are recorded as they are called, as PyTorch does it in
 * `symbolic_trace`, `make_fx` and `export`.
 *
 * The last argument may be an object with {@link CheckpointOptions}; its other keys are keyword arguments of the function.
 *
 * @example
 * ```ts
 * const y = checkpoint(this.block, x, { useReentrant: false });
 * ```
 */
export function checkpoint<R>(fn: (...args: never[]) => R, ...args: unknown[]): R {
  checkFunction("checkpoint", "fn", fn);
  pass(checkpoint);
  return (fn as (...args: unknown[]) => R)(...argumentsOf(args));
}

/** The arguments without the options, which are checked. */
function argumentsOf(args: readonly unknown[]): readonly unknown[] {
  const last = args.at(-1);
  if (!isOptions(last)) return args;
  const { useReentrant, preserveRngState, determinismCheck = "default", debug, earlyStop, ...kwargs } = last;
  for (const [at, flag] of [useReentrant, preserveRngState, debug, earlyStop].entries()) {
    checkGiven("checkpoint", flag === undefined || typeof flag === "boolean", `true or false as ${FLAGS[at]}`);
  }
  const isCheck = determinismCheck === "default" || determinismCheck === "none";
  checkGiven("checkpoint", isCheck, '"default" or "none" as determinismCheck');
  const names = Object.keys(kwargs);
  if ("contextFn" in kwargs) {
    throw fxError("NotImplemented", "checkpoint has no contextFn: nothing is computed again", {
      help: "enter the context within the function",
    });
  }
  if (useReentrant === true && names.length > 0) {
    throw fxError("InvalidOption", `Unexpected keyword arguments: ${names.join(",")}`, {
      help: "useReentrant: false takes them",
    });
  }
  if (useReentrant === true && debug === true) {
    throw fxError("InvalidOption", "Passing `context_fn` or `debug` is only supported when use_reentrant=False.", {
      help: "leave debug out",
    });
  }
  if (names.length === Object.keys(last).length) return args;
  return names.length === 0 ? args.slice(0, -1) : [...args.slice(0, -1), kwargs];
}
