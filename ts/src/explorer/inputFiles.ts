/**
 * Files and texts as inputs: arrays of NumPy, `.safetensors`, and what the host decodes, images and sounds.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import { readNpz } from "../export/npz.ts";
import { SymExpr, TensorMeta } from "../graph/val.ts";
import { DTYPES } from "../../../bindings/dtypes.ts";
import { tensorOf } from "../tensor/construct.ts";
import { readNpy } from "../tensor/npy.ts";
import { readSafetensors } from "../tensor/safetensors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { InputSlot } from "./inputs.ts";

/** What a file can be, by what its name ends with and what the host says of it. */
export type FileKind = "arrays" | "array" | "image" | "sound" | "text";

/** What is chosen from in a dialog. */
export const ACCEPTED = ".npy,.npz,.safetensors,.txt,image/*,audio/*";

/** What a file is for inputs. */
export function kindOfFile({ name, type }: Pick<File, "name" | "type">): FileKind {
  const ending = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase();
  if (ending === "npz" || ending === "safetensors") return "arrays";
  if (ending === "npy") return "array";
  if (type.startsWith("image/")) return "image";
  if (type.startsWith("audio/")) return "sound";
  if (type.startsWith("text/") || ending === "txt") return "text";
  throw fxError("InputType", `${name} is no file that inputs are made of`, {
    help: "choose .npy, .npz, .safetensors, .txt, an image or a sound",
  });
}

/** The tensors of a file of several, by name. */
export async function tensorsOfFile(file: File): Promise<Map<string, Tensor>> {
  const bytes = await file.arrayBuffer();
  return file.name.toLowerCase().endsWith(".npz") ? await readNpz(bytes) : readSafetensors(bytes).tensors;
}

/** What the numbers of pixels become. */
export const PIXEL_SCALES = {
  unit: "0 … 1",
  signed: "−1 … 1",
  imagenet: "ImageNet's mean and deviation",
  bytes: "0 … 255",
} as const;

/** What the numbers of pixels become: one of {@link PIXEL_SCALES}. */
export type PixelScale = keyof typeof PIXEL_SCALES;

/** The rates at which sounds are sampled, in samples a second. */
export const SAMPLE_RATES = [16_000, 22_050, 24_000, 44_100, 48_000] as const;

/** How a file becomes a tensor. */
export interface FileSettings {
  readonly pixels: PixelScale;
  readonly sampleRate: number;
}

/** The tensor that a file is for an input. */
export async function tensorOfFile(file: File, slot: InputSlot, settings: FileSettings): Promise<Tensor> {
  const kind = kindOfFile(file);
  switch (kind) {
    case "array":
      return readNpy(await file.arrayBuffer());
    case "text":
      return tensorOfText(await file.text(), slot);
    case "image": {
      const place = imagePlace(slot);
      return tensorOfPixels(await decodedImage(file, place), slot, settings.pixels);
    }
    case "sound":
      return tensorOfSound(await decodedSound(file, settings.sampleRate), slot);
    case "arrays":
      throw fxError("InputType", `${file.name} has several tensors`, { help: "they are taken by their names" });
  }
  return kind satisfies never;
}

/** Pixels as a canvas has them: red, green, blue and opacity in rows, from 0 to 255. */
export interface Pixels {
  readonly width: number;
  readonly height: number;
  readonly data: ArrayLike<number>;
}

/** Where in a tensor the pixels of an image stand. */
export interface ImagePlace {
  /** The sizes before the image; what is symbolic is 1. */
  readonly outer: readonly number[];
  readonly channels: 1 | 3 | 4;
  /** Whether channels come before rows, as in PyTorch. */
  readonly channelsFirst: boolean;
  /** Whether there is a dimension for channels. */
  readonly hasChannels: boolean;
  /** Rows and columns; undefined where they are those of the image. */
  readonly height: number | undefined;
  readonly width: number | undefined;
}

/** Where an image stands in an input: the last three dimensions are channels, rows and columns, or rows, columns and channels. */
export function imagePlace(slot: InputSlot): ImagePlace {
  const sizes = sizesOf(slot, "image").map((it) => (it instanceof SymExpr ? undefined : Number(it)));
  const n = sizes.length;
  if (n < 2) throw refused(slot, "an image has two dimensions at least");
  const outer = (of: number): number[] => sizes.slice(0, of).map((it) => it ?? 1);
  const [first, last] = [sizes[n - 3], sizes[n - 1]];
  if (n > 2 && isChannels(first)) {
    const place = { channels: first, channelsFirst: true, hasChannels: true };
    return { ...place, outer: outer(n - 3), height: sizes[n - 2], width: last };
  }
  if (n > 2 && isChannels(last)) {
    const place = { channels: last, channelsFirst: false, hasChannels: true };
    return { ...place, outer: outer(n - 3), height: first, width: sizes[n - 2] };
  }
  if (n > 3) throw refused(slot, "there is no dimension of 1, 3 or 4 channels");
  const place = { channels: 1, channelsFirst: true, hasChannels: false } as const;
  return { ...place, outer: outer(n - 2), height: sizes[n - 2], width: last };
}

function isChannels(size: number | undefined): size is 1 | 3 | 4 {
  return size === 1 || size === 3 || size === 4;
}

/** ImageNet's means and deviations, of red, green and blue. */
const IMAGENET = [
  [0.485, 0.229],
  [0.456, 0.224],
  [0.406, 0.225],
] as const;

/**
 * Pixels as a tensor for an input. One channel is the brightness of ITU-R BT.601, as Pillow computes it; all images of a batch
 * are the same.
 */
export function tensorOfPixels({ width, height, data }: Pixels, slot: InputSlot, scale: PixelScale): Tensor {
  const { outer, channels, channelsFirst, hasChannels } = imagePlace(slot);
  const { dtype } = slot.val as TensorMeta;
  const isFloat = DTYPES[dtype].kind === "float";
  const n = width * height;
  const image = new Float32Array(n * channels);
  for (let pixel = 0; pixel < n; pixel++) {
    for (let channel = 0; channel < channels; channel++) {
      const at = channelsFirst ? channel * n + pixel : pixel * channels + channel;
      const [red, green, blue] = [data[4 * pixel], data[4 * pixel + 1], data[4 * pixel + 2]] as [
        number,
        number,
        number,
      ];
      const byte =
        channels === 1
          ? Math.floor((19595 * red + 38470 * green + 7471 * blue + 0x8000) / 0x10000)
          : data[4 * pixel + channel];
      image[at] = isFloat ? scaled(byte as number, channels, channel, scale) : (byte as number);
    }
  }
  const nImages = outer.reduce((product, it) => product * it, 1);
  const elements = new Float32Array(nImages * image.length);
  for (let at = 0; at < nImages; at++) elements.set(image, at * image.length);
  const rows = [height, width];
  const own = !hasChannels ? rows : channelsFirst ? [channels, ...rows] : [...rows, channels];
  return tensorOf(elements, { dtype, shape: [...outer, ...own] });
}

function scaled(byte: number, channels: number, channel: number, scale: PixelScale): number {
  switch (scale) {
    case "bytes":
      return byte;
    case "unit":
      return byte / 255;
    case "signed":
      return byte / 127.5 - 1;
    case "imagenet": {
      // Opacity has no mean, and brightness that of all colours.
      if (channel === 3) return byte / 255;
      const [mean, deviation] = channels === 1 ? [0.449, 0.226] : (IMAGENET[channel] as readonly [number, number]);
      return (byte / 255 - mean) / deviation;
    }
  }
  return scale satisfies never;
}

/** The middle of an image, as large as the input has place for; of one whose sizes are symbolic, all of it. */
async function decodedImage(file: Blob, { height, width }: ImagePlace): Promise<Pixels> {
  const image = await createImageBitmap(file, { colorSpaceConversion: "none", premultiplyAlpha: "none" }).catch(
    (error: unknown) => {
      throw fxError("InputType", "the image cannot be decoded", { cause: error, help: "try PNG or JPEG" });
    },
  );
  const [toWidth, toHeight] = [width ?? image.width, height ?? image.height];
  const canvas = new OffscreenCanvas(toWidth, toHeight);
  const context = canvas.getContext("2d", { willReadFrequently: true }) as OffscreenCanvasRenderingContext2D;
  context.imageSmoothingQuality = "high";
  const factor = Math.min(image.width / toWidth, image.height / toHeight);
  const [fromWidth, fromHeight] = [toWidth * factor, toHeight * factor];
  const [left, top] = [(image.width - fromWidth) / 2, (image.height - fromHeight) / 2];
  context.drawImage(image, left, top, fromWidth, fromHeight, 0, 0, toWidth, toHeight);
  image.close();
  return context.getImageData(0, 0, toWidth, toHeight);
}

/** A sound: the samples of each channel, from −1 to 1. */
export type Sound = readonly Float32Array[];

async function decodedSound(file: Blob, sampleRate: number): Promise<Sound> {
  const context = new OfflineAudioContext(1, 1, sampleRate);
  const decoded = await context.decodeAudioData(await file.arrayBuffer()).catch((error: unknown) => {
    throw fxError("InputType", "the sound cannot be decoded", { cause: error, help: "try WAV" });
  });
  return Array.from({ length: decoded.numberOfChannels }, (_, at) => decoded.getChannelData(at));
}

/**
 * A sound as a tensor for an input: samples are the last dimension, and two channels the one before; one channel is the mean of
 * all. What is longer than the input is cut, and what is shorter is followed by silence.
 */
export function tensorOfSound(sound: Sound, slot: InputSlot): Tensor {
  const sizes = sizesOf(slot, "sound");
  const { dtype } = slot.val as TensorMeta;
  if (DTYPES[dtype].kind !== "float") throw refused(slot, "samples are floats");
  const outer = sizes.slice(0, -1).map((it) => (it instanceof SymExpr ? 1 : Number(it)));
  const nChannels = outer.at(-1) === 2 && sound.length > 1 ? 2 : 1;
  const [length = 0] = sound.map((it) => it.length);
  const last = sizes.at(-1);
  const nSamples = last instanceof SymExpr || last === undefined ? length : Number(last);
  const mean = (at: number): number => sound.reduce((sum, it) => sum + (it[at] as number), 0) / sound.length;
  const nRows = outer.reduce((product, it) => product * it, 1);
  const elements = new Float32Array(nRows * nSamples);
  for (let row = 0; row < nRows; row++) {
    for (let at = 0; at < Math.min(length, nSamples); at++) {
      elements[row * nSamples + at] = nChannels === 2 ? (sound[row % 2]?.[at] as number) : mean(at);
    }
  }
  return tensorOf(elements, { dtype, shape: [...outer, nSamples] });
}

/** What is written for an input: of one that is no tensor, a number. */
export function valueOfText(text: string, slot: InputSlot): unknown {
  if (slot.val instanceof TensorMeta) return tensorOfText(text, slot);
  const number = Number(text);
  if (text.trim() !== "" && Number.isFinite(number)) return number;
  throw fxError("InputType", `the input \`${slot.name}\` is a number, and not ${JSON.stringify(text)}`);
}

/**
 * A text as a tensor for an input: numbers where it consists of numbers, and else its bytes in UTF-8, as models without a
 * tokenizer take them. What is shorter than the input is followed by zeros, and bytes that are more are cut.
 */
export function tensorOfText(text: string, slot: InputSlot): Tensor {
  const sizes = sizesOf(slot, "text");
  const { dtype } = slot.val as TensorMeta;
  const words = text.split(/[\s,;[\]]+/).filter((it) => it !== "");
  const pattern = DTYPES[dtype].kind === "float" ? FLOAT : NUMBER;
  const isNumbers = words.length > 0 && words.every((it) => pattern.test(it));
  const numbers = isNumbers ? words.map(numberOf) : [...new TextEncoder().encode(text)];
  const last = sizes.at(-1);
  const outer = sizes.slice(0, -1).map((it) => (it instanceof SymExpr ? 1 : Number(it)));
  const nOuter = outer.reduce((product, it) => product * it, 1);
  const isOpen = last instanceof SymExpr;
  const length = isOpen ? Math.ceil(numbers.length / nOuter) : Number(last ?? 1);
  const n = nOuter * length;
  if (isNumbers && numbers.length > n) throw refused(slot, `${numbers.length} numbers are too many for it`);
  const elements = Float64Array.from({ length: n }, (_, at) => numbers[at] ?? 0);
  return tensorOf(elements, { dtype, shape: last === undefined ? [] : [...outer, length] });
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;
/** The same, and what Python calls the floats that are no finite numbers. */
const FLOAT = new RegExp(`${NUMBER.source}|^[+-]?(?:inf|nan)$`, "i");

function numberOf(word: string): number {
  if (/nan$/i.test(word)) return Number.NaN;
  if (!/inf$/i.test(word)) return Number(word);
  return word.startsWith("-") ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

function sizesOf(slot: InputSlot, what: string): TensorMeta["sizes"] {
  const { val } = slot;
  if (val instanceof TensorMeta) return val.sizes;
  throw refused(slot, `it is no tensor, and takes no ${what}`);
}

function refused({ name, text }: InputSlot, why: string): FxError {
  return fxError("InputShape", `the input \`${name}\` is ${text}: ${why}`, { node: name });
}
