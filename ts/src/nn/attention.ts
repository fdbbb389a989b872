/**
 * Multi-head attention.
 *
 * @module
 */
import { float } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, FACTORY, type FactoryOptions } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { initialise } from "./deferred.ts";
import { constant_, xavierNormal_, xavierUniform_ } from "./init.ts";
import { NonDynamicallyQuantizableLinear } from "./linear.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";
import type { Scalar } from "./sizes.ts";
import { badInput, newParameter, rankOf } from "./state.ts";

/** How a {@link MultiheadAttention} is made. */
export interface MultiheadAttentionOptions extends FactoryOptions {
  /** The size of queries and outputs. */
  readonly embedDim?: number;
  /** The number of heads, which divides it. */
  readonly numHeads?: number;
  /** The probability of dropping weights; 0.0 by default. */
  readonly dropout?: Scalar;
  /** Whether the projections have biases; `true` by default. */
  readonly bias?: boolean;
  /** Whether a learnt key and value are added to those given; `false` by default. */
  readonly addBiasKv?: boolean;
  /** Whether a key and value of zeros are added; `false` by default. */
  readonly addZeroAttn?: boolean;
  /** The size of keys, where it is not that of queries. */
  readonly kdim?: number | null;
  /** The size of values, where it is not that of queries. */
  readonly vdim?: number | null;
  /** Whether the batch is the first dimension and the sequence the second; `false` by default. */
  readonly batchFirst?: boolean;
}

/** What a {@link MultiheadAttention} may be called with besides queries, keys and values. */
export interface AttentionCallOptions {
  /** Which keys do not count: `true`, or what is added to their scores. */
  readonly keyPaddingMask?: Tensor | null;
  /** Whether the weights are given too; `true` by default. */
  readonly needWeights?: boolean;
  /** Which keys do not count for which queries: `true`, or what is added to their scores. */
  readonly attnMask?: Tensor | null;
  /** Whether the weights are averaged over the heads; `true` by default. */
  readonly averageAttnWeights?: boolean;
  /** Whether `attnMask` is the one by which a query sees what comes before it. */
  readonly isCausal?: boolean;
}

/**
 * Attention with several heads: `(L, N, embedDim)`, or `(N, L, embedDim)` with `batchFirst`. What it does depends on the shape
 * of its input, so a trace takes it for a leaf, as in PyTorch.
 *
 * @example
 * ```ts
 * const attention = new MultiheadAttention(16, 4, { batchFirst: true });
 * const [output, weights] = attention.forward(x, x, x);
 * ```
 */
export class MultiheadAttention extends Module {
  static override readonly forwardSignature: string =
    "(query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False)";
  readonly embedDim: number;
  readonly kdim: number;
  readonly vdim: number;
  readonly numHeads: number;
  readonly dropout: Scalar;
  readonly batchFirst: boolean;
  readonly headDim: number;
  readonly addZeroAttn: boolean;
  declare in_proj_weight: Parameter | null;
  declare q_proj_weight: Parameter | null;
  declare k_proj_weight: Parameter | null;
  declare v_proj_weight: Parameter | null;
  declare in_proj_bias: Parameter | null;
  declare out_proj: NonDynamicallyQuantizableLinear;
  declare bias_k: Parameter | null;
  declare bias_v: Parameter | null;

  constructor(
    ...given: Arguments<
      [embedDim: number, numHeads: number],
      [
        dropout: Scalar,
        bias: boolean,
        addBiasKv: boolean,
        addZeroAttn: boolean,
        kdim: number | null,
        vdim: number | null,
        batchFirst: boolean,
      ],
      MultiheadAttentionOptions
    >
  ) {
    super();
    const it = bind<MultiheadAttentionOptions>("MultiheadAttention", given, ["embedDim", "numHeads"], {
      dropout: float(0),
      bias: true,
      addBiasKv: false,
      addZeroAttn: false,
      kdim: null,
      vdim: null,
      batchFirst: false,
      ...FACTORY,
    });
    const { embedDim, numHeads } = it;
    if (embedDim <= 0 || numHeads <= 0) {
      const got = `embed_dim=${embedDim} and num_heads=${numHeads}`;
      throw badInput(`embed_dim and num_heads must be greater than 0, got ${got} instead`);
    }
    if (embedDim % numHeads !== 0) throw badInput("embed_dim must be divisible by num_heads");
    this.embedDim = embedDim;
    this.kdim = it.kdim ?? embedDim;
    this.vdim = it.vdim ?? embedDim;
    this.numHeads = numHeads;
    this.dropout = it.dropout;
    this.batchFirst = it.batchFirst;
    this.headDim = embedDim / numHeads;
    this.addZeroAttn = it.addZeroAttn;
    const isPacked = this.kdim === embedDim && this.vdim === embedDim;
    this.q_proj_weight = isPacked ? null : newParameter([embedDim, embedDim], it);
    this.k_proj_weight = isPacked ? null : newParameter([embedDim, this.kdim], it);
    this.v_proj_weight = isPacked ? null : newParameter([embedDim, this.vdim], it);
    this.in_proj_weight = isPacked ? newParameter([3 * embedDim, embedDim], it) : null;
    this.in_proj_bias = it.bias ? newParameter([3 * embedDim], it) : null;
    this.out_proj = new NonDynamicallyQuantizableLinear(embedDim, embedDim, { bias: it.bias, dtype: it.dtype });
    this.bias_k = it.addBiasKv ? newParameter([1, 1, embedDim], it) : null;
    this.bias_v = it.addBiasKv ? newParameter([1, 1, embedDim], it) : null;
    initialise(this);
  }

  /** Draws the parameters anew, but for the weight of the output projection. */
  resetParameters(): void {
    const { in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, in_proj_bias, bias_k, bias_v } = this;
    for (const weight of [in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight]) {
      if (weight !== null) xavierUniform_(weight);
    }
    if (in_proj_bias !== null) constant_(in_proj_bias, 0);
    if (in_proj_bias !== null && this.out_proj.bias !== null) constant_(this.out_proj.bias, 0);
    if (bias_k !== null) xavierNormal_(bias_k);
    if (bias_v !== null) xavierNormal_(bias_v);
  }

  /** The outputs, and the weights or null. */
  override forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options?: AttentionCallOptions,
  ): readonly [output: Tensor, weights: Tensor | null];
  override forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    keyPaddingMask?: Tensor | null,
    needWeights?: boolean,
    attnMask?: Tensor | null,
    averageAttnWeights?: boolean,
    isCausal?: boolean,
  ): readonly [output: Tensor, weights: Tensor | null];
  override forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    keyPaddingMask: Tensor | AttentionCallOptions | null = null,
    needWeights = true,
    attnMask: Tensor | null = null,
    averageAttnWeights = true,
    isCausal = false,
  ): readonly [output: Tensor, weights: Tensor | null] {
    const isBatched = rankOf(this, query) === 3;
    const swaps = this.batchFirst && isBatched;
    // What is one tensor stays one, so that it is projected at once.
    const swapped = new Map<Tensor, Tensor>();
    const sequenceFirst = (tensor: Tensor): Tensor => {
      if (!swaps) return tensor;
      const res = swapped.get(tensor) ?? tensor.transpose(1, 0);
      swapped.set(tensor, res);
      return res;
    };
    const separate =
      this.in_proj_weight === null
        ? {
            useSeparateProjWeight: true,
            qProjWeight: this.q_proj_weight,
            kProjWeight: this.k_proj_weight,
            vProjWeight: this.v_proj_weight,
          }
        : {};
    const [output, weights] = F.multiHeadAttentionForward(
      sequenceFirst(query),
      sequenceFirst(key),
      sequenceFirst(value),
      this.embedDim,
      this.numHeads,
      this.in_proj_weight,
      this.in_proj_bias,
      this.bias_k,
      this.bias_v,
      this.addZeroAttn,
      this.dropout,
      this.out_proj.weight,
      this.out_proj.bias,
      {
        training: this.training,
        keyPaddingMask: keyPaddingMask as Tensor | null,
        needWeights,
        attnMask,
        ...separate,
        averageAttnWeights,
        isCausal,
      },
    );
    return [swaps ? output.transpose(1, 0) : output, weights];
  }
}

markBuiltin({ MultiheadAttention });
