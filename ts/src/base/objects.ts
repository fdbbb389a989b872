/**
 * Objects that are functions, so that they can be called: modules.
 *
 * JavaScript says `function` of them. What treats functions as code, and objects as things that hold something, asks here.
 *
 * @module
 */

/** The key under which a class says that its instances are objects although they can be called. */
export const CALLABLE_OBJECT: unique symbol = Symbol("callable object");

/** Whether this is an object, be it one that can be called. */
export function isObject(value: unknown): value is object {
  return (typeof value === "object" && value !== null) || isCallableObject(value);
}

/** Whether this is an object that can be called. */
export function isCallableObject(value: unknown): boolean {
  // Read and not asked for with `in`, which traced values refuse.
  return typeof value === "function" && (value as { readonly [CALLABLE_OBJECT]?: true })[CALLABLE_OBJECT] === true;
}

/** Whether this is a function, and no object that can be called. */
export function isPlainFunction(value: unknown): value is (...args: never[]) => unknown {
  return typeof value === "function" && !isCallableObject(value);
}
