/**
 * Images, frames of videos and canvases as tensors on a device: the colours do not pass the CPU.
 *
 * @module
 */
import { fxError, FxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import type { GivenGpu, GivenImage, GpuTensor } from "../tensor/gpuTensor.ts";
import { type Gpu, gpuOf, type Pipeline } from "./device.ts";
import { GpuMemory, newBuffer } from "./memory.ts";
import { onDevice } from "./tensor.ts";
import {
  checkFits,
  checkPicture,
  COPY_DST,
  isTexture,
  RENDER_ATTACHMENT,
  TEXTURE_BINDING,
  withGiven,
} from "./texture.ts";

const WHAT = "tensorFromImage";
/** The invocations of a workgroup in each dimension. */
const TILE = 8;

/** From pixels to planes. */
const PLANES = `@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var<storage, read_write> planes: array<f32>;
@compute @workgroup_size(${TILE}, ${TILE})
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  let size = textureDimensions(image);
  if (id.x >= size.x || id.y >= size.y) {
    return;
  }
  let color = textureLoad(image, vec2<i32>(id.xy), 0);
  let at = id.y * size.x + id.x;
  let plane = size.x * size.y;
  planes[at] = color.r;
  planes[at + plane] = color.g;
  planes[at + 2u * plane] = color.b;
}`;

/** What the sizes of sources are called; of one that has several, the first is that of what is shown. */
const WIDTHS = ["displayWidth", "videoWidth", "naturalWidth", "width"] as const;
const HEIGHTS = ["displayHeight", "videoHeight", "naturalHeight", "height"] as const;

/** A tensor of the colours of an image, on the device of the caller or on that of all modules. */
export async function ofImage(given: GivenImage, device: GivenGpu | undefined): Promise<GpuTensor> {
  const [width, height] = [WIDTHS, HEIGHTS].map((names) => sizeOf(given, names)) as [number, number];
  const isImage = width > 0 && height > 0;
  checkGiven(WHAT, isImage, "an image, a canvas, a frame of a video or a GPUTexture that has pixels");
  if (isTexture(given)) return await ofTexture(given, device);
  if (!("ImageBitmap" in globalThis)) {
    throw fxError("NotImplemented", `the host has no images that ${WHAT} could copy: it takes those of browsers`, {
      help: 'decode it on the CPU: await tensor(…).to("gpu"); or give a GPUTexture, or a GPUBuffer to tensorFromGpuBuffer',
    });
  }
  const gpu = await gpuOf(device as GPUDevice | undefined);
  gpu.checkNotLost();
  checkFits(gpu, "the tensor of the image", planeBytes(width, height));
  const pipeline = await gpu.orLost(gpu.pipeline(PLANES, ["texture", "storage"]));
  const source = given as unknown as ImageBitmap;
  try {
    return await copied(gpu, pipeline, source, width, height);
  } catch (error) {
    if (!(error instanceof FxError) || error.kind !== "InvalidArgument" || !("createImageBitmap" in globalThis))
      throw error;
    // Where a processor does the work of the GPU, Chromium copies no frames of videos there, and draws them.
    const drawn = await createImageBitmap(source).catch(() => {
      throw error;
    });
    try {
      return await copied(gpu, pipeline, drawn, width, height);
    } finally {
      drawn.close();
    }
  }
}

/** A tensor of the colours in a texture of the caller's, which is read where it is. */
async function ofTexture(texture: GPUTexture, device: GivenGpu | undefined): Promise<GpuTensor> {
  const isDevice = typeof device === "object" && device !== null && "createBuffer" in device;
  checkGiven(WHAT, isDevice, "options.device, the GPUDevice of the texture");
  checkPicture(WHAT, texture, TEXTURE_BINDING);
  const gpu = await gpuOf(device as unknown as GPUDevice);
  gpu.checkNotLost();
  checkFits(gpu, "the tensor of the texture", planeBytes(texture.width, texture.height));
  const help = "a texture is of options.device, and not destroyed";
  return await withGiven(gpu, "the texture is refused", help, async () => {
    const pipeline = await gpu.orLost(gpu.pipeline(PLANES, ["texture", "storage"]));
    return await planesOf(gpu, pipeline, texture.width, texture.height, () => texture);
  });
}

/** A tensor of the colours of what is copied to a texture first. */
async function copied(
  gpu: Gpu,
  pipeline: Pipeline,
  source: ImageBitmap,
  width: number,
  height: number,
): Promise<GpuTensor> {
  let texture: GPUTexture | undefined;
  try {
    return await planesOf(gpu, pipeline, width, height, () => {
      const usage = COPY_DST | TEXTURE_BINDING | RENDER_ATTACHMENT;
      texture = gpu.device.createTexture({ size: [width, height], format: "rgba8unorm", usage });
      copy(gpu.device.queue, source, texture, width, height);
      return texture;
    });
  } finally {
    texture?.destroy();
  }
}

async function planesOf(
  gpu: Gpu,
  { pipeline, layout }: Pipeline,
  width: number,
  height: number,
  textureOf: () => GPUTexture,
): Promise<GpuTensor> {
  const { device } = gpu;
  let buffer: GPUBuffer | undefined;
  try {
    const filled = await gpu.told(() => {
      const texture = textureOf();
      buffer = newBuffer(device, planeBytes(width, height));
      const entries = [
        { binding: 0, resource: texture.createView() },
        { binding: 1, resource: { buffer } },
      ];
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
      pass.dispatchWorkgroups(Math.ceil(width / TILE), Math.ceil(height / TILE));
      pass.end();
      device.queue.submit([encoder.finish()]);
      return buffer;
    });
    return onDevice(new GpuMemory(gpu, filled, "float32", 3 * width * height), "float32", [1, 3, height, width]);
  } catch (error) {
    buffer?.destroy();
    throw error;
  }
}

function copy(queue: GPUQueue, source: ImageBitmap, texture: GPUTexture, width: number, height: number): void {
  try {
    queue.copyExternalImageToTexture({ source }, { texture }, [width, height]);
  } catch (cause) {
    throw fxError("InvalidArgument", `the image cannot be read: ${(cause as Error).message}`, {
      cause,
      help: "a video has a frame when it has loaded one, and an image of another origin needs its permission (crossOrigin)",
    });
  }
}

/** The bytes of three planes of numbers. */
function planeBytes(width: number, height: number): number {
  return 4 * 3 * width * height;
}

function sizeOf(source: unknown, names: readonly string[]): number {
  if (typeof source !== "object" || source === null) return 0;
  const name = names.find((it) => it in source);
  return name === undefined ? 0 : Number((source as Record<string, unknown>)[name]);
}
