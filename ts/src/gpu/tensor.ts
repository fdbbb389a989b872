/**
 * Tensors whose elements are on a device.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { fxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import type { TensorView } from "../engine/tensors.ts";
import type { GivenGpu, GivenGpuBuffer, GpuTensor } from "../tensor/gpuTensor.ts";
import type { TensorStorage } from "../tensor/storage.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { type Gpu, gpuOf } from "./device.ts";
import { host } from "./host.ts";
import { COPY_SRC, deviceBytes, GpuMemory } from "./memory.ts";

const memories = new WeakMap<object, GpuMemory>();

/** The memory of a tensor that is on a device; nothing of anything else. */
export function memoryOf(value: unknown): GpuMemory | undefined {
  const memory = isObject(value) ? memories.get(value) : undefined;
  if (memory === undefined || !(value as Tensor).isDisposed) return memory;
  throw fxError("Disposed", "the tensor was disposed", { help: "read what you need before you dispose it" });
}

/** How a tensor lies in its memory. */
export function viewOf(tensor: Tensor): TensorView {
  return { dtype: tensor.dtype, shape: tensor.shape, strides: tensor.stride(), offset: tensor.storageOffset() };
}

/** A tensor of bytes that it takes over. */
export function tensorOfBytes(bytes: Uint8Array): Tensor {
  return new host.Tensor("uint8", [bytes.length], new host.HostStorage(bytes));
}

/** Elements on a device. */
class GpuStorage implements TensorStorage {
  readonly device = host.gpu;
  readonly needsFree: boolean;
  readonly byteLength: number;
  readonly layout?: { readonly strides: readonly number[]; readonly offset: number };
  readonly #memory: GpuMemory;

  constructor(memory: GpuMemory, byteLength: number, view: TensorView | undefined) {
    this.#memory = memory;
    this.needsFree = memory.isOurs;
    this.byteLength = byteLength;
    if (view !== undefined) this.layout = view;
  }

  bytes(): never {
    throw fxError("InputType", "the tensor is on the GPU, and the CPU does not see its elements", {
      help: 'await x.cpu() promises it on the CPU; module.runAsync([x]) of a module with device: "gpu" takes it as it is',
    });
  }

  free(): void {
    this.#memory.release();
  }
}

/** What tensors on a device have beside, and in the place of, what all tensors have. */
const MEMBERS = {
  buffer: {
    get(this: Tensor): GPUBuffer | undefined {
      return memoryOf(this)?.buffer;
    },
  },
  cpu: {
    async value(this: Tensor): Promise<Tensor> {
      const [memory, view] = [memoryOf(this) as GpuMemory, viewOf(this)];
      const isWhole = this.numel() === memory.nElements && this.isContiguous();
      const bytes = await memory.bytes();
      if (isWhole) return new host.Tensor(view.dtype, view.shape, new host.HostStorage(bytes));
      return host.viewOn(tensorOfBytes(bytes), view);
    },
  },
  to: {
    async value(this: Tensor & GpuTensor, device: unknown, ...more: unknown[]): Promise<Tensor | GpuTensor> {
      const place = more.length === 0 ? String(device) : undefined;
      if (place === "cpu") return await this.cpu();
      if (place === "gpu") {
        memoryOf(this)?.checkNotLost();
        return this;
      }
      if (place !== undefined && isObject(device) && "createBuffer" in device)
        return await toGpu(this, device as unknown as GivenGpu);
      throw fxError("NotImplemented", "a tensor on the GPU is not converted there", {
        help: "convert it on the CPU: (await x.cpu()).to(…)",
      });
    },
  },
  toString: {
    /** What PyTorch prints of a tensor whose elements it does not see. */
    value(this: Tensor): string {
      const dims = this.shape.length === 1 ? `${this.shape[0]},` : this.shape.join(", ");
      const dtype = this.dtype === "float32" ? "" : `, dtype=torch.${this.dtype}`;
      return `tensor(..., device='${this.device.toString()}', size=(${dims})${dtype})`;
    },
  },
};

/** A tensor that lies so in memory of a device, or row-major, and takes one owner of it over. */
export function onDevice(memory: GpuMemory, dtype: DType, shape: readonly number[], view?: TensorView): GpuTensor {
  const byteLength = shape.reduce((product, size) => product * size, DTYPES[dtype].size);
  const res = new host.Tensor(dtype, shape, new GpuStorage(memory, byteLength, view));
  memories.set(res, memory);
  return Object.defineProperties(res, MEMBERS) as unknown as GpuTensor;
}

/** A tensor on the device of the caller, or on that of all modules, with the elements of this one; itself where it is there. */
export async function toGpu(tensor: Tensor, device: GivenGpu | undefined): Promise<GpuTensor> {
  const there = memoryOf(tensor);
  const gpu = await gpuOf(device as GPUDevice | undefined);
  if (there !== undefined) {
    checkOn(there, gpu, "the tensor");
    return tensor as unknown as GpuTensor;
  }
  gpu.checkNotLost();
  return await uploaded(gpu, tensor);
}

/** A tensor on the device with the elements of one that is on the CPU. */
export async function uploaded(gpu: Gpu, tensor: Tensor): Promise<GpuTensor> {
  const { dtype, shape } = tensor;
  checkDType(dtype);
  return onDevice(await GpuMemory.of(gpu, dtype, host.tensorBytes(tensor)), dtype, shape);
}

/** A tensor over a buffer of the caller's, of as many elements as its shape has. */
export async function ofBuffer(
  given: GivenGpuBuffer,
  device: GivenGpu,
  dtype: DType,
  shape: readonly number[],
): Promise<GpuTensor> {
  const what = "tensorFromGpuBuffer";
  checkGiven(what, isObject(given) && "mapAsync" in given, "a GPUBuffer");
  checkGiven(what, isObject(device) && "createBuffer" in device, "options.device, the GPUDevice of the buffer");
  const isKnown = Object.hasOwn(DTYPES, dtype);
  checkGiven(
    what,
    isKnown,
    "options.dtype, the name of a dtype, and options.shape",
    '{ dtype: "float32", shape: [2, 3] }',
  );
  checkDType(dtype);
  const buffer = given as unknown as GPUBuffer;
  const nElements = shape.reduce((product, size) => product * size, 1);
  const length = deviceBytes(dtype, nElements);
  if (buffer.size < length) {
    const sizes = `[${shape.join(", ")}]`;
    throw fxError(
      "InputShape",
      `a ${dtype} tensor of shape ${sizes} has ${length} bytes on a GPU, not ${buffer.size}`,
      {
        help: "an element of up to four bytes takes four there, and one of eight takes eight",
      },
    );
  }
  if ((buffer.usage & COPY_SRC) === 0) {
    throw fxError("InvalidArgument", "the buffer cannot be copied from", {
      help: "make it with GPUBufferUsage.COPY_SRC, and with COPY_DST where a program writes to it",
    });
  }
  const gpu = await gpuOf(device as unknown as GPUDevice);
  gpu.checkNotLost();
  return onDevice(new GpuMemory(gpu, buffer, dtype, nElements, false), dtype, shape);
}

/** Refuses memory of another device, and of one that was lost. */
export function checkOn(memory: GpuMemory, gpu: Gpu, what: string): void {
  memory.checkNotLost();
  if (memory.gpu === gpu) return;
  throw fxError("InputType", `${what} is on another GPU`, {
    help: "bring it over by the CPU: await (await x.cpu()).to(device)",
  });
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null;
}

function checkDType(dtype: DType): void {
  if (DTYPES[dtype].size <= 8) return;
  throw fxError("NotImplemented", `${dtype} elements have no place on a GPU`, { help: "keep them on the CPU" });
}
