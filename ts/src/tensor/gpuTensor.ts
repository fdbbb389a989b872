/**
 * Tensors on a GPU and what they are made of, as types, and who brings tensors there: those who ask for no GPU load nothing of it.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import type { DTypeArg } from "../base/values.ts";
import type { Tensor } from "./tensor.ts";

/** A `GPUDevice`, as far as it is asked for here: its type is not in the libraries of every TypeScript. */
export interface GivenGpu {
  readonly lost: Promise<unknown>;
  readonly queue: object;
  createComputePipelineAsync(descriptor: never): Promise<unknown>;
}

/** A `GPUBuffer`, as far as it is asked for here. */
export interface GivenGpuBuffer {
  readonly size: number;
  readonly usage: number;
  mapAsync(mode: never): Promise<unknown>;
}

/**
 * An image that a GPU can copy, as far as it is asked for here: an `ImageBitmap`, a `VideoFrame`, an `ImageData`, a canvas, or an `<img>` or `<video>`,
 * which have a width and a height; or a `GPUTexture`, which is read where it is.
 */
export interface GivenImage {
  readonly width?: number;
  readonly displayWidth?: number;
}

/** A `GPUTexture`, as far as it is asked for here. */
export interface GivenTexture {
  readonly width: number;
  readonly height: number;
  readonly format: string;
  readonly usage: number;
  createView(descriptor?: never): object;
}

/** An `HTMLCanvasElement` or `OffscreenCanvas`, as far as it is asked for here. */
export interface GivenCanvas {
  width: number;
  height: number;
  getContext(kind: "webgpu"): unknown;
}

/** Where {@link tensorFromImage} puts the colours. */
export interface ImageOptions {
  /** The device; without it that of all modules with `device: "gpu"`. Of a `GPUTexture` it is the device that made it. */
  readonly device?: "gpu" | GivenGpu;
}

/** What a tensor on a GPU tells at once: everything but its elements. */
type Known =
  | "dtype"
  | "shape"
  | "ndim"
  | "device"
  | "layout"
  | "itemsize"
  | "nbytes"
  | "isDisposed"
  | "numel"
  | "nelement"
  | "dim"
  | "ndimension"
  | "size"
  | "stride"
  | "storageOffset"
  | "isContiguous"
  | "isFloatingPoint"
  | "isComplex"
  | "isSigned"
  | "elementSize"
  | "toString"
  | "dispose";

/**
 * A tensor whose elements are in the memory of a GPU. `x.to("gpu")`, {@link tensorFromGpuBuffer}, and runs with `outputs: "gpu"` give them,
 * and modules with `device: "gpu"` take them; nothing crosses to the CPU before it is read with {@link GpuTensor.cpu}. Operators of the
 * CPU refuse them.
 *
 * @example
 * ```ts
 * using model = program.module({ device: "gpu" });
 * let x = await torch.randn(1, 64).to("gpu");
 * for (let step = 0; step < 10; step++) x = (await model.runAsync([x], { outputs: "gpu" })) as GpuTensor;
 * (await x.cpu()).data;
 * ```
 */
export interface GpuTensor extends Pick<Tensor, Known>, Disposable {
  /**
   * The `GPUBuffer` that the elements are in, the first one at {@link Tensor.storageOffset}, for commands of your own on the same device. An element
   * of up to four bytes takes 32 bits: bools and short integers as `u32` or `i32`, float16 and bfloat16 as `f32`. One of eight bytes takes eight.
   */
  readonly buffer: GivenGpuBuffer;
  /** Promises a copy on the CPU, after all that the device was told before. */
  cpu(): Promise<Tensor>;
  /** Promises the tensor on the CPU, as {@link GpuTensor.cpu}, or on the GPU where it is: itself. */
  to(device: "cpu"): Promise<Tensor>;
  to(device: "gpu" | GivenGpu): Promise<GpuTensor>;
}

/** What a buffer holds that {@link tensorFromGpuBuffer} makes a tensor of. */
export interface GpuBufferOptions {
  /** The device that the buffer is of. */
  readonly device: GivenGpu;
  readonly dtype: DType | DTypeArg;
  readonly shape: readonly number[];
}

/** Brings a tensor to a GPU, where the arguments of `to` mean one. */
export type BringToGpu = (tensor: Tensor, args: readonly unknown[]) => Promise<GpuTensor> | undefined;

let bring: BringToGpu | undefined;

/** Says who brings tensors to a GPU: what runs programs there, since nobody else takes them from there. */
export function bringToGpuBy(given: BringToGpu): void {
  bring = given;
}

/** The tensor on the GPU that the arguments of `to` mean; nothing where they mean none, or nothing of the package runs programs. */
export function broughtToGpu(tensor: Tensor, args: readonly unknown[]): Promise<GpuTensor> | undefined {
  return bring?.(tensor, args);
}
