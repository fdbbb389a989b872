/**
 * What all optimizers have in common.
 *
 * @module
 */
import { fxError } from "../errors.ts";
import { pythonFloat } from "../graph/python.ts";
import { Tensor } from "../tensor/tensor.ts";
import { tidy } from "../tensor/tidy.ts";

/** Parameters with the options that hold for them. */
export type ParameterGroup<Options> = Options & { readonly params: readonly Tensor[] };

/** What an optimizer is made for: parameters, pairs of name and parameter, or groups with options of their own. */
export type OptimizerParameters<Options> =
  | Iterable<Tensor>
  | Iterable<readonly [string, Tensor]>
  | readonly (Partial<Options> & { readonly params: Iterable<Tensor> })[];

/**
 * The base of all optimizers: `torch.optim.Optimizer`. Options of a group may be changed between steps: a schedule sets
 * `optimizer.paramGroups[0].lr`.
 */
export abstract class Optimizer<Options extends object, State> {
  /** The parameters, by groups. */
  readonly paramGroups: (Options & { params: Tensor[] })[] = [];
  /** What is remembered of parameters from step to step. */
  readonly state = new Map<Tensor, State>();

  constructor(params: OptimizerParameters<Options>, defaults: Options) {
    const items = [...(params as Iterable<unknown>)];
    if (items.length === 0) throw fxError("InvalidArgument", "optimizer got an empty parameter list");
    const groups = items.filter((it): it is Partial<Options> & { params: Iterable<Tensor> } => isGroup(it));
    const alone = items.filter((it) => !isGroup(it)).map((it) => (Array.isArray(it) ? it[1] : it) as unknown);
    if (alone.length > 0) groups.unshift({ params: alone as Tensor[] } as Partial<Options> & { params: Tensor[] });
    const seen = new Set<Tensor>();
    for (const group of groups) {
      const tensors = [...group.params];
      for (const tensor of tensors) {
        if (!(tensor instanceof Tensor)) {
          throw fxError("InputType", `optimizer can only optimize Tensors, but one of the params is ${typeof tensor}`);
        }
        if (seen.has(tensor)) {
          throw fxError("InvalidArgument", "some parameters appear in more than one parameter group");
        }
        seen.add(tensor);
      }
      const options = { ...defaults, ...group, params: tensors };
      this.check(options);
      this.paramGroups.push(options);
    }
  }

  /** Refuses options that PyTorch refuses. */
  protected abstract check(options: Options): void;

  /** Changes one parameter by its gradient. */
  protected abstract update(parameter: Tensor, gradient: Tensor, options: Options): void;

  /** Changes each parameter that has a gradient by it. */
  step(): void {
    for (const group of this.paramGroups) {
      for (const parameter of group.params) {
        const gradient = parameter.grad;
        if (gradient !== null) tidy(() => this.update(parameter, gradient, group));
      }
    }
  }

  /** Forgets the gradients. */
  zeroGrad(): void {
    for (const group of this.paramGroups) {
      for (const parameter of group.params) {
        parameter.grad?.dispose();
        parameter.grad = null;
      }
    }
  }
}

/** Refuses a number by PyTorch's text where it is out of its range. */
export function checkOption(isValid: boolean, what: string, value: number): void {
  if (!isValid) throw fxError("InvalidArgument", `Invalid ${what}: ${pythonFloat(value)}`);
}

function isGroup(it: unknown): boolean {
  return typeof it === "object" && it !== null && !(it instanceof Tensor) && "params" in it;
}
