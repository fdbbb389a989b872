/**
 * Optimizers: `torch.optim`. They change parameters in place by what stands in their `grad`.
 *
 * @module
 */
export { Adam, type AdamOptions, AdamW } from "./adam.ts";
export { Optimizer, type OptimizerParameters, type ParameterGroup } from "./optimizer.ts";
export type { OptimizerStateDict, ParameterState, SavedGroup } from "./stateDict.ts";
export { SGD, type SGDOptions } from "./sgd.ts";
