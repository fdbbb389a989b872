/**
 * Layers that move elements and change none: flattening, shuffling and folding.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { Module } from "./module.ts";
import { fields, type Size } from "./sizes.ts";
import { badInput } from "./state.ts";

/** Which dimensions a {@link Flatten} makes one. */
export interface FlattenOptions {
  /** The first; 1 by default. */
  readonly startDim?: number;
  /** The last; -1 by default. */
  readonly endDim?: number;
}

/** Makes one dimension of several: `(N, C, H, W)` to `(N, C * H * W)` by default. */
export class Flatten extends Module {
  readonly startDim: number;
  readonly endDim: number;

  constructor(...given: Arguments<[], [startDim: number, endDim: number], FlattenOptions>) {
    super();
    const it = bind<FlattenOptions>("Flatten", given, [], { startDim: 1, endDim: -1 });
    this.startDim = it.startDim;
    this.endDim = it.endDim;
  }

  override forward(input: Tensor): Tensor {
    return input.flatten(this.startDim, this.endDim);
  }

  override extraRepr(): string {
    return fields({ start_dim: this.startDim, end_dim: this.endDim });
  }
}

/** Which dimension an {@link Unflatten} splits, and into which. */
export interface UnflattenOptions {
  /** The dimension. */
  readonly dim?: number;
  /** The sizes of the new ones. */
  readonly unflattenedSize?: readonly number[];
}

/** Makes several dimensions of one. */
export class Unflatten extends Module {
  readonly dim: number;
  readonly unflattenedSize: readonly number[];

  constructor(...given: Arguments<[dim: number, unflattenedSize: readonly number[]], [], UnflattenOptions>) {
    super();
    const it = bind<UnflattenOptions>("Unflatten", given, ["dim", "unflattenedSize"], {});
    if (!Array.isArray(it.unflattenedSize)) {
      throw badInput(`unflattened_size must be a tuple of ints, but found type ${typeof it.unflattenedSize}`);
    }
    for (const [at, size] of it.unflattenedSize.entries()) {
      if (Number.isInteger(size)) continue;
      throw badInput(`unflattened_size must be tuple of ints, but found element of type ${typeof size} at pos ${at}`);
    }
    this.dim = it.dim;
    this.unflattenedSize = it.unflattenedSize;
  }

  override forward(input: Tensor): Tensor {
    return input.unflatten(this.dim, this.unflattenedSize);
  }

  override extraRepr(): string {
    return fields({ dim: this.dim, unflattened_size: this.unflattenedSize });
  }
}

/** By how much a {@link PixelShuffle} enlarges. */
export interface PixelShuffleOptions {
  /** The factor, for height and width. */
  readonly upscaleFactor?: number;
}

/** Moves channels into space: `(*, C * r * r, H, W)` to `(*, C, H * r, W * r)`. */
export class PixelShuffle extends Module {
  readonly upscaleFactor: number;

  constructor(...given: Arguments<[upscaleFactor: number], [], PixelShuffleOptions>) {
    super();
    this.upscaleFactor = bind<PixelShuffleOptions>("PixelShuffle", given, ["upscaleFactor"], {}).upscaleFactor;
  }

  override forward(input: Tensor): Tensor {
    return F.pixelShuffle(input, this.upscaleFactor);
  }

  override extraRepr(): string {
    return fields({ upscale_factor: this.upscaleFactor });
  }
}

/** By how much a {@link PixelUnshuffle} shrinks. */
export interface PixelUnshuffleOptions {
  /** The factor, for height and width. */
  readonly downscaleFactor?: number;
}

/** Moves space into channels: `(*, C, H * r, W * r)` to `(*, C * r * r, H, W)`. */
export class PixelUnshuffle extends Module {
  readonly downscaleFactor: number;

  constructor(...given: Arguments<[downscaleFactor: number], [], PixelUnshuffleOptions>) {
    super();
    this.downscaleFactor = bind<PixelUnshuffleOptions>(
      "PixelUnshuffle",
      given,
      ["downscaleFactor"],
      {},
    ).downscaleFactor;
  }

  override forward(input: Tensor): Tensor {
    return F.pixelUnshuffle(input, this.downscaleFactor);
  }

  override extraRepr(): string {
    return fields({ downscale_factor: this.downscaleFactor });
  }
}

/** Between how many groups a {@link ChannelShuffle} shuffles. */
export interface ChannelShuffleOptions {
  /** The number of groups. */
  readonly groups?: number;
}

/** Deals the channels of each group of `(N, C, *)` out over all groups. */
export class ChannelShuffle extends Module {
  readonly groups: number;

  constructor(...given: Arguments<[groups: number], [], ChannelShuffleOptions>) {
    super();
    this.groups = bind<ChannelShuffleOptions>("ChannelShuffle", given, ["groups"], {}).groups;
  }

  override forward(input: Tensor): Tensor {
    return F.channelShuffle(input, this.groups);
  }

  override extraRepr(): string {
    return fields({ groups: this.groups });
  }
}

/** Which blocks an {@link Unfold} takes out. */
export interface UnfoldOptions {
  /** The size of the blocks. */
  readonly kernelSize?: Size;
  /** The distance between elements of a block; 1 by default. */
  readonly dilation?: Size;
  /** What is added to each side; 0 by default. */
  readonly padding?: Size;
  /** The step between blocks; 1 by default. */
  readonly stride?: Size;
}

/** Which blocks a {@link Fold} puts together. */
export interface FoldOptions extends UnfoldOptions {
  /** The size of the output. */
  readonly outputSize?: Size;
}

const BLOCKS = { dilation: 1, padding: 0, stride: 1 };

/** The blocks of an image, as columns: `(N, C, H, W)` to `(N, C * kernelHeight * kernelWidth, L)`. */
export class Unfold extends Module {
  readonly kernelSize: Size;
  readonly dilation: Size;
  readonly padding: Size;
  readonly stride: Size;

  constructor(...given: Arguments<[kernelSize: Size], [dilation: Size, padding: Size, stride: Size], UnfoldOptions>) {
    super();
    const it = bind<UnfoldOptions>("Unfold", given, ["kernelSize"], BLOCKS);
    this.kernelSize = it.kernelSize;
    this.dilation = it.dilation;
    this.padding = it.padding;
    this.stride = it.stride;
  }

  override forward(input: Tensor): Tensor {
    return F.unfold(input, this.kernelSize, this.dilation, this.padding, this.stride);
  }

  override extraRepr(): string {
    const { kernelSize, dilation, padding, stride } = this;
    return fields({ kernel_size: kernelSize, dilation, padding, stride });
  }
}

/** An image that is the sum of blocks, given as columns: the reverse of {@link Unfold}. */
export class Fold extends Module {
  readonly outputSize: Size;
  readonly kernelSize: Size;
  readonly dilation: Size;
  readonly padding: Size;
  readonly stride: Size;

  constructor(
    ...given: Arguments<
      [outputSize: Size, kernelSize: Size],
      [dilation: Size, padding: Size, stride: Size],
      FoldOptions
    >
  ) {
    super();
    const it = bind<FoldOptions>("Fold", given, ["outputSize", "kernelSize"], BLOCKS);
    this.outputSize = it.outputSize;
    this.kernelSize = it.kernelSize;
    this.dilation = it.dilation;
    this.padding = it.padding;
    this.stride = it.stride;
  }

  override forward(input: Tensor): Tensor {
    return F.fold(input, this.outputSize, this.kernelSize, this.dilation, this.padding, this.stride);
  }

  override extraRepr(): string {
    const { outputSize, kernelSize, dilation, padding, stride } = this;
    return fields({ output_size: outputSize, kernel_size: kernelSize, dilation, padding, stride });
  }
}

markBuiltin({ Flatten, Unflatten, PixelShuffle, PixelUnshuffle, ChannelShuffle, Unfold, Fold });
