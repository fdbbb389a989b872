/**
 * Parameters: tensors that a module registers when they are assigned to it.
 *
 * @module
 */
import { HostStorage } from "../tensor/storage.ts";
import { Tensor, tensorBytes } from "../tensor/tensor.ts";

/** How a parameter is made. */
export interface ParameterOptions {
  /** Whether gradients are wanted; it is noted, and nothing here computes gradients. */
  readonly requiresGrad?: boolean;
}

/**
 * A tensor that is a parameter of the module that it is assigned to: `torch.nn.Parameter`. It holds a copy of the
 * elements of the tensor that it is made of.
 *
 * @example
 * ```ts
 * class Scale extends Module {
 *   weight = new Parameter(tensor([1.0, 2.0]));
 * }
 * ```
 */
export class Parameter extends Tensor {
  /** Whether gradients are wanted. */
  requiresGrad: boolean;

  constructor(data: Tensor, { requiresGrad = true }: ParameterOptions = {}) {
    super(data.dtype, data.shape, new HostStorage(tensorBytes(data).slice()));
    this.requiresGrad = requiresGrad;
  }
}
