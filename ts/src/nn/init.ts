/**
 * Initial values of parameters: `torch.nn.init`.
 *
 * Every function changes the tensor that it is given and gives it back. With the same seed the values are PyTorch's.
 *
 * @example
 * ```ts
 * init.kaimingNormal_(conv.weight, { mode: "fan_out", nonlinearity: "relu" });
 * ```
 * @module
 */
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../base/errors.ts";
import { Tensor } from "../tensor/tensor.ts";
import { onEngine } from "./deferred.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

/** Functions that {@link calculateGain} knows. */
export type Nonlinearity =
  | "linear"
  | "conv1d"
  | "conv2d"
  | "conv3d"
  | "conv_transpose1d"
  | "conv_transpose2d"
  | "conv_transpose3d"
  | "sigmoid"
  | "tanh"
  | "relu"
  | "leaky_relu"
  | "selu";

/** How the Kaiming initialisations scale. */
export interface KaimingOptions {
  /** The negative slope of the leaky ReLU that follows; 0 by default. */
  readonly a?: number;
  /** Whether the variance is kept forward (`fan_in`, the default) or backward. */
  readonly mode?: "fan_in" | "fan_out";
  /** What follows the layer; `leaky_relu` by default. */
  readonly nonlinearity?: Nonlinearity;
}

/** The gain that PyTorch recommends for a nonlinearity; `param` is the negative slope of a leaky ReLU. */
export function calculateGain(nonlinearity: Nonlinearity, param?: number | null): number {
  switch (nonlinearity) {
    case "linear":
    case "conv1d":
    case "conv2d":
    case "conv3d":
    case "conv_transpose1d":
    case "conv_transpose2d":
    case "conv_transpose3d":
    case "sigmoid":
      return 1;
    case "tanh":
      return 5 / 3;
    case "relu":
      return Math.sqrt(2);
    case "leaky_relu": {
      const slope = param ?? 0.01;
      if (typeof slope !== "number") throw refused(`negative_slope ${String(slope)} not a valid number`);
      return Math.sqrt(2 / (1 + slope ** 2));
    }
    case "selu":
      return 3 / 4;
    default:
      throw refused(`Unsupported nonlinearity ${String(nonlinearity satisfies never)}`);
  }
}

/** The numbers of inputs and outputs of one unit of a layer with this weight. */
export function calculateFanInAndFanOut(tensor: Tensor): readonly [fanIn: number, fanOut: number] {
  checkTensor("calculateFanInAndFanOut", tensor);
  const [outputs, inputs, ...kernel] = tensor.shape;
  if (outputs === undefined || inputs === undefined) {
    throw refused("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions");
  }
  const field = kernel.reduce((product, size) => product * size, 1);
  return [inputs * field, outputs * field];
}

/** Draws from the uniform distribution between `a` and `b`. */
export function uniform_<T extends Tensor>(tensor: T, a = 0, b = 1): T {
  checkTensor("uniform_", tensor);
  return changed(tensor, () => callOperator("aten.uniform_", [tensor, a, b]));
}

/** Draws from a normal distribution. */
export function normal_<T extends Tensor>(tensor: T, mean = 0, std = 1): T {
  checkTensor("normal_", tensor);
  return changed(tensor, () => callOperator("aten.normal_", [tensor, mean, std]));
}

/** Draws from a normal distribution again until every value lies between `a` and `b`. */
export function truncNormal_<T extends Tensor>(tensor: T, mean = 0, std = 1, a = -2, b = 2): T {
  checkTensor("truncNormal_", tensor);
  return changed(tensor, () => {
    const inside = normalCdf((b - mean) / std) - normalCdf((a - mean) / std);
    if (inside > 0.3) redraw(tensor, mean, std, a, b);
    else reject(tensor, mean, std, a, b);
  });
}

/** Fills with a number. */
export function constant_<T extends Tensor>(tensor: T, value: number): T {
  checkTensor("constant_", tensor);
  return changed(tensor, () => callOperator("aten.fill_", [tensor, value]));
}

/** Fills with ones. */
export function ones_<T extends Tensor>(tensor: T): T {
  checkTensor("ones_", tensor);
  return constant_(tensor, 1);
}

/** Fills with zeros. */
export function zeros_<T extends Tensor>(tensor: T): T {
  checkTensor("zeros_", tensor);
  return changed(tensor, () => callOperator("aten.zero_", [tensor]));
}

/** Makes a matrix the identity, as far as it goes. */
export function eye_<T extends Tensor>(tensor: T): T {
  checkTensor("eye_", tensor);
  const [rows, columns] = tensor.shape;
  if (tensor.shape.length !== 2) throw refused("Only tensors with 2 dimensions are supported");
  return changed(tensor, () => {
    const eye = callOperator("aten.eye", [rows, columns], { dtype: tensor.dtype });
    callOperator("aten.copy_", [tensor, eye]);
  });
}

/** Makes the weight of a convolution pass its input on, as far as there are channels; in each of `groups` groups. */
export function dirac_<T extends Tensor>(tensor: T, groups = 1): T {
  checkTensor("dirac_", tensor);
  const { shape } = tensor;
  const [outputs = 0, inputs = 0, ...kernel] = shape;
  if (shape.length < 3 || shape.length > 5) throw refused("Only tensors with 3, 4, or 5 dimensions are supported");
  if (outputs % groups !== 0) throw refused("dim 0 must be divisible by groups");
  const perGroup = outputs / groups;
  return changed(tensor, () => {
    callOperator("aten.zero_", [tensor]);
    for (let group = 0; group < groups; group++) {
      for (let channel = 0; channel < Math.min(perGroup, inputs); channel++) {
        const place = [group * perGroup + channel, channel, ...kernel.map((size) => Math.floor(size / 2))];
        let element: unknown = tensor;
        for (const index of place) element = callOperator("aten.select", [element, 0, index]);
        callOperator("aten.fill_", [element, 1]);
      }
    }
  });
}

/** Glorot's uniform initialisation. */
export function xavierUniform_<T extends Tensor>(tensor: T, gain = 1): T {
  checkTensor("xavierUniform_", tensor);
  const [fanIn, fanOut] = calculateFanInAndFanOut(tensor);
  const bound = Math.sqrt(3) * (gain * Math.sqrt(2 / (fanIn + fanOut)));
  return uniform_(tensor, -bound, bound);
}

/** Glorot's normal initialisation. */
export function xavierNormal_<T extends Tensor>(tensor: T, gain = 1): T {
  checkTensor("xavierNormal_", tensor);
  const [fanIn, fanOut] = calculateFanInAndFanOut(tensor);
  return normal_(tensor, 0, gain * Math.sqrt(2 / (fanIn + fanOut)));
}

const KAIMING = ["a", "mode", "nonlinearity"] as const;

/** He's uniform initialisation. */
export function kaimingUniform_<T extends Tensor>(tensor: T, options: KaimingOptions = {}): T {
  checkTensor("kaimingUniform_", tensor);
  checkOptions("kaimingUniform_", options, KAIMING);
  if (tensor.shape.includes(0)) return tensor;
  const bound = Math.sqrt(3) * kaimingStd(tensor, options);
  return uniform_(tensor, -bound, bound);
}

/** He's normal initialisation. */
export function kaimingNormal_<T extends Tensor>(tensor: T, options: KaimingOptions = {}): T {
  checkTensor("kaimingNormal_", tensor);
  checkOptions("kaimingNormal_", options, KAIMING);
  return tensor.shape.includes(0) ? tensor : normal_(tensor, 0, kaimingStd(tensor, options));
}

/** Makes the rows, or the columns where there are fewer, orthogonal to each other. */
export function orthogonal_<T extends Tensor>(tensor: T, gain = 1): T {
  checkTensor("orthogonal_", tensor);
  const [rows = 0] = tensor.shape;
  if (tensor.shape.length < 2) throw refused("Only tensors with 2 or more dimensions are supported");
  if (tensor.shape.includes(0)) return tensor;
  return changed(tensor, () => {
    const columns = tensor.numel() / rows;
    const drawn = callOperator("aten.new_empty", [tensor, [rows, columns]]);
    callOperator("aten.normal_", [drawn, 0, 1]);
    const isWide = rows < columns;
    const tall = isWide ? callOperator("aten.t", [drawn]) : drawn;
    const [q, r] = callOperator("aten.linalg_qr", [tall]) as [Tensor, Tensor];
    const signs = callOperator("aten.sign", [callOperator("aten.diagonal", [r])]);
    const signed = callOperator("aten.mul", [q, signs]);
    const turned = isWide ? callOperator("aten.t", [signed]) : signed;
    callOperator("aten.copy_", [tensor, callOperator("aten.reshape", [turned, tensor.shape])]);
    callOperator("aten.mul_", [tensor, gain]);
  });
}

/** Draws from a normal distribution, and makes this part of each column zeros. */
export function sparse_<T extends Tensor>(tensor: T, sparsity: number, std = 0.01): T {
  checkTensor("sparse_", tensor);
  const [rows = 0, columns = 0] = tensor.shape;
  if (tensor.shape.length !== 2) throw refused("Only tensors with 2 dimensions are supported");
  return changed(tensor, () => {
    callOperator("aten.normal_", [tensor, 0, std]);
    const zeros = Math.ceil(sparsity * rows);
    for (let column = 0; column < columns; column++) {
      const chosen = callOperator("aten.slice", [callOperator("aten.randperm", [rows]), 0, 0, zeros]);
      callOperator("aten.index_fill_", [callOperator("aten.select", [tensor, 1, column]), 0, chosen, 0]);
    }
  });
}

function changed<T extends Tensor>(tensor: T, work: () => void): T {
  onEngine(work);
  return tensor;
}

function checkTensor(what: string, tensor: Tensor): void {
  checkGiven(what, tensor instanceof Tensor, "a tensor", `${what}(module.weight)`);
}

function refused(reason: string) {
  return fxError("InvalidArgument", reason);
}

function kaimingStd(tensor: Tensor, { a = 0, mode = "fan_in", nonlinearity = "leaky_relu" }: KaimingOptions): number {
  if (mode !== "fan_in" && mode !== "fan_out") {
    throw refused(`Mode ${String(mode satisfies never)} not supported, please use one of ['fan_in', 'fan_out']`);
  }
  const [fanIn, fanOut] = calculateFanInAndFanOut(tensor);
  return calculateGain(nonlinearity, a) / Math.sqrt(mode === "fan_in" ? fanIn : fanOut);
}

/** The truncated normal distribution where most values fall between the bounds: draw those anew that do not. */
function redraw(tensor: Tensor, mean: number, std: number, a: number, b: number): void {
  // The bounds as the tensor can represent them, so that the test agrees with its values.
  const [low, high] = [a, b].map((it) => callOperator("aten.new_full", [tensor, [], it]));
  let drawn: unknown = callOperator("aten.normal_", [tensor, mean, std]);
  for (;;) {
    const outside = callOperator("aten.logical_or", [
      callOperator("aten.lt", [drawn, low]),
      callOperator("aten.gt", [drawn, high]),
    ]);
    if (!isAny(outside)) break;
    const again = callOperator("aten.normal_", [callOperator("aten.empty_like", [drawn]), mean, std]);
    drawn = callOperator("aten.where", [outside, again, drawn]);
  }
  if (drawn !== tensor) callOperator("aten.copy_", [tensor, drawn]);
}

/** The truncated normal distribution where few values fall between the bounds: draw evenly and reject the unlikely. */
function reject(tensor: Tensor, mean: number, std: number, a: number, b: number): void {
  const mode = Math.max(a, Math.min(mean, b));
  const peak = -0.5 * ((mode - mean) / std) ** 2;
  const chances = callOperator("aten.empty_like", [tensor]);
  const isRejected = (candidates: unknown): unknown => {
    callOperator("aten.sub_", [candidates, mean]);
    callOperator("aten.div_", [candidates, std]);
    callOperator("aten.pow_", [candidates, 2]);
    callOperator("aten.mul_", [candidates, -0.5]);
    callOperator("aten.sub_", [candidates, peak]);
    callOperator("aten.uniform_", [chances]);
    return callOperator("aten.gt", [callOperator("aten.log_", [chances]), candidates]);
  };
  callOperator("aten.uniform_", [tensor, a, b]);
  let result: unknown = tensor;
  let pending = isRejected(callOperator("aten.clone", [tensor]));
  while (isAny(pending)) {
    const candidates = callOperator("aten.uniform_", [callOperator("aten.empty_like", [tensor]), a, b]);
    result = callOperator("aten.where", [pending, candidates, result]);
    pending = callOperator("aten.where", [pending, isRejected(candidates), pending]);
  }
  if (result !== tensor) callOperator("aten.copy_", [tensor, result]);
}

function isAny(mask: unknown): boolean {
  return (callOperator("aten.any", [mask]) as Tensor).item() === true;
}

function normalCdf(x: number): number {
  return (1 + erf(x / Math.SQRT2)) / 2;
}

/** Abramowitz and Stegun's formula 7.1.26; its error is below 1.5e-7, and only a threshold depends on it. */
function erf(x: number): number {
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  const poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t;
  return Math.sign(x) * (1 - poly * Math.exp(-x * x));
}
