/**
 * Adam, and Adam with decoupled decay of the weights.
 *
 * @module
 */
import { tensor } from "../tensor/construct.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import { checkOption, Optimizer, type OptimizerParameters } from "./optimizer.ts";
import { type ParameterState, savedStep, savedTensor } from "./stateDict.ts";

/** The options of {@link Adam} and {@link AdamW}, by PyTorch's names and with its defaults. */
export interface AdamOptions {
  /** The learning rate: 0.001. */
  lr: number;
  /** How much of the mean of the gradients, and of their squares, stays: 0.9 and 0.999. */
  betas: readonly [number, number];
  /** What is added to the denominator: 1e-8. */
  eps: number;
  /** The decay of the weights: 0, and 0.01 for {@link AdamW}. */
  weightDecay: number;
  /** Whether the largest mean of squares so far is divided by. */
  amsgrad: boolean;
  /** Whether steps go up. */
  maximize: boolean;
}

const DEFAULTS: AdamOptions = {
  lr: 1e-3,
  betas: [0.9, 0.999],
  eps: 1e-8,
  weightDecay: 0,
  amsgrad: false,
  maximize: false,
};

/** What is remembered of a parameter. */
interface Moments {
  step: number;
  readonly mean: Tensor;
  readonly square: Tensor;
  readonly largest: Tensor | undefined;
}

/**
 * Adam: `torch.optim.Adam`. The decay of the weights is added to the gradient.
 *
 * @example
 * ```ts
 * const optimizer = new optim.Adam(model.parameters(), { lr: 0.01 });
 * model.forwardBackward(images, labels);
 * optimizer.step();
 * ```
 */
export class Adam extends Optimizer<AdamOptions, Moments> {
  constructor(params: OptimizerParameters<AdamOptions>, options: Partial<AdamOptions> = {}) {
    super(params, DEFAULTS, options);
  }

  protected override check({ lr, betas, eps, weightDecay }: AdamOptions): void {
    checkOption(lr >= 0, "learning rate", lr);
    checkOption(eps >= 0, "epsilon value", eps);
    for (const [index, beta] of betas.entries()) {
      checkOption(beta >= 0 && beta < 1, `beta parameter at index ${index}`, beta);
    }
    checkOption(weightDecay >= 0, "weight_decay value", weightDecay);
  }

  /** Takes the decay of the weights into account: gives the gradient with it. */
  protected decayed(parameter: Tensor, gradient: Tensor, { weightDecay }: AdamOptions): Tensor {
    return gradient.add(parameter, { alpha: weightDecay });
  }

  protected override fixedOptions(): Readonly<Record<string, unknown>> {
    return { decoupled_weight_decay: false };
  }

  protected override saveState({ step, mean, square, largest }: Moments): ParameterState {
    const state: ParameterState = { step: tensor(step, { dtype: "float32" }), exp_avg: mean, exp_avg_sq: square };
    if (largest !== undefined) state["max_exp_avg_sq"] = largest;
    return state;
  }

  protected override loadState(
    saved: ReadonlyMap<string, unknown>,
    parameter: Tensor,
    { amsgrad }: AdamOptions,
  ): Moments {
    return {
      step: savedStep(saved),
      mean: savedTensor(saved, "exp_avg", parameter),
      square: savedTensor(saved, "exp_avg_sq", parameter),
      largest: amsgrad ? savedTensor(saved, "max_exp_avg_sq", parameter) : undefined,
    };
  }

  protected override tensorsOf({ mean, square, largest }: Moments): readonly (Tensor | undefined)[] {
    return [mean, square, largest];
  }

  protected override update(parameter: Tensor, given: Tensor, options: AdamOptions): void {
    const { lr, betas, eps, weightDecay, amsgrad, maximize } = options;
    const state = this.#moments(parameter, amsgrad);
    state.step += 1;
    let gradient = maximize ? given.neg() : given;
    if (weightDecay !== 0) gradient = this.decayed(parameter, gradient, options);
    state.mean.lerp_(gradient, 1 - betas[0]);
    state.square.mul_(betas[1]).addcmul_(gradient, gradient, { value: 1 - betas[1] });
    const stepSize = lr / (1 - betas[0] ** state.step);
    const correction = Math.sqrt(1 - betas[1] ** state.step);
    if (state.largest !== undefined) state.largest.copy_(state.largest.maximum(state.square));
    const denominator = (state.largest ?? state.square).sqrt().div_(correction).add_(eps);
    parameter.addcdiv_(state.mean, denominator, { value: -stepSize });
  }

  #moments(parameter: Tensor, amsgrad: boolean): Moments {
    const zeros = (): Tensor => keep(parameter.clone().zero_());
    const known = this.state.get(parameter);
    if (known !== undefined) return known;
    const moments = { step: 0, mean: zeros(), square: zeros(), largest: amsgrad ? zeros() : undefined };
    this.state.set(parameter, moments);
    return moments;
  }
}

/**
 * Adam with decoupled decay of the weights: `torch.optim.AdamW`. The decay shrinks the weights themselves.
 *
 * @example
 * ```ts
 * const optimizer = new optim.AdamW(model.parameters(), { lr: 0.01, weightDecay: 0.1 });
 * ```
 */
export class AdamW extends Adam {
  constructor(params: OptimizerParameters<AdamOptions>, options: Partial<AdamOptions> = {}) {
    super(params, { weightDecay: 1e-2, ...options });
  }

  protected override fixedOptions(): Readonly<Record<string, unknown>> {
    return { decoupled_weight_decay: true };
  }

  protected override decayed(parameter: Tensor, gradient: Tensor, { lr, weightDecay }: AdamOptions): Tensor {
    parameter.mul_(1 - lr * weightDecay);
    return gradient;
  }
}
