/**
 * Activations that are smooth, or shrink their input. What they give has its shape.
 *
 * @module
 */
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { OPERATORS } from "../torch/operators.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { Module } from "./module.ts";
import { InplaceActivation, type InplaceArguments } from "./rectifier.ts";
import { fields, type Scalar, str } from "./sizes.ts";

/** `x * sigmoid(x)`. */
export class SiLU extends InplaceActivation {
  constructor(...given: InplaceArguments) {
    super("SiLU", given);
  }

  override forward(input: Tensor): Tensor {
    return F.silu(input, { inplace: this.inplace });
  }
}

/** `x * tanh(softplus(x))`. */
export class Mish extends InplaceActivation {
  constructor(...given: InplaceArguments) {
    super("Mish", given);
  }

  override forward(input: Tensor): Tensor {
    return F.mish(input, { inplace: this.inplace });
  }
}

/** A sigmoid of straight lines. */
export class Hardsigmoid extends InplaceActivation {
  constructor(...given: InplaceArguments) {
    super("Hardsigmoid", given);
  }

  override forward(input: Tensor): Tensor {
    return F.hardsigmoid(input, this.inplace);
  }

  /** PyTorch prints nothing here. */
  override extraRepr(): string {
    return "";
  }
}

/** `x * hardsigmoid(x)`. */
export class Hardswish extends InplaceActivation {
  constructor(...given: InplaceArguments) {
    super("Hardswish", given);
  }

  override forward(input: Tensor): Tensor {
    return F.hardswish(input, this.inplace);
  }

  /** PyTorch prints nothing here. */
  override extraRepr(): string {
    return "";
  }
}

/** `1 / (1 + exp(-x))`. */
export class Sigmoid extends Module {
  override forward(input: Tensor): Tensor {
    return OPERATORS.torch.sigmoid(input);
  }
}

/** The hyperbolic tangent. */
export class Tanh extends Module {
  override forward(input: Tensor): Tensor {
    return OPERATORS.torch.tanh(input);
  }
}

/** `log(sigmoid(x))`. */
export class LogSigmoid extends Module {
  override forward(input: Tensor): Tensor {
    return F.logsigmoid(input);
  }
}

/** `x / (1 + |x|)`. */
export class Softsign extends Module {
  override forward(input: Tensor): Tensor {
    return F.softsign(input);
  }
}

/** `x - tanh(x)`. */
export class Tanhshrink extends Module {
  override forward(input: Tensor): Tensor {
    return F.tanhshrink(input);
  }
}

/** How a {@link GELU} is made. */
export interface GELUOptions {
  /** `none` (the default) or `tanh`. */
  readonly approximate?: "none" | "tanh";
}

/** `x` times the normal distribution's share below `x`. */
export class GELU extends Module {
  readonly approximate: "none" | "tanh";

  constructor(...given: Arguments<[], [approximate: "none" | "tanh"], GELUOptions>) {
    super();
    this.approximate = bind<GELUOptions>("GELU", given, [], { approximate: "none" }).approximate;
  }

  override forward(input: Tensor): Tensor {
    return F.gelu(input, { approximate: this.approximate });
  }

  override extraRepr(): string {
    return `approximate='${this.approximate}'`;
  }
}

/** How a {@link Hardshrink} or a {@link Softshrink} is made. */
export interface ShrinkOptions {
  /** The width of what becomes zero, to each side; 0.5 by default. */
  readonly lambd?: Scalar;
}

type ShrinkArguments = Arguments<[], [lambd: Scalar], ShrinkOptions>;

/** The elements that lie outside of `[-lambd, lambd]`, and zeros. */
export class Hardshrink extends Module {
  readonly lambd: Scalar;

  constructor(...given: ShrinkArguments) {
    super();
    this.lambd = bind<ShrinkOptions>("Hardshrink", given, [], { lambd: 0.5 }).lambd;
  }

  override forward(input: Tensor): Tensor {
    return F.hardshrink(input, this.lambd);
  }

  override extraRepr(): string {
    return str(this.lambd);
  }
}

/** The elements, `lambd` nearer to zero. */
export class Softshrink extends Module {
  readonly lambd: Scalar;

  constructor(...given: ShrinkArguments) {
    super();
    this.lambd = bind<ShrinkOptions>("Softshrink", given, [], { lambd: 0.5 }).lambd;
  }

  override forward(input: Tensor): Tensor {
    return F.softshrink(input, this.lambd);
  }

  override extraRepr(): string {
    return str(this.lambd);
  }
}

/** How a {@link Softplus} is made. */
export interface SoftplusOptions {
  /** The sharpness; 1.0 by default. */
  readonly beta?: Scalar;
  /** Where the straight line begins; 20.0 by default. */
  readonly threshold?: Scalar;
}

/** `log(1 + exp(beta * x)) / beta`. */
export class Softplus extends Module {
  readonly beta: Scalar;
  readonly threshold: Scalar;

  constructor(...given: Arguments<[], [beta: Scalar, threshold: Scalar], SoftplusOptions>) {
    super();
    const it = bind<SoftplusOptions>("Softplus", given, [], { beta: float(1), threshold: float(20) });
    this.beta = it.beta;
    this.threshold = it.threshold;
  }

  override forward(input: Tensor): Tensor {
    return F.softplus(input, this.beta, this.threshold);
  }

  override extraRepr(): string {
    return fields({ beta: this.beta, threshold: this.threshold });
  }
}

markBuiltin({ SiLU, Mish, Hardsigmoid, Hardswish, Sigmoid, Tanh, LogSigmoid, Softsign, Tanhshrink });
markBuiltin({ GELU, Hardshrink, Softshrink, Softplus });
