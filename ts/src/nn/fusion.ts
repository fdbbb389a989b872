/**
 * Layers with a batch normalization taken into their weights: `torch.nn.utils.fusion`.
 *
 * @module
 */
import { isObject } from "../base/objects.ts";
import { checkGiven } from "../base/given.ts";
import { fxError } from "../base/errors.ts";
import { OPERATORS } from "../torch/operators.ts";
import type { BatchNorm1d, BatchNorm2d, BatchNorm3d } from "./batchNorm.ts";
import type { Conv1d, Conv2d, Conv3d } from "./conv.ts";
import { deepCopy } from "./deepCopy.ts";
import type { Linear } from "./linear.ts";
import { Parameter } from "./parameter.ts";

type BatchNorm = BatchNorm1d | BatchNorm2d | BatchNorm3d;

/**
 * A copy of a convolution that does what it and the batch normalization after it do in evaluation: `fuse_conv_bn_eval`.
 * With running mean `m` and variance `v`, scale `w` and shift `b`, each output channel is multiplied by
 * `s = w / sqrt(v + eps)`, and its bias becomes `(bias - m) * s + b`.
 *
 * @example
 * ```ts
 * const fused = fuseConvBnEval(conv.eval(), bn.eval());
 * ```
 */
export function fuseConvBnEval<C extends Conv1d | Conv2d | Conv3d>(conv: C, bn: BatchNorm): C {
  return fused(conv, bn);
}

/**
 * A copy of a linear layer that does what it and the batch normalization after it do in evaluation: `fuse_linear_bn_eval`.
 *
 * @example
 * ```ts
 * const fused = fuseLinearBnEval(linear.eval(), bn.eval());
 * ```
 */
export function fuseLinearBnEval(linear: Linear, bn: BatchNorm1d): Linear {
  return fused(linear, bn);
}

function fused<L extends Conv1d | Conv2d | Conv3d | Linear>(layer: L, bn: BatchNorm): L {
  const areModules = [layer, bn].every((it) => isObject(it) && "training" in it);
  checkGiven("fusion", areModules, "a layer and a batch norm", "fuseConvBnEval(conv, bn)");
  if (layer.training || bn.training) {
    throw fxError("InvalidArgument", "Fusion only for eval!", { help: "call eval() on the model first" });
  }
  const { running_mean: mean, running_var: variance, eps } = bn;
  if (mean === null || variance === null) {
    throw fxError("InvalidArgument", "a batch normalization without running statistics cannot be fused");
  }
  const res = deepCopy(layer);
  const { weight } = res;
  const scale = OPERATORS.torch.rsqrt(OPERATORS.torch.add(variance, eps));
  const factor = bn.weight === null ? scale : OPERATORS.torch.mul(bn.weight, scale);
  const shape = [-1, ...Array.from(weight.shape.slice(1), () => 1)];
  const centred = res.bias === null ? OPERATORS.torch.neg(mean) : OPERATORS.torch.sub(res.bias, mean);
  const shifted = OPERATORS.torch.mul(centred, factor);
  res.weight = new Parameter(OPERATORS.torch.mul(weight, OPERATORS.torch.reshape(factor, shape)));
  res.bias = new Parameter(bn.bias === null ? shifted : OPERATORS.torch.add(shifted, bn.bias));
  return res;
}
