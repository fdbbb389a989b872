/**
 * Stochastic gradient descent.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import { checkOption, Optimizer, type OptimizerParameters } from "./optimizer.ts";
import { type ParameterState, savedTensor } from "./stateDict.ts";

/** The options of {@link SGD}, by PyTorch's names and with its defaults. */
export interface SGDOptions {
  /** The learning rate: 0.001. */
  lr: number;
  /** The share of the last step that is taken again: 0. */
  momentum: number;
  /** The share of the gradient that does not go into the momentum: 0. */
  dampening: number;
  /** The factor of the parameter that is added to the gradient: 0. */
  weightDecay: number;
  /** Whether the gradient is taken ahead of the momentum. */
  nesterov: boolean;
  /** Whether steps go up. */
  maximize: boolean;
}

const DEFAULTS: SGDOptions = {
  lr: 1e-3,
  momentum: 0,
  dampening: 0,
  weightDecay: 0,
  nesterov: false,
  maximize: false,
};

/**
 * Stochastic gradient descent, with momentum: `torch.optim.SGD`.
 *
 * @example
 * ```ts
 * const optimizer = new optim.SGD(model.parameters(), { lr: 0.1, momentum: 0.9 });
 * model.forwardBackward(images, labels);
 * optimizer.step();
 * ```
 */
export class SGD extends Optimizer<SGDOptions, Tensor> {
  constructor(params: OptimizerParameters<SGDOptions>, options: Partial<SGDOptions> = {}) {
    super(params, DEFAULTS, options);
  }

  protected override check({ lr, momentum, weightDecay, nesterov, dampening }: SGDOptions): void {
    checkOption(lr >= 0, "learning rate", lr);
    checkOption(momentum >= 0, "momentum value", momentum);
    checkOption(weightDecay >= 0, "weight_decay value", weightDecay);
    if (nesterov && (momentum <= 0 || dampening !== 0)) {
      throw fxError("InvalidArgument", "Nesterov momentum requires a momentum and zero dampening");
    }
  }

  protected override saveState(velocity: Tensor): ParameterState {
    return { momentum_buffer: velocity };
  }

  protected override loadState(saved: ReadonlyMap<string, unknown>, parameter: Tensor): Tensor | undefined {
    // PyTorch before 2.4 wrote null where there was no momentum.
    return (saved.get("momentum_buffer") ?? null) === null
      ? undefined
      : savedTensor(saved, "momentum_buffer", parameter);
  }

  protected override tensorsOf(velocity: Tensor): readonly Tensor[] {
    return [velocity];
  }

  protected override update(parameter: Tensor, gradient: Tensor, options: SGDOptions): void {
    const { lr, momentum, dampening, weightDecay, nesterov, maximize } = options;
    let change = maximize ? gradient.neg() : gradient;
    if (weightDecay !== 0) change = change.add(parameter, { alpha: weightDecay });
    if (momentum !== 0) {
      let velocity = this.state.get(parameter);
      if (velocity === undefined) {
        velocity = keep(change.clone());
        this.state.set(parameter, velocity);
      } else {
        velocity.mul_(momentum).add_(change, { alpha: 1 - dampening });
      }
      change = nesterov ? change.add(velocity, { alpha: momentum }) : velocity;
    }
    parameter.add_(change, { alpha: -lr });
  }
}
