/**
 * Parameters: tensors that a module registers when they are assigned to it.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkGiven, checkOptions } from "../base/given.ts";
import { answerMembersOf } from "../base/pythonNames.ts";
import { shareStorage, Tensor } from "../tensor/tensor.ts";

/** How a parameter is made. */
export interface ParameterOptions {
  /** Whether gradients are wanted; it is noted, and nothing here computes gradients. */
  readonly requiresGrad?: boolean;
}

/** Refuses a tensor of a module that is on a GPU: modules run on the CPU, and copies of the tensor would not know its memory. */
export function checkOnCpu(what: string, tensor: Tensor): void {
  if (tensor.device.type === "cpu") return;
  throw fxError("InputType", `${what} is on the GPU, and modules of layers run on the CPU`, {
    help: 'give it as it is on the CPU, await x.cpu(); a program of the module runs on a GPU: program.module({ device: "gpu" })',
  });
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
 *
 * @throws `InputError` `InputType` where the tensor is on a GPU.
 */
export class Parameter extends Tensor {
  constructor(data: Tensor, options: ParameterOptions = {}) {
    checkGiven("Parameter", data instanceof Tensor, "a tensor", "new Parameter(tensor([1, 2]))");
    checkOptions("Parameter", options, ["requiresGrad"]);
    checkOnCpu("the parameter", data);
    super(data.dtype, data.shape, shareStorage(data));
    this.requiresGrad = options.requiresGrad ?? true;
  }

  /** PyTorch's `str(parameter)`. */
  override toString(): string {
    return `Parameter containing:\n${super.toString()}`;
  }
}

answerMembersOf(Parameter);
