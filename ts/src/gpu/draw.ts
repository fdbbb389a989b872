/**
 * Tensors on a device as pictures: on a canvas, or in a texture of the caller's. The colours do not pass the CPU.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import type { GivenCanvas, GivenTexture, GpuTensor } from "../tensor/gpuTensor.ts";
import type { Gpu, Pipeline } from "./device.ts";
import { COPY_DST, type GpuMemory, STORAGE } from "./memory.ts";
import { memoryOf } from "./tensor.ts";
import { checkFits, checkPicture, isTexture, RENDER_ATTACHMENT, withGiven } from "./texture.ts";

const WHAT = "drawTensor";
// `GPUShaderStage` and `GPUBufferUsage`: not every host has these tables under global names.
const [FRAGMENT, UNIFORM] = [2, 64] as const;
/** What becomes of the fourth channel: there is none, it is written beside the colours, or they are multiplied by it, too. */
const [OPAQUE, BESIDE, MULTIPLIED] = [0, 1, 2] as const;
/** The bytes of `Picture` in the shader. */
const PICTURE_BYTES = 32;

/** From planes to pixels, by a triangle that covers all of them. Every format that can be drawn to takes what a fragment gives. */
const PIXELS = `struct Picture { offset: u32, plane: u32, row: u32, column: u32, alpha: u32 }
@group(0) @binding(0) var<storage, read> elements: array<f32>;
@group(0) @binding(1) var<uniform> picture: Picture;
@vertex
fn corner(@builtin(vertex_index) at: u32) -> @builtin(position) vec4<f32> {
  return vec4<f32>(f32(at & 1u) * 4.0 - 1.0, f32(at >> 1u) * 4.0 - 1.0, 0.0, 1.0);
}
@fragment
fn color(@builtin(position) place: vec4<f32>) -> @location(0) vec4<f32> {
  let at = picture.offset + u32(place.y) * picture.row + u32(place.x) * picture.column;
  let rgb = vec3<f32>(elements[at], elements[at + picture.plane], elements[at + 2u * picture.plane]);
  var pixel = vec4<f32>(rgb, 1.0);
  if (picture.alpha != ${OPAQUE}u) {
    pixel.a = elements[at + 3u * picture.plane];
  }
  pixel = clamp(pixel, vec4<f32>(0.0), vec4<f32>(1.0));
  if (picture.alpha == ${MULTIPLIED}u) {
    return vec4<f32>(pixel.rgb * pixel.a, pixel.a);
  }
  return pixel;
}`;

/** How the pixels of a tensor lie, in elements. */
interface Picture {
  readonly width: number;
  readonly height: number;
  readonly hasAlpha: boolean;
  /** Where the first one is, and how far it is to the next plane, row and column. */
  readonly steps: readonly [offset: number, plane: number, row: number, column: number];
}

/** What is drawn to. */
interface Surface {
  readonly format: GPUTextureFormat;
  readonly alpha: number;
  /** The pixels of now. A canvas has others for each frame. */
  view(): GPUTextureView;
}

/** Draws a tensor to a canvas or to a texture. */
export async function draw(tensor: GpuTensor, target: GivenCanvas | GivenTexture): Promise<void> {
  const memory = memoryOf(tensor);
  if (memory === undefined) {
    throw fxError("InputType", `${WHAT} takes a tensor that is on a GPU`, {
      help: 'await x.to("gpu"), and runAsync([x], { outputs: "gpu" }) of a module with device: "gpu", promise one',
    });
  }
  const picture = pictureOf(tensor);
  memory.checkNotLost();
  checkGiven(WHAT, (memory.buffer.usage & STORAGE) !== 0, "a tensor whose buffer was made with GPUBufferUsage.STORAGE");
  checkFits(memory.gpu, "the buffer of the tensor", memory.buffer.size);
  // Its owner may give it up before it is drawn.
  memory.share();
  try {
    // The device's words alone tell which of both it refuses.
    const ofTensor = "the tensor's buffer (x.buffer) is not destroyed or mapped";
    const help = `${ofTensor}; a texture is of the tensor's device and not destroyed, of a format that can be drawn to`;
    const problem = "the tensor's buffer, or what is drawn to, is refused";
    await withGiven(memory.gpu, problem, help, () => drawn(memory, picture, target));
  } finally {
    memory.release();
  }
}

async function drawn(memory: GpuMemory, picture: Picture, target: unknown): Promise<void> {
  const { gpu } = memory;
  const surface = isTexture(target) ? ofTexture(target, picture) : ofCanvas(gpu, target, picture);
  const { layout, pipeline } = await gpu.orLost(rendering(gpu, surface.format));
  let steps: GPUBuffer | undefined;
  try {
    await gpu.told(() => {
      const { device } = gpu;
      steps = device.createBuffer({ size: PICTURE_BYTES, usage: UNIFORM | COPY_DST });
      device.queue.writeBuffer(steps, 0, Uint32Array.of(...picture.steps, surface.alpha));
      const entries = [
        { binding: 0, resource: { buffer: memory.buffer } },
        { binding: 1, resource: { buffer: steps } },
      ];
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginRenderPass({
        colorAttachments: [{ view: surface.view(), loadOp: "clear", storeOp: "store" }],
      });
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, device.createBindGroup({ layout, entries }));
      pass.draw(3);
      pass.end();
      device.queue.submit([encoder.finish()]);
    });
  } finally {
    steps?.destroy();
  }
}

/** What draws to a format, compiled once. */
function rendering(gpu: Gpu, format: GPUTextureFormat): Promise<Pipeline<GPURenderPipeline>> {
  const { device } = gpu;
  return gpu.compiledOnce(`draw ${format}`, () => {
    const layout = device.createBindGroupLayout({
      entries: [
        { binding: 0, visibility: FRAGMENT, buffer: { type: "read-only-storage" } },
        { binding: 1, visibility: FRAGMENT, buffer: { type: "uniform" } },
      ],
    });
    const module = device.createShaderModule({ code: PIXELS });
    const made = device.createRenderPipelineAsync({
      layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
      vertex: { module, entryPoint: "corner" },
      fragment: { module, entryPoint: "color", targets: [{ format }] },
    });
    return { layout, made };
  });
}

function pictureOf(tensor: GpuTensor): Picture {
  const { dtype, shape } = tensor;
  if (!tensor.isFloatingPoint() || DTYPES[dtype].size > 4) {
    throw fxError("InputType", `${WHAT} takes colours from 0 to 1 as float32, float16 or bfloat16, not ${dtype}`, {
      help: "have the program give x.float().div(255), or on the CPU: await x.cpu()",
    });
  }
  const outer = shape.slice(0, -2);
  const nChannels = outer.at(-1) ?? 1;
  const isOne = outer.length <= 2 && (outer.length < 2 || outer[0] === 1);
  const [height, width] = shape.slice(-2);
  if (!isOne || ![1, 3, 4].includes(nChannels) || !width || !height) {
    throw fxError("InputShape", `${WHAT} takes one picture, and the tensor is of shape [${shape.join(", ")}]`, {
      help: "[1, channels, height, width], [channels, height, width] or [height, width], with 1, 3 or 4 channels",
    });
  }
  const strides = tensor.stride();
  const [row, column] = strides.slice(-2) as [number, number];
  // Grey is the same in all three colours.
  const plane = nChannels === 1 ? 0 : (strides.at(-3) as number);
  return { width, height, hasAlpha: nChannels === 4, steps: [tensor.storageOffset(), plane, row, column] };
}

function ofTexture(texture: GPUTexture, { width, height, hasAlpha }: Picture): Surface {
  checkPicture(WHAT, texture, RENDER_ATTACHMENT);
  if (texture.width !== width || texture.height !== height) {
    const sizes = `${texture.width} × ${texture.height}`;
    throw fxError("InputShape", `the texture has ${sizes} pixels, and the tensor ${width} × ${height}`);
  }
  // What is drawn is the largest picture of those that get smaller.
  const view = (): GPUTextureView => texture.createView({ mipLevelCount: 1 });
  return { format: texture.format, alpha: hasAlpha ? BESIDE : OPAQUE, view };
}

function ofCanvas(gpu: Gpu, canvas: unknown, { width, height, hasAlpha }: Picture): Surface {
  const isCanvas = typeof canvas === "object" && canvas !== null && "getContext" in canvas;
  checkGiven(WHAT, isCanvas, "a canvas or a GPUTexture");
  const shown = canvas as OffscreenCanvas;
  const context = contextOf(shown);
  const wanted = usable(gpu, context, hasAlpha) ?? {
    device: gpu.device,
    format: navigator.gpu.getPreferredCanvasFormat(),
    alphaMode: hasAlpha ? "premultiplied" : "opaque",
  };
  const view = (): GPUTextureView => {
    // Only now: who drew while the pipeline was compiled may have left another configuration, and who fails before this leaves none.
    if (usable(gpu, context, hasAlpha)?.format !== wanted.format) context.configure(wanted);
    // What is written to a size clears the canvas, though it is the same.
    if (shown.width !== width) shown.width = width;
    if (shown.height !== height) shown.height = height;
    return context.getCurrentTexture().createView();
  };
  return { format: wanted.format, alpha: hasAlpha ? MULTIPLIED : OPAQUE, view };
}

function contextOf(canvas: OffscreenCanvas): GPUCanvasContext {
  let context: GPUCanvasContext | null = null;
  let cause: unknown;
  try {
    context = canvas.getContext("webgpu") as GPUCanvasContext | null;
  } catch (thrown) {
    cause = thrown;
  }
  if (context !== null) return context;
  throw fxError("InvalidArgument", "the canvas cannot be drawn to by WebGPU", {
    cause,
    help: "a canvas that has a context of another kind keeps it, and one that was transferred has none: take a new canvas",
  });
}

/** The context's own configuration where it is of this device and can be drawn to. */
function usable(gpu: Gpu, context: GPUCanvasContext, hasAlpha: boolean): GPUCanvasConfiguration | undefined {
  // Not every host tells the configuration.
  const known = context.getConfiguration?.();
  const isOurs = known?.device === gpu.device && ((known.usage ?? RENDER_ATTACHMENT) & RENDER_ATTACHMENT) !== 0;
  return isOurs && (!hasAlpha || known.alphaMode === "premultiplied") ? known : undefined;
}
