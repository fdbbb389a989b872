/**
 * Normalization within each sample: `LayerNorm`, `RMSNorm`, `GroupNorm`, `LocalResponseNorm`.
 *
 * @module
 */
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { initialise } from "./deferred.ts";
import { ones_, zeros_ } from "./init.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";
import { fields, numbers, type Scalar, type Size, str } from "./sizes.ts";
import { badInput, newParameter } from "./state.ts";

/** How a {@link LayerNorm} is made. */
export interface LayerNormOptions extends FactoryOptions {
  /** The sizes of the last dimensions, which are normalized together. */
  readonly normalizedShape?: Size;
  /** What is added to the variance; 1e-5 by default. */
  readonly eps?: Scalar;
  /** Whether there is a weight for each element; `true` by default. */
  readonly elementwiseAffine?: boolean;
  /** Whether there is a bias too; `true` by default. */
  readonly bias?: boolean;
}

type LayerNormArguments = Arguments<
  [normalizedShape: Size],
  [eps: Scalar, elementwiseAffine: boolean, bias: boolean],
  LayerNormOptions
>;

/** Layer normalization over the last dimensions, which are `normalizedShape`. */
export class LayerNorm extends Module {
  readonly normalizedShape: readonly number[];
  readonly eps: Scalar;
  readonly elementwiseAffine: boolean;
  declare weight: Parameter | null;
  declare bias: Parameter | null;

  constructor(...given: LayerNormArguments) {
    super();
    const defaults = { eps: 1e-5, elementwiseAffine: true, bias: true, ...FACTORY };
    const it = bind<LayerNormOptions>("LayerNorm", given, ["normalizedShape"], defaults);
    this.normalizedShape = shapeOf(it.normalizedShape);
    this.eps = it.eps;
    this.elementwiseAffine = it.elementwiseAffine;
    this.weight = it.elementwiseAffine ? newParameter(this.normalizedShape, it) : null;
    this.bias = it.elementwiseAffine && it.bias ? newParameter(this.normalizedShape, it) : null;
    initialise(this);
  }

  /** Makes the weight ones and the bias zeros. */
  resetParameters(): void {
    resetAffine(this);
  }

  override forward(input: Tensor): Tensor {
    return F.layerNorm(input, this.normalizedShape, this.weight, this.bias, this.eps);
  }

  override extraRepr(): string {
    const { eps, elementwiseAffine } = this;
    const shown = fields({ eps, elementwise_affine: elementwiseAffine, bias: this.bias !== null });
    return `${str(this.normalizedShape)}, ${shown}`;
  }
}

/** How an {@link RMSNorm} is made. */
export interface RMSNormOptions extends FactoryOptions {
  /** The sizes of the last dimensions, which are normalized together. */
  readonly normalizedShape?: Size;
  /** What is added to the mean square; by default the least that the dtype tells from 1. */
  readonly eps?: Scalar | null;
  /** Whether there is a weight for each element; `true` by default. */
  readonly elementwiseAffine?: boolean;
}

type RMSNormArguments = Arguments<
  [normalizedShape: Size],
  [eps: Scalar | null, elementwiseAffine: boolean],
  RMSNormOptions
>;

/** Normalization by the root of the mean square of the last dimensions, which are `normalizedShape`. */
export class RMSNorm extends Module {
  static override readonly forwardSignature: string = "(x)";
  readonly normalizedShape: readonly number[];
  readonly eps: Scalar | null;
  readonly elementwiseAffine: boolean;
  declare weight: Parameter | null;

  constructor(...given: RMSNormArguments) {
    super();
    const defaults = { eps: null, elementwiseAffine: true, ...FACTORY };
    const it = bind<RMSNormOptions>("RMSNorm", given, ["normalizedShape"], defaults);
    this.normalizedShape = shapeOf(it.normalizedShape);
    this.eps = it.eps;
    this.elementwiseAffine = it.elementwiseAffine;
    this.weight = it.elementwiseAffine ? newParameter(this.normalizedShape, it) : null;
    initialise(this);
  }

  /** Makes the weight ones. */
  resetParameters(): void {
    resetAffine({ weight: this.weight, bias: null });
  }

  override forward(x: Tensor): Tensor {
    return F.rmsNorm(x, this.normalizedShape, this.weight, this.eps);
  }

  override extraRepr(): string {
    const shown = fields({ eps: this.eps, elementwise_affine: this.elementwiseAffine });
    return `${str(this.normalizedShape)}, ${shown}`;
  }
}

/** How a {@link GroupNorm} is made. */
export interface GroupNormOptions extends FactoryOptions {
  /** The number of groups of channels, each of which is normalized together. */
  readonly numGroups?: number;
  /** The number of channels. */
  readonly numChannels?: number;
  /** What is added to the variance; 1e-5 by default. */
  readonly eps?: Scalar;
  /** Whether there is a weight and a bias for each channel; `true` by default. */
  readonly affine?: boolean;
  /** Whether an affine layer has a bias; `true` by default. */
  readonly bias?: boolean;
}

type GroupNormArguments = Arguments<
  [numGroups: number, numChannels: number],
  [eps: Scalar, affine: boolean],
  GroupNormOptions
>;

/** Group normalization of `(N, numChannels, *)`. */
export class GroupNorm extends Module {
  readonly numGroups: number;
  readonly numChannels: number;
  readonly eps: Scalar;
  readonly affine: boolean;
  declare weight: Parameter | null;
  declare bias: Parameter | null;

  constructor(...given: GroupNormArguments) {
    super();
    const defaults = { eps: 1e-5, affine: true, ...FACTORY };
    const it = bind<GroupNormOptions>("GroupNorm", given, ["numGroups", "numChannels"], defaults, { bias: true });
    if (it.numChannels % it.numGroups !== 0) {
      throw badInput(`num_channels (${it.numChannels}) must be divisible by num_groups (${it.numGroups})`);
    }
    this.numGroups = it.numGroups;
    this.numChannels = it.numChannels;
    this.eps = it.eps;
    this.affine = it.affine;
    this.weight = it.affine ? newParameter([it.numChannels], it) : null;
    this.bias = it.affine && it.bias ? newParameter([it.numChannels], it) : null;
    initialise(this);
  }

  /** Makes the weight ones and the bias zeros. */
  resetParameters(): void {
    resetAffine(this);
  }

  override forward(input: Tensor): Tensor {
    return F.groupNorm(input, this.numGroups, this.weight, this.bias, this.eps);
  }

  override extraRepr(): string {
    const { eps, affine } = this;
    return `${this.numGroups}, ${this.numChannels}, ${fields({ eps, affine, bias: this.bias !== null })}`;
  }
}

/** How a {@link LocalResponseNorm} is made. */
export interface LocalResponseNormOptions {
  /** The number of channels that are normalized together. */
  readonly size?: number;
  /** What multiplies the squares; 1e-4 by default. */
  readonly alpha?: Scalar;
  /** The exponent; 0.75 by default. */
  readonly beta?: Scalar;
  /** What is added; 1.0 by default. */
  readonly k?: Scalar;
}

type LocalResponseNormArguments = Arguments<
  [size: number],
  [alpha: Scalar, beta: Scalar, k: Scalar],
  LocalResponseNormOptions
>;

/** Normalization over neighbouring channels of `(N, C, *)`. */
export class LocalResponseNorm extends Module {
  readonly size: number;
  readonly alpha: Scalar;
  readonly beta: Scalar;
  readonly k: Scalar;

  constructor(...given: LocalResponseNormArguments) {
    super();
    const defaults = { alpha: 1e-4, beta: 0.75, k: float(1) };
    const it = bind<LocalResponseNormOptions>("LocalResponseNorm", given, ["size"], defaults);
    this.size = it.size;
    this.alpha = it.alpha;
    this.beta = it.beta;
    this.k = it.k;
  }

  override forward(input: Tensor): Tensor {
    return F.localResponseNorm(input, this.size, this.alpha, this.beta, this.k);
  }

  override extraRepr(): string {
    return `${this.size}, ${fields({ alpha: this.alpha, beta: this.beta, k: this.k })}`;
  }
}

function shapeOf(size: Size): readonly number[] {
  return numbers(typeof size === "number" ? [size] : size);
}

function resetAffine({ weight, bias }: { readonly weight: Tensor | null; readonly bias: Tensor | null }): void {
  if (weight !== null) ones_(weight);
  if (bias !== null) zeros_(bias);
}

markBuiltin({ LayerNorm, RMSNorm, GroupNorm, LocalResponseNorm });
