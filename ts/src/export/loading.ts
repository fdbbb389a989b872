/**
 * Opening and running programs, and nothing else: `tracefx/load`.
 *
 * Tensors are made and read here, and have no methods that compute (`x.relu()`): import `tracefx/torch` for them.
 *
 * @example
 * ```ts
 * import { loadModule, tensor } from "tracefx/load";
 *
 * using model = await loadModule("model.pt2");
 * const logits = model(tensor([[1, 2, 3]], { dtype: "float32" }));
 * ```
 * @module
 */
export type { Bytes } from "../base/bytes.ts";
export * from "../base/errors.ts";
export { engineVersion, type InitOptions, init, initSync, isLoaded, restart } from "../engine/engine.ts";
export type { ModuleSource } from "../engine/module.ts";
export type { ReadableFile } from "../engine/source.ts";
export type { Variant } from "../engine/variant.ts";
export { tuple } from "../graph/args.ts";
export { tensor, tensorFromBytes, type TensorInput, type TensorOptions } from "../tensor/construct.ts";
export type {
  GivenCanvas,
  GivenGpu,
  GivenGpuBuffer,
  GivenImage,
  GivenTexture,
  GpuBufferOptions,
  GpuTensor,
  ImageOptions,
} from "../tensor/gpuTensor.ts";
export { type NestedElements, Tensor } from "../tensor/tensor.ts";
export { keep, tidy } from "../tensor/tidy.ts";
export { type LoadModuleOptions, loadModule } from "./loadModule.ts";
export type { ModuleOptions } from "./moduleOptions.ts";
export { drawTensor, tensorFromGpuBuffer, tensorFromImage } from "./gpuBuffers.ts";
export { type PlanReport, ProgramModule, type RunAsyncOptions, type RunDevice } from "./programModule.ts";
