/**
 * `torch.nn.functional`: PyTorch's functions of neural networks, with its names in camel case, its parameters and its
 * numbers.
 *
 * Every function takes its arguments by position, as in Python, and then in an object those that have a name of their own.
 * Called with a traced value it records what PyTorch records.
 *
 * @example
 * ```ts
 * import { F } from "tracefx";
 * F.conv2d(image, weight, bias, { padding: 1 });
 * ```
 * @module
 */
export * from "./activation.ts";
export * from "./adaptivePooling.ts";
export * from "./attention.ts";
export * from "./classLoss.ts";
export * from "./convolution.ts";
export * from "./distance.ts";
export * from "./distanceLoss.ts";
export * from "./dropout.ts";
export * from "./embedding.ts";
export * from "./fold.ts";
export * from "./grid.ts";
export * from "./linear.ts";
export * from "./linearCrossEntropy.ts";
export * from "./maxPooling.ts";
export * from "./normalization.ts";
export * from "./pad.ts";
export * from "./pooling.ts";
export * from "./rectifier.ts";
export * from "./regressionLoss.ts";
export * from "./resample.ts";
export * from "./scaledMatmul.ts";
export * from "./softmax.ts";
