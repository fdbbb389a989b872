/**
 * Activations that bend at zero: the relatives of `relu`.
 *
 * All of them work element by element: the result has the shape of `input`.
 *
 * @module
 */
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, refuse, valueOf, variant } from "./aten.ts";
import { define, defineBuiltin, type InplaceOptions } from "./define.ts";

/**
 * `max(x, 0)`.
 *
 * @example
 * ```ts
 * F.relu(tensor([-1, 2.5])); // [0, 2.5]
 * ```
 */
export const relu = define<[input: Tensor, inplace?: boolean], InplaceOptions>(
  "relu",
  "(input, inplace=False)",
  (input, inplace) => aten(variant("relu", inplace), input),
);

/**
 * {@link relu} in place.
 *
 * @example
 * ```ts
 * F.relu_(x) === x;
 * ```
 */
export const relu_ = defineBuiltin<[input: Tensor]>("relu_", "torch.relu_", "(input)", (input) => aten("relu_", input));

/**
 * `min(max(x, 0), 6)`.
 *
 * @example
 * ```ts
 * F.relu6(tensor([-1, 2.5, 7])); // [0, 2.5, 6]
 * ```
 */
export const relu6 = define<[input: Tensor, inplace?: boolean], InplaceOptions>(
  "relu6",
  "(input, inplace=False)",
  (input, inplace) => aten(variant("relu6", inplace), input),
);

/** Options of {@link threshold}. */
export interface ThresholdOptions extends InplaceOptions {
  /** Above what `x` is kept. */
  readonly threshold?: Real;
  /** What takes the place of the rest. */
  readonly value?: Real;
}

/**
 * `x` where it is above `threshold`, else `value`.
 *
 * @example
 * ```ts
 * F.threshold(tensor([0.05, 2]), 0.1, 20); // [20, 2]
 * ```
 */
export const threshold = define<[input: Tensor, threshold: Real, value: Real, inplace?: boolean], ThresholdOptions>(
  "_threshold",
  "(input, threshold, value, inplace=False)",
  (input, limit, value, inplace) => aten(variant("threshold", inplace), input, limit, value),
);

/**
 * {@link threshold} in place.
 *
 * @example
 * ```ts
 * F.threshold_(x, 0.1, 20) === x;
 * ```
 */
export const threshold_ = defineBuiltin<[input: Tensor, threshold: Real, value: Real]>(
  "threshold_",
  "torch.threshold_",
  "(input, threshold, value)",
  (input, limit, value) => aten("threshold_", input, limit, value),
);

/** Options of {@link hardtanh}. */
export interface HardtanhOptions extends InplaceOptions {
  /** The least value; default -1. */
  readonly minVal?: Real;
  /** The greatest value; default 1. */
  readonly maxVal?: Real;
}

/**
 * `x`, kept between `minVal` and `maxVal`.
 *
 * @example
 * ```ts
 * F.hardtanh(tensor([-3, 0.5, 3]), { maxVal: 2 }); // [-1, 0.5, 2]
 * ```
 */
export const hardtanh = define<[input: Tensor, minVal?: Real, maxVal?: Real, inplace?: boolean], HardtanhOptions>(
  "hardtanh",
  "(input, min_val=-1.0, max_val=1.0, inplace=False)",
  (input, minVal, maxVal, inplace) => {
    if (valueOf(minVal) > valueOf(maxVal)) throw refuse("InvalidArgument", "min_val cannot be greater than max_val");
    return aten(variant("hardtanh", inplace), input, minVal, maxVal);
  },
);

/**
 * {@link hardtanh} in place.
 *
 * @example
 * ```ts
 * F.hardtanh_(x) === x;
 * ```
 */
export const hardtanh_ = defineBuiltin<[input: Tensor, minVal?: Real, maxVal?: Real], HardtanhOptions>(
  "hardtanh_",
  "torch._C._nn.hardtanh_",
  "(input, min_val=-1.0, max_val=1.0)",
  (input, minVal, maxVal) => aten("hardtanh_", input, minVal, maxVal),
);

/** Options of {@link elu} and {@link celu}. */
export interface EluOptions extends InplaceOptions {
  /** The value that is approached far below zero, negated; default 1. */
  readonly alpha?: Real;
}

/**
 * `x` above zero, else `alpha * (exp(x) - 1)`.
 *
 * @example
 * ```ts
 * F.elu(x, { alpha: 0.5 });
 * ```
 */
export const elu = define<[input: Tensor, alpha?: Real, inplace?: boolean], EluOptions>(
  "elu",
  "(input, alpha=1.0, inplace=False)",
  (input, alpha, inplace) => aten(variant("elu", inplace), input, alpha),
);

/**
 * {@link elu} in place.
 *
 * @example
 * ```ts
 * F.elu_(x) === x;
 * ```
 */
export const elu_ = defineBuiltin<[input: Tensor, alpha?: Real], EluOptions>(
  "elu_",
  "torch._C._nn.elu_",
  "(input, alpha=1.0)",
  (input, alpha) => aten("elu_", input, alpha),
);

/**
 * `scale * (x above zero, else alpha * (exp(x) - 1))`, with the constants at which activations normalise themselves.
 *
 * @example
 * ```ts
 * F.selu(x);
 * ```
 */
export const selu = define<[input: Tensor, inplace?: boolean], InplaceOptions>(
  "selu",
  "(input, inplace=False)",
  (input, inplace) => aten(variant("selu", inplace), input),
);

/**
 * {@link selu} in place.
 *
 * @example
 * ```ts
 * F.selu_(x) === x;
 * ```
 */
export const selu_ = defineBuiltin<[input: Tensor]>("selu_", "torch.selu_", "(input)", (input) => aten("selu_", input));

/**
 * `max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))`.
 *
 * @example
 * ```ts
 * F.celu(x, 2);
 * ```
 */
export const celu = define<[input: Tensor, alpha?: Real, inplace?: boolean], EluOptions>(
  "celu",
  "(input, alpha=1.0, inplace=False)",
  (input, alpha, inplace) => aten(variant("celu", inplace), input, alpha),
);

/**
 * {@link celu} in place.
 *
 * @example
 * ```ts
 * F.celu_(x) === x;
 * ```
 */
export const celu_ = defineBuiltin<[input: Tensor, alpha?: Real], EluOptions>(
  "celu_",
  "torch.celu_",
  "(input, alpha=1.0)",
  (input, alpha) => aten("celu_", input, alpha),
);

/** Options of {@link leakyRelu}. */
export interface LeakyReluOptions extends InplaceOptions {
  /** The slope below zero; default 0.01. */
  readonly negativeSlope?: Real;
}

/**
 * `x` above zero, else `negativeSlope * x`.
 *
 * @example
 * ```ts
 * F.leakyRelu(x, 0.2);
 * ```
 */
export const leakyRelu = define<[input: Tensor, negativeSlope?: Real, inplace?: boolean], LeakyReluOptions>(
  "leaky_relu",
  "(input, negative_slope=0.01, inplace=False)",
  (input, slope, inplace) => aten(variant("leaky_relu", inplace), input, slope),
);

/**
 * {@link leakyRelu} in place.
 *
 * @example
 * ```ts
 * F.leakyRelu_(x) === x;
 * ```
 */
export const leakyRelu_ = defineBuiltin<[input: Tensor, negativeSlope?: Real], LeakyReluOptions>(
  "leaky_relu_",
  "torch._C._nn.leaky_relu_",
  "(input, negative_slope=0.01)",
  (input, slope) => aten("leaky_relu_", input, slope),
);

/**
 * `x` above zero, else `x` times the weight of its channel: of one weight for all, or one for each size of dimension 1.
 *
 * @example
 * ```ts
 * F.prelu(x, tensor([0.25]));
 * ```
 */
export const prelu = defineBuiltin<[input: Tensor, weight: Tensor]>(
  "prelu",
  "torch.prelu",
  "(input, weight)",
  (input, weight) => aten("prelu", input, weight),
);

/** Options of {@link rrelu}. */
export interface RreluOptions extends InplaceOptions {
  /** The least slope; default 1/8. */
  readonly lower?: Real;
  /** The greatest slope; default 1/3. */
  readonly upper?: Real;
  /** Whether slopes are drawn at random; otherwise all of them are the mean. Default `false`. */
  readonly training?: boolean;
}

/**
 * `x` above zero, else `x` times a slope: in training a random one for each element, else the mean of `lower` and `upper`.
 *
 * @example
 * ```ts
 * F.rrelu(x, 0.1, 0.3);
 * ```
 */
export const rrelu = define<
  [input: Tensor, lower?: Real, upper?: Real, training?: boolean, inplace?: boolean],
  RreluOptions
>(
  "rrelu",
  "(input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False)",
  (input, lower, upper, training, inplace) => aten(variant("rrelu", inplace), input, lower, upper, training),
);

/**
 * {@link rrelu} in place.
 *
 * @example
 * ```ts
 * F.rrelu_(x) === x;
 * ```
 */
export const rrelu_ = defineBuiltin<
  [input: Tensor, lower?: Real, upper?: Real, training?: boolean],
  Omit<RreluOptions, "inplace">
>(
  "rrelu_",
  "torch.rrelu_",
  "(input, lower=0.125, upper=0.3333333333333333, training=False)",
  (input, lower, upper, training) => aten("rrelu_", input, lower, upper, training),
);
