/**
 * Activations that are smooth, or made of other functions.
 *
 * All but {@link glu} work element by element: the result has the shape of `input`.
 *
 * @module
 */
import type { Real } from "../../base/types.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenWith, refuse, variant } from "./aten.ts";
import { define, defineBuiltin, type InplaceOptions, recordMethod } from "./define.ts";

/** Options of {@link gelu}. */
export interface GeluOptions {
  /** `"none"` for the exact function, `"tanh"` for its approximation by tanh. */
  readonly approximate?: "none" | "tanh";
}

/**
 * `x * Phi(x)`, where `Phi` is the cumulative distribution function of the normal distribution.
 *
 * @example
 * ```ts
 * F.gelu(x, { approximate: "tanh" });
 * ```
 */
export const gelu = defineBuiltin<[input: Tensor], GeluOptions, Tensor, [approximate: string]>(
  "gelu",
  "torch._C._nn.gelu",
  "(input, *, approximate='none')",
  (input, approximate) => atenWith({ approximate }, "gelu", input),
);

/**
 * `log(1 / (1 + exp(-x)))`.
 *
 * @example
 * ```ts
 * F.logsigmoid(x);
 * ```
 */
export const logsigmoid = defineBuiltin<[input: Tensor]>("logsigmoid", "torch._C._nn.log_sigmoid", "(input)", (input) =>
  aten("log_sigmoid", input),
);

/** Options of {@link hardshrink} and {@link softshrink}. */
export interface ShrinkOptions {
  /** How far from zero; default 0.5. */
  readonly lambd?: Real;
}

/**
 * `x`, but 0 within `lambd` of zero.
 *
 * @example
 * ```ts
 * F.hardshrink(tensor([-1, 0.3])); // [-1, 0]
 * ```
 */
export const hardshrink = defineBuiltin<[input: Tensor, lambd?: Real], ShrinkOptions>(
  "hardshrink",
  "torch.hardshrink",
  "(input, lambd=0.5)",
  (input, lambd) => aten("hardshrink", input, lambd),
);

/**
 * `x`, moved `lambd` towards zero, and 0 within `lambd` of it.
 *
 * @example
 * ```ts
 * F.softshrink(tensor([-1, 0.3])); // [-0.5, 0]
 * ```
 */
export const softshrink = defineBuiltin<[input: Tensor, lambd?: Real], ShrinkOptions>(
  "softshrink",
  "torch._C._nn.softshrink",
  "(input, lambd=0.5)",
  (input, lambd) => aten("softshrink", input, lambd),
);

/**
 * `x - tanh(x)`.
 *
 * @example
 * ```ts
 * F.tanhshrink(x);
 * ```
 */
export const tanhshrink = define<[input: Tensor]>("tanhshrink", "(input)", (input) =>
  aten("sub", input, aten("tanh", input)),
);

/**
 * `x / (1 + |x|)`.
 *
 * @example
 * ```ts
 * F.softsign(x);
 * ```
 */
export const softsign = define<[input: Tensor]>("softsign", "(input)", (input) =>
  aten("div", input, aten("add", aten("abs", input), 1)),
);

/** Options of {@link softplus}. */
export interface SoftplusOptions {
  /** How sharp the bend is; default 1. */
  readonly beta?: Real;
  /** Where `beta * x` is above this, the result is `x` itself; default 20. */
  readonly threshold?: Real;
}

/**
 * `log(1 + exp(beta * x)) / beta`.
 *
 * @example
 * ```ts
 * F.softplus(x, 2);
 * ```
 */
export const softplus = defineBuiltin<[input: Tensor, beta?: Real, threshold?: Real], SoftplusOptions>(
  "softplus",
  "torch._C._nn.softplus",
  "(input, beta=1, threshold=20)",
  (input, beta, limit) => aten("softplus", input, beta, limit),
);

/**
 * The hyperbolic tangent; traced, it is recorded as the method `tanh`.
 *
 * @example
 * ```ts
 * F.tanh(x);
 * ```
 */
export const tanh = define<[input: Tensor]>("tanh", "(input)", (input) => aten("tanh", input), recordMethod("tanh"));

/**
 * `1 / (1 + exp(-x))`; traced, it is recorded as the method `sigmoid`.
 *
 * @example
 * ```ts
 * F.sigmoid(x);
 * ```
 */
export const sigmoid = define<[input: Tensor]>(
  "sigmoid",
  "(input)",
  (input) => aten("sigmoid", input),
  recordMethod("sigmoid"),
);

/**
 * `min(max(x + 3, 0), 6) / 6`.
 *
 * @example
 * ```ts
 * F.hardsigmoid(x);
 * ```
 */
export const hardsigmoid = define<[input: Tensor, inplace?: boolean], InplaceOptions>(
  "hardsigmoid",
  "(input, inplace=False)",
  (input, inplace) => aten(variant("hardsigmoid", inplace), input),
);

/**
 * `x * sigmoid(x)`.
 *
 * @example
 * ```ts
 * F.silu(x);
 * ```
 */
export const silu = define<[input: Tensor, inplace?: boolean], InplaceOptions>(
  "silu",
  "(input, inplace=False)",
  (input, inplace) => aten(variant("silu", inplace), input),
);

/**
 * `x * tanh(softplus(x))`.
 *
 * @example
 * ```ts
 * F.mish(x);
 * ```
 */
export const mish = define<[input: Tensor, inplace?: boolean], InplaceOptions>(
  "mish",
  "(input, inplace=False)",
  (input, inplace) => aten(variant("mish", inplace), input),
);

/**
 * `x * min(max(x + 3, 0), 6) / 6`.
 *
 * @example
 * ```ts
 * F.hardswish(x);
 * ```
 */
export const hardswish = define<[input: Tensor, inplace?: boolean], InplaceOptions>(
  "hardswish",
  "(input, inplace=False)",
  (input, inplace) => aten(variant("hardswish", inplace), input),
);

/** Options of {@link glu}. */
export interface GluOptions {
  /** The dimension that is halved; default the last one. */
  readonly dim?: number;
}

/**
 * The first half of a dimension times the sigmoid of the second: `(N, 2M)` gives `(N, M)`.
 *
 * @example
 * ```ts
 * F.glu(x, 1);
 * ```
 */
export const glu = define<[input: Tensor, dim?: number], GluOptions>("glu", "(input, dim=-1)", (input, dim) => {
  if (input.shape.length === 0) {
    throw refuse("ShapeMismatch", "glu does not support scalars because halving size must be even");
  }
  return aten("glu", input, dim);
});
