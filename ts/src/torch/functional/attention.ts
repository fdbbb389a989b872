/**
 * Attention.
 *
 * @module
 */
import { areSame, isSame, product, textOf } from "../../base/sizes.ts";
import type { Real } from "../../base/types.ts";
import { tuple } from "../../graph/args.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, atenResults, atenWith, refuse, sameShape, shapeIs, tupleText, valueOf } from "./aten.ts";
import { define, defineBuiltin, recordNamed } from "./define.ts";
import { checkKeyPaddingMask, checkShapes, canonicalMask } from "./attentionMask.ts";

/** Options of {@link scaledDotProductAttention}. */
export interface ScaledDotProductAttentionOptions {
  /** What is added to the products, or, where it is boolean, which of them count. */
  readonly attnMask?: Tensor | null;
  /** How likely a weight becomes zero; default 0. */
  readonly dropoutP?: Real;
  /** Whether each query sees only the keys up to its own place; default `false`. */
  readonly isCausal?: boolean;
  /** What the products are multiplied by; default `1 / sqrt(E)`. */
  readonly scale?: Real | null;
  /** Whether several heads of the query share one of key and value; default `false`. */
  readonly enableGqa?: boolean;
}

/**
 * `softmax(query @ key.T * scale + mask) @ value`: `(N, …, L, E)`, `(N, …, S, E)` and `(N, …, S, Ev)` give `(N, …, L, Ev)`.
 *
 * @example
 * ```ts
 * F.scaledDotProductAttention(q, k, v, { isCausal: true });
 * ```
 */
export const scaledDotProductAttention = defineBuiltin<
  [query: Tensor, key: Tensor, value: Tensor, attnMask?: Tensor | null, dropoutP?: Real, isCausal?: boolean],
  ScaledDotProductAttentionOptions,
  Tensor,
  [scale: Real | null, enableGqa: boolean]
>(
  "scaled_dot_product_attention",
  "torch._C._nn.scaled_dot_product_attention",
  "(query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False)",
  (query, key, value, mask, dropoutP, isCausal, scale, enableGqa) =>
    atenWith(
      { scale, enable_gqa: enableGqa },
      "scaled_dot_product_attention",
      query,
      key,
      value,
      mask,
      dropoutP,
      isCausal,
    ),
);

/** Options of {@link multiHeadAttentionForward}. */
export interface MultiHeadAttentionOptions {
  /** Whether weights become zero at random; default `true`. */
  readonly training?: boolean;
  /** Which keys do not count, `(N, S)`: `true`, or a number that is added. */
  readonly keyPaddingMask?: Tensor | null;
  /** Whether the weights are given too; default `true`. */
  readonly needWeights?: boolean;
  /** Which keys do not count for which query, `(L, S)` or `(N * heads, L, S)`: `true`, or a number that is added. */
  readonly attnMask?: Tensor | null;
  /** Whether query, key and value have matrices of their own; default `false`. */
  readonly useSeparateProjWeight?: boolean;
  /** The matrix of the query, `(E, E)`, where each has its own. */
  readonly qProjWeight?: Tensor | null;
  /** The matrix of the key, `(E, Ek)`, where each has its own. */
  readonly kProjWeight?: Tensor | null;
  /** The matrix of the value, `(E, Ev)`, where each has its own. */
  readonly vProjWeight?: Tensor | null;
  /** Keys to take instead of those that are computed, `(N * heads, S, E / heads)`. */
  readonly staticK?: Tensor | null;
  /** Values to take instead of those that are computed, `(N * heads, S, E / heads)`. */
  readonly staticV?: Tensor | null;
  /** Whether the mean of the weights of all heads is given, or those of each; default the mean. */
  readonly averageAttnWeights?: boolean;
  /** Says that `attnMask` is the causal one, which is faster where no weights are needed; default `false`. */
  readonly isCausal?: boolean;
}

type MultiHeadAttention = [
  query: Tensor,
  key: Tensor,
  value: Tensor,
  embedDimToCheck: number,
  numHeads: number,
  inProjWeight: Tensor | null,
  inProjBias: Tensor | null,
  biasK: Tensor | null,
  biasV: Tensor | null,
  addZeroAttn: boolean,
  dropoutP: Real,
  outProjWeight: Tensor,
  outProjBias: Tensor | null,
  training?: boolean,
  keyPaddingMask?: Tensor | null,
  needWeights?: boolean,
  attnMask?: Tensor | null,
  useSeparateProjWeight?: boolean,
  qProjWeight?: Tensor | null,
  kProjWeight?: Tensor | null,
  vProjWeight?: Tensor | null,
  staticK?: Tensor | null,
  staticV?: Tensor | null,
  averageAttnWeights?: boolean,
  isCausal?: boolean,
];

const NAME = "multi_head_attention_forward";

/**
 * Attention of several heads, with its projections: `query` is `(L, N, E)`, `key` `(S, N, Ek)` and `value` `(S, N, Ev)`, all
 * of them without `N` where there is no batch. Gives the output, of the shape of `query`, and the weights, `(N, L, S)`, or
 * `null` where they are not needed.
 *
 * @example
 * ```ts
 * const [output, weights] = F.multiHeadAttentionForward(
 *   x, x, x, 8, 2, inProjWeight, inProjBias, null, null, false, 0, outProjWeight, outProjBias, { training: false },
 * );
 * ```
 */
export const multiHeadAttentionForward = define<
  MultiHeadAttention,
  MultiHeadAttentionOptions,
  readonly [output: Tensor, weights: Tensor | null]
>(
  NAME,
  "(query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training=True, key_padding_mask=None, need_weights=True, attn_mask=None, use_separate_proj_weight=False, q_proj_weight=None, k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None, average_attn_weights=True, is_causal=False)",
  (...args) => tuple(...attend(...args)) as unknown as readonly [Tensor, Tensor | null],
  // PyTorch passes its last argument on right after attn_mask.
  (recorder, bound, signature) => {
    const order = [...bound.keys()].filter((at) => at !== 24);
    order.splice(17, 0, 24);
    const pick = <T>(from: readonly T[]): T[] => order.map((at) => from[at] as T);
    return recordNamed(() => NAME)(recorder, pick(bound), pick(signature));
  },
);

function attend(
  ...[
    queryGiven,
    keyGiven,
    valueGiven,
    embedDimToCheck,
    numHeads,
    inProjWeight,
    inProjBias,
    biasK,
    biasV,
    addZeroAttn,
    dropoutP,
    outProjWeight,
    outProjBias,
    training,
    keyPaddingGiven,
    needWeights,
    attnMaskGiven,
    useSeparateProjWeight,
    qProjWeight,
    kProjWeight,
    vProjWeight,
    staticK,
    staticV,
    averageAttnWeights,
    isCausal,
  ]: Required<MultiHeadAttention>
): readonly [Tensor, Tensor | null] {
  const isBatched = checkShapes(queryGiven, keyGiven, valueGiven, keyPaddingGiven, attnMaskGiven, numHeads);
  const batched = (it: Tensor): Tensor => (isBatched ? it : aten("unsqueeze", it, 1));
  const query = batched(queryGiven);
  const key = keyGiven === queryGiven ? query : batched(keyGiven);
  const value = valueGiven === keyGiven ? key : batched(valueGiven);
  const [length, batch] = query.shape as [number, number, number];
  const given = keyPaddingGiven !== null && !isBatched ? aten("unsqueeze", keyPaddingGiven, 0) : keyPaddingGiven;
  let padding = canonicalMask(given, "key_padding_mask", query.dtype);
  if (isCausal && attnMaskGiven === null) {
    throw refuse(
      "InvalidArgument",
      "Need attn_mask if specifying the is_causal hint.",
      "Transformer.generateSquareSubsequentMask makes the mask",
    );
  }
  const isPlainCausal = isCausal && padding === null && !needWeights;
  let mask = isPlainCausal ? null : canonicalMask(attnMaskGiven, "attn_mask", query.dtype);
  if (!isSame(query.shape[2], embedDimToCheck)) {
    const reason = `was expecting embedding dimension of ${embedDimToCheck}, but got ${textOf(query.shape[2])}`;
    throw refuse("ShapeMismatch", reason);
  }
  const embedDim = embedDimToCheck;
  const headDim = Math.floor(embedDim / numHeads);
  if (headDim * numHeads !== embedDim) {
    throw refuse("InvalidArgument", `embed_dim ${embedDim} not divisible by num_heads ${numHeads}`);
  }
  const projections = useSeparateProjWeight
    ? separately([query, key, value], embedDim, [qProjWeight, kProjWeight, vProjWeight], inProjBias)
    : packed([query, key, value], embedDim, inProjWeight, inProjBias);
  const [q] = projections;
  let [, k, v] = projections;
  const heads = product(batch, numHeads);
  mask = mask === null ? null : perHead(mask, [length, key.shape[0] as number], heads);
  if (biasK !== null && biasV !== null) {
    if (staticK !== null) throw refuse("InvalidArgument", "bias cannot be added to static key.");
    if (staticV !== null) throw refuse("InvalidArgument", "bias cannot be added to static value.");
    k = aten("cat", [k, aten("repeat", biasK, [1, batch, 1])]);
    v = aten("cat", [v, aten("repeat", biasV, [1, batch, 1])]);
    [mask, padding] = [oneMoreKey(mask), oneMoreKey(padding)];
  } else if (biasK !== null || biasV !== null) {
    const [set, missing] = biasK !== null ? ["bias_k", "bias_v"] : ["bias_v", "bias_k"];
    throw refuse("InvalidArgument", `${set} is set but ${missing} is None`);
  }
  const split = (it: Tensor): Tensor =>
    aten("transpose", aten("view", it, [it.shape[0] as number, heads, headDim]), 0, 1);
  const queries = split(q);
  let keys = staticK === null ? split(k) : requireStatic("static_k", staticK, heads, headDim);
  let values = staticV === null ? split(v) : requireStatic("static_v", staticV, heads, headDim);
  if (addZeroAttn) {
    const zero = aten("new_zeros", keys, [heads, 1, headDim]);
    keys = aten("cat", [keys, zero], 1);
    values = aten("cat", [values, zero], 1);
    [mask, padding] = [oneMoreKey(mask), oneMoreKey(padding)];
  }
  const sources = keys.shape[1] as number;
  if (padding !== null) {
    checkKeyPaddingMask(padding, sources, batch);
    const expanded = aten("expand", aten("view", padding, [batch, 1, 1, sources]), [-1, numHeads, -1, -1]);
    const perKey = aten("reshape", expanded, [heads, 1, sources]);
    mask = mask === null ? perKey : aten("add", mask, perKey);
  }
  const probability = training ? dropoutP : 0;
  const project = (it: Tensor, rows: number): Tensor => {
    const output = aten("linear", aten("reshape", it, [rows, embedDim]), outProjWeight, outProjBias);
    const shaped = aten("view", output, [length, batch, output.shape[1] as number]);
    return isBatched ? shaped : aten("squeeze", shaped, 1);
  };
  if (!needWeights) {
    const byHead = (it: Tensor): Tensor => aten("view", it, [batch, numHeads, it.shape[1] as number, headDim]);
    const attended = aten(
      "scaled_dot_product_attention",
      byHead(queries),
      byHead(keys),
      byHead(values),
      mask === null ? null : maskByHead(mask, batch, numHeads),
      probability,
      isPlainCausal,
    );
    return [project(aten("permute", attended, [2, 0, 1, 3]), product(batch, length)), null];
  }
  const scaled = aten("mul", queries, Math.sqrt(1 / headDim));
  const turned = aten("transpose", keys, -2, -1);
  const products = mask === null ? aten("bmm", scaled, turned) : aten("baddbmm", mask, scaled, turned);
  const softened = aten("softmax.int", products, -1);
  const weights = valueOf(probability) > 0 ? aten("dropout", softened, probability, true) : softened;
  const output = project(aten("transpose", aten("bmm", weights, values), 0, 1), product(length, batch));
  const each = aten("view", weights, [batch, numHeads, length, sources]);
  const shown = averageAttnWeights ? aten("mean", each, [1]) : each;
  return [output, isBatched ? shown : aten("squeeze", shown, 0)];
}

/** A mask for one key more, which all queries see. */
function oneMoreKey(mask: Tensor | null): Tensor | null {
  return mask === null ? null : aten("pad", mask, [0, 1]);
}

type Three = readonly [query: Tensor, key: Tensor, value: Tensor];

/** The projections by one matrix for all three, each of this width. */
function packed([query, key, value]: Three, width: number, weight: Tensor | null, bias: Tensor | null): Three {
  if (!sameShape(key, value)) {
    const reason = `key shape ${tupleText(key.shape)} does not match value shape ${tupleText(value.shape)}`;
    throw refuse("ShapeMismatch", reason);
  }
  if (weight === null) {
    throw refuse("InvalidArgument", "use_separate_proj_weight is False but in_proj_weight is None");
  }
  if (key === value) {
    if (query === key) return apart(aten("linear", query, weight, bias), 3, width) as unknown as Three;
    const [ofQuery, ofKeys] = atenResults("split", weight, [width, 2 * width]);
    const [biasOfQuery, biasOfKeys] = bias === null ? [] : atenResults("split", bias, [width, 2 * width]);
    const projected = aten("linear", query, ofQuery, biasOfQuery ?? null);
    const [k, v] = apart(aten("linear", key, ofKeys, biasOfKeys ?? null), 2, width);
    return [projected, k as Tensor, v as Tensor];
  }
  const weights = atenResults("chunk", weight, 3);
  const biases = bias === null ? [] : atenResults("chunk", bias, 3);
  const [q, k, v] = [query, key, value].map((it, at) => aten("linear", it, weights[at], biases[at] ?? null));
  return [q as Tensor, k as Tensor, v as Tensor];
}

/** Projections that were computed side by side, each with its elements together. */
function apart(projected: Tensor, count: number, width: number): Tensor[] {
  const parts = aten("unsqueeze", aten("unflatten", projected, -1, [count, width]), 0);
  const each = aten("contiguous", aten("squeeze", aten("transpose", parts, 0, -2), -2));
  return Array.from({ length: count }, (_, at) => aten("select", each, 0, at));
}

/** The projections by a matrix for each. */
function separately(
  inputs: Three,
  embedDim: number,
  weights: readonly [Tensor | null, Tensor | null, Tensor | null],
  bias: Tensor | null,
): Three {
  const [, key, value] = inputs;
  if (!areSame(key.shape.slice(0, 2), value.shape.slice(0, 2))) {
    const [keys, values] = [tupleText(key.shape.slice(0, 2)), tupleText(value.shape.slice(0, 2))];
    throw refuse("ShapeMismatch", `key's sequence and batch dims ${keys} do not match value's ${values}`);
  }
  const biases = bias === null ? [] : atenResults("chunk", bias, 3);
  const [q, k, v] = inputs.map((input, at) => {
    const letter = ["q", "k", "v"][at] as string;
    const weight = weights[at];
    if (weight === null || weight === undefined) {
      throw refuse("InvalidArgument", `use_separate_proj_weight is True but ${letter}_proj_weight is None`);
    }
    const wanted = [embedDim, input.shape[2] as number];
    if (!shapeIs(weight, wanted)) {
      const what = ["query", "key", "value"][at] as string;
      const reason = `expecting ${what} weights shape of ${tupleText(wanted)}, but got ${tupleText(weight.shape)}`;
      throw refuse("ShapeMismatch", reason);
    }
    return aten("linear", input, weight, biases[at] ?? null);
  });
  return [q as Tensor, k as Tensor, v as Tensor];
}

/** A mask of queries and keys with a dimension for the heads. */
function perHead(mask: Tensor, sizes: readonly [number, number], heads: number): Tensor {
  const dims = mask.shape.length;
  const wanted = dims === 2 ? sizes : [heads, ...sizes];
  if (!shapeIs(mask, wanted)) {
    const shape = tupleText(mask.shape);
    throw refuse(
      "ShapeMismatch",
      `The shape of the ${dims}D attn_mask is ${shape}, but should be ${tupleText(wanted)}.`,
    );
  }
  return dims === 2 ? aten("unsqueeze", mask, 0) : mask;
}

/** A mask as scaled dot product attention takes it. */
function maskByHead(mask: Tensor, batch: number, heads: number): Tensor {
  if (mask.shape.length === 3 && isSame(mask.shape[0], 1)) return aten("unsqueeze", mask, 0);
  return aten("view", mask, [batch, heads, -1, mask.shape.at(-1) as number]);
}

function requireStatic(name: string, given: Tensor, heads: number, headDim: number): Tensor {
  if (!isSame(given.shape[0], heads)) {
    throw refuse("ShapeMismatch", `expecting ${name}.size(0) of ${textOf(heads)}, but got ${textOf(given.shape[0])}`);
  }
  if (!isSame(given.shape[2], headDim)) {
    throw refuse("ShapeMismatch", `expecting ${name}.size(2) of ${headDim}, but got ${textOf(given.shape[2])}`);
  }
  return given;
}
