/**
 * What the inputs and outputs of an exported graph are: `torch.export.graph_signature`.
 *
 * @module
 */
import { showThemselves } from "../base/inspect.ts";
import { answeringPythonNames } from "../base/pythonNames.ts";
import { fxError } from "../base/errors.ts";
import type { ReplaceHook } from "../graph/hooks.ts";
import { checkGiven, checkOptions, checkText } from "../base/given.ts";
import { checkNode } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";

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

/** The name of a node, or the value of a constant. */
export type ConstantOrName = string | number | bigint | boolean | null;

/** What a training graph gives besides the results: `ExportBackwardSignature`. */
export interface BackwardSignature {
  /** From the names of outputs to the parameters whose gradients they are. */
  readonly gradientsToParameters: ReadonlyMap<string, string>;
  /** From the names of outputs to the user's inputs whose gradients they are. */
  readonly gradientsToUserInputs: ReadonlyMap<string, string>;
  /** The name of the loss. */
  readonly lossOutput: string;
}

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
 * The signature of a module's calls, in which another node stands in the place of one: `ModuleCallSignature.replace_all_uses_with`.
 *
 * @example
 * ```ts
 * const signature = replaceCallSignatureUses(entry.signature, old, replacement);
 * ```
 */
export function replaceCallSignatureUses<
  T extends { readonly inputs: readonly Argument[]; readonly outputs: readonly Argument[] },
>(signature: T, original: Node, replacement: Node): T {
  const isSignature = Array.isArray(signature?.inputs) && Array.isArray(signature.outputs);
  checkGiven("replaceCallSignatureUses", isSignature, "the signature of a module's calls", "moduleCallGraph has them");
  for (const it of [original, replacement]) checkNode("replaceCallSignatureUses", it);
  const renamed = (it: Argument): Argument =>
    it.name === original.name && it.type !== "constant" ? { ...it, name: replacement.name } : it;
  return { ...signature, inputs: signature.inputs.map(renamed), outputs: signature.outputs.map(renamed) };
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
  inputSpecs: readonly InputSpec[];
  /** One per result of the graph, in order. */
  outputSpecs: readonly OutputSpec[];

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

  /** The qualified names of the lifted tensors. */
  get liftedTensorConstants(): string[] {
    return [...this.inputsToLiftedTensorConstants.values()];
  }

  /** The qualified names of the custom objects. */
  get liftedCustomObjs(): string[] {
    return [...this.inputsToLiftedCustomObjs.values()];
  }

  /** The user's inputs, in order: their names, or the values of constants. */
  get userInputs(): ConstantOrName[] {
    return this.inputSpecs.filter((it) => it.kind === "USER_INPUT").map((it) => nameOrValue(it.arg));
  }

  /** The user's outputs, in order: their names, or the values of constants. */
  get userOutputs(): ConstantOrName[] {
    return this.outputSpecs.filter(isUserOutput).map((it) => nameOrValue(it.arg));
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

  /** From the names of inputs to the custom objects that they are. */
  get inputsToLiftedCustomObjs(): Map<string, string> {
    return this.#inputs("CUSTOM_OBJ");
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

  /** The loss and the gradients of a training graph; `null` where there is no loss. */
  get backwardSignature(): BackwardSignature | null {
    const [loss, ...others] = this.outputSpecs.filter((it) => it.kind === "LOSS_OUTPUT");
    if (others.length > 0) throw fxError("SpecViolation", "multiple LOSS_OUTPUT specs found");
    if (loss === undefined) return null;
    return {
      gradientsToParameters: this.#outputs("GRADIENT_TO_PARAMETER"),
      gradientsToUserInputs: this.#outputs("GRADIENT_TO_USER_INPUT"),
      lossOutput: loss.arg.name,
    };
  }

  /** From the position of an output to the token that asserts depend on. PyTorch has none any more, and keeps the name. */
  get assertionDepToken(): Map<number, string> | null {
    return null;
  }

  /** The names of the effect tokens that go in, in order. */
  get inputTokens(): string[] {
    return this.inputSpecs.filter((it) => it.kind === "TOKEN").map((it) => it.arg.name);
  }

  /** The names of the effect tokens that come out, in order. */
  get outputTokens(): string[] {
    return this.outputSpecs.filter((it) => it.kind === "TOKEN").map((it) => it.arg.name);
  }

  /**
   * Calls a node by another name wherever the signature names it. Constants keep theirs, as in PyTorch.
   *
   * @example
   * ```ts
   * program.graphSignature.replaceAllUses("relu", "relu_1");
   * ```
   */
  replaceAllUses(old: string, replacement: string): void {
    checkText("replaceAllUses", "the old name", old, "that of a node: node.name");
    checkText("replaceAllUses", "the new name", replacement, "that of a node: node.name");
    const renamed = <T extends InputSpec | OutputSpec>(spec: T): T =>
      spec.arg.type !== "constant" && spec.arg.name === old
        ? { ...spec, arg: { ...spec.arg, name: replacement } }
        : spec;
    this.inputSpecs = this.inputSpecs.map(renamed);
    this.outputSpecs = this.outputSpecs.map(renamed);
  }

  /**
   * A hook that keeps the signature right while results are replaced, and inputs where that is asked for.
   *
   * @example
   * ```ts
   * using _hook = gm.graphHooks.onReplace(signature.getReplaceHook());
   * old.replaceAllUsesWith(replacement);
   * ```
   */
  getReplaceHook(options: { readonly replaceInputs?: boolean } = {}): ReplaceHook {
    checkOptions("getReplaceHook", options, ["replaceInputs"]);
    const { replaceInputs = false } = options;
    return (old, replacement, user) => {
      if (user.op === "output" || (replaceInputs && old.op === "placeholder")) {
        this.replaceAllUses(old.name, replacement);
      }
    };
  }

  /**
   * Whether another signature says the same of the same inputs and outputs: Python's `==`.
   *
   * @example
   * ```ts
   * program.graphSignature.equals(program.clone().graphSignature); // true
   * ```
   */
  equals(other: GraphSignature): boolean {
    const text = ({ inputSpecs, outputSpecs }: GraphSignature): string =>
      JSON.stringify([inputSpecs.map(specKey), outputSpecs.map(specKey)]);
    return other instanceof GraphSignature && text(this) === text(other);
  }

  /** A signature of its own with the same specs. */
  clone(): GraphSignature {
    return new GraphSignature(this.inputSpecs, this.outputSpecs);
  }

  /** PyTorch's `str(graph_signature)`. */
  toString(): string {
    const inputs = this.inputSpecs.map((it) => {
      const persistent = it.persistent === undefined ? "" : ` persistent=${it.persistent ? "True" : "False"}`;
      return `${specText(it)}${persistent}`;
    });
    return `\n# inputs\n${inputs.join("\n")}\n\n# outputs\n${this.outputSpecs.map(specText).join("\n")}\n`;
  }

  /** What Node's console shows. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return this.toString();
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

Object.setPrototypeOf(GraphSignature.prototype, answeringPythonNames("a GraphSignature"));
showThemselves(GraphSignature);

/** Whether an output goes to the user; a loss does. */
export function isUserOutput(spec: OutputSpec): boolean {
  return spec.kind === "USER_OUTPUT" || spec.kind === "LOSS_OUTPUT";
}

/** Everything that a spec says, in one order. An int is the same as a number and as a `bigint`. */
function specKey(spec: InputSpec | OutputSpec): unknown[] {
  const { arg, kind, target } = spec;
  const constant = arg.type === "constant" ? [arg.value.type, "value" in arg.value ? String(arg.value.value) : ""] : [];
  const rest = [arg.type === "customObj" ? arg.classFqn : "", ...constant];
  return [
    kind,
    arg.type,
    arg.name,
    ...rest,
    target ?? null,
    ("persistent" in spec ? spec.persistent : undefined) ?? null,
  ];
}

function specText({ arg, kind, target }: InputSpec | OutputSpec): string {
  return `${arg.name}: ${kind}${target === undefined ? "" : ` target='${target}'`}`;
}

function nameOrValue(arg: Argument): ConstantOrName {
  if (arg.type !== "constant") return arg.name;
  return arg.value.type === "None" ? null : arg.value.value;
}
