/**
 * The classes of modules as PyTorch names them in programs, with the Python module in front.
 *
 * @module
 */
import { builtinNameOf } from "./builtin.ts";
import type { Module } from "./module.ts";

/** The files of `torch.nn.modules`, and the classes in them. */
const CLASSES: Readonly<Record<string, string>> = {
  activation:
    "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish " +
    "MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin Softplus " +
    "Softshrink Softsign Tanh Tanhshrink Threshold",
  adaptive: "AdaptiveLogSoftmaxWithLoss",
  batchnorm: "BatchNorm1d BatchNorm2d BatchNorm3d",
  channelshuffle: "ChannelShuffle",
  container: "ModuleDict ModuleList ParameterDict ParameterList Sequential",
  conv: "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
  distance: "CosineSimilarity PairwiseDistance",
  dropout: "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
  flatten: "Flatten Unflatten",
  fold: "Fold Unfold",
  instancenorm: "InstanceNorm1d InstanceNorm2d InstanceNorm3d",
  linear: "Bilinear Identity Linear NonDynamicallyQuantizableLinear",
  loss:
    "BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss " +
    "HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss MarginRankingLoss " +
    "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PoissonNLLLoss SmoothL1Loss " +
    "SoftMarginLoss TripletMarginLoss TripletMarginWithDistanceLoss",
  normalization: "GroupNorm LayerNorm LocalResponseNorm RMSNorm",
  padding:
    "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d " +
    "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d ZeroPad2d " +
    "ZeroPad3d",
  pixelshuffle: "PixelShuffle PixelUnshuffle",
  pooling:
    "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d " +
    "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d LPPool1d " +
    "LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d",
  rnn: "GRU GRUCell LSTM LSTMCell RNN RNNCell",
  sparse: "Embedding EmbeddingBag",
  transformer: "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
  upsampling: "Upsample UpsamplingBilinear2d UpsamplingNearest2d",
};

const files: ReadonlyMap<string, string> = new Map(
  Object.entries(CLASSES).flatMap(([file, names]) => names.split(" ").map((it) => [it, file])),
);

/**
 * The class of a module as programs name it: `torch.nn.modules.linear.Linear` for those of `torch.nn`, and the name alone for
 * others, since JavaScript does not tell in which file a class is.
 */
export function qualifiedNameOf(module: Module): string {
  const file = files.get(builtinNameOf(module.constructor) ?? "");
  return file === undefined ? module.className : `torch.nn.modules.${file}.${module.className}`;
}
