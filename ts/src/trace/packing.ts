/**
 * How a call of what was traced becomes the inputs of its graph: nested arguments are flattened, options are read by
 * name.
 *
 * @module
 */
import { fxError, type FxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import type { InputTree, OutputTree } from "../graph/codegen/pytree.ts";
import { treeFlattenSpec, type PytreeSpec, treeUnflatten } from "./pytree.ts";
import { isTraced } from "../record/record.ts";

/** One value of a call: an argument, or an option. */
export interface PackedPart {
  readonly name: string;
  readonly spec: PytreeSpec;
  /** Whether the placeholder has a default. */
  readonly isOptional: boolean;
}

/** A parameter of what was traced: of one value, or of several. */
export interface PackedParameter {
  readonly kind: "single" | "rest" | "options";
  readonly name: string;
  readonly parts: readonly PackedPart[];
}

/** The parameters of what was traced. */
export class InputPacking implements InputTree {
  readonly parameters: readonly PackedParameter[];

  constructor(parameters: readonly PackedParameter[]) {
    this.parameters = parameters;
  }

  /** The names of the parameters, with a star before one that takes any number. */
  get names(): string[] {
    return this.parameters.map(({ kind, name }) => (kind === "rest" ? `*${name}` : name));
  }

  /** The inputs of the graph for a call with these arguments. */
  flatten(inputs: readonly unknown[]): readonly unknown[] {
    return this.parameters.flatMap((parameter, at) => {
      switch (parameter.kind) {
        case "single":
          return parameter.parts.flatMap((part) => leavesOf(inputs[at], part));
        case "rest":
          return restOf(inputs.slice(at), parameter);
        case "options":
          return optionsOf(inputs[at], parameter);
      }
    });
  }
}

/** The output of a graph that gives the leaves of a structure. */
export class OutputPacking implements OutputTree {
  readonly spec: PytreeSpec;

  constructor(spec: PytreeSpec) {
    this.spec = spec;
  }

  /** What the function that was traced gives. */
  unflatten(leaves: readonly unknown[]): unknown {
    return treeUnflatten(leaves, this.spec);
  }
}

function leavesOf(value: unknown, { name, spec, isOptional }: PackedPart): unknown[] {
  if (value === undefined && !(isOptional && spec.isLeaf)) {
    throw fxError("InputCount", `Expected positional argument for parameter ${name}, but one was not passed in!`);
  }
  return treeFlattenSpec(value, spec, `\`${name}\``);
}

function restOf(given: readonly unknown[], { name, parts }: PackedParameter): unknown[] {
  if (given.length !== parts.length) {
    throw fxError("InputCount", `...${name} was traced with ${parts.length} arguments, and there are ${given.length}`);
  }
  return parts.flatMap((part, at) => leavesOf(given[at], part));
}

function optionsOf(given: unknown = {}, parameter: PackedParameter): unknown[] {
  const { parts } = parameter;
  if (!isTraced(given) && !isOptions(given)) throw notOptions(parameter);
  if (isOptions(given)) {
    const stray = Object.keys(given).find((key) => parts.every(({ name }) => name !== key));
    if (stray !== undefined) throw unknownOption(stray, parameter);
  }
  return parts.flatMap((part) => {
    // Of a traced object, the option is recorded as an attribute.
    const value = isTraced(given) || Object.hasOwn(given as object, part.name);
    return leavesOf(value ? Reflect.get(given as object, part.name) : undefined, part);
  });
}

function notOptions({ parts }: PackedParameter): FxError {
  return fxError("InputStructure", "the last argument should be an object of options", { help: optionNames(parts) });
}

function unknownOption(name: string, { parts }: PackedParameter): FxError {
  return fxError("InvalidOption", `there is no option \`${name}\``, { help: optionNames(parts) });
}

function optionNames(parts: readonly PackedPart[]): string {
  return `it has ${parts.map(({ name }) => name).join(", ")}`;
}
