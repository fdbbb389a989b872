/**
 * Transformers: stacks of layers, and the whole of an encoder and a decoder.
 *
 * @module
 */
import { isSame } from "../base/sizes.ts";
import type { DType } from "../../../bindings/dtypes.ts";
import { callOperator } from "../engine/dispatch.ts";
import { type DTypeArg, dtype as dtypeArg, dtypeName } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import * as F from "../torch/functional/index.ts";
import { isTraced } from "../record/record.ts";
import { GELU } from "./activation.ts";
import { type Arguments, bind, FACTORY } from "./arguments.ts";
import { markBuiltin } from "./builtin.ts";
import { ModuleList } from "./container.ts";
import { deepCopy } from "./deepCopy.ts";
import { initialise } from "./deferred.ts";
import { xavierUniform_ } from "./init.ts";
import { Module } from "./module.ts";
import { LayerNorm } from "./normalization.ts";
import { ReLU } from "./rectifier.ts";
import type { Scalar } from "./sizes.ts";
import { badInput, rankOf, untraceable } from "./state.ts";
import {
  type Activation,
  type DecoderLayerCallOptions,
  LAYER_DEFAULTS,
  TransformerDecoderLayer,
  TransformerEncoderLayer,
  type TransformerLayerOptions,
} from "./transformerLayers.ts";
import { checkOptions } from "../base/given.ts";

/** How a {@link TransformerEncoder} is made. */
export interface TransformerEncoderOptions {
  /** The layer that the layers are copies of. */
  readonly encoderLayer?: Module;
  /** How many. */
  readonly numLayers?: number;
  /** What the output goes through. */
  readonly norm?: Module | null;
  /** Whether padding is skipped in evaluation, so that zeros come out in its place; `true` by default, as far as layers allow. */
  readonly enableNestedTensor?: boolean;
  /** Whether padding is skipped only where it is at the end of each sequence; `true` by default. */
  readonly maskCheck?: boolean;
}

/** Which elements a {@link TransformerEncoder} does not see. */
export interface EncoderCallOptions {
  /** Which elements do not count for which. */
  readonly mask?: Tensor | null;
  /** Which elements do not count. */
  readonly srcKeyPaddingMask?: Tensor | null;
  /** Whether `mask` is the one by which an element sees what comes before it. */
  readonly isCausal?: boolean | null;
}

/** A stack of encoder layers, which keep the shape of their input. */
export class TransformerEncoder extends Module {
  static override readonly forwardSignature: string = "(src, mask=None, src_key_padding_mask=None, is_causal=None)";
  readonly numLayers: number;
  readonly enableNestedTensor: boolean;
  /** Whether padding is skipped where it can be. */
  readonly useNestedTensor: boolean;
  readonly maskCheck: boolean;
  declare layers: ModuleList;
  declare norm: Module | null;

  constructor(
    ...given: Arguments<
      [encoderLayer: Module, numLayers: number],
      [norm: Module | null, enableNestedTensor: boolean, maskCheck: boolean],
      TransformerEncoderOptions
    >
  ) {
    super();
    const defaults = { norm: null, enableNestedTensor: true, maskCheck: true };
    const names = ["encoderLayer", "numLayers"] as const;
    const it = bind<TransformerEncoderOptions>("TransformerEncoder", given, names, defaults);
    this.layers = copies(it.encoderLayer, it.numLayers);
    this.numLayers = it.numLayers;
    this.norm = it.norm;
    this.enableNestedTensor = it.enableNestedTensor;
    this.useNestedTensor = it.enableNestedTensor && skipsPadding(it.encoderLayer);
    this.maskCheck = it.maskCheck;
  }

  override forward(src: Tensor, options?: EncoderCallOptions): Tensor;
  override forward(
    src: Tensor,
    mask?: Tensor | null,
    srcKeyPaddingMask?: Tensor | null,
    isCausal?: boolean | null,
  ): Tensor;
  override forward(
    src: Tensor,
    mask: Tensor | EncoderCallOptions | null = null,
    srcKeyPaddingMask: Tensor | null = null,
    isCausal: boolean | null = null,
  ): Tensor {
    const options = { srcMask: mask as Tensor | null, isCausal: isCausal ?? false, srcKeyPaddingMask };
    const padding = this.skippedPadding(src, mask, srcKeyPaddingMask);
    let res = src;
    for (const layer of this.layers) res = layer.call(res, options) as Tensor;
    if (padding !== null) res = res.maskedFill(padding.unsqueeze(-1), 0);
    return this.norm === null ? res : (this.norm.call(res) as Tensor);
  }

  /** Where padding is skipped, as PyTorch does it without gradients: the outputs are zeros there. */
  private skippedPadding(src: Tensor, mask: unknown, padding: Tensor | null): Tensor | null {
    if (!this.useNestedTensor || (this.layers.at(0) as Module).training || mask !== null || padding === null)
      return null;
    if (isTraced(padding)) throw untraceable(this, "the values of its mask");
    if (rankOf(this, src) !== 3) return null;
    const isPadding = padding.dtype === "bool" ? padding : padding.ne(0);
    return this.maskCheck && !isAtEnd(isPadding) ? null : isPadding;
  }
}

/** Whether PyTorch would run this layer on sequences of different lengths. */
function skipsPadding(layer: Module): boolean {
  if (!(layer instanceof TransformerEncoderLayer) || layer.normFirst) return false;
  const { self_attn: attention, activation } = layer;
  const isKnown = activation === F.relu || activation === F.gelu;
  if (!isKnown && !(activation instanceof ReLU) && !(activation instanceof GELU)) return false;
  return (
    attention.batchFirst &&
    attention.in_proj_weight !== null &&
    attention.in_proj_bias !== null &&
    attention.numHeads % 2 === 0
  );
}

/** Whether each row of a mask is false first and then true. */
function isAtEnd(mask: Tensor): boolean {
  const rows = mask.toArray() as boolean[][];
  return rows.every((row) => row.every((it, at) => it || row[at - 1] !== true));
}

/** How a {@link TransformerDecoder} is made. */
export interface TransformerDecoderOptions {
  /** The layer that the layers are copies of. */
  readonly decoderLayer?: Module;
  /** How many. */
  readonly numLayers?: number;
  /** What the output goes through. */
  readonly norm?: Module | null;
}

/** Which elements a {@link TransformerDecoder} does not see. */
export interface DecoderCallOptions extends Omit<DecoderLayerCallOptions, "tgtIsCausal"> {
  /** Whether `tgtMask` is the one by which an element sees what comes before it. */
  readonly tgtIsCausal?: boolean | null;
}

/** A stack of decoder layers, which keep the shape of the target. */
export class TransformerDecoder extends Module {
  static override readonly forwardSignature: string =
    "(tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False)";
  readonly numLayers: number;
  declare layers: ModuleList;
  declare norm: Module | null;

  constructor(
    ...given: Arguments<[decoderLayer: Module, numLayers: number], [norm: Module | null], TransformerDecoderOptions>
  ) {
    super();
    const names = ["decoderLayer", "numLayers"] as const;
    const it = bind<TransformerDecoderOptions>("TransformerDecoder", given, names, { norm: null });
    this.layers = copies(it.decoderLayer, it.numLayers);
    this.numLayers = it.numLayers;
    this.norm = it.norm;
  }

  override forward(tgt: Tensor, memory: Tensor, options?: DecoderCallOptions): Tensor;
  override forward(
    tgt: Tensor,
    memory: Tensor,
    tgtMask?: Tensor | null,
    memoryMask?: Tensor | null,
    tgtKeyPaddingMask?: Tensor | null,
    memoryKeyPaddingMask?: Tensor | null,
    tgtIsCausal?: boolean | null,
    memoryIsCausal?: boolean,
  ): Tensor;
  override forward(
    tgt: Tensor,
    memory: Tensor,
    tgtMask: Tensor | DecoderCallOptions | null = null,
    memoryMask: Tensor | null = null,
    tgtKeyPaddingMask: Tensor | null = null,
    memoryKeyPaddingMask: Tensor | null = null,
    tgtIsCausal: boolean | null = null,
    memoryIsCausal = false,
  ): Tensor {
    const options: DecoderLayerCallOptions = {
      tgtMask: tgtMask as Tensor | null,
      memoryMask,
      tgtKeyPaddingMask,
      memoryKeyPaddingMask,
      tgtIsCausal: tgtIsCausal ?? false,
      memoryIsCausal,
    };
    let res = tgt;
    for (const layer of this.layers) res = layer.call(res, memory, options) as Tensor;
    return this.norm === null ? res : (this.norm.call(res) as Tensor);
  }
}

/** How a {@link Transformer} is made. */
export interface TransformerOptions extends TransformerLayerOptions {
  /** The number of layers of the encoder; 6 by default. */
  readonly numEncoderLayers?: number;
  /** The number of layers of the decoder; 6 by default. */
  readonly numDecoderLayers?: number;
  /** An encoder of your own. */
  readonly customEncoder?: Module | null;
  /** A decoder of your own. */
  readonly customDecoder?: Module | null;
}

/** Which elements a {@link Transformer} does not see. */
export interface TransformerCallOptions extends Omit<DecoderCallOptions, "memoryIsCausal"> {
  /** Which elements of the source do not count for which. */
  readonly srcMask?: Tensor | null;
  /** Which elements of the source do not count. */
  readonly srcKeyPaddingMask?: Tensor | null;
  /** Whether `srcMask` is the one by which an element sees what comes before it. */
  readonly srcIsCausal?: boolean | null;
  /** The same of `memoryMask`. */
  readonly memoryIsCausal?: boolean;
}

/**
 * An encoder and a decoder: a source `(S, N, dModel)` and a target `(T, N, dModel)`, with `batchFirst` `N` first, to the shape
 * of the target.
 *
 * @example
 * ```ts
 * const model = new Transformer({ dModel: 32, nhead: 4, numEncoderLayers: 2, numDecoderLayers: 2, batchFirst: true });
 * model.forward(source, target, { tgtMask: Transformer.generateSquareSubsequentMask(10) });
 * ```
 */
export class Transformer extends Module {
  static override readonly forwardSignature: string =
    "(src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False)";
  readonly dModel: number;
  readonly nhead: number;
  readonly batchFirst: boolean;
  declare encoder: Module;
  declare decoder: Module;

  constructor(
    ...given: Arguments<
      [],
      [
        dModel: number,
        nhead: number,
        numEncoderLayers: number,
        numDecoderLayers: number,
        dimFeedforward: number,
        dropout: Scalar,
        activation: Activation,
        customEncoder: Module | null,
        customDecoder: Module | null,
        layerNormEps: Scalar,
        batchFirst: boolean,
        normFirst: boolean,
        bias: boolean,
      ],
      TransformerOptions
    >
  ) {
    super();
    const { dimFeedforward, dropout, activation, ...more } = LAYER_DEFAULTS;
    const it = bind<TransformerOptions>("Transformer", given, [], {
      dModel: 512,
      nhead: 8,
      numEncoderLayers: 6,
      numDecoderLayers: 6,
      dimFeedforward,
      dropout,
      activation,
      customEncoder: null,
      customDecoder: null,
      ...more,
      ...FACTORY,
    });
    const { numEncoderLayers, numDecoderLayers, customEncoder, customDecoder, ...layer } = it;
    const norm = { eps: it.layerNormEps, bias: it.bias, dtype: it.dtype };
    this.encoder =
      customEncoder ??
      new TransformerEncoder(new TransformerEncoderLayer(layer), numEncoderLayers, new LayerNorm(it.dModel, norm));
    this.decoder =
      customDecoder ??
      new TransformerDecoder(new TransformerDecoderLayer(layer), numDecoderLayers, new LayerNorm(it.dModel, norm));
    this.dModel = it.dModel;
    this.nhead = it.nhead;
    this.batchFirst = it.batchFirst;
    initialise(this);
  }

  /** A mask by which an element sees what comes before it: minus infinity above the diagonal. */
  static generateSquareSubsequentMask(size: number, options: { readonly dtype?: DType | DTypeArg } = {}): Tensor {
    checkOptions("generateSquareSubsequentMask", options, ["dtype"]);
    const { dtype = "float32" } = options;
    const all = callOperator("aten.full", [[size, size], Number.NEGATIVE_INFINITY], {
      dtype: dtypeArg(dtypeName(dtype)),
    });
    return callOperator("aten.triu", [all, 1]) as Tensor;
  }

  /** Draws the matrices anew. */
  resetParameters(): void {
    for (const parameter of this.parameters()) if (parameter.shape.length > 1) xavierUniform_(parameter);
  }

  override forward(src: Tensor, tgt: Tensor, options?: TransformerCallOptions): Tensor;
  override forward(
    src: Tensor,
    tgt: Tensor,
    srcMask?: Tensor | null,
    tgtMask?: Tensor | null,
    memoryMask?: Tensor | null,
    srcKeyPaddingMask?: Tensor | null,
    tgtKeyPaddingMask?: Tensor | null,
    memoryKeyPaddingMask?: Tensor | null,
    srcIsCausal?: boolean | null,
    tgtIsCausal?: boolean | null,
    memoryIsCausal?: boolean,
  ): Tensor;
  override forward(
    src: Tensor,
    tgt: Tensor,
    srcMask: Tensor | TransformerCallOptions | null = null,
    tgtMask: Tensor | null = null,
    memoryMask: Tensor | null = null,
    srcKeyPaddingMask: Tensor | null = null,
    tgtKeyPaddingMask: Tensor | null = null,
    memoryKeyPaddingMask: Tensor | null = null,
    srcIsCausal: boolean | null = null,
    tgtIsCausal: boolean | null = null,
    memoryIsCausal = false,
  ): Tensor {
    const isBatched = rankOf(this, src) === 3;
    const batchDim = this.batchFirst ? 0 : 1;
    if (isBatched && !isSame(src.shape[batchDim], tgt.shape[batchDim])) {
      throw badInput("the batch number of src and tgt must be equal");
    }
    if (!isSame(src.shape.at(-1), this.dModel) || !isSame(tgt.shape.at(-1), this.dModel)) {
      throw badInput("the feature number of src and tgt must be equal to d_model");
    }
    const memory = this.encoder.call(src, { mask: srcMask, srcKeyPaddingMask, isCausal: srcIsCausal });
    return this.decoder.call(tgt, memory, {
      tgtMask,
      memoryMask,
      tgtKeyPaddingMask,
      memoryKeyPaddingMask,
      tgtIsCausal,
      memoryIsCausal,
    }) as Tensor;
  }
}

function copies(layer: Module, count: number): ModuleList {
  return new ModuleList(Array.from({ length: count }, () => deepCopy(layer)));
}

markBuiltin({ TransformerEncoder, TransformerDecoder, Transformer });
