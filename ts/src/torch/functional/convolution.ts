/**
 * Convolutions.
 *
 * Inputs are `(N, C, …)` or, without the batch, `(C, …)`; the weights of a convolution are `(out, in / groups, …)` and of a
 * transposed one `(in, out / groups, …)`.
 *
 * @module
 */
import type { BoundFunction } from "../../functions/bound.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, refuse, type Sizes } from "./aten.ts";
import { defineBuiltin } from "./define.ts";
import type { BiasOptions } from "./linear.ts";

/** Options of convolutions. */
export interface ConvOptions extends BiasOptions {
  /** How far the window moves; default 1. */
  readonly stride?: Sizes;
  /** How many zeros stand around the input, or `"valid"` for none, or `"same"` for a result of the same size; default 0. */
  readonly padding?: Sizes | "valid" | "same";
  /** How far the elements of the window are apart; default 1. */
  readonly dilation?: Sizes;
  /** Into how many groups the channels are divided; default 1. */
  readonly groups?: number;
}

/** Options of transposed convolutions. */
export interface ConvTransposeOptions extends BiasOptions {
  /** How far the window moves; default 1. */
  readonly stride?: Sizes;
  /** How many elements are cut off around the result; default 0. */
  readonly padding?: Sizes;
  /** How many elements are added at the end of the result; default 0. */
  readonly outputPadding?: Sizes;
  /** Into how many groups the channels are divided; default 1. */
  readonly groups?: number;
  /** How far the elements of the window are apart; default 1. */
  readonly dilation?: Sizes;
}

type Conv = [
  input: Tensor,
  weight: Tensor,
  bias?: Tensor | null,
  stride?: Sizes,
  padding?: Sizes | "valid" | "same",
  dilation?: Sizes,
  groups?: number,
];

type ConvTranspose = [
  input: Tensor,
  weight: Tensor,
  bias?: Tensor | null,
  stride?: Sizes,
  padding?: Sizes,
  outputPadding?: Sizes,
  groups?: number,
  dilation?: Sizes,
];

function conv(name: string): BoundFunction<Conv, ConvOptions, Tensor> {
  const signature = "(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1)";
  return defineBuiltin<Conv, ConvOptions>(name, `torch.${name}`, signature, (...args) => aten(name, ...args));
}

function convTranspose(dims: number): BoundFunction<ConvTranspose, ConvTransposeOptions, Tensor> {
  const name = `conv_transpose${dims}d`;
  const signature = "(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1)";
  const operator = dims === 1 ? name : `${name}.input`;
  return defineBuiltin<ConvTranspose, ConvTransposeOptions>(name, `torch.${name}`, signature, (...args) =>
    aten(operator, ...args),
  );
}

/**
 * A convolution over one dimension: `(N, C, L)` gives `(N, out, L')`.
 *
 * @example
 * ```ts
 * F.conv1d(x, weight, bias, { padding: "same" });
 * ```
 */
export const conv1d = conv("conv1d");

/**
 * A convolution over two dimensions: `(N, C, H, W)` gives `(N, out, H', W')`, where
 * `H' = floor((H + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1)`.
 *
 * @example
 * ```ts
 * F.conv2d(image, weight, bias, { stride: 2, padding: [1, 1] });
 * ```
 */
export const conv2d = conv("conv2d");

/**
 * A convolution over three dimensions: `(N, C, D, H, W)` gives `(N, out, D', H', W')`.
 *
 * @example
 * ```ts
 * F.conv3d(volume, weight);
 * ```
 */
export const conv3d = conv("conv3d");

/**
 * A transposed convolution over one dimension: `(N, C, L)` gives `(N, out, L')`.
 *
 * @example
 * ```ts
 * F.convTranspose1d(x, weight, { stride: 2 });
 * ```
 */
export const convTranspose1d = convTranspose(1);

/**
 * A transposed convolution over two dimensions: `(N, C, H, W)` gives `(N, out, H', W')`, where
 * `H' = (H - 1) * stride - 2 * padding + dilation * (kernel - 1) + outputPadding + 1`.
 *
 * @example
 * ```ts
 * F.convTranspose2d(x, weight, bias, { stride: 2, outputPadding: 1 });
 * ```
 */
export const convTranspose2d = convTranspose(2);

/**
 * A transposed convolution over three dimensions: `(N, C, D, H, W)` gives `(N, out, D', H', W')`.
 *
 * @example
 * ```ts
 * F.convTranspose3d(volume, weight);
 * ```
 */
export const convTranspose3d = convTranspose(3);

/** Options of {@link convTbc}. */
export interface ConvTbcOptions {
  /** How many zeros stand around the sequence; default 0. */
  readonly pad?: number;
}

/**
 * A convolution over a sequence whose dimensions are time, batch, channels: `(T, N, C)`, a weight of `(kernel, C, out)` and
 * a bias of `(out)` give `(T', N, out)`.
 *
 * @example
 * ```ts
 * F.convTbc(sequence, weight, bias, 1);
 * ```
 */
export const convTbc = defineBuiltin<[input: Tensor, weight: Tensor, bias: Tensor, pad?: number], ConvTbcOptions>(
  "conv_tbc",
  "torch.conv_tbc",
  "(input, weight, bias, pad=0)",
  (input, weight, bias, pad) => {
    for (const [name, it, dims] of [
      ["Input", input, 3],
      ["Weight", weight, 3],
      ["Bias", bias, 1],
    ] as const) {
      if (it.shape.length === dims) continue;
      throw refuse("ShapeMismatch", `${name} must have ${dims} dims${dims === 3 ? ": time, batch, in_channel" : ""}`);
    }
    const output = aten("conv1d", aten("permute", input, [1, 2, 0]), aten("permute", weight, [2, 1, 0]), bias, 1, pad);
    return aten("permute", output, [2, 0, 1]);
  },
);
