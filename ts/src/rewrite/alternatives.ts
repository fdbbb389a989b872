/**
 * What patterns may say beyond one graph: that any of several calls will do, and that a call may be missing.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { recorderOf } from "../record/record.ts";
import { pass } from "../record/stack.ts";

/**
 * In a pattern: stands for any of these values, of which the first that matches is taken. A replacement gets what the
 * pattern returns and takes, whichever it was.
 *
 * @example
 * ```ts
 * // torch.relu(x), or torch.clamp(x, 0).
 * const matcher = new SubgraphMatcher((x: Tensor) => torch.exp(anyOf(torch.relu(x), torch.clamp(x, 0))));
 * ```
 */
export function anyOf<T>(...alternatives: readonly [T, ...T[]]): T {
  pass(anyOf);
  return inPattern("anyOf", "tracefx.any_of", alternatives);
}

/**
 * In a pattern: stands for this call, or for its first argument where the call is missing.
 *
 * @example
 * ```ts
 * // torch.exp(torch.neg(x)), or torch.exp(x).
 * const matcher = new SubgraphMatcher((x: Tensor) => torch.exp(optional(torch.neg(x))));
 * ```
 */
export function optional<T>(call: T): T {
  pass(optional);
  return inPattern("optional", "tracefx.optional", [call]);
}

function inPattern<T>(name: string, target: string, args: readonly T[]): T {
  const recorder = recorderOf(args);
  if (recorder === undefined) {
    throw fxError("PatternInvalid", `${name} is called with values that are no part of a pattern`, {
      help: "call it in a function that is given as a pattern, with what is computed there",
    });
  }
  return recorder.createProxy("call_function", target, args, {}) as T;
}
