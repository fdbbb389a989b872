/**
 * `torch.nn`: modules, the layers that they are made of, and what loads their weights.
 *
 * Not here are the lazy modules, whose parameters have no size before the first call: a trace would have nothing to read.
 * Nor are `SyncBatchNorm`, since there is one process, `CrossMapLRN2d` (use {@link LocalResponseNorm}), and the deprecated
 * `Container` and `NLLLoss2d`.
 *
 * @module
 */
// oxlint-disable-next-line import/no-unassigned-import -- puts members on tensors
import "../torch/install.ts";

export * from "./activation.ts";
export * from "./adaptivePooling.ts";
export * from "./adaptiveSoftmax.ts";
export type { FactoryOptions } from "./arguments.ts";
export * from "./attention.ts";
export {
  BatchNorm1d,
  BatchNorm2d,
  BatchNorm3d,
  InstanceNorm1d,
  InstanceNorm2d,
  InstanceNorm3d,
  type NormOptions,
} from "./batchNorm.ts";
export { isBuiltinModule } from "./builtin.ts";
export * from "./classificationLoss.ts";
export { ModuleDict, ModuleList, type NamedModules, Sequential } from "./container.ts";
export { Conv1d, Conv2d, Conv3d, type ConvOptions, type PaddingMode } from "./conv.ts";
export * from "./convTranspose.ts";
export { skipInit } from "./deferred.ts";
export * from "./distance.ts";
export * from "./dropout.ts";
export * from "./embedding.ts";
export { functionalCall, type FunctionalCallOptions } from "./functionalCall.ts";
export * as functional from "../torch/functional/index.ts";
export * as init from "./init.ts";
export {
  Bilinear,
  type BilinearOptions,
  Identity,
  Linear,
  type LinearOptions,
  NonDynamicallyQuantizableLinear,
} from "./linear.ts";
export {
  CosineEmbeddingLoss,
  GaussianNLLLoss,
  type GaussianNLLLossOptions,
  HingeEmbeddingLoss,
  HuberLoss,
  type HuberLossOptions,
  KLDivLoss,
  type KLDivLossOptions,
  L1Loss,
  type LossOptions,
  type MarginLossOptions,
  MarginRankingLoss,
  MSELoss,
  MultiLabelMarginLoss,
  PoissonNLLLoss,
  type PoissonNLLLossOptions,
  type Reduction,
  SmoothL1Loss,
  type SmoothL1LossOptions,
  SoftMarginLoss,
  TripletMarginLoss,
  type TripletMarginLossOptions,
  type WeightedLossOptions,
} from "./loss.ts";
export {
  type Attribute,
  type BufferOptions,
  type ForwardHook,
  type ForwardPreHook,
  type Handle,
  Module,
} from "./module.ts";
export type { NamedOptions, NamedTensorOptions } from "./named.ts";
export * from "./normalization.ts";
export * as rnn from "./packed.ts";
export * from "./padding.ts";
export { Parameter, type ParameterOptions } from "./parameter.ts";
export * from "./parameterContainer.ts";
export * from "./pooling.ts";
export {
  CELU,
  ELU,
  type ELUOptions,
  Hardtanh,
  type HardtanhOptions,
  type InplaceOptions,
  LeakyReLU,
  type LeakyReLUOptions,
  PReLU,
  type PReLUOptions,
  ReLU,
  ReLU6,
  RReLU,
  type RReLUOptions,
  SELU,
  Threshold,
  type ThresholdOptions,
} from "./rectifier.ts";
export { fuseConvBnEval, fuseLinearBnEval } from "./fusion.ts";
export * from "./recurrent.ts";
export * from "./recurrentCells.ts";
export * from "./reshaping.ts";
export type { Scalar, Size } from "./sizes.ts";
export * from "./softmax.ts";
export type { LoadResult, LoadStateOptions, StateSource } from "./stateDict.ts";
export * from "./transformer.ts";
export {
  type Activation,
  type DecoderLayerCallOptions,
  type EncoderLayerCallOptions,
  TransformerDecoderLayer,
  TransformerEncoderLayer,
  type TransformerLayerOptions,
} from "./transformerLayers.ts";
export * from "./upsampling.ts";
