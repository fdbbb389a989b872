/**
 * Rectifiers: activations that treat what is above a threshold and what is below it differently. What they give has the shape
 * of the input.
 *
 * @module
 */
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { initialise } from "./deferred.ts";
import { constant_ } from "./init.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";
import { fields, numberOf, type Scalar, str } from "./sizes.ts";
import { badInput, newParameter } from "./state.ts";

/** Whether an activation writes its output over its input. */
export interface InplaceOptions {
  /** `false` by default. */
  readonly inplace?: boolean;
}

/** The arguments of activations that have no other options. */
export type InplaceArguments = Arguments<[], [inplace: boolean], InplaceOptions>;

/** What activations are that have no other options. */
export abstract class InplaceActivation extends Module {
  readonly inplace: boolean;

  protected constructor(name: string, given: InplaceArguments) {
    super();
    this.inplace = bind<InplaceOptions>(name, given, [], { inplace: false }).inplace;
  }

  override extraRepr(): string {
    return this.inplace ? "inplace=True" : "";
  }
}

/** `max(x, 0)`. */
export class ReLU extends InplaceActivation {
  constructor(...given: InplaceArguments) {
    super("ReLU", given);
  }

  override forward(input: Tensor): Tensor {
    return F.relu(input, { inplace: this.inplace });
  }
}

/** The self-normalizing exponential unit. */
export class SELU extends InplaceActivation {
  constructor(...given: InplaceArguments) {
    super("SELU", given);
  }

  override forward(input: Tensor): Tensor {
    return F.selu(input, this.inplace);
  }
}

/** How a {@link Threshold} is made. */
export interface ThresholdOptions extends InplaceOptions {
  /** What elements must exceed to stay. */
  readonly threshold?: Scalar;
  /** What takes the place of the others. */
  readonly value?: Scalar;
}

/** The elements above a threshold, and a value in the place of the others. */
export class Threshold extends Module {
  readonly threshold: Scalar;
  readonly value: Scalar;
  readonly inplace: boolean;

  constructor(...given: Arguments<[threshold: Scalar, value: Scalar], [inplace: boolean], ThresholdOptions>) {
    super();
    const it = bind<ThresholdOptions>("Threshold", given, ["threshold", "value"], { inplace: false });
    this.threshold = it.threshold;
    this.value = it.value;
    this.inplace = it.inplace;
  }

  override forward(input: Tensor): Tensor {
    return F.threshold(input, this.threshold, this.value, this.inplace);
  }

  override extraRepr(): string {
    return shown({ threshold: this.threshold, value: this.value }, this.inplace);
  }
}

/** How an {@link RReLU} is made. */
export interface RReLUOptions extends InplaceOptions {
  /** The least slope; 1/8 by default. */
  readonly lower?: Scalar;
  /** The greatest slope; 1/3 by default. */
  readonly upper?: Scalar;
}

/** A leaky ReLU with slopes that are drawn in training. */
export class RReLU extends Module {
  readonly lower: Scalar;
  readonly upper: Scalar;
  readonly inplace: boolean;

  constructor(...given: Arguments<[], [lower: Scalar, upper: Scalar, inplace: boolean], RReLUOptions>) {
    super();
    const it = bind<RReLUOptions>("RReLU", given, [], { lower: 1 / 8, upper: 1 / 3, inplace: false });
    this.lower = it.lower;
    this.upper = it.upper;
    this.inplace = it.inplace;
  }

  override forward(input: Tensor): Tensor {
    return F.rrelu(input, this.lower, this.upper, this.training, this.inplace);
  }

  override extraRepr(): string {
    return shown({ lower: this.lower, upper: this.upper }, this.inplace);
  }
}

/** How a {@link Hardtanh} is made. */
export interface HardtanhOptions extends InplaceOptions {
  /** The least value; -1.0 by default. */
  readonly minVal?: Scalar;
  /** The greatest value; 1.0 by default. */
  readonly maxVal?: Scalar;
}

/** The input between two limits. */
export class Hardtanh extends Module {
  readonly minVal: Scalar;
  readonly maxVal: Scalar;
  readonly inplace: boolean;

  constructor(...given: Arguments<[], [minVal: Scalar, maxVal: Scalar, inplace: boolean], HardtanhOptions>) {
    super();
    const it = bind<HardtanhOptions>("Hardtanh", given, [], { minVal: float(-1), maxVal: float(1), inplace: false });
    this.minVal = it.minVal;
    this.maxVal = it.maxVal;
    this.inplace = it.inplace;
    if (numberOf(it.maxVal) <= numberOf(it.minVal)) {
      throw badInput(`max_val (${str(it.maxVal)}) must be greater than min_val (${str(it.minVal)})`);
    }
  }

  override forward(input: Tensor): Tensor {
    return F.hardtanh(input, this.minVal, this.maxVal, this.inplace);
  }

  override extraRepr(): string {
    return shown({ min_val: this.minVal, max_val: this.maxVal }, this.inplace);
  }
}

/** `min(max(x, 0), 6)`. */
export class ReLU6 extends Hardtanh {
  constructor(...given: InplaceArguments) {
    super(float(0), float(6), bind<InplaceOptions>("ReLU6", given, [], { inplace: false }).inplace);
  }

  override extraRepr(): string {
    return this.inplace ? "inplace=True" : "";
  }
}

/** How an {@link ELU} or a {@link CELU} is made. */
export interface ELUOptions extends InplaceOptions {
  /** The value that the negative side falls to; 1.0 by default. */
  readonly alpha?: Scalar;
}

type ELUArguments = Arguments<[], [alpha: Scalar, inplace: boolean], ELUOptions>;

/** `x` where it is positive, `alpha * (exp(x) - 1)` elsewhere. */
export class ELU extends Module {
  readonly alpha: Scalar;
  readonly inplace: boolean;

  constructor(...given: ELUArguments) {
    super();
    const it = bind<ELUOptions>("ELU", given, [], { alpha: float(1), inplace: false });
    this.alpha = it.alpha;
    this.inplace = it.inplace;
  }

  override forward(input: Tensor): Tensor {
    return F.elu(input, this.alpha, this.inplace);
  }

  override extraRepr(): string {
    return shown({ alpha: this.alpha }, this.inplace);
  }
}

/** `x` where it is positive, `alpha * (exp(x / alpha) - 1)` elsewhere. */
export class CELU extends Module {
  readonly alpha: Scalar;
  readonly inplace: boolean;

  constructor(...given: ELUArguments) {
    super();
    const it = bind<ELUOptions>("CELU", given, [], { alpha: float(1), inplace: false });
    this.alpha = it.alpha;
    this.inplace = it.inplace;
  }

  override forward(input: Tensor): Tensor {
    return F.celu(input, this.alpha, this.inplace);
  }

  override extraRepr(): string {
    return shown({ alpha: this.alpha }, this.inplace);
  }
}

/** How a {@link LeakyReLU} is made. */
export interface LeakyReLUOptions extends InplaceOptions {
  /** The slope of the negative side; 0.01 by default. */
  readonly negativeSlope?: Scalar;
}

/** `x` where it is positive, `negativeSlope * x` elsewhere. */
export class LeakyReLU extends Module {
  readonly negativeSlope: Scalar;
  readonly inplace: boolean;

  constructor(...given: Arguments<[], [negativeSlope: Scalar, inplace: boolean], LeakyReLUOptions>) {
    super();
    const it = bind<LeakyReLUOptions>("LeakyReLU", given, [], { negativeSlope: 0.01, inplace: false });
    this.negativeSlope = it.negativeSlope;
    this.inplace = it.inplace;
  }

  override forward(input: Tensor): Tensor {
    return F.leakyRelu(input, this.negativeSlope, this.inplace);
  }

  override extraRepr(): string {
    return shown({ negative_slope: this.negativeSlope }, this.inplace);
  }
}

/** How a {@link PReLU} is made. */
export interface PReLUOptions extends FactoryOptions {
  /** One slope for all channels, or one for each; 1 by default. */
  readonly numParameters?: number;
  /** The slope to begin with; 0.25 by default. */
  readonly init?: Scalar;
}

/** A leaky ReLU whose slopes are learnt. */
export class PReLU extends Module {
  readonly numParameters: number;
  readonly init: Scalar;
  declare weight: Parameter;

  constructor(...given: Arguments<[], [numParameters: number, init: Scalar], PReLUOptions>) {
    super();
    const it = bind<PReLUOptions>("PReLU", given, [], { numParameters: 1, init: 0.25, ...FACTORY });
    this.numParameters = it.numParameters;
    this.init = it.init;
    this.weight = newParameter([it.numParameters], it);
    initialise(this);
  }

  /** Sets the slopes to what they began with. */
  resetParameters(): void {
    constant_(this.weight, numberOf(this.init));
  }

  override forward(input: Tensor): Tensor {
    return F.prelu(input, this.weight);
  }

  override extraRepr(): string {
    return fields({ num_parameters: this.numParameters });
  }
}

function shown(values: Readonly<Record<string, unknown>>, inplace: boolean): string {
  return fields(inplace ? { ...values, inplace } : values);
}

markBuiltin({ ReLU, ReLU6, SELU, Threshold, RReLU, Hardtanh, ELU, CELU, LeakyReLU, PReLU });
