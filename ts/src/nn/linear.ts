/**
 * Layers that multiply by a matrix: `Linear`, `Bilinear`, and `Identity`, which does nothing.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { initialise } from "./deferred.ts";
import { calculateFanInAndFanOut, kaimingUniform_, uniform_ } from "./init.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";
import { fields } from "./sizes.ts";
import { badInput, newParameter } from "./state.ts";

/** Gives its input back, whatever it is constructed with. */
export class Identity extends Module {
  constructor(..._ignored: readonly unknown[]) {
    super();
  }

  override forward(input: Tensor): Tensor {
    return input;
  }
}

/** How a {@link Linear} is made. */
export interface LinearOptions extends FactoryOptions {
  /** The size of each input sample. */
  readonly inFeatures?: number;
  /** The size of each output sample. */
  readonly outFeatures?: number;
  /** Whether a bias is added; `true` by default. */
  readonly bias?: boolean;
}

type LinearArguments = Arguments<[inFeatures: number, outFeatures: number], [bias: boolean], LinearOptions>;

/**
 * `x @ weight.T + bias`: `(*, inFeatures)` to `(*, outFeatures)`.
 *
 * @example
 * ```ts
 * const layer = new Linear(4, 3, { bias: false });
 * layer.forward(torch.ones([2, 4])).shape; // [2, 3]
 * ```
 */
export class Linear extends Module {
  readonly inFeatures: number;
  readonly outFeatures: number;
  declare weight: Parameter;
  declare bias: Parameter | null;

  constructor(...given: LinearArguments) {
    super();
    const it = bind<LinearOptions>("Linear", given, ["inFeatures", "outFeatures"], { bias: true, ...FACTORY });
    this.inFeatures = it.inFeatures;
    this.outFeatures = it.outFeatures;
    this.weight = newParameter([it.outFeatures, it.inFeatures], it);
    this.bias = it.bias ? newParameter([it.outFeatures], it) : null;
    initialise(this);
  }

  /** Draws the parameters anew. */
  resetParameters(): void {
    resetWeightAndBias(this.weight, this.bias);
  }

  override forward(input: Tensor): Tensor {
    return F.linear(input, this.weight, this.bias);
  }

  override extraRepr(): string {
    return fields({ in_features: this.inFeatures, out_features: this.outFeatures, bias: this.bias !== null });
  }
}

/** The {@link Linear} inside an attention, which PyTorch tells from others by its class. */
export class NonDynamicallyQuantizableLinear extends Linear {}

/** How a {@link Bilinear} is made. */
export interface BilinearOptions extends FactoryOptions {
  /** The size of each first input sample. */
  readonly in1Features?: number;
  /** The size of each second input sample. */
  readonly in2Features?: number;
  /** The size of each output sample. */
  readonly outFeatures?: number;
  /** Whether a bias is added; `true` by default. */
  readonly bias?: boolean;
}

type BilinearArguments = Arguments<
  [in1Features: number, in2Features: number, outFeatures: number],
  [bias: boolean],
  BilinearOptions
>;

/** `x1 @ weight @ x2 + bias` for each output feature: `(*, in1Features)` and `(*, in2Features)` to `(*, outFeatures)`. */
export class Bilinear extends Module {
  static override readonly forwardSignature: string = "(input1, input2)";
  readonly in1Features: number;
  readonly in2Features: number;
  readonly outFeatures: number;
  declare weight: Parameter;
  declare bias: Parameter | null;

  constructor(...given: BilinearArguments) {
    super();
    const it = bind<BilinearOptions>("Bilinear", given, ["in1Features", "in2Features", "outFeatures"], {
      bias: true,
      ...FACTORY,
    });
    if (it.in1Features <= 0) {
      throw badInput(`in1_features must be > 0, but got (in1_features=${it.in1Features})`);
    }
    this.in1Features = it.in1Features;
    this.in2Features = it.in2Features;
    this.outFeatures = it.outFeatures;
    this.weight = newParameter([it.outFeatures, it.in1Features, it.in2Features], it);
    this.bias = it.bias ? newParameter([it.outFeatures], it) : null;
    initialise(this);
  }

  /** Draws the parameters anew. */
  resetParameters(): void {
    const bound = 1 / Math.sqrt(this.in1Features);
    uniform_(this.weight, -bound, bound);
    if (this.bias !== null) uniform_(this.bias, -bound, bound);
  }

  override forward(input1: Tensor, input2: Tensor): Tensor {
    return F.bilinear(input1, input2, this.weight, this.bias);
  }

  override extraRepr(): string {
    return fields({
      in1_features: this.in1Features,
      in2_features: this.in2Features,
      out_features: this.outFeatures,
      bias: this.bias !== null,
    });
  }
}

/** How linear layers and convolutions draw: both parameters evenly, within what the number of inputs allows. */
export function resetWeightAndBias(weight: Tensor, bias: Tensor | null): void {
  kaimingUniform_(weight, { a: Math.sqrt(5) });
  if (bias === null) return;
  const [fanIn] = calculateFanInAndFanOut(weight);
  const bound = fanIn > 0 ? 1 / Math.sqrt(fanIn) : 0;
  // Without inputs both ends are zero, and neither is -0.
  uniform_(bias, 0 - bound, bound);
}

markBuiltin({ Identity, Linear, NonDynamicallyQuantizableLinear, Bilinear });
