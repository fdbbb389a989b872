/**
 * What a call of a program needs to know of it: how its arguments and results are structured, and what its inputs are.
 *
 * @module
 */
import type { CallSignature, ProgramParts } from "./program.ts";
import type { Argument, OutputSpec } from "./signature.ts";

/** An input that the user gives. */
export interface CallInput {
  readonly arg: Argument;
  /** What the graph has noted of it. */
  readonly val: unknown;
}

/** What a call needs to know. */
export interface CallParts {
  /** The structures; undefined where the program does not say them. */
  readonly signature: CallSignature | undefined;
  /** The user's inputs, in order. */
  readonly inputs: readonly CallInput[];
  /** The parameters and buffers that the signature says every call changes. */
  readonly changed: readonly string[];
  /** The buffers, which operators of the graph may write to without the signature's saying so. */
  readonly buffers: readonly string[];
  /** Whether gradients follow the results, of which the structure tells nothing. */
  readonly givesGradients: boolean;
  /** The fields of the named tuples among inputs and outputs. */
  readonly namedtupleFields: ReadonlyMap<string, readonly string[]>;
}

/** The parts of a program that tell of its calls. */
export type Signed = Pick<ProgramParts, "moduleCallGraph" | "namedtupleFields"> & {
  readonly graphSignature: Pick<ProgramParts["graphSignature"], "inputSpecs" | "outputSpecs">;
};

/** What calls need to know of a program whose inputs, by name, have these values. */
export function callPartsOf(program: Signed, vals: ReadonlyMap<string, unknown>): CallParts {
  const { inputSpecs, outputSpecs } = program.graphSignature;
  return {
    signature: program.moduleCallGraph.find((it) => it.fqn === "")?.signature,
    inputs: inputSpecs.flatMap(({ kind, arg }) => (kind === "USER_INPUT" ? [{ arg, val: vals.get(arg.name) }] : [])),
    changed: targetsOf(outputSpecs, ["BUFFER_MUTATION", "PARAMETER_MUTATION"]),
    buffers: targetsOf(inputSpecs, ["BUFFER"]),
    givesGradients: outputSpecs.some(isGradient),
    namedtupleFields: program.namedtupleFields,
  };
}

/** The names that specifications of these kinds are of. */
function targetsOf<Kind extends string>(
  specs: readonly { readonly kind: Kind; readonly target: string | undefined }[],
  kinds: readonly Kind[],
): string[] {
  return specs.flatMap(({ kind, target }) => (target !== undefined && kinds.includes(kind) ? [target] : []));
}

/** Whether an output is a gradient. */
export function isGradient({ kind }: OutputSpec): boolean {
  return kind === "GRADIENT_TO_PARAMETER" || kind === "GRADIENT_TO_USER_INPUT";
}
