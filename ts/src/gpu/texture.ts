/**
 * Textures of the caller: which of them are pictures, and whose fault it is when the device refuses one.
 *
 * @module
 */
import { fxError, FxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import type { Gpu } from "./device.ts";

// `GPUTextureUsage`: not every host has this table under a global name.
export const [COPY_DST, TEXTURE_BINDING, RENDER_ATTACHMENT] = [2, 4, 16] as const;
const NAMES = { [TEXTURE_BINDING]: "TEXTURE_BINDING", [RENDER_ATTACHMENT]: "RENDER_ATTACHMENT" } as const;

/** Whether this is a `GPUTexture`. Hosts without a DOM have no class of that name to ask. */
export function isTexture(value: unknown): value is GPUTexture {
  return typeof value === "object" && value !== null && "createView" in value;
}

/** Refuses a texture that is no picture of fractions, or that was not made for this usage. */
export function checkPicture(what: string, texture: GPUTexture, usage: keyof typeof NAMES): void {
  const { dimension, depthOrArrayLayers, sampleCount, format } = texture;
  const isFlat = dimension === "2d" && depthOrArrayLayers === 1 && sampleCount === 1;
  checkGiven(what, isFlat, "a texture of two dimensions with one layer and one sample");
  const isFractions = !/[us]int|depth|stencil/u.test(format);
  checkGiven(what, isFractions, `a texture whose colours are fractions, not ${format}`, 'such as "rgba8unorm"');
  const name = `GPUTextureUsage.${NAMES[usage]}`;
  checkGiven(what, (texture.usage & usage) !== 0, `a texture that was made with ${name}`);
}

/** Refuses what takes more bytes in one buffer than shaders of the device see. */
export function checkFits(gpu: Gpu, what: string, bytes: number): void {
  const { bufferBytes } = gpu.limits;
  if (bytes > bufferBytes) {
    throw fxError("LimitExceeded", `${what} has ${bytes} bytes, and shaders of the GPU see at most ${bufferBytes}`, {
      help: "take a smaller one, or ask for a device with a larger maxStorageBufferBindingSize and maxBufferSize",
    });
  }
}

/** Does something with what the caller gave. What the device refuses of that, and goes on, is the caller's to change. */
export async function withGiven<T>(gpu: Gpu, problem: string, help: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (cause) {
    if (!(cause instanceof FxError) || cause.kind !== "DeviceFailed" || gpu.isLost) throw cause;
    throw fxError("InvalidArgument", `${problem}: ${cause.reason}`, { cause, help });
  }
}
