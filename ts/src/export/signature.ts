/**
 * What the inputs and outputs of an exported graph are: `torch.export.graph_signature`.
 *
 * @module
 */

/** A Python value that an input or output is fixed to; an int is a `bigint` where it is not safe as a number. */
export type ConstantValue =
  | { readonly type: "None" }
  | { readonly type: "bool"; readonly value: boolean }
  | { readonly type: "int"; readonly value: number | bigint }
  | { readonly type: "float"; readonly value: number }
  | { readonly type: "str"; readonly value: string };

/** What stands in a place of the signature. Names are those of the graph's nodes. */
export type Argument =
  | { readonly type: "tensor"; readonly name: string }
  | { readonly type: "symInt"; readonly name: string }
  | { readonly type: "symFloat"; readonly name: string }
  | { readonly type: "symBool"; readonly name: string }
  | { readonly type: "customObj"; readonly name: string; readonly classFqn: string }
  | { readonly type: "token"; readonly name: string }
  | { readonly type: "constant"; readonly name: string; readonly value: ConstantValue };

/** What an input of the graph is: `InputKind`. */
export type InputKind = "USER_INPUT" | "PARAMETER" | "BUFFER" | "CONSTANT_TENSOR" | "CUSTOM_OBJ" | "TOKEN";

/** What an output of the graph is: `OutputKind`. */
export type OutputKind =
  | "USER_OUTPUT"
  | "LOSS_OUTPUT"
  | "BUFFER_MUTATION"
  | "PARAMETER_MUTATION"
  | "GRADIENT_TO_PARAMETER"
  | "GRADIENT_TO_USER_INPUT"
  | "USER_INPUT_MUTATION"
  | "TOKEN";

/** One input of the graph. */
export interface InputSpec {
  readonly kind: InputKind;
  readonly arg: Argument;
  /** The qualified name of the parameter, buffer, constant or object. */
  readonly target: string | undefined;
  /** Of a buffer, whether it is saved with the module. */
  readonly persistent: boolean | undefined;
}

/** One output of the graph. */
export interface OutputSpec {
  readonly kind: OutputKind;
  readonly arg: Argument;
  /** The buffer or parameter that changes or that a gradient is of, or the user's input. */
  readonly target: string | undefined;
}

/**
 * What the inputs and outputs of the graph are: `ExportGraphSignature`, with its derived views.
 *
 * @example
 * ```ts
 * program.graphSignature.userInputs; // ["x"]
 * program.graphSignature.inputsToParameters.get("p_conv_weight"); // "conv.weight"
 * ```
 */
export class GraphSignature {
  /** One per placeholder, in order. */
  readonly inputSpecs: readonly InputSpec[];
  /** One per result of the graph, in order. */
  readonly outputSpecs: readonly OutputSpec[];

  constructor(inputSpecs: readonly InputSpec[], outputSpecs: readonly OutputSpec[]) {
    this.inputSpecs = inputSpecs;
    this.outputSpecs = outputSpecs;
  }

  /** The qualified names of the parameters, in order. */
  get parameters(): string[] {
    return [...this.inputsToParameters.values()];
  }

  /** The qualified names of the buffers, in order. */
  get buffers(): string[] {
    return [...this.inputsToBuffers.values()];
  }

  /** The qualified names of the buffers that are not saved with the module. */
  get nonPersistentBuffers(): string[] {
    return this.inputSpecs.filter((it) => it.kind === "BUFFER" && it.persistent === false).map((it) => it.target ?? "");
  }

  /** The names of the user's inputs, in order. */
  get userInputs(): string[] {
    return this.inputSpecs.filter((it) => it.kind === "USER_INPUT").map((it) => it.arg.name);
  }

  /** The names of the user's outputs, in order; empty for a constant. */
  get userOutputs(): string[] {
    return this.outputSpecs.filter(isUserOutput).map((it) => it.arg.name);
  }

  /** From the names of inputs to the parameters that they are. */
  get inputsToParameters(): Map<string, string> {
    return this.#inputs("PARAMETER");
  }

  /** From the names of inputs to the buffers that they are. */
  get inputsToBuffers(): Map<string, string> {
    return this.#inputs("BUFFER");
  }

  /** From the names of inputs to the lifted constants that they are. */
  get inputsToLiftedTensorConstants(): Map<string, string> {
    return this.#inputs("CONSTANT_TENSOR");
  }

  /** From the names of outputs to the buffers whose new values they are. */
  get buffersToMutate(): Map<string, string> {
    return this.#outputs("BUFFER_MUTATION");
  }

  /** From the names of outputs to the parameters whose new values they are. */
  get parametersToMutate(): Map<string, string> {
    return this.#outputs("PARAMETER_MUTATION");
  }

  /** From the names of outputs to the user's inputs whose new values they are. */
  get userInputsToMutate(): Map<string, string> {
    return this.#outputs("USER_INPUT_MUTATION");
  }

  #inputs(kind: InputKind): Map<string, string> {
    const specs = this.inputSpecs.filter((it) => it.kind === kind);
    return new Map(specs.map((it) => [it.arg.name, it.target ?? it.arg.name]));
  }

  #outputs(kind: OutputKind): Map<string, string> {
    const specs = this.outputSpecs.filter((it) => it.kind === kind);
    return new Map(specs.map((it) => [it.arg.name, it.target ?? ""]));
  }
}

/** Whether an output goes to the user; a loss does. */
export function isUserOutput(spec: OutputSpec): boolean {
  return spec.kind === "USER_OUTPUT" || spec.kind === "LOSS_OUTPUT";
}

/** Whether an output is a gradient. */
export function isGradient(spec: OutputSpec): boolean {
  return spec.kind === "GRADIENT_TO_PARAMETER" || spec.kind === "GRADIENT_TO_USER_INPUT";
}
