/**
 * What a program says of its inputs, checked without running it.
 *
 * @module
 */
import { tuple } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { SymbolicNumber } from "../base/symbolic.ts";
import { Tensor } from "../tensor/tensor.ts";
import { isTraced, WITHOUT_ELEMENTS } from "../record/record.ts";
import type { ExportedProgram } from "./exportedProgram.ts";
import { copyInput } from "./placeholderNames.ts";
import type { ProgramParts } from "./program.ts";
import type { ProgramModule } from "./programModule.ts";
import { GraphSignature } from "./signature.ts";

/** How a program is made of its parts. */
type MakeProgram = (parts: ProgramParts) => ExportedProgram;

/** Checks the flat inputs of a program: their number, dtypes, sizes, and the values that are fixed. */
export class InputChecker {
  readonly #make: MakeProgram;
  readonly #parts: ProgramParts;
  readonly #checkGuards: boolean;
  #module: ProgramModule | undefined;

  constructor(parts: ProgramParts, make: MakeProgram, { checkGuards = true }: { readonly checkGuards?: boolean } = {}) {
    this.#make = make;
    this.#parts = inputsOf(parts);
    this.#checkGuards = checkGuards;
  }

  /** Throws where the program does not take these inputs. Of inputs without elements, such as those of a trace, nothing is known. */
  check(leaves: readonly unknown[]): void {
    if (leaves.some(isWithoutElements)) return;
    this.#module ??= this.#make(this.#parts).module({ checkGuards: this.#checkGuards });
    this.#module.runFlat(leaves);
  }
}

function isWithoutElements(leaf: unknown): boolean {
  return isTraced(leaf) || leaf instanceof SymbolicNumber || (leaf instanceof Tensor && WITHOUT_ELEMENTS in leaf);
}

/** A program that takes the same inputs, and does nothing with them: the engine checks them. */
function inputsOf(parts: ProgramParts): ProgramParts {
  const graph = new Graph();
  const { inputSpecs } = parts.graphSignature;
  const inputs = parts.graphModule.graph.findNodes({ op: "placeholder" });
  // What is lifted is left out, and with it the weights.
  const isGiven = (at: number): boolean => inputSpecs[at]?.kind === "USER_INPUT";
  for (const [at, input] of inputs.entries()) if (isGiven(at)) copyInput(graph, input);
  graph.output(tuple());
  return {
    ...parts,
    graphModule: GraphModule.ofGraph(graph, "Inputs"),
    graphSignature: new GraphSignature(
      inputSpecs.filter((it) => it.kind === "USER_INPUT"),
      [],
    ),
    state: new Map(),
    opaqueState: new Map(),
    constants: new Map(),
    exampleInputs: undefined,
  };
}
