/**
 * What the code for GPUs has of the package that is loaded before it. That is given to it and not imported: a bundler makes a file of its own of
 * what two files import that are loaded at different times, and a page that asks for no GPU would fetch more.
 *
 * @module
 */
import type { DeviceArg } from "../base/values.ts";
import type * as engine from "../engine/tensors.ts";
import type { HostStorage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** What the code for GPUs is given. */
export interface GpuHost {
  /** The device that tensors on a GPU are on. */
  readonly gpu: DeviceArg;
  readonly Tensor: typeof Tensor;
  readonly HostStorage: typeof HostStorage;
  readonly tensorBytes: (tensor: Tensor) => Uint8Array;
  readonly layoutOf: typeof engine.layoutOf;
  readonly moveToEngine: typeof engine.moveToEngine;
  readonly resizeTensor: typeof engine.resizeTensor;
  readonly takeLeaves: typeof engine.takeLeaves;
  readonly viewOn: typeof engine.viewOn;
  readonly withLeaves: typeof engine.withLeaves;
}

/** What was given. */
export let host: GpuHost;

/** Takes what the code for GPUs needs; done by who loads it. */
export function attach(given: GpuHost): void {
  host = given;
}
