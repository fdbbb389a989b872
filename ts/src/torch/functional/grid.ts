/**
 * Sampling of images at places of a grid.
 *
 * @module
 */
import { isLess, isSame, listText } from "../../base/sizes.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, isFloat, refuse, sizeText } from "./aten.ts";
import { define } from "./define.ts";

/** Options of {@link gridSample}. */
export interface GridSampleOptions {
  /** How values between pixels are found; default `"bilinear"`. */
  readonly mode?: "bilinear" | "nearest" | "bicubic";
  /** What is beside the image; default `"zeros"`. */
  readonly paddingMode?: "zeros" | "border" | "reflection";
  /** Whether -1 and 1 are the centres of the corner pixels and not their outer edges; default `false`. */
  readonly alignCorners?: boolean | null;
}

const MODES = ["bilinear", "nearest", "bicubic"] as const;
const PADDING_MODES = ["zeros", "border", "reflection"] as const;

/**
 * The image at the places of the grid, whose last dimension has the coordinates x, y (and z) from -1 to 1: `(N, C, H, W)` and
 * `(N, H', W', 2)` give `(N, C, H', W')`, or one dimension more.
 *
 * @example
 * ```ts
 * F.gridSample(image, F.affineGrid(theta, [1, 3, 32, 32]), { alignCorners: false });
 * ```
 */
export const gridSample = define<
  [
    input: Tensor,
    grid: Tensor,
    mode?: "bilinear" | "nearest" | "bicubic",
    paddingMode?: "zeros" | "border" | "reflection",
    alignCorners?: boolean | null,
  ],
  GridSampleOptions
>(
  "grid_sample",
  "(input, grid, mode='bilinear', padding_mode='zeros', align_corners=None)",
  (input, grid, mode, paddingMode, alignCorners) => {
    if (!MODES.includes(mode)) {
      throw refuse(
        "InvalidArgument",
        `nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '${mode}'`,
      );
    }
    if (!PADDING_MODES.includes(paddingMode)) {
      throw refuse(
        "InvalidArgument",
        `nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: '${paddingMode}'`,
      );
    }
    const codes = [MODES.indexOf(mode), PADDING_MODES.indexOf(paddingMode)];
    return aten("grid_sampler", input, grid, ...codes, alignCorners ?? false);
  },
);

/** Options of {@link affineGrid}. */
export interface AffineGridOptions {
  /** Whether -1 and 1 are the centres of the corner pixels and not their outer edges; default `false`. */
  readonly alignCorners?: boolean | null;
}

/**
 * The grid of an affine map: matrices `(N, 2, 3)` and the size `[N, C, H, W]` of the result of {@link gridSample} give
 * `(N, H, W, 2)`; `(N, 3, 4)` and `[N, C, D, H, W]` give `(N, D, H, W, 3)`.
 *
 * @example
 * ```ts
 * F.affineGrid(tensor([[[1, 0, 0.5], [0, 1, 0]]]), [1, 3, 32, 32]);
 * ```
 */
export const affineGrid = define<
  [theta: Tensor, size: readonly number[], alignCorners?: boolean | null],
  AffineGridOptions
>("affine_grid", "(theta, size, align_corners=None)", (theta, size, alignCorners) => {
  if (!isFloat(theta)) {
    const reason = `Expected theta to have floating point type, but got torch.${theta.dtype}`;
    throw refuse("DTypeMismatch", reason);
  }
  const dims = size.length - 2;
  if (dims !== 2 && dims !== 3) {
    throw refuse(
      "InvalidArgument",
      `affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size [${listText(size)}].`,
    );
  }
  const [, rows, columns] = theta.shape;
  if (theta.shape.length !== 3 || !isSame(rows, dims) || !isSame(columns, dims + 1)) {
    const wanted = `Nx${dims}x${dims + 1}`;
    throw refuse(
      "ShapeMismatch",
      `Expected a batch of ${dims}D affine matrices of shape ${wanted} for size [${listText(size)}]. Got ${sizeText(theta.shape)}.`,
    );
  }
  if (size.some((it) => !isLess(0, it))) {
    throw refuse("InvalidArgument", `Expected non-zero, positive output size. Got [${listText(size)}]`);
  }
  return aten("affine_grid_generator", theta, size, alignCorners ?? false);
});
