/**
 * Linear and bilinear maps.
 *
 * @module
 */
import type { Tensor } from "../../tensor/tensor.ts";
import { aten } from "./aten.ts";
import { defineBuiltin } from "./define.ts";

/** Options of functions with a bias. */
export interface BiasOptions {
  /** What is added to the result; by default nothing. */
  readonly bias?: Tensor | null;
}

/**
 * `input @ weight.T + bias`: `(*, in)` and a weight of `(out, in)` give `(*, out)`.
 *
 * @example
 * ```ts
 * F.linear(x, weight, bias);
 * ```
 */
export const linear = defineBuiltin<[input: Tensor, weight: Tensor, bias?: Tensor | null], BiasOptions>(
  "linear",
  "torch._C._nn.linear",
  "(input, weight, bias=None)",
  (input, weight, bias) => aten("linear", input, weight, bias),
);

/**
 * `input1.T @ weight[k] @ input2 + bias[k]` for every `k`: `(*, in1)`, `(*, in2)` and a weight of `(out, in1, in2)` give
 * `(*, out)`.
 *
 * @example
 * ```ts
 * F.bilinear(a, b, weight);
 * ```
 */
export const bilinear = defineBuiltin<
  [input1: Tensor, input2: Tensor, weight: Tensor, bias?: Tensor | null],
  BiasOptions
>("bilinear", "torch.bilinear", "(input1, input2, weight, bias=None)", (input1, input2, weight, bias) =>
  aten("bilinear", input1, input2, weight, bias),
);
