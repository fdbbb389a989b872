/**
 * Tensors of what the caller has for a GPU (buffers, textures, images and frames of videos), and to what shows them.
 *
 * @module
 */
import { checkList, checkOptions } from "../base/given.ts";
import { dtypeName } from "../base/values.ts";
import type {
  GivenCanvas,
  GivenGpuBuffer,
  GivenImage,
  GivenTexture,
  GpuBufferOptions,
  GpuTensor,
  ImageOptions,
} from "../tensor/gpuTensor.ts";
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
 * A tensor on a GPU with the colours of an image, of what a canvas shows, of a frame of a video or of a `GPUTexture`, copied there without passing the
 * CPU: `float32` of shape `[1, 3, height, width]`, red, green and blue from 0 to 1. Another size is drawn to a canvas first, which scales.
 *
 * A texture has two dimensions, one layer, one sample, a format of fractions (`rgba8unorm`, `bgra8unorm`, `rgba16float`, …) and `TEXTURE_BINDING` in
 * its usage, and `options.device` is the device that made it. Its numbers are those that a shader loads: a colour that the format does not have is 0, floats may be beyond
 * 0 and 1, and of formats with `-srgb` they are linear.
 *
 * @throws `OperatorError` (`FX0304`) of what has no pixels, cannot be read, or is no such texture; `UsageError` (`FX0706`) where there is no GPU.
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

/**
 * Draws a tensor that is on a GPU, without passing the CPU: to a canvas, which gets the tensor's size, or into a `GPUTexture` of that size.
 *
 * The tensor is one picture: `float32`, `float16` or `bfloat16` of shape `[1, channels, height, width]`, `[channels, height, width]` or
 * `[height, width]`, with one channel for grey, three for red, green and blue, or four, of which the last one is alpha. Numbers are clamped to 0
 * and 1. It may be a view of any strides.
 *
 * A canvas is drawn to by its context `"webgpu"`, which is configured for the tensor's device unless it is already; a canvas with a context of
 * another kind is refused. A texture was made by the tensor's device, has two dimensions, one layer, one sample, a format of fractions that can be drawn to
 * and `RENDER_ATTACHMENT` in its usage; alpha is written as it is, and a format with `-srgb` takes the numbers as linear. The promise is kept when the
 * device has taken the commands: what it is told next comes after them.
 *
 * @throws `InputError` (`FX0602`, `FX0603`) of a tensor that is on the CPU or no picture, or of a texture of another size; `OperatorError` (`FX0304`) of
 * what cannot be drawn to; `UsageError` of a tensor that was disposed (`FX0701`), or whose device was lost (`FX0707`).
 * @example
 * ```ts
 * using model = program.module({ device: "gpu" });
 * using frame = await tensorFromImage(video);
 * using drawing = (await model.runAsync([frame], { outputs: "gpu" })) as GpuTensor;
 * await drawTensor(drawing, canvas);
 * ```
 */
export async function drawTensor(tensor: GpuTensor, target: GivenCanvas | GivenTexture): Promise<void> {
  const { draw } = await loadGpu();
  await draw(tensor, target);
}
