/**
 * Batch normalization and instance normalization.
 *
 * @module
 */
import { isSame, textOf } from "../base/sizes.ts";
import { fxError } from "../base/errors.ts";
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, type Bound, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { initialise } from "./deferred.ts";
import { ones_, zeros_ } from "./init.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";
import { fields, type Scalar } from "./sizes.ts";
import { badInput, newBuffer, newParameter, rankOf, zeros } from "./state.ts";
import { isAssumed } from "../record/record.ts";

/** How a batch or instance normalization is made. */
export interface NormOptions extends FactoryOptions {
  /** The number of channels. */
  readonly numFeatures?: number;
  /** What is added to the variance; 1e-5 by default. */
  readonly eps?: Scalar;
  /** The weight of a new batch in the running statistics, 0.1 by default; `null` for the average over all batches. */
  readonly momentum?: Scalar | null;
  /** Whether there is a weight and a bias for each channel. */
  readonly affine?: boolean;
  /** Whether statistics over batches are kept, for use in evaluation. */
  readonly trackRunningStats?: boolean;
  /** Whether an affine layer has a bias; `true` by default. */
  readonly bias?: boolean;
}

type NormArguments = Arguments<
  [numFeatures: number],
  [eps: Scalar, momentum: Scalar | null, affine: boolean, trackRunningStats: boolean],
  NormOptions
>;

/** What batch and instance normalizations are. */
export abstract class NormBase extends Module {
  readonly numFeatures: number;
  readonly eps: Scalar;
  readonly momentum: Scalar | null;
  readonly affine: boolean;
  readonly trackRunningStats: boolean;
  declare weight: Parameter | null;
  declare bias: Parameter | null;
  declare running_mean: Tensor | null;
  declare running_var: Tensor | null;
  declare num_batches_tracked: Tensor | null;

  protected constructor(it: Bound<NormOptions>) {
    super();
    this.numFeatures = it.numFeatures;
    this.eps = it.eps;
    this.momentum = it.momentum;
    this.affine = it.affine;
    this.trackRunningStats = it.trackRunningStats;
    this.weight = it.affine ? newParameter([it.numFeatures], it) : null;
    this.bias = it.affine && it.bias ? newParameter([it.numFeatures], it) : null;
    const dtype = it.dtype ?? "float32";
    const stats = it.trackRunningStats;
    this.registerBuffer("running_mean", stats ? newBuffer([it.numFeatures], dtype) : null);
    this.registerBuffer("running_var", stats ? newBuffer([it.numFeatures], dtype) : null);
    this.registerBuffer("num_batches_tracked", stats ? newBuffer([], "int64") : null);
    initialise(this);
  }

  /** Forgets the running statistics. */
  resetRunningStats(): void {
    const { running_mean, running_var, num_batches_tracked } = this;
    if (running_mean !== null) zeros_(running_mean);
    if (running_var !== null) ones_(running_var);
    if (num_batches_tracked !== null) zeros_(num_batches_tracked);
  }

  /** Makes the weight ones, the bias zeros and forgets the running statistics. */
  resetParameters(): void {
    this.resetRunningStats();
    if (this.weight !== null) ones_(this.weight);
    if (this.bias !== null) zeros_(this.bias);
  }

  /** State dicts, which have no versions here, may lack the count of batches, or have statistics that nobody wants. */
  override prepareState(state: Map<string, unknown>, prefix: string): readonly string[] {
    const key = `${prefix}num_batches_tracked`;
    if (this.trackRunningStats && !state.has(key)) state.set(key, this.num_batches_tracked ?? zeros([], "int64"));
    return [];
  }

  override extraRepr(): string {
    const { eps, momentum, affine } = this;
    const shown = { eps, momentum, affine, bias: this.bias !== null, track_running_stats: this.trackRunningStats };
    return `${this.numFeatures}, ${fields(shown)}`;
  }

  /** Refuses an input that has not one of these numbers of dimensions. */
  protected checkRank(input: Tensor, ...ranks: readonly number[]): void {
    if (isAssumed(input)) return;
    const rank = rankOf(this, input);
    if (ranks.includes(rank)) return;
    throw badInput(`expected ${ranks.map((it) => `${it}D`).join(" or ")} input (got ${rank}D input)`);
  }
}

/** What batch normalizations are. */
abstract class BatchNorm extends NormBase {
  protected constructor(name: string, given: NormArguments) {
    const defaults = { eps: 1e-5, momentum: 0.1, affine: true, trackRunningStats: true, ...FACTORY };
    super(bind<NormOptions>(name, given, ["numFeatures"], defaults, { bias: true }));
  }

  protected normalize(input: Tensor): Tensor {
    const { training, trackRunningStats, running_mean, running_var } = this;
    const usesRunning = !training || trackRunningStats;
    const usesBatch = training || (running_mean === null && running_var === null);
    return F.batchNorm(
      input,
      usesRunning ? running_mean : null,
      usesRunning ? running_var : null,
      this.weight,
      this.bias,
      usesBatch,
      nextFactor(this),
      this.eps,
    );
  }
}

/** Counts a batch in training, and gives its weight in the running statistics. */
function nextFactor({ training, trackRunningStats, momentum, num_batches_tracked: count }: BatchNorm): Scalar {
  if (training && trackRunningStats && count !== null) {
    count.add_(1);
    if (momentum === null) return 1 / Number(count.item());
  }
  return momentum ?? float(0);
}

/** Batch normalization of vectors or sequences, `(N, C)` or `(N, C, L)`. */
export class BatchNorm1d extends BatchNorm {
  constructor(...given: NormArguments) {
    super("BatchNorm1d", given);
  }

  override forward(input: Tensor): Tensor {
    this.checkRank(input, 2, 3);
    return this.normalize(input);
  }
}

/**
 * Batch normalization of images, `(N, C, H, W)`.
 *
 * @example
 * ```ts
 * new BatchNorm2d(64, { momentum: 0.01 });
 * ```
 */
export class BatchNorm2d extends BatchNorm {
  constructor(...given: NormArguments) {
    super("BatchNorm2d", given);
  }

  override forward(input: Tensor): Tensor {
    this.checkRank(input, 4);
    return this.normalize(input);
  }
}

/** Batch normalization of volumes, `(N, C, D, H, W)`. */
export class BatchNorm3d extends BatchNorm {
  constructor(...given: NormArguments) {
    super("BatchNorm3d", given);
  }

  override forward(input: Tensor): Tensor {
    this.checkRank(input, 5);
    return this.normalize(input);
  }
}

/** What instance normalizations are. */
abstract class InstanceNorm extends NormBase {
  protected constructor(name: string, given: NormArguments) {
    const defaults = { eps: 1e-5, momentum: 0.1, affine: false, trackRunningStats: false, ...FACTORY };
    super(bind<NormOptions>(name, given, ["numFeatures"], defaults, { bias: true }));
  }

  /** Normalizes an input that has `unbatched` dimensions, or one more. */
  protected normalize(input: Tensor, unbatched: number): Tensor {
    this.checkRank(input, unbatched, unbatched + 1);
    const isBatched = rankOf(this, input) > unbatched;
    const dim = isBatched ? 1 : 0;
    const channels = input.shape[dim];
    if (this.affine && !isSame(channels, this.numFeatures)) {
      throw fxError(
        "ShapeMismatch",
        `expected input's size at dim=${dim} to match num_features (${this.numFeatures}), but got: ${textOf(channels)}.`,
      );
    }
    return isBatched ? this.normalizeBatch(input) : this.normalizeBatch(input.unsqueeze(0)).squeeze(0);
  }

  override prepareState(state: Map<string, unknown>, prefix: string): readonly string[] {
    const unwanted = ["running_mean", "running_var"].map((name) => prefix + name).filter((key) => state.has(key));
    if (this.trackRunningStats || unwanted.length === 0) return super.prepareState(state, prefix);
    for (const key of unwanted) state.delete(key);
    const [names, klass] = [unwanted.map((key) => `"${key}"`).join(" and "), this.className];
    return [
      `Unexpected running stats buffer(s) ${names} for ${klass} with track_running_stats=False. If state_dict is a checkpoint saved before 0.4.0, this may be expected because ${klass} does not track running stats by default since 0.4.0. Please remove these keys from state_dict. If the running stats are actually needed, instead set track_running_stats=True in ${klass} to enable them. See the documentation of ${klass} for details.`,
    ];
  }

  private normalizeBatch(input: Tensor): Tensor {
    const { running_mean, running_var, weight, bias, momentum, eps } = this;
    const usesBatch = this.training || !this.trackRunningStats;
    return F.instanceNorm(input, running_mean, running_var, weight, bias, usesBatch, momentum ?? float(0), eps);
  }
}

/** Instance normalization of sequences, `(N, C, L)` or `(C, L)`. */
export class InstanceNorm1d extends InstanceNorm {
  constructor(...given: NormArguments) {
    super("InstanceNorm1d", given);
  }

  override forward(input: Tensor): Tensor {
    return this.normalize(input, 2);
  }
}

/** Instance normalization of images, `(N, C, H, W)` or `(C, H, W)`. */
export class InstanceNorm2d extends InstanceNorm {
  constructor(...given: NormArguments) {
    super("InstanceNorm2d", given);
  }

  override forward(input: Tensor): Tensor {
    return this.normalize(input, 3);
  }
}

/** Instance normalization of volumes, `(N, C, D, H, W)` or `(C, D, H, W)`. */
export class InstanceNorm3d extends InstanceNorm {
  constructor(...given: NormArguments) {
    super("InstanceNorm3d", given);
  }

  override forward(input: Tensor): Tensor {
    return this.normalize(input, 4);
  }
}

markBuiltin({ BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d });
