/**
 * Code whose inputs and outputs are nested, for graphs whose inputs and outputs are their leaves.
 *
 * @module
 */
import type { Arg } from "../args.ts";
import { List, Tuple } from "../../base/values.ts";
import { CodeGen, type FunctionHead, type Parameter } from "./codegen.ts";

/** How nested inputs become a flat list. */
export interface InputTree {
  /** The leaves of the inputs, in the order of the placeholders. */
  flatten(inputs: readonly unknown[]): readonly unknown[];
}

/** How a flat list becomes a nested output. */
export interface OutputTree {
  unflatten(leaves: readonly unknown[]): unknown;
}

/** What a graph was traced from: a function of nested values. */
export interface PyTreeInfo {
  /** The parameters of that function. */
  readonly origArgs: readonly string[];
  readonly inSpec: InputTree;
  /** Without it, the output is what the graph gives. */
  readonly outSpec?: OutputTree | undefined;
}

/**
 * The function flattens nested inputs and unflattens the output: `torch.fx.graph._PyTreeCodeGen`.
 *
 * @example
 * ```ts
 * const inSpec = { flatten: ([pair]) => [pair.left, pair.right] };
 * const outSpec = { unflatten: ([sum]) => ({ sum }) };
 * gm.graph.setCodegen(new PyTreeCodeGen({ origArgs: ["pair"], inSpec, outSpec }));
 * gm.forward({ left: x, right: y }); // { sum: … }
 * ```
 */
export class PyTreeCodeGen extends CodeGen {
  readonly info: PyTreeInfo;

  constructor(info: PyTreeInfo) {
    super();
    this.info = info;
  }

  override genFnDef(head: FunctionHead): string[] {
    const args = this.info.origArgs.map((it) => argumentOf(it, head));
    const lines = super.genFnDef({ ...head, parameters: args, isExpanded: false });
    if (head.parameters.length === 0) return lines;
    const leaves = head.parameters.map((it) => it.declaration).join(", ");
    // What the arguments are taken out of is what the function was called with, as in processInputs.
    const inputs = args.map(({ name, declaration }) => (declaration === `...${name}` ? declaration : name));
    return [...lines, `  let [${leaves}] = $inSpec.flatten([${inputs.join(", ")}]);`];
  }

  override generateOutput(output: Arg, write: (arg: Arg) => string): string {
    if (this.info.outSpec === undefined) return super.generateOutput(output, write);
    const leaves = output instanceof List || output instanceof Tuple ? [...output] : [output];
    return `return $outSpec.unflatten([${leaves.map(write).join(", ")}]);`;
  }

  override additionalGlobals(): Iterable<readonly [name: string, value: unknown]> {
    const { inSpec, outSpec } = this.info;
    return [["$inSpec", inSpec] as const, ...(outSpec === undefined ? [] : [["$outSpec", outSpec] as const])];
  }

  override processInputs(...inputs: readonly unknown[]): readonly unknown[] {
    return this.info.inSpec.flatten(inputs);
  }

  override processOutputs(output: unknown): unknown {
    const { outSpec } = this.info;
    return outSpec === undefined ? output : outSpec.unflatten(Array.isArray(output) ? output : [output]);
  }
}

/** A parameter of the function that was traced. Its name is for readers only: arguments are found by their place. */
function argumentOf(name: string, { newName }: FunctionHead): Parameter {
  const variable = newName(name.replace(/^\*+/, ""));
  if (name.startsWith("**")) return { name: variable, declaration: `${variable} = {}` };
  return { name: variable, declaration: name.startsWith("*") ? `...${variable}` : variable };
}
