/**
 * The layers of transformers.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { type Arguments, bind, type Bound, FACTORY, type FactoryOptions } from "./arguments.ts";
import { type AttentionCallOptions, MultiheadAttention } from "./attention.ts";
import { markBuiltin } from "./builtin.ts";
import { Dropout } from "./dropout.ts";
import { Linear } from "./linear.ts";
import { Module } from "./module.ts";
import { LayerNorm } from "./normalization.ts";
import type { Scalar } from "./sizes.ts";
import { badInput } from "./state.ts";

/** The function between the linear layers: by name, or your own. */
export type Activation = "relu" | "gelu" | ((input: Tensor) => Tensor) | Module;

/** How the layers of a transformer are made. */
export interface TransformerLayerOptions extends FactoryOptions {
  /** The size of inputs and outputs. */
  readonly dModel?: number;
  /** The number of heads, which divides it. */
  readonly nhead?: number;
  /** The size between the linear layers; 2048 by default. */
  readonly dimFeedforward?: number;
  /** The probability of dropping elements; 0.1 by default. */
  readonly dropout?: Scalar;
  /** The function between the linear layers; `relu` by default. */
  readonly activation?: Activation;
  /** What the normalizations add to variances; 1e-5 by default. */
  readonly layerNormEps?: Scalar;
  /** Whether the batch is the first dimension and the sequence the second; `false` by default. */
  readonly batchFirst?: boolean;
  /** Whether what goes into a block is normalized, and not what comes out; `false` by default. */
  readonly normFirst?: boolean;
  /** Whether linear layers and normalizations have biases; `true` by default. */
  readonly bias?: boolean;
}

type TransformerLayerArguments = Arguments<
  [dModel: number, nhead: number],
  [
    dimFeedforward: number,
    dropout: Scalar,
    activation: Activation,
    layerNormEps: Scalar,
    batchFirst: boolean,
    normFirst: boolean,
    bias: boolean,
  ],
  TransformerLayerOptions
>;

/** The defaults of {@link TransformerLayerOptions}. */
export const LAYER_DEFAULTS: Omit<Bound<TransformerLayerOptions>, "dModel" | "nhead" | "device" | "dtype"> = {
  dimFeedforward: 2048,
  dropout: 0.1,
  activation: F.relu,
  layerNormEps: 1e-5,
  batchFirst: false,
  normFirst: false,
  bias: true,
};

/** What both layers have. */
abstract class TransformerLayer extends Module {
  readonly normFirst: boolean;
  declare activation: Exclude<Activation, string>;
  declare self_attn: MultiheadAttention;
  declare linear1: Linear;
  declare dropout: Dropout;
  declare linear2: Linear;
  declare norm1: LayerNorm;
  declare norm2: LayerNorm;
  declare dropout1: Dropout;
  declare dropout2: Dropout;

  protected constructor({ normFirst }: Bound<TransformerLayerOptions>) {
    super();
    this.normFirst = normFirst;
  }

  protected attend(attention: MultiheadAttention, dropout: Dropout, x: Tensor, memory: Tensor, masks: Masks): Tensor {
    const [output] = attention.forward(x, memory, memory, { ...masks, needWeights: false });
    return dropout.forward(output);
  }

  protected feedForward(dropout: Dropout, x: Tensor): Tensor {
    return dropout.forward(
      this.linear2.forward(this.dropout.forward(activate(this.activation, this.linear1.forward(x)))),
    );
  }
}

type Masks = Pick<AttentionCallOptions, "attnMask" | "keyPaddingMask" | "isCausal">;

function activate(activation: Exclude<Activation, string>, x: Tensor): Tensor {
  return activation instanceof Module ? (activation.call(x) as Tensor) : activation(x);
}

/** The function of this name, or the function or module itself. */
function activationOf(activation: Activation): Exclude<Activation, string> {
  if (activation === "relu") return F.relu;
  if (activation === "gelu") return F.gelu;
  if (typeof activation !== "string") return activation;
  throw badInput(`activation should be relu/gelu, not ${String(activation satisfies never)}`);
}

function attentionOf({ dModel, nhead, dropout, bias, batchFirst, dtype }: Bound<TransformerLayerOptions>) {
  return new MultiheadAttention(dModel, nhead, { dropout, bias, batchFirst, dtype });
}

function normOf({ dModel, layerNormEps, bias, dtype }: Bound<TransformerLayerOptions>) {
  return new LayerNorm(dModel, { eps: layerNormEps, bias, dtype });
}

/** Which elements a {@link TransformerEncoderLayer} does not see. */
export interface EncoderLayerCallOptions {
  /** Which elements do not count for which. */
  readonly srcMask?: Tensor | null;
  /** Which elements do not count. */
  readonly srcKeyPaddingMask?: Tensor | null;
  /** Whether `srcMask` is the one by which an element sees what comes before it. */
  readonly isCausal?: boolean;
}

/** Self-attention, and two linear layers: `(S, N, dModel)`, or `(N, S, dModel)` with `batchFirst`. */
export class TransformerEncoderLayer extends TransformerLayer {
  static override readonly forwardSignature: string =
    "(src, src_mask=None, src_key_padding_mask=None, is_causal=False)";

  constructor(...given: TransformerLayerArguments) {
    const defaults = { ...LAYER_DEFAULTS, ...FACTORY };
    const it = bind<TransformerLayerOptions>("TransformerEncoderLayer", given, ["dModel", "nhead"], defaults);
    super(it);
    const { dModel, dimFeedforward, bias, dtype, dropout } = it;
    this.self_attn = attentionOf(it);
    this.linear1 = new Linear(dModel, dimFeedforward, { bias, dtype });
    this.dropout = new Dropout(dropout);
    this.linear2 = new Linear(dimFeedforward, dModel, { bias, dtype });
    this.norm1 = normOf(it);
    this.norm2 = normOf(it);
    this.dropout1 = new Dropout(dropout);
    this.dropout2 = new Dropout(dropout);
    this.activation = activationOf(it.activation);
  }

  override forward(src: Tensor, options?: EncoderLayerCallOptions): Tensor;
  override forward(src: Tensor, srcMask?: Tensor | null, srcKeyPaddingMask?: Tensor | null, isCausal?: boolean): Tensor;
  override forward(
    src: Tensor,
    srcMask: Tensor | EncoderLayerCallOptions | null = null,
    srcKeyPaddingMask: Tensor | null = null,
    isCausal = false,
  ): Tensor {
    const masks = { attnMask: srcMask as Tensor | null, keyPaddingMask: srcKeyPaddingMask, isCausal };
    const attend = (x: Tensor): Tensor => this.attend(this.self_attn, this.dropout1, x, x, masks);
    if (this.normFirst) {
      const x = src.add(attend(this.norm1.forward(src)));
      return x.add(this.feedForward(this.dropout2, this.norm2.forward(x)));
    }
    const x = this.norm1.forward(src.add(attend(src)));
    return this.norm2.forward(x.add(this.feedForward(this.dropout2, x)));
  }
}

/** Which elements a {@link TransformerDecoderLayer} does not see. */
export interface DecoderLayerCallOptions {
  /** Which elements of the target do not count for which. */
  readonly tgtMask?: Tensor | null;
  /** Which elements of the memory do not count for which of the target. */
  readonly memoryMask?: Tensor | null;
  /** Which elements of the target do not count. */
  readonly tgtKeyPaddingMask?: Tensor | null;
  /** Which elements of the memory do not count. */
  readonly memoryKeyPaddingMask?: Tensor | null;
  /** Whether `tgtMask` is the one by which an element sees what comes before it. */
  readonly tgtIsCausal?: boolean;
  /** The same of `memoryMask`. */
  readonly memoryIsCausal?: boolean;
}

/**
 * Self-attention, attention to a memory `(S, N, dModel)`, and two linear layers: `(T, N, dModel)`, with `batchFirst` `N` first.
 */
export class TransformerDecoderLayer extends TransformerLayer {
  static override readonly forwardSignature: string =
    "(tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False)";
  declare multihead_attn: MultiheadAttention;
  declare norm3: LayerNorm;
  declare dropout3: Dropout;

  constructor(...given: TransformerLayerArguments) {
    const defaults = { ...LAYER_DEFAULTS, ...FACTORY };
    const it = bind<TransformerLayerOptions>("TransformerDecoderLayer", given, ["dModel", "nhead"], defaults);
    super(it);
    const { dModel, dimFeedforward, bias, dtype, dropout } = it;
    this.self_attn = attentionOf(it);
    this.multihead_attn = attentionOf(it);
    this.linear1 = new Linear(dModel, dimFeedforward, { bias, dtype });
    this.dropout = new Dropout(dropout);
    this.linear2 = new Linear(dimFeedforward, dModel, { bias, dtype });
    this.norm1 = normOf(it);
    this.norm2 = normOf(it);
    this.norm3 = normOf(it);
    this.dropout1 = new Dropout(dropout);
    this.dropout2 = new Dropout(dropout);
    this.dropout3 = new Dropout(dropout);
    this.activation = activationOf(it.activation);
  }

  override forward(tgt: Tensor, memory: Tensor, options?: DecoderLayerCallOptions): Tensor;
  override forward(
    tgt: Tensor,
    memory: Tensor,
    tgtMask?: Tensor | null,
    memoryMask?: Tensor | null,
    tgtKeyPaddingMask?: Tensor | null,
    memoryKeyPaddingMask?: Tensor | null,
    tgtIsCausal?: boolean,
    memoryIsCausal?: boolean,
  ): Tensor;
  override forward(
    tgt: Tensor,
    memory: Tensor,
    tgtMask: Tensor | DecoderLayerCallOptions | null = null,
    memoryMask: Tensor | null = null,
    tgtKeyPaddingMask: Tensor | null = null,
    memoryKeyPaddingMask: Tensor | null = null,
    tgtIsCausal = false,
    memoryIsCausal = false,
  ): Tensor {
    const own = { attnMask: tgtMask as Tensor | null, keyPaddingMask: tgtKeyPaddingMask, isCausal: tgtIsCausal };
    const other = { attnMask: memoryMask, keyPaddingMask: memoryKeyPaddingMask, isCausal: memoryIsCausal };
    const attend = (x: Tensor): Tensor => this.attend(this.self_attn, this.dropout1, x, x, own);
    const consult = (x: Tensor): Tensor => this.attend(this.multihead_attn, this.dropout2, x, memory, other);
    if (this.normFirst) {
      const x = tgt.add(attend(this.norm1.forward(tgt)));
      const y = x.add(consult(this.norm2.forward(x)));
      return y.add(this.feedForward(this.dropout3, this.norm3.forward(y)));
    }
    const x = this.norm1.forward(tgt.add(attend(tgt)));
    const y = this.norm2.forward(x.add(consult(x)));
    return this.norm3.forward(y.add(this.feedForward(this.dropout3, y)));
  }
}

markBuiltin({ TransformerEncoderLayer, TransformerDecoderLayer });
