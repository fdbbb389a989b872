/**
 * Initialisation that waits for the engine.
 *
 * Weights are drawn by the engine, from its random generator. A module may be made before the engine is loaded, to trace or
 * to print it: what its constructors do to their parameters is put off, and done in the same order once the engine is
 * there, so that the weights are those of a module that is made afterwards.
 *
 * @module
 */
import { checkFunction } from "../base/given.ts";
import { isLoaded, whenLoaded } from "../engine/engine.ts";

let isSkipping = false;

/** Does `work` now where the engine is loaded, and otherwise once it is, after what was put off before. */
export function onEngine(work: () => void): void {
  if (isLoaded()) work();
  else whenLoaded(work);
}

/** Calls the `resetParameters` of a module that is being constructed, unless {@link skipInit} asks not to. */
export function initialise(module: { resetParameters(): void }): void {
  if (!isSkipping) module.resetParameters();
}

/**
 * Makes modules whose parameters are zeros: `torch.nn.utils.skip_init` for all that `make` constructs. Nothing is drawn
 * from the random generator. Use it where the weights are loaded afterwards.
 *
 * @example
 * ```ts
 * const model = skipInit(() => new Net());
 * model.loadStateDict(readSafetensors(bytes).tensors);
 * ```
 */
export function skipInit<T>(make: () => T): T {
  checkFunction("skipInit", "make", make);
  const previous = isSkipping;
  isSkipping = true;
  try {
    return make();
  } finally {
    isSkipping = previous;
  }
}
