/**
 * Tensors of what the caller has for a GPU: buffers, images and frames of videos.
 *
 * @module
 */
import { checkList, checkOptions } from "../base/given.ts";
import { dtypeName } from "../base/values.ts";
import type { GivenGpuBuffer, GivenImage, GpuBufferOptions, GpuTensor, ImageOptions } from "../tensor/gpuTensor.ts";
import { checkShape } from "../tensor/tensor.ts";
import { loadGpu } from "./loadGpu.ts";

/**
 * A tensor of the elements in a `GPUBuffer`, row-major from its first byte on, without a copy: modules on the same device take it, and see what was
 * written there before. The buffer stays the caller's, and is never destroyed here.
 *
 * An element of up to four bytes takes 32 bits: bools as the `u32` 0 and 1, short integers as `i32` or `u32`, float16 and bfloat16 as `f32` that are
 * rounded to them. `int64`, `float64` and `complex64` take eight bytes, as in JavaScript's arrays. The buffer has `COPY_SRC` in its usage, and
 * `COPY_DST` where a program writes to the tensor.
 *
 * @example
 * ```ts
 * const frame = await tensorFromGpuBuffer(buffer, { device, dtype: "float32", shape: [1, 3, 224, 224] });
 * using model = program.module({ device });
 * const logits = (await model.runAsync([frame])) as Tensor;
 * ```
 */
export async function tensorFromGpuBuffer(buffer: GivenGpuBuffer, options: GpuBufferOptions): Promise<GpuTensor> {
  checkOptions("tensorFromGpuBuffer", options, ["device", "dtype", "shape"]);
  const { device, dtype, shape } = options;
  checkList("tensorFromGpuBuffer", "options.shape", shape);
  checkShape(shape);
  const { ofBuffer } = await loadGpu();
  return await ofBuffer(buffer, device, dtypeName(dtype), shape);
}

/**
 * A tensor on a GPU with the colours of an image, of what a canvas shows or of a frame of a video, copied there without passing the CPU: `float32` of shape
 * `[1, 3, height, width]`, red, green and blue from 0 to 1. Another size is drawn to a canvas first, which scales.
 *
 * @example
 * ```ts
 * using model = program.module({ device: "gpu" });
 * using frame = await tensorFromImage(video);
 * const logits = (await model.runAsync([frame])) as Tensor;
 * ```
 */
export async function tensorFromImage(source: GivenImage, options: ImageOptions = {}): Promise<GpuTensor> {
  checkOptions("tensorFromImage", options, ["device"]);
  const { device } = options;
  const { ofImage } = await loadGpu();
  return await ofImage(source, device === "gpu" ? undefined : device);
}
