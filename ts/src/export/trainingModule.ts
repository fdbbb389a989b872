/**
 * Running training graphs.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import type { EngineValue } from "../engine/values.ts";
import { fxError } from "../base/errors.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { keep } from "../tensor/tidy.ts";
import { ExportedProgram } from "./exportedProgram.ts";
import type { ProgramModule } from "./programModule.ts";
import { isGradient } from "./callParts.ts";
import { isUserOutput, type OutputSpec } from "./signature.ts";

/** What a training step gives. */
export interface StepResult {
  /** The loss. */
  readonly loss: Tensor;
  /** The other results of the program, in order. */
  readonly outputs: readonly EngineValue[];
  /** The gradients of the inputs that require one, by the names of the inputs. */
  readonly inputGradients: ReadonlyMap<string, Tensor>;
}

/**
 * A joint program with its state, to be trained: a call gives the loss, adds the gradients of the parameters to their
 * `grad`, as `loss.backward()` does in PyTorch, and writes changed buffers back.
 *
 * The parameters show the memory that the engine computes with: what an optimizer changes in place is what the next step
 * reads, and nothing is copied.
 *
 * @example
 * ```ts
 * using model = new TrainingModule(program.exportForwardBackward());
 * const optimizer = new optim.SGD(model.parameters(), { lr: 0.1 });
 * for (const [images, labels] of batches) {
 *   optimizer.zeroGrad();
 *   const { loss } = model.forwardBackward(images, labels);
 *   optimizer.step();
 * }
 * program.loadStateDict(model.stateDict());
 * ```
 */
export class TrainingModule implements Disposable {
  readonly #module: ProgramModule;
  readonly #results: readonly OutputSpec[];
  readonly #parameters: ReadonlyMap<string, Tensor>;
  readonly #buffers: readonly string[];

  constructor(joint: ExportedProgram) {
    checkGiven("TrainingModule", joint instanceof ExportedProgram, "an ExportedProgram");
    const specs = joint.graphSignature.outputSpecs;
    if (!specs.some((it) => it.kind === "LOSS_OUTPUT")) {
      throw fxError("GraphInvalid", "the program has no loss among its results", {
        help: "derive the joint program first: program.exportForwardBackward()",
      });
    }
    this.#module = joint.module();
    this.#results = specs.filter((it) => isUserOutput(it) || isGradient(it));
    const names = joint.graphSignature.inputSpecs.filter((it) => it.kind === "PARAMETER").map((it) => it.target ?? "");
    this.#parameters = new Map(names.map((name) => [name, this.#module.getTensor(name)]));
    const passing = new Set(joint.graphSignature.nonPersistentBuffers);
    this.#buffers = joint.graphSignature.buffers.filter((name) => !passing.has(name));
  }

  /** The parameters by qualified name. A tensor with two names has a gradient under the one that the graph reads. */
  *namedParameters(): IterableIterator<[string, Tensor]> {
    const trained = new Set(this.#results.filter((it) => it.kind === "GRADIENT_TO_PARAMETER").map((it) => it.target));
    for (const [name, tensor] of this.#parameters) if (trained.has(name)) yield [name, tensor];
  }

  /** The parameters that gradients flow to, for an optimizer. */
  *parameters(): IterableIterator<Tensor> {
    for (const [, tensor] of this.namedParameters()) yield tensor;
  }

  /** A step forward and back: takes the inputs that the program takes. */
  forwardBackward(...args: unknown[]): StepResult {
    const outputs: EngineValue[] = [];
    const inputGradients = new Map<string, Tensor>();
    let loss: Tensor | undefined;
    for (const [index, value] of (this.#module.forward(...args) as EngineValue[]).entries()) {
      const spec = this.#results[index] as OutputSpec;
      if (spec.kind === "LOSS_OUTPUT") loss = value as Tensor;
      else if (spec.kind === "GRADIENT_TO_PARAMETER")
        addGradient(this.#parameters.get(spec.target ?? ""), value as Tensor);
      else if (spec.kind === "GRADIENT_TO_USER_INPUT") inputGradients.set(spec.target ?? "", value as Tensor);
      else outputs.push(value);
    }
    return { loss: loss as Tensor, outputs, inputGradients };
  }

  /** Copies of the parameters and buffers as they are now, for {@link ExportedProgram.loadStateDict}. */
  stateDict(): Map<string, Tensor> {
    const names = [...this.#parameters.keys(), ...this.#buffers];
    return new Map(names.map((name) => [name, this.#module.getTensor(name).clone()]));
  }

  /** Gives the engine's memory back. */
  dispose(): void {
    for (const tensor of this.#parameters.values()) tensor.dispose();
    this.#module.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}

function addGradient(parameter: Tensor | undefined, gradient: Tensor): void {
  if (parameter === undefined) return;
  if (parameter.grad === null) parameter.grad = keep(gradient);
  else {
    parameter.grad.add_(gradient);
    gradient.dispose();
  }
}
