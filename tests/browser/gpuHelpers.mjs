/**
 * What tests of GPUs call in the page, under global names.
 *
 * @module
 */
import { exportProgram, nn } from "../../ts/dist/index.js";

/** @typedef {import("../../ts/src/index.ts").Tensor} Tensor */

/**
 * A program of a function of tensors.
 *
 * @param {(...given: Tensor[]) => unknown} forward
 * @param {...Tensor} inputs
 * @returns {import("../../ts/src/index.ts").ExportedProgram}
 */
export function programOf(forward, ...inputs) {
  class Net extends nn.Module {
    /** @override @param {...Tensor} given */
    forward(...given) {
      return forward(...given);
    }
  }
  return /** @type {any} */ (exportProgram(new Net(), /** @type {any} */ (inputs)));
}

/**
 * The buffers that are made from now on and not destroyed; those before may be collected at any time.
 *
 * @returns {{ readonly living: ReadonlySet<GPUBuffer>, stop(): void }}
 */
export function buffersFromNow() {
  const living = new Set();
  const { createBuffer } = GPUDevice.prototype;
  GPUDevice.prototype.createBuffer = function (descriptor) {
    const made = createBuffer.call(this, descriptor);
    living.add(made);
    return made;
  };
  const { destroy } = GPUBuffer.prototype;
  GPUBuffer.prototype.destroy = function () {
    living.delete(this);
    return destroy.call(this);
  };
  const stop = () => {
    [GPUDevice.prototype.createBuffer, GPUBuffer.prototype.destroy] = [createBuffer, destroy];
  };
  return { living, stop };
}

/**
 * The bytes of the pixels that a canvas shows.
 *
 * @param {OffscreenCanvas | HTMLCanvasElement} canvas
 * @returns {number[]}
 */
export function shown(canvas) {
  const { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d");
  copy?.drawImage(canvas, 0, 0);
  return [...(copy?.getImageData(0, 0, width, height).data ?? [])];
}

/**
 * The message of what a body throws.
 *
 * @param {() => unknown} body
 */
export async function refusal(body) {
  try {
    await body();
    return "no error";
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}
