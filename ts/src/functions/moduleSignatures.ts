/**
 * What the modules of `torch.nn` are called with.
 *
 * @module
 */
import { isBuiltinModule } from "../nn/builtin.ts";
import type { Module } from "../nn/module.ts";

/** The parameter lists of PyTorch that are not `(input)`, and the classes that have them. */
const SIGNATURES: Readonly<Record<string, string>> = {
  "(input, target)":
    "BCELoss BCEWithLogitsLoss CrossEntropyLoss HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss " +
    "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss NLLLoss2d SmoothL1Loss SoftMarginLoss",
  "(*input)": "ModuleDict ModuleList ParameterDict ParameterList",
  "(input, output_size=None)":
    "ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d",
  "(input, hx=None)": "GRU GRUCell LSTM LSTMCell RNN RNNCell",
  "(input, indices, output_size=None)": "MaxUnpool1d MaxUnpool2d MaxUnpool3d",
  "(input1, input2, target)": "CosineEmbeddingLoss MarginRankingLoss",
  "(x1, x2)": "CosineSimilarity PairwiseDistance",
  "(anchor, positive, negative)": "TripletMarginLoss TripletMarginWithDistanceLoss",
  "(input_, target_)": "AdaptiveLogSoftmaxWithLoss",
  "(input1, input2)": "Bilinear",
  "(log_probs, targets, input_lengths, target_lengths)": "CTCLoss",
  "(input, offsets=None, per_sample_weights=None)": "EmbeddingBag",
  "(input, target, var)": "GaussianNLLLoss",
  "(query, key, value, key_padding_mask=None, need_weights=True, attn_mask=None, average_attn_weights=True, is_causal=False)":
    "MultiheadAttention",
  "(log_input, target)": "PoissonNLLLoss",
  "(x)": "RMSNorm",
  "(src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal=None, tgt_is_causal=None, memory_is_causal=False)":
    "Transformer",
  "(tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=None, memory_is_causal=False)":
    "TransformerDecoder",
  "(tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None, tgt_is_causal=False, memory_is_causal=False)":
    "TransformerDecoderLayer",
  "(src, mask=None, src_key_padding_mask=None, is_causal=None)": "TransformerEncoder",
  "(src, src_mask=None, src_key_padding_mask=None, is_causal=False)": "TransformerEncoderLayer",
};

const byClass: ReadonlyMap<string, string> = new Map(
  Object.entries(SIGNATURES).flatMap(([signature, names]) =>
    names.split(" ").map((name) => [name, signature] as const),
  ),
);

/** The parameter list of a module's `forward` in PyTorch; `undefined` for a module that is none of `torch.nn`'s. */
export function forwardSignatureOf(module: Module): string | undefined {
  return isBuiltinModule(module) ? (byClass.get(module.className) ?? "(input)") : undefined;
}
