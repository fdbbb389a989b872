/**
 * Memory of a device: how elements lie there, and how they come back.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import type { Place } from "../../../bindings/gpu.ts";
import { fxError } from "../base/errors.ts";
import type { Gpu } from "./device.ts";
import { loadLowering, narrowed, widened } from "./lowering.ts";

// `GPUBufferUsage` and `GPUMapMode`: not every host has these tables under global names.
export const [MAP_READ, COPY_SRC, COPY_DST, STORAGE] = [1, 4, 8, 128] as const;
const FOR_READING = 1;

/** The bytes that so many elements take on the device. */
export function deviceBytes(dtype: DType, nElements: number): number {
  return nElements * (DTYPES[dtype].size === 8 ? 8 : 4);
}

/** The bytes that the elements of a plan's buffer take on the device. */
export function placeBytes({ dtype, n_elements, is_packed }: Place): number {
  return is_packed ? Math.ceil((n_elements * DTYPES[dtype].size) / 4) * 4 : deviceBytes(dtype, n_elements);
}

/** Whether elements of both dtypes lie the same way on the device and on the CPU. */
export function lieAlike(a: DType, b: DType): boolean {
  return a === b || (DTYPES[a].size === DTYPES[b].size && DTYPES[a].size >= 4);
}

/** The bytes of elements as the device has them. */
export function forDevice(bytes: Uint8Array, dtype: DType): Uint8Array {
  return DTYPES[dtype].size < 4 ? widened(bytes, dtype) : bytes;
}

/** The bytes of elements as the CPU has them. */
export function forCpu(bytes: Uint8Array, dtype: DType): Uint8Array {
  return DTYPES[dtype].size < 4 ? narrowed(bytes, dtype) : bytes;
}

/** A buffer that modules read and write, and that is copied from and to. */
export function newBuffer(device: GPUDevice, size: number): GPUBuffer {
  return device.createBuffer({ size: Math.max(Math.ceil(size / 4) * 4, 4), usage: STORAGE | COPY_SRC | COPY_DST });
}

/** A buffer that the CPU reads. */
export function newStaging(device: GPUDevice, size: number): GPUBuffer {
  return device.createBuffer({ size, usage: MAP_READ | COPY_DST });
}

/** The first bytes of a buffer that the CPU reads, when the device has written them. */
export async function contentOf(staging: GPUBuffer, length: number): Promise<ArrayBuffer> {
  await staging.mapAsync(FOR_READING, 0, length);
  const bytes = staging.getMappedRange(0, length).slice(0);
  staging.unmap();
  return bytes;
}

/** Elements in a buffer of a device, which several tensors may look at; the last one gives it back, unless it is the caller's. */
export class GpuMemory {
  readonly gpu: Gpu;
  readonly buffer: GPUBuffer;
  readonly dtype: DType;
  readonly nElements: number;
  readonly isOurs: boolean;
  #nOwners = 1;

  constructor(gpu: Gpu, buffer: GPUBuffer, dtype: DType, nElements: number, isOurs = true) {
    this.gpu = gpu;
    this.buffer = buffer;
    this.dtype = dtype;
    this.nElements = nElements;
    this.isOurs = isOurs;
  }

  /** Memory with these elements, row-major as on the CPU. */
  static async of(gpu: Gpu, dtype: DType, bytes: Uint8Array): Promise<GpuMemory> {
    await loadLowering();
    let buffer: GPUBuffer | undefined;
    try {
      return await gpu.told(() => {
        buffer = newBuffer(gpu.device, deviceBytes(dtype, bytes.byteLength / DTYPES[dtype].size));
        const made = new GpuMemory(gpu, buffer, dtype, bytes.byteLength / DTYPES[dtype].size);
        made.#write(bytes);
        return made;
      });
    } catch (error) {
      buffer?.destroy();
      throw error;
    }
  }

  /** The bytes of the elements on the CPU. */
  get byteLength(): number {
    return this.nElements * DTYPES[this.dtype].size;
  }

  /** The same for one more owner. */
  share(): this {
    this.#nOwners += 1;
    return this;
  }

  /** Takes one owner away. */
  release(): void {
    this.#nOwners -= 1;
    if (this.#nOwners === 0 && this.isOurs) this.buffer.destroy();
  }

  /** Refuses memory of a device that was lost. */
  checkNotLost(): void {
    if (!this.gpu.isLost) return;
    throw fxError("DeviceFailed", "the GPU that the tensor is on was lost, and its elements with it", {
      help: 'make it again of what is on the CPU: await x.to("gpu")',
    });
  }

  /** Refuses a buffer of the caller's that a program cannot write to. */
  checkWritable(what: string): void {
    if ((this.buffer.usage & COPY_DST) !== 0) return;
    throw fxError("InvalidArgument", `the program writes to ${what}, and its buffer cannot be copied to`, {
      help: "make the buffer with GPUBufferUsage.COPY_DST",
    });
  }

  /** Promises the elements as the CPU has them, after what the device was told until now. */
  async bytes(): Promise<Uint8Array> {
    this.checkNotLost();
    const length = deviceBytes(this.dtype, this.nElements);
    if (length === 0) return new Uint8Array(0);
    const { device } = this.gpu;
    let staging: GPUBuffer | undefined;
    // Its owner may give it up before it is read.
    this.share();
    try {
      const { content } = await this.gpu.told(() => {
        staging = newStaging(device, length);
        const encoder = device.createCommandEncoder();
        encoder.copyBufferToBuffer(this.buffer, 0, staging, 0, length);
        device.queue.submit([encoder.finish()]);
        const promised = contentOf(staging, length);
        // What the device refuses says more than that it gives nothing.
        promised.catch(() => undefined);
        return { content: promised };
      });
      const bytes = new Uint8Array(await this.gpu.orLost(content));
      await loadLowering();
      return forCpu(bytes, this.dtype);
    } catch (error) {
      throw this.gpu.refusal(error);
    } finally {
      staging?.destroy();
      this.release();
    }
  }

  /** Writes all elements, as the CPU has them. */
  async write(bytes: Uint8Array): Promise<void> {
    await this.gpu.told(() => this.#write(bytes));
  }

  #write(bytes: Uint8Array): void {
    this.gpu.device.queue.writeBuffer(this.buffer, 0, forDevice(bytes, this.dtype) as Uint8Array<ArrayBuffer>);
  }
}
