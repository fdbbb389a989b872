/**
 * What a user says of the sizes of all inputs, set beside the inputs.
 *
 * @module
 */
import { fxError } from "../errors.ts";
import type { Val } from "../graph/val.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { treeFlatten } from "../trace/pytree.ts";
import type { SessionInput } from "./shapes.ts";

/** The dynamic sizes of inputs: by names of arguments or in their order, each a nested container as the argument is. */
export type DynamicShapes = Readonly<Record<string, unknown>> | readonly unknown[] | null;

/**
 * The leaves of the inputs in their order, each with its source and what was said of its dimensions.
 *
 * @param argNames the names of the arguments, positional ones first
 * @param inputs the arguments in the same order
 */
export function resolveDynamicShapes(
  argNames: readonly string[],
  inputs: readonly unknown[],
  dynamicShapes: DynamicShapes = null,
): SessionInput[] {
  if (dynamicShapes !== null) throw fxError("NotImplemented", "dynamic sizes");
  return inputs.flatMap((input, at) =>
    treeFlatten(input)[0].map((value) => ({ source: `L['${argNames[at]}']`, value: value as Tensor | Val })),
  );
}
