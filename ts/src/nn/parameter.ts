/**
 * Parameters: tensors that a module registers when they are assigned to it.
 *
 * @module
 */
import { answerMembersOf } from "../base/pythonNames.ts";
import { shareStorage, Tensor } from "../tensor/tensor.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

/** How a parameter is made. */
export interface ParameterOptions {
  /** Whether gradients are wanted; it is noted, and nothing here computes gradients. */
  readonly requiresGrad?: boolean;
}

/**
 * A tensor that is a parameter of the module that it is assigned to: `torch.nn.Parameter`. It shows the
 * elements of the tensor that it is made of, so that what is written to one is seen in the other.
 *
 * @example
 * ```ts
 * class Scale extends Module {
 *   weight = new Parameter(tensor([1.0, 2.0]));
 * }
 * ```
 */
export class Parameter extends Tensor {
  constructor(data: Tensor, options: ParameterOptions = {}) {
    checkGiven("Parameter", data instanceof Tensor, "a tensor", "new Parameter(tensor([1, 2]))");
    checkOptions("Parameter", options, ["requiresGrad"]);
    super(data.dtype, data.shape, shareStorage(data));
    this.requiresGrad = options.requiresGrad ?? true;
  }

  /** PyTorch's `str(parameter)`. */
  override toString(): string {
    return `Parameter containing:\n${super.toString()}`;
  }
}

answerMembersOf(Parameter);
