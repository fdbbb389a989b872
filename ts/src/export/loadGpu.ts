/**
 * Loads the code for GPUs, when one is asked for.
 *
 * @module
 */
import { DeviceArg } from "../base/values.ts";
import { isTraced, WITHOUT_ELEMENTS } from "../record/record.ts";
import { layoutOf, moveToEngine, resizeTensor, takeLeaves, viewOn, withLeaves } from "../engine/tensors.ts";
import type * as Gpu from "../gpu/run.ts";
import { bringToGpuBy, type GivenGpu } from "../tensor/gpuTensor.ts";
import { HostStorage } from "../tensor/storage.ts";
import { Tensor, tensorBytes } from "../tensor/tensor.ts";

const gpu = new DeviceArg("gpu");

/** The code for GPUs. */
export async function loadGpu(): Promise<typeof Gpu> {
  const loaded = await import("../gpu/run.ts");
  loaded.attach({
    gpu,
    Tensor,
    HostStorage,
    tensorBytes,
    layoutOf,
    moveToEngine,
    resizeTensor,
    takeLeaves,
    viewOn,
    withLeaves,
  });
  return loaded;
}

bringToGpuBy((tensor, [place, ...more]) => {
  const isGiven = typeof place === "object" && place !== null && "createComputePipelineAsync" in place;
  // A tensor of a trace has no elements that could be brought anywhere.
  if (!(place === "gpu" || isGiven) || more.length > 0 || isTraced(tensor) || WITHOUT_ELEMENTS in tensor)
    return undefined;
  return loadGpu().then(({ toGpu }) => toGpu(tensor, isGiven ? (place as GivenGpu) : undefined));
});
