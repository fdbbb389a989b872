/**
 * Whose keyword arguments keep the spelling that they have in a graph. All others have PyTorch's there and JavaScript's in
 * code. What is called says so itself when it is made known, so that printing a graph as code needs neither the functions
 * nor the modules.
 *
 * @module
 */

/** Functions that keep the spelling, by their qualified names. */
const verbatim = new Set<string>();

/** Classes whose modules do not keep it. */
const respelled = new WeakSet<object>();

/** Notes that the options of a function keep the spelling of their keys. */
export function keepSpelling(target: string): void {
  verbatim.add(target);
}

/** Whether the options of a function keep the spelling of their keys. */
export function isVerbatim(target: string): boolean {
  return verbatim.has(target);
}

/** Notes that the modules of exactly this class have parameters that PyTorch names. */
export function respellModules(constructor: object): void {
  respelled.add(constructor);
}

/** Whether a module is called with the names that it was traced with, as those of the user's are. */
export function isVerbatimModule(module: object): boolean {
  return !respelled.has(module.constructor);
}
