/**
 * Disposing of what a computation leaves behind.
 *
 * The engine's memory is not seen by the garbage collector, so intermediate tensors may live long; `tidy` frees them when
 * a function ends.
 *
 * @module
 */
import { checkFunction } from "../base/given.ts";
import { fxError } from "../base/errors.ts";

/** What can be disposed of. */
interface Disposed {
  dispose(): void;
  readonly isDisposed: boolean;
}

/** The tensors that were made in the innermost `tidy`, and the scope around it. */
interface Scope {
  readonly made: Set<Disposed>;
  readonly outer: Scope | undefined;
}

let scope: Scope | undefined;

/** Notes a tensor that was made. */
export function noteMade(tensor: Disposed): void {
  scope?.made.add(tensor);
}

/**
 * Runs a function and disposes of every tensor that was made in it, but for those in what it returns: a tensor, or
 * arrays, maps and plain objects of them. What is stored elsewhere is kept with {@link keep}.
 *
 * @example
 * ```ts
 * const loss = tidy(() => x.matmul(w).add(b).sub(y).square().mean());
 * ```
 */
export function tidy<T>(run: () => T): T {
  checkFunction("tidy", "run", run);
  const own: Scope = { made: new Set(), outer: scope };
  scope = own;
  let result: T | undefined;
  try {
    result = run();
    if (typeof (result as { then?: unknown } | undefined | null)?.then === "function") {
      throw fxError("InvalidOption", "tidy was given a function that goes on after it returned", {
        help: "await what must be awaited outside of tidy, or dispose of the tensors yourself",
      });
    }
    release(own.made, result, new Set());
    return result;
  } finally {
    scope = own.outer;
    for (const tensor of own.made) tensor.dispose();
  }
}

/** Keeps a tensor that was made in a {@link tidy} alive after it, and gives it back. */
export function keep<T extends Disposed>(tensor: T): T {
  for (let it = scope; it !== undefined; it = it.outer) it.made.delete(tensor);
  return tensor;
}

/** Takes what is reachable from a result out of `made`, and hands it to the scope around it. */
function release(made: Set<Disposed>, value: unknown, seen: Set<object>): void {
  if (typeof value !== "object" || value === null || seen.has(value)) return;
  seen.add(value);
  if (made.delete(value as Disposed)) {
    scope?.outer?.made.add(value as Disposed);
    return;
  }
  if (Array.isArray(value) || value instanceof Set) for (const item of value) release(made, item, seen);
  else if (value instanceof Map) for (const item of value.values()) release(made, item, seen);
  else if (isPlain(value)) for (const item of Object.values(value)) release(made, item, seen);
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}
