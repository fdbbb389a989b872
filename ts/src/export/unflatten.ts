/**
 * Programs as the modules that they were exported from: `torch.export.unflatten`.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { FxError, fxError } from "../base/errors.ts";
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { ExportedProgram } from "./exportedProgram.ts";
import { InputChecker } from "./inputChecker.ts";
import type { CallSignature, ModuleCallEntry, ProgramParts, TreeSpec } from "./program.ts";
import { countLeaves, flattenCall, unflatten as unflattenTree } from "./tree.ts";

/** What a {@link FlatArgsAdapter} is asked. */
export interface FlatArgsQuestion {
  /** The structure of the arguments that the program was exported with. */
  readonly targetSpec: TreeSpec;
  /** The arguments that were given, which are structured otherwise. */
  readonly args: readonly unknown[];
  /** What is noted about the program. */
  readonly metadata: ReadonlyMap<string, unknown>;
}

/** Makes the flat inputs of a program of arguments that are structured otherwise: `FlatArgsAdapter`. */
export interface FlatArgsAdapter {
  adapt(question: FlatArgsQuestion): unknown[];
}

/**
 * A program with the hierarchy of the module that was exported. {@link unflatten} makes it.
 *
 * Its modules are graph modules that hold the tensors, to be looked at, changed and replaced; a call runs them as they are
 * then. A module that does something else when it is called again is there as `name@1`. One whose signature was preserved is
 * called as the exported module called it, so that any module that takes and gives the same can stand in its place.
 *
 * @example
 * ```ts
 * const model = unflatten(await load("model.pt2"));
 * console.log(String((model.graphModule.getSubmodule("layer1") as GraphModule).graph));
 * const logits = model.forward(image);
 *
 * model.graphModule.setSubmodule("layer1", new FasterLayer()); // exported with preserveModuleCallSignature: ["layer1"]
 * ```
 */
export class UnflattenedModule {
  /** The modules; the graph of the root takes the inputs and gives the outputs flattened. */
  readonly graphModule: GraphModule;
  /** The root first, then the modules that the traced code called. */
  readonly moduleCallGraph: readonly ModuleCallEntry[];
  /** Whether a call checks that the shapes of inputs are those that the program takes. */
  checkInputConstraints = true;
  readonly #parts: ProgramParts;
  #checker: InputChecker | undefined;
  readonly #adapter: FlatArgsAdapter | undefined;

  constructor(program: ExportedProgram, flatArgsAdapter?: FlatArgsAdapter) {
    checkGiven("unflatten", program instanceof ExportedProgram, "an ExportedProgram");
    this.#parts = program.unflattenedParts();
    this.#adapter = flatArgsAdapter;
    this.graphModule = this.#parts.graphModule;
    this.moduleCallGraph = program.moduleCallGraph;
  }

  /** The graph of the root. */
  get graph(): Graph {
    return this.graphModule.graph;
  }

  /** Calls the modules with the arguments that the exported module's `forward` takes. */
  forward(...args: unknown[]): unknown {
    const { inSpec, outSpec } = this.#signature();
    const leaves = this.#flattened(args, inSpec);
    if (this.checkInputConstraints) {
      this.#checker ??= new InputChecker(this.#parts, (parts) => new ExportedProgram(parts), { checkGuards: false });
      this.#checker.check(leaves);
    }
    const results = this.graphModule.forward(...(leaves as never[]));
    return unflattenTree(results as readonly unknown[], outSpec, this.#parts);
  }

  #flattened(args: readonly unknown[], inSpec: TreeSpec): unknown[] {
    try {
      return flattenCall(args, inSpec, this.#parts);
    } catch (cause) {
      if (!(cause instanceof FxError)) throw cause;
      return this.#adapted(args, inSpec, cause);
    }
  }

  #adapted(args: readonly unknown[], targetSpec: TreeSpec, cause: FxError): unknown[] {
    if (this.#adapter === undefined) {
      const text =
        "There is no flat args adapter specified. Are you sure you are calling this with the right arguments? ";
      throw fxError("InputStructure", text, { cause, notes: [cause.reason] });
    }
    const leaves = this.#adapter.adapt({ targetSpec, args, metadata: this.graphModule.meta });
    const wanted = countLeaves(targetSpec);
    if (leaves.length === wanted) return leaves;
    const counts = `Adapted: ${leaves.length} \nExported module: ${wanted}`;
    throw fxError("InputStructure", `Flat args adaption failed, number of args mismatch ${counts}`, { cause });
  }

  #signature(): CallSignature {
    const signature = this.moduleCallGraph[0]?.signature;
    if (signature !== undefined) return signature;
    throw fxError("InputStructure", "the program does not say what the structure of its inputs is", {
      help: "call the graph module with the inputs as a flat list: graphModule.forward(...)",
    });
  }
}

/**
 * A program as the modules that it was exported from: `torch.export.unflatten`. The modules hold copies of the tensors.
 *
 * @example
 * ```ts
 * const model = unflatten(program);
 * const adapted = unflatten(program, { adapt: ({ args }) => args.flat() });
 * ```
 */
export function unflatten(program: ExportedProgram, flatArgsAdapter?: FlatArgsAdapter): UnflattenedModule {
  return new UnflattenedModule(program, flatArgsAdapter);
}
