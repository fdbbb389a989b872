/**
 * Resampling to another size.
 *
 * @module
 */
import { isSize, listText, scaled } from "../../base/sizes.ts";
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, each, refuse, type Sizes, valueOf } from "./aten.ts";
import { define } from "./define.ts";
import { lanczos } from "./lanczos.ts";

/** How values between the elements are found. */
export type InterpolateMode =
  | "nearest"
  | "nearest-exact"
  | "linear"
  | "bilinear"
  | "bicubic"
  | "trilinear"
  | "lanczos"
  | "area";

/** Options of {@link upsample}. */
export interface UpsampleOptions {
  /** The size of the result; `scaleFactor` must not be given then. */
  readonly size?: Sizes | null;
  /** How many times larger the result is; `size` must not be given then. */
  readonly scaleFactor?: Real | readonly Real[] | null;
  /** How values between the elements are found; default `"nearest"`. */
  readonly mode?: InterpolateMode;
  /** Whether the corner elements stay where they are; default `false`, and none of the nearest and area modes' business. */
  readonly alignCorners?: boolean | null;
}

/** Options of {@link interpolate}. */
export interface InterpolateOptions extends UpsampleOptions {
  /** Whether the scale is computed again from the whole sizes; default `false`. */
  readonly recomputeScaleFactor?: boolean | null;
  /** Whether smaller images are made of averages; default `false`. */
  readonly antialias?: boolean;
}

/** The operators of each mode, by the number of dimensions that are resampled. */
const OPERATORS: Readonly<Record<InterpolateMode, Readonly<Record<number, string>>>> = {
  nearest: { 1: "upsample_nearest1d.vec", 2: "upsample_nearest2d.vec", 3: "upsample_nearest3d.vec" },
  "nearest-exact": {
    1: "_upsample_nearest_exact1d.vec",
    2: "_upsample_nearest_exact2d.vec",
    3: "_upsample_nearest_exact3d.vec",
  },
  linear: { 1: "upsample_linear1d.vec" },
  bilinear: { 2: "upsample_bilinear2d.vec" },
  bicubic: { 2: "upsample_bicubic2d.vec" },
  trilinear: { 3: "upsample_trilinear3d.vec" },
  lanczos: { 2: "_upsample_lanczos2d_aa.vec" },
  area: { 1: "adaptive_avg_pool1d", 2: "adaptive_avg_pool2d", 3: "adaptive_avg_pool3d" },
};

/** The operators that make smaller images of averages. */
const ANTIALIASED: Readonly<Partial<Record<InterpolateMode, string>>> = {
  bilinear: "_upsample_bilinear2d_aa.vec",
  bicubic: "_upsample_bicubic2d_aa.vec",
  lanczos: "_upsample_lanczos2d_aa.vec",
};

type Upsample = [
  input: Tensor,
  size?: Sizes | null,
  scaleFactor?: Real | readonly Real[] | null,
  mode?: InterpolateMode,
  alignCorners?: boolean | null,
];

/**
 * The input at another size: `(N, C, …)` gives `(N, C, ...size)`.
 *
 * @example
 * ```ts
 * F.interpolate(image, { size: [224, 224], mode: "bilinear" });
 * F.interpolate(image, { scaleFactor: 2 });
 * ```
 */
export const interpolate = define<
  [...Upsample, recomputeScaleFactor?: boolean | null, antialias?: boolean],
  InterpolateOptions
>(
  "interpolate",
  "(input, size=None, scale_factor=None, mode='nearest', align_corners=None, recompute_scale_factor=None, antialias=False)",
  (input, size, scaleFactor, mode, alignCorners, recompute, antialias) => {
    const hasCorners = mode !== "nearest" && mode !== "nearest-exact" && mode !== "area";
    if (!hasCorners && alignCorners !== null) {
      throw refuse(
        "InvalidArgument",
        "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear",
      );
    }
    const spatial = input.shape.slice(2);
    const scales = scaleFactor === null ? null : scalesOf(spatial, scaleFactor);
    if (size !== null && scales !== null) {
      throw refuse("InvalidArgument", "only one of size or scale_factor should be defined");
    }
    const given = size === null ? null : sizesOf(spatial, size);
    if (given === null && scales === null) {
      throw refuse("InvalidArgument", "either size or scale_factor should be defined");
    }
    if (recompute === true && given !== null) {
      throw refuse("InvalidArgument", "recompute_scale_factor is not meaningful with an explicit size.");
    }
    const isRecomputed = scales !== null && (recompute === true || mode === "area");
    const output = isRecomputed ? spatial.map((it, dim) => scaled(it, scales[dim] as number)) : given;
    if (antialias && (ANTIALIASED[mode] === undefined || input.shape.length !== 4)) {
      throw refuse(
        "InvalidArgument",
        "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input",
      );
    }
    const operator = operatorOf(input, mode);
    if (mode === "area") return aten(operator, input, output);
    const factors = isRecomputed ? null : scales;
    if (mode === "lanczos") {
      if (alignCorners === true) throw refuse("InvalidArgument", "Lanczos mode does not support align_corners=True");
      if (!antialias) throw refuse("InvalidArgument", "Lanczos mode requires antialias=True");
      // The engine has no operator for it.
      return lanczos(input, output ?? spatial.map((it, dim) => Math.trunc(it * (scales?.[dim] as number))), factors);
    }
    const corners = hasCorners ? [alignCorners ?? false] : [];
    return aten((antialias ? ANTIALIASED[mode] : undefined) ?? operator, input, output, ...corners, factors);
  },
);

/**
 * {@link interpolate} by its older name, under whose newer one it is recorded.
 *
 * @example
 * ```ts
 * F.upsample(image, { scaleFactor: 2 });
 * ```
 */
export const upsample = define<Upsample, UpsampleOptions>(
  "upsample",
  "(input, size=None, scale_factor=None, mode='nearest', align_corners=None)",
  (...args) => interpolate(...args),
  (_, bound) => interpolate(...(bound as Required<Upsample>)),
);

/** Options of {@link upsampleNearest} and {@link upsampleBilinear}. */
export type UpsampleSizeOptions = Pick<UpsampleOptions, "size" | "scaleFactor">;

type UpsampleSize = [input: Tensor, size?: Sizes | null, scaleFactor?: Real | readonly Real[] | null];

/**
 * {@link interpolate} with the mode `"nearest"`.
 *
 * @example
 * ```ts
 * F.upsampleNearest(image, { scaleFactor: 2 });
 * ```
 */
export const upsampleNearest = define<UpsampleSize, UpsampleSizeOptions>(
  "upsample_nearest",
  "(input, size=None, scale_factor=None)",
  (...args) => interpolate(...args, "nearest"),
  (_, bound) => interpolate(...(bound as Required<UpsampleSize>), "nearest"),
);

/**
 * {@link interpolate} with the mode `"bilinear"` and aligned corners.
 *
 * @example
 * ```ts
 * F.upsampleBilinear(image, { size: [8, 8] });
 * ```
 */
export const upsampleBilinear = define<UpsampleSize, UpsampleSizeOptions>(
  "upsample_bilinear",
  "(input, size=None, scale_factor=None)",
  (...args) => interpolate(...args, "bilinear", true),
  (_, bound) => interpolate(...(bound as Required<UpsampleSize>), "bilinear", true),
);

function sizesOf(spatial: readonly number[], size: Sizes): readonly number[] {
  const res = each(size, spatial.length);
  if (res.length !== spatial.length) {
    throw refuse(
      "ShapeMismatch",
      `Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of [${listText(spatial)}] and output size of [${listText(res)}]. Please provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, ...,oK) format.`,
    );
  }
  if (!res.every(isSize)) {
    throw refuse("InvalidArgument", `expected size to be whole numbers, but got [${listText(res)}]`);
  }
  return res;
}

function scalesOf(spatial: readonly number[], factor: Real | readonly Real[]): readonly number[] {
  if (!Array.isArray(factor)) return spatial.map(() => valueOf(factor as Real));
  const res = (factor as readonly Real[]).map(valueOf);
  if (res.length === spatial.length) return res;
  throw refuse(
    "ShapeMismatch",
    `Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of [${listText(spatial)}] and scale_factor of shape [${res.join(", ")}]. Please provide input tensor in (N, C, d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format.`,
  );
}

function operatorOf({ shape }: Tensor, mode: InterpolateMode): string {
  const operators = Object.hasOwn(OPERATORS, mode) ? OPERATORS[mode] : undefined;
  const operator = operators?.[shape.length - 2];
  if (operator !== undefined) return operator;
  const [dims] = Object.keys(operators ?? {});
  const isOneDim = operators !== undefined && Object.keys(operators).length === 1;
  if (isOneDim && mode !== "bicubic" && mode !== "lanczos" && shape.length >= 3 && shape.length <= 5) {
    throw refuse("ShapeMismatch", `Got ${shape.length}D input, but ${mode} mode needs ${Number(dims) + 2}D input`);
  }
  throw refuse(
    "InvalidArgument",
    `Input Error: Only 3D, 4D and 5D input Tensors supported (got ${shape.length}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got ${mode})`,
  );
}
