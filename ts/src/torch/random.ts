/**
 * The seed and the state of the engine's random numbers, which are PyTorch's for the CPU.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { call } from "../engine/engine.ts";
import { fxError } from "../base/errors.ts";
import { defineFunction } from "../functions/table.ts";
import { tensorFromBytes } from "../tensor/construct.ts";
import { Tensor, tensorBytes } from "../tensor/tensor.ts";

/**
 * Starts the random numbers again: the same seed gives the same numbers, which are those that PyTorch draws on a CPU.
 *
 * @example
 * ```ts
 * torch.manualSeed(0);
 * torch.rand(2); // tensor([0.4963, 0.7682])
 * ```
 */
export const manualSeed = defineFunction("torch.random.manual_seed", (from: number | bigint): void => {
  if (typeof from === "number" && !Number.isSafeInteger(from)) {
    throw fxError("InvalidArgument", `the seed ${from} is not a whole number that JavaScript holds exactly`, {
      help: "give a bigint for a seed above 2^53",
    });
  }
  checkGiven("manualSeed", typeof from === "number" || typeof from === "bigint", "a whole number");
  const exact = BigInt(from);
  if (exact < -(2n ** 63n) || exact >= 2n ** 64n) {
    throw fxError("InvalidArgument", `the seed ${exact} does not fit 64 bits`);
  }
  // A negative seed is the number of its bits, as in PyTorch.
  call((engine) => engine.manual_seed(BigInt.asUintN(64, exact)));
});

/** Starts the random numbers again with a seed of chance, and gives it. */
export function seed(): bigint {
  return call((engine) => engine.seed());
}

/** The seed that the random numbers started with. */
export function initialSeed(): bigint {
  return call((engine) => engine.initial_seed());
}

/** The state of the random numbers as a tensor of bytes, for `setRngState`. */
export function getRngState(): Tensor {
  const state = call((engine) => engine.rng_state());
  return tensorFromBytes(state, "uint8", [state.length]);
}

/** Makes the random numbers go on from a state that `getRngState` gave. */
export function setRngState(state: Tensor): void {
  checkGiven("setRngState", state instanceof Tensor, "a tensor", "torch.getRngState() gives one");
  call((engine) => engine.set_rng_state(tensorBytes(state)));
}
