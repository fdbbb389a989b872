/**
 * Dropout: zeros for some of the elements, in training.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { Module } from "./module.ts";
import { fields, numberOf, type Scalar, str } from "./sizes.ts";
import { badInput } from "./state.ts";

/** How a dropout is made. */
export interface DropoutOptions {
  /** The probability of being dropped; 0.5 by default. */
  readonly p?: Scalar;
  /** Whether the output is written over the input; `false` by default. */
  readonly inplace?: boolean;
}

type DropoutArguments = Arguments<[], [p: Scalar, inplace: boolean], DropoutOptions>;

/** What all dropouts are. */
abstract class DropoutNd extends Module {
  readonly p: Scalar;
  readonly inplace: boolean;

  protected constructor(name: string, given: DropoutArguments) {
    super();
    const { p, inplace } = bind<DropoutOptions>(name, given, [], { p: 0.5, inplace: false });
    const value = numberOf(p);
    if (!(value >= 0 && value <= 1)) {
      throw badInput(`dropout probability has to be between 0 and 1, but got ${str(p)}`);
    }
    this.p = p;
    this.inplace = inplace;
  }

  override extraRepr(): string {
    return fields({ p: this.p, inplace: this.inplace });
  }
}

/** Drops elements. */
export class Dropout extends DropoutNd {
  constructor(...given: DropoutArguments) {
    super("Dropout", given);
  }

  override forward(input: Tensor): Tensor {
    return F.dropout(input, this.p, this.training, this.inplace);
  }
}

/** Drops channels of sequences, `(N, C, L)` or `(C, L)`. */
export class Dropout1d extends DropoutNd {
  constructor(...given: DropoutArguments) {
    super("Dropout1d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.dropout1d(input, this.p, this.training, this.inplace);
  }
}

/** Drops channels of images, `(N, C, H, W)` or `(C, H, W)`. */
export class Dropout2d extends DropoutNd {
  constructor(...given: DropoutArguments) {
    super("Dropout2d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.dropout2d(input, this.p, this.training, this.inplace);
  }
}

/** Drops channels of volumes, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class Dropout3d extends DropoutNd {
  constructor(...given: DropoutArguments) {
    super("Dropout3d", given);
  }

  override forward(input: Tensor): Tensor {
    return F.dropout3d(input, this.p, this.training, this.inplace);
  }
}

/** Drops elements and keeps mean and variance, as self-normalizing networks need. */
export class AlphaDropout extends DropoutNd {
  constructor(...given: DropoutArguments) {
    super("AlphaDropout", given);
  }

  override forward(input: Tensor): Tensor {
    return F.alphaDropout(input, this.p, this.training);
  }
}

/** Drops channels and keeps mean and variance. */
export class FeatureAlphaDropout extends DropoutNd {
  constructor(...given: DropoutArguments) {
    super("FeatureAlphaDropout", given);
  }

  override forward(input: Tensor): Tensor {
    return F.featureAlphaDropout(input, this.p, this.training);
  }
}

markBuiltin({ Dropout, Dropout1d, Dropout2d, Dropout3d, AlphaDropout, FeatureAlphaDropout });
