/**
 * Windows as columns, and rearranging channels.
 *
 * @module
 */
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, each, type Sizes } from "./aten.ts";
import { define, defineBuiltin } from "./define.ts";

/** Options of {@link unfold} and {@link fold}. */
export interface FoldOptions {
  /** How far the elements of the window are apart; default 1. */
  readonly dilation?: Sizes;
  /** How many zeros stand around the image; default 0. */
  readonly padding?: Sizes;
  /** How far the window moves; default 1. */
  readonly stride?: Sizes;
}

/**
 * The windows of an image as columns: `(N, C, H, W)` gives `(N, C * kernel, windows)`.
 *
 * @example
 * ```ts
 * F.unfold(image, [2, 3]);
 * ```
 */
export const unfold = define<
  [input: Tensor, kernelSize: Sizes, dilation?: Sizes, padding?: Sizes, stride?: Sizes],
  FoldOptions
>("unfold", "(input, kernel_size, dilation=1, padding=0, stride=1)", (input, ...sizes) =>
  aten("im2col", input, ...sizes.map((it) => each(it, 2))),
);

/**
 * The sum of windows that are given as columns: `(N, C * kernel, windows)` gives `(N, C, ...outputSize)`.
 *
 * @example
 * ```ts
 * F.fold(columns, [4, 5], [2, 2]);
 * ```
 */
export const fold = define<
  [input: Tensor, outputSize: Sizes, kernelSize: Sizes, dilation?: Sizes, padding?: Sizes, stride?: Sizes],
  FoldOptions
>("fold", "(input, output_size, kernel_size, dilation=1, padding=0, stride=1)", (input, ...sizes) =>
  aten("col2im", input, ...sizes.map((it) => each(it, 2))),
);

/**
 * Channels become pixels: `(*, C * r ** 2, H, W)` gives `(*, C, H * r, W * r)`.
 *
 * @example
 * ```ts
 * F.pixelShuffle(x, 2);
 * ```
 */
export const pixelShuffle = defineBuiltin<[input: Tensor, upscaleFactor: number]>(
  "pixel_shuffle",
  "torch.pixel_shuffle",
  "(input, upscale_factor)",
  (input, factor) => aten("pixel_shuffle", input, factor),
);

/**
 * Pixels become channels: `(*, C, H * r, W * r)` gives `(*, C * r ** 2, H, W)`.
 *
 * @example
 * ```ts
 * F.pixelUnshuffle(x, 2);
 * ```
 */
export const pixelUnshuffle = defineBuiltin<[input: Tensor, downscaleFactor: number]>(
  "pixel_unshuffle",
  "torch.pixel_unshuffle",
  "(input, downscale_factor)",
  (input, factor) => aten("pixel_unshuffle", input, factor),
);

/**
 * The channels of groups in turn: channel `i` of group `g` becomes channel `g` of group `i`. The shape stays.
 *
 * @example
 * ```ts
 * F.channelShuffle(x, 2);
 * ```
 */
export const channelShuffle = defineBuiltin<[input: Tensor, groups: number]>(
  "channel_shuffle",
  "torch.channel_shuffle",
  "(input, groups)",
  (input, groups) => aten("channel_shuffle", input, groups),
);

/**
 * {@link channelShuffle} by one operator.
 *
 * @example
 * ```ts
 * F.nativeChannelShuffle(x, 2);
 * ```
 */
export const nativeChannelShuffle = defineBuiltin<[input: Tensor, groups: number]>(
  "native_channel_shuffle",
  "torch.native_channel_shuffle",
  "(input, groups)",
  (input, groups) => aten("native_channel_shuffle", input, groups),
);
