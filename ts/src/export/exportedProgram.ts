/**
 * Programs that PyTorch exported: `torch.export.ExportedProgram`.
 *
 * @module
 */
import { call, type Engine } from "../engine/engine.ts";
import { layoutOf, pushStorage, viewHandle } from "../engine/tensors.ts";
import { fxError } from "../errors.ts";
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../graph/module.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { decodeProgram, encodeProgram } from "../wire/program.ts";
import type { Constant, ModuleCallEntry, ProgramParts, RangeConstraint, StateEntry } from "./program.ts";
import { ProgramModule } from "./programModule.ts";
import type { GraphSignature } from "./signature.ts";

type EngineProgram = ReturnType<Engine["Program"]["open"]>;

/** How {@link ExportedProgram.exportForwardBackward} makes a joint program. */
export interface ForwardBackwardOptions {
  /** Which of the results of the graph is the loss; the first one, where nothing is said. */
  readonly jointLossIndex?: number;
  /** The operators that are taken apart, where they are not those of {@link defaultDecompositions}. */
  readonly table?: ReadonlySet<string>;
}

/** The guards of a program. */
export interface ProgramGuards {
  /** The symbols and their ranges; `null` is no bound. */
  readonly ranges: Readonly<Record<string, readonly [min: number | null, max: number | null]>>;
  /** What is checked: expressions, and the nodes that assert them. */
  readonly target: readonly (readonly [expr: string, node: string | null])[];
  /** What is said: expressions, and the nodes whose sizes they are about. */
  readonly source: readonly (readonly [expr: string, node: string | null])[];
}

/**
 * A program as `torch.export` gives it: a graph, what its inputs and outputs are, and its state. {@link load} opens one.
 *
 * It is not called itself: {@link ExportedProgram.module} gives something that is. Edits of the graph and of the state
 * are seen by the next `module()` and by {@link ExportedProgram.save}.
 *
 * @example
 * ```ts
 * const program = await load("model.pt2");
 * console.log(String(program.graph));
 * const model = program.module();
 * const logits = model(tensor([[1, 2, 3]], { dtype: "float32" }));
 * ```
 */
export class ExportedProgram {
  /** The graph, and the sub-graphs that it refers to. */
  readonly graphModule: GraphModule;
  /** What the inputs and outputs of the graph are. */
  graphSignature: GraphSignature;
  /** Lifted constants, buffers that are not saved, and custom objects, by qualified name. */
  readonly constants: Map<string, Constant>;
  /** The values that the symbols of the sizes may have. */
  readonly rangeConstraints: Map<string, RangeConstraint>;
  /** The root first, then the modules that the traced code called. */
  readonly moduleCallGraph: readonly ModuleCallEntry[];
  /** The dialects that the graph was checked against: `TRAINING` or `ATEN`. */
  readonly verifiers: readonly string[];
  /** The PyTorch that wrote the program. */
  readonly torchVersion: string;
  readonly #parts: ProgramParts;

  constructor(parts: ProgramParts) {
    this.#parts = parts;
    this.graphModule = parts.graphModule;
    this.graphSignature = parts.graphSignature;
    this.constants = parts.constants;
    this.rangeConstraints = parts.rangeConstraints;
    this.moduleCallGraph = parts.moduleCallGraph;
    this.verifiers = parts.verifiers;
    this.torchVersion = parts.torchVersion;
  }

  /** The graph. */
  get graph(): Graph {
    return this.graphModule.graph;
  }

  /** Parameters and persistent buffers by qualified name, those that the graph does not use included. */
  get stateDict(): Map<string, Tensor> {
    return new Map([...this.#parts.state].map(([name, entry]) => [name, entry.tensor]));
  }

  /** Texts that were saved beside the program. */
  get extraFiles(): ReadonlyMap<string, string> {
    return this.#parts.extraFiles;
  }

  /** The parameters by qualified name. */
  *namedParameters(): IterableIterator<[string, Tensor]> {
    for (const [name, entry] of this.#parts.state) if (entry.isParameter) yield [name, entry.tensor];
  }

  /** The buffers by qualified name, those that are not saved included. */
  *namedBuffers(): IterableIterator<[string, Tensor]> {
    for (const name of this.graphSignature.buffers) yield [name, this.#tensor(name)];
  }

  /**
   * Replaces tensors of the state by others of the same dtype and shape. Names that the program does not have are
   * refused; tensors that are not named stay.
   */
  loadStateDict(state: ReadonlyMap<string, Tensor>): void {
    const replaced = new Map<string, StateEntry>();
    for (const [name, tensor] of state) {
      const entry = this.#parts.state.get(name);
      if (entry === undefined) {
        throw fxError("AttributeMissing", `the program has no parameter or buffer \`${name}\``, {
          notes: [`it has ${[...this.#parts.state.keys()].join(", ")}`],
        });
      }
      const [wanted, given] = [describe(entry.tensor), describe(tensor)];
      if (wanted !== given) throw fxError("InputShape", `\`${name}\` is ${wanted}, and the new tensor is ${given}`);
      replaced.set(name, { ...entry, tensor });
    }
    for (const [name, entry] of replaced) this.#parts.state.set(name, entry);
  }

  /**
   * The program as something that can be called with the user's inputs: `ExportedProgram.module()`. It holds a copy of
   * the state, so that a call which changes buffers does not change the program.
   */
  module(): ProgramModule {
    return this.#withEngine((program) => new ProgramModule(this.#snapshot(), program.runner()));
  }

  /**
   * The same program in terms of fewer operators: `ExportedProgram.run_decompositions()`. The operators of the table, by
   * default those of {@link defaultDecompositions}, are taken apart until none of them is left. Writes become new values:
   * what the program writes to buffers, parameters and inputs is returned, and the signature says so.
   *
   * @example
   * ```ts
   * const core = program.runDecompositions();
   *
   * const table = defaultDecompositions();
   * table.delete("torch.ops.aten.linear.default");
   * const withLinear = program.runDecompositions(table);
   * ```
   */
  runDecompositions(table?: ReadonlySet<string>): ExportedProgram {
    const operators = table === undefined ? undefined : JSON.stringify([...table]);
    return this.#withEngine((program) => decoded(program.run_decompositions(operators)));
  }

  /**
   * The joint program of a loss and its gradients: `torch.export.experimental._export_forward_backward(ep, index)`. What the
   * program gives is followed by a gradient for each parameter and each input that requires one, and the operators of the
   * table are taken apart. {@link TrainingModule} runs it.
   *
   * @example
   * ```ts
   * const joint = program.exportForwardBackward({ jointLossIndex: 0 });
   * joint.graphSignature.outputSpecs.map((it) => it.kind); // ["LOSS_OUTPUT", "GRADIENT_TO_PARAMETER", …]
   * ```
   */
  exportForwardBackward(options: ForwardBackwardOptions = {}): ExportedProgram {
    const index = options.jointLossIndex ?? 0;
    if (!Number.isInteger(index) || index < 0 || index > 0xffffffff) {
      throw fxError("IndexOutOfRange", `${index} is not the place of a result`);
    }
    const operators = options.table === undefined ? undefined : JSON.stringify([...options.table]);
    return this.#withEngine((program) => decoded(program.export_forward_backward(index, operators)));
  }

  /** The program in the byte format of tracefx: the content of an `.fxg` file. */
  save(): Uint8Array<ArrayBuffer> {
    return this.#withEngine((program) => program.save() as Uint8Array<ArrayBuffer>);
  }

  /**
   * What the program checks of its sizes (`target`), and what it says of them (`source`), as `TranslationValidator` takes
   * it: expressions of symbols, each with the name of the node that it is of, or `null`.
   */
  guards(): ProgramGuards {
    return this.#withEngine((program) => JSON.parse(program.guards()) as ProgramGuards);
  }

  /** The graph, the signature, the constraints, the sizes and the operators as tables: what `tracefx inspect` shows. */
  inspect(): string {
    return this.#withEngine((program) => program.inspect(false));
  }

  #snapshot(): ProgramParts {
    return { ...this.#parts, graphSignature: this.graphSignature };
  }

  #tensor(name: string): Tensor {
    const constant = this.constants.get(name);
    const tensor = this.#parts.state.get(name)?.tensor ?? (constant?.kind === "tensor" ? constant.tensor : undefined);
    if (tensor === undefined) throw fxError("AttributeMissing", `the program holds no tensor \`${name}\``);
    return tensor;
  }

  #withEngine<T>(body: (program: EngineProgram) => T): T {
    const { bytes, storages } = encodeProgram(this.#snapshot(), layoutOf);
    return call((engine) => {
      const beside = new engine.Storages();
      let program: EngineProgram | undefined;
      try {
        for (const tensor of storages) pushStorage(beside, tensor);
        program = engine.Program.assemble(bytes, beside);
        return body(program);
      } finally {
        program?.free();
        beside.free();
      }
    });
  }
}

/** Opens a program from the bytes of a `.pt2` archive or an `.fxg` file. */
export function openProgram(bytes: Uint8Array, limits: Readonly<Record<string, number>>): ExportedProgram {
  return call((engine) => decoded(engine.Program.open(bytes, JSON.stringify(limits))));
}

/**
 * The operators that PyTorch takes apart by default, by qualified name: `torch.export.default_decompositions()`. The set is
 * the caller's, to take names out of it or to put more in.
 */
export function defaultDecompositions(): Set<string> {
  return call((engine) => new Set(JSON.parse(engine.default_decompositions()) as string[]));
}

/** A program of the engine, which is freed. */
function decoded(program: EngineProgram): ExportedProgram {
  let storages: InstanceType<Engine["Storages"]> | undefined;
  try {
    const beside = program.storages();
    storages = beside;
    return new ExportedProgram(decodeProgram(program.outline(), (...view) => viewHandle(beside, ...view)));
  } finally {
    storages?.free();
    program.free();
  }
}

function describe(tensor: Tensor): string {
  return `${tensor.dtype}[${tensor.shape.join(", ")}]`;
}
