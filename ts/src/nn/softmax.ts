/**
 * Activations along a dimension: softmax and its relatives, and gated linear units.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { Module } from "./module.ts";
import { fields } from "./sizes.ts";
import { badInput, rankOf } from "./state.ts";

/** Along which dimension. */
export interface SoftmaxOptions {
  /** The dimension; `null` for PyTorch's old choice by the number of dimensions, which it warns of. */
  readonly dim?: number | null;
}

type SoftmaxArguments = Arguments<[], [dim: number | null], SoftmaxOptions>;

/** PyTorch's modules name the line of their caller in its warning, and so it stands in its graphs. */
const STACK_LEVEL = { _stacklevel: 5 };

/** What is computed along one dimension. */
abstract class AlongDim extends Module {
  readonly dim: number | null;

  protected constructor(name: string, given: SoftmaxArguments) {
    super();
    const { dim } = bind<SoftmaxOptions>(name, given, [], { dim: null });
    if (dim !== null && !Number.isInteger(dim)) throw badInput(`dim must be an int or None, got ${String(dim)}`);
    this.dim = dim;
  }

  override extraRepr(): string {
    return fields({ dim: this.dim });
  }
}

/** Positive numbers that sum to 1 along a dimension. */
export class Softmax extends AlongDim {
  constructor(...given: SoftmaxArguments) {
    super("Softmax", given);
  }

  override forward(input: Tensor): Tensor {
    return F.softmax(input, this.dim, STACK_LEVEL);
  }
}

/** The softmax of the negated input. */
export class Softmin extends AlongDim {
  constructor(...given: SoftmaxArguments) {
    super("Softmin", given);
  }

  override forward(input: Tensor): Tensor {
    return F.softmin(input, this.dim, STACK_LEVEL);
  }
}

/** The logarithm of the softmax. */
export class LogSoftmax extends AlongDim {
  constructor(...given: SoftmaxArguments) {
    super("LogSoftmax", given);
  }

  override forward(input: Tensor): Tensor {
    return F.logSoftmax(input, this.dim, STACK_LEVEL);
  }
}

/** The softmax over the channels of an image, `(N, C, H, W)` or `(C, H, W)`. */
export class Softmax2d extends Module {
  override forward(input: Tensor): Tensor {
    const rank = rankOf(this, input);
    if (rank !== 3 && rank !== 4) throw badInput(`Softmax2d: expected input to be 3D or 4D, got ${rank}D instead`);
    return F.softmax(input, -3, STACK_LEVEL);
  }
}

/** Along which dimension a {@link GLU} halves its input. */
export interface GLUOptions {
  /** The last one by default. */
  readonly dim?: number;
}

/** One half of the input times the sigmoid of the other, along `dim`. */
export class GLU extends Module {
  readonly dim: number;

  constructor(...given: Arguments<[], [dim: number], GLUOptions>) {
    super();
    this.dim = bind<GLUOptions>("GLU", given, [], { dim: -1 }).dim;
  }

  override forward(input: Tensor): Tensor {
    return F.glu(input, this.dim);
  }

  override extraRepr(): string {
    return fields({ dim: this.dim });
  }
}

markBuiltin({ Softmax, Softmin, LogSoftmax, Softmax2d, GLU });
