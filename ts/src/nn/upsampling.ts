/**
 * Resizing.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { tuple } from "../graph/args.ts";
import { repr } from "../graph/print.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { Module } from "./module.ts";
import { fields, floatOf, numberOf, type Scalar, type Size } from "./sizes.ts";

/** How values between elements are found. */
export type InterpolationMode = "nearest" | "nearest-exact" | "linear" | "bilinear" | "bicubic" | "trilinear" | "area";

/** By how much; of `size` and `scaleFactor` one is given. */
export interface UpsamplingOptions {
  /** The size of the output. */
  readonly size?: Size | null;
  /** The size of the output as a multiple of the input's. */
  readonly scaleFactor?: Scalar | readonly Scalar[] | null;
}

/** How an {@link Upsample} is made. */
export interface UpsampleOptions extends UpsamplingOptions {
  /** How values between elements are found; `nearest` by default. */
  readonly mode?: InterpolationMode;
  /** Whether the corners of input and output are the same points. */
  readonly alignCorners?: boolean | null;
  /** Whether the scale factor is computed anew from the sizes. */
  readonly recomputeScaleFactor?: boolean | null;
}

type UpsamplingArguments = Arguments<
  [],
  [size: Size | null, scaleFactor: Scalar | readonly Scalar[] | null],
  UpsamplingOptions
>;

/**
 * Resizes sequences, images or volumes, `(N, C, *)`.
 *
 * @example
 * ```ts
 * new Upsample({ scaleFactor: 2, mode: "bilinear" });
 * ```
 */
export class Upsample extends Module {
  override readonly name: string;
  readonly size: Size | null;
  readonly scaleFactor: Scalar | readonly Scalar[] | null;
  readonly mode: InterpolationMode;
  readonly alignCorners: boolean | null;
  readonly recomputeScaleFactor: boolean | null;

  constructor(
    ...given: Arguments<
      [],
      [
        size: Size | null,
        scaleFactor: Scalar | readonly Scalar[] | null,
        mode: InterpolationMode,
        alignCorners: boolean | null,
        recomputeScaleFactor: boolean | null,
      ],
      UpsampleOptions
    >
  ) {
    super();
    const it = bind<UpsampleOptions>("Upsample", given, [], {
      size: null,
      scaleFactor: null,
      mode: "nearest",
      alignCorners: null,
      recomputeScaleFactor: null,
    });
    this.name = this.className;
    this.size = it.size;
    this.scaleFactor = floatFactors(it.scaleFactor);
    this.mode = it.mode;
    this.alignCorners = it.alignCorners;
    this.recomputeScaleFactor = it.recomputeScaleFactor;
  }

  override forward(input: Tensor): Tensor {
    const { size, scaleFactor, mode, alignCorners, recomputeScaleFactor } = this;
    return F.interpolate(input, size, scaleFactor, mode, alignCorners, { recomputeScaleFactor });
  }

  override extraRepr(): string {
    const { scaleFactor, size } = this;
    const extent = scaleFactor === null ? { size } : { scale_factor: scaleFactor };
    return `${fields(extent)}, mode=${repr(this.mode)}`;
  }
}

/** Resizes images to the nearest pixels, `(N, C, H, W)`. */
export class UpsamplingNearest2d extends Upsample {
  constructor(...given: UpsamplingArguments) {
    super({ ...bindUpsampling("UpsamplingNearest2d", given), mode: "nearest" });
  }
}

/** Resizes images by mixing the pixels around, `(N, C, H, W)`. */
export class UpsamplingBilinear2d extends Upsample {
  constructor(...given: UpsamplingArguments) {
    super({ ...bindUpsampling("UpsamplingBilinear2d", given), mode: "bilinear", alignCorners: true });
  }
}

function bindUpsampling(name: string, given: UpsamplingArguments) {
  return bind<UpsamplingOptions>(name, given, [], { size: null, scaleFactor: null });
}

function floatFactors(factor: Scalar | readonly Scalar[] | null): Scalar | readonly Scalar[] | null {
  if (Array.isArray(factor))
    return tuple(...(factor as readonly Scalar[]).map(floatOf)) as readonly unknown[] as Scalar[];
  // PyTorch takes a factor of zero for none.
  return factor === null || numberOf(factor as Scalar) === 0 ? null : floatOf(factor as Scalar);
}

markBuiltin({ Upsample, UpsamplingNearest2d, UpsamplingBilinear2d });
