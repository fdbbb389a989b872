/**
 * Programs that PyTorch exported: `torch.export.ExportedProgram`.
 *
 * This folder makes them, checks them, runs them and has their bytes (`encoding`). Decompositions and archives are the
 * engine's.
 *
 * @module
 */
import { isOutermost, showThemselves } from "../base/inspect.ts";
import { answeringPythonNames } from "../base/pythonNames.ts";
import type { Bytes } from "../base/bytes.ts";
import type { PRECISIONS } from "../../../bindings/command.ts";
import type { NoteValuesCall } from "../../../bindings/passes.ts";
import { call, type Engine } from "../engine/engine.ts";
import { layoutOf, moveToEngine, pushStorage, viewHandle } from "../engine/tensors.ts";
import { FxError, fxError } from "../base/errors.ts";
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Pass } from "../rewrite/passBase.ts";
import { PassManager } from "../rewrite/passManager.ts";
import { mergeGetitems } from "../rewrite/enginePasses.ts";
import { noteValues } from "../rewrite/noteValues.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { Tensor } from "../tensor/tensor.ts";
import { decodeProgram, encodeProgram } from "./encoding/program.ts";
import type {
  Constant,
  ExampleInput,
  ModuleCallEntry,
  ProgramParts,
  RangeConstraint,
  StateEntry,
  TreeSpec,
} from "./program.ts";
import { ProgramModule } from "./programModule.ts";
import { type CallParts, callPartsOf } from "./callParts.ts";
import type { EngineProgram } from "./engineProgram.ts";
import { type ModuleOptions, moduleSettings } from "./moduleOptions.ts";
import { followSignature } from "./followSignature.ts";
import { GraphSignature } from "./signature.ts";
import { relift } from "./relift.ts";
import { flattenCall, unflatten } from "./tree.ts";
import { notingSources, unlift } from "./unlift.ts";
import { verifiersOf } from "./verifier.ts";
import { checkGiven, checkOptions } from "../base/given.ts";

/** How {@link ExportedProgram.exportForwardBackward} makes a joint program. */
export interface ForwardBackwardOptions {
  /** Which of the results of the graph is the loss; the first one, where nothing is said. */
  readonly jointLossIndex?: number;
  /** The operators that are decomposed, where they are not those of {@link defaultDecompositions}. */
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

/** The structures of what a program takes and gives; `null` where the program does not say them. */
export interface CallSpec {
  readonly inSpec: TreeSpec | null;
  readonly outSpec: TreeSpec | null;
}

/** What a program was exported with: positional arguments, and keyword arguments. */
export type ExampleInputs = readonly [args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>];

/** What {@link ExportedProgram.update} takes besides the graph and its signature. */
export interface ProgramUpdate {
  readonly state?: Map<string, StateEntry>;
  readonly constants?: Map<string, Constant>;
  readonly verifiers?: readonly string[];
}

/** The parts of a program, out of the way of its users. */
let partsOfProgram: (program: ExportedProgram) => ProgramParts;

/**
 * A program as `torch.export` gives it: a graph, what its inputs and outputs are, and its state. {@link load} opens one.
 *
 * It is not called itself: {@link ExportedProgram.module} gives something that is. Edits of the graph and of the state
 * are seen by the next `module()` and by {@link ExportedProgram.toFxg}.
 *
 * @example
 * ```ts
 * const program = await load("model.pt2");
 * console.log(String(program.graph));
 * const model = program.module();
 * const logits = model(tensor([[1, 2, 3]], { dtype: "float32" }));
 * ```
 */
export class ExportedProgram implements Disposable {
  static {
    partsOfProgram = (program) => program.#parts;
  }

  #held: ProgramParts | undefined;

  constructor(parts: ProgramParts) {
    this.#held = parts;
  }

  get #parts(): ProgramParts {
    if (this.#held !== undefined) return this.#held;
    throw fxError("Disposed", "the program was disposed", { help: "load it again, or dispose of it later" });
  }

  /** The graph, and the sub-graphs that it refers to. */
  get graphModule(): GraphModule {
    return this.#parts.graphModule;
  }

  /** The graph. */
  get graph(): Graph {
    return this.graphModule.graph;
  }

  /** What the inputs and outputs of the graph are. */
  get graphSignature(): GraphSignature {
    return this.#parts.graphSignature;
  }

  /** Lifted constants, buffers that are not saved, and custom objects, by qualified name. */
  get constants(): Map<string, Constant> {
    return this.#parts.constants;
  }

  /** The same as {@link constants}, by its older name. */
  get tensorConstants(): Map<string, Constant> {
    return this.#parts.constants;
  }

  /** The values that the symbols of the sizes may have. */
  get rangeConstraints(): Map<string, RangeConstraint> {
    return this.#parts.rangeConstraints;
  }

  /** The root first, then the modules that the traced code called. */
  get moduleCallGraph(): readonly ModuleCallEntry[] {
    return this.#parts.moduleCallGraph;
  }

  /** The dialects that the graph is checked against: `TRAINING`, `ATEN`, or one of your own ({@link registerVerifier}). */
  get verifiers(): readonly string[] {
    return this.#parts.verifiers;
  }

  /** The first of the verifiers; a program without any has PyTorch's own, `ATEN`. */
  get verifier(): string {
    return this.dialect;
  }

  /** The dialect of the first verifier. */
  get dialect(): string {
    return this.#parts.verifiers[0] || "ATEN";
  }

  /** The PyTorch that wrote the program. */
  get torchVersion(): string {
    return this.#parts.torchVersion;
  }

  /** Parameters and persistent buffers by qualified name, those that the graph does not use included. */
  get stateDict(): Map<string, Tensor> {
    return new Map([...this.#parts.state].map(([name, entry]) => [name, entry.tensor]));
  }

  /** The structures of what the program takes and gives. */
  get callSpec(): CallSpec {
    const signature = this.#parts.moduleCallGraph[0]?.signature;
    return { inSpec: signature?.inSpec ?? null, outSpec: signature?.outSpec ?? null };
  }

  /** What the program was exported with, or was given since; `null` where it has nothing, or nothing that can be read. */
  get exampleInputs(): ExampleInputs | null {
    const { inSpec } = this.callSpec;
    const leaves = this.#parts.exampleInputs;
    return leaves === undefined || inSpec === null ? null : (unflatten(leaves, inSpec, this.#parts) as ExampleInputs);
  }

  set exampleInputs(value: ExampleInputs | null) {
    this.#parts.exampleInputs = value === null ? undefined : this.#exampleLeaves(value);
  }

  /** Texts that were saved beside the program. */
  get extraFiles(): ReadonlyMap<string, string> {
    return this.#parts.extraFiles;
  }

  /** The parameters. */
  *parameters(): IterableIterator<Tensor> {
    for (const [, tensor] of this.namedParameters()) yield tensor;
  }

  /** The parameters by qualified name. */
  *namedParameters(): IterableIterator<[string, Tensor]> {
    for (const name of this.graphSignature.parameters) yield [name, this.#tensor(name)];
  }

  /** The buffers, those that are not saved included. */
  *buffers(): IterableIterator<Tensor> {
    for (const [, tensor] of this.namedBuffers()) yield tensor;
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
    checkGiven("loadStateDict", state instanceof Map, "a Map from names to tensors", "program.stateDict is one");
    const replaced = new Map<string, StateEntry>();
    for (const [name, tensor] of state) {
      const entry = this.#parts.state.get(name);
      if (entry === undefined) {
        throw fxError("AttributeMissing", `the program has no parameter or buffer \`${name}\``, {
          notes: [`it has ${[...this.#parts.state.keys()].join(", ")}`],
        });
      }
      checkGiven("loadStateDict", (tensor as unknown) instanceof Tensor, `a tensor for \`${name}\``);
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
  module(options: ModuleOptions = {}): ProgramModule {
    const settings = moduleSettings("module", options);
    const parts = (options.checkGuards ?? true) ? this.#parts : { ...this.#parts, guards: [] };
    return withEngine(
      parts,
      (program) => new ProgramModule(callPartsOfProgram(parts), settings.runner(program), settings.run, { ...parts }),
    );
  }

  /**
   * The program as a graph module that holds its state, which `ExportedProgram.module()` gives in PyTorch: parameters, buffers
   * and constants are attributes that `get_attr` nodes read, and new values of buffers are copied into them. It is called with what the exported
   * module's `forward` takes, edited, exported again, and made a program of by {@link relift}. Node by node it is slower than
   * {@link module}. As in PyTorch it shares the tensors with the program, so that a call which writes to a buffer writes to the program's:
   * `program.clone().unlift()` has its own.
   *
   * @example
   * ```ts
   * const gm = program.unlift();
   * console.log(String(gm.graph)); // %fc_weight : [num_users=1] = get_attr[target=fc.weight] …
   * fuseBatchNorm(gm);
   * constantFold(gm);
   * const faster = program.relift(gm);
   * ```
   */
  unlift(): GraphModule {
    return unlift(this.#parts, (parts) => new ExportedProgram(parts));
  }

  /**
   * The program that a graph module is, which {@link unlift} made of this one and which was edited since: what it holds becomes inputs
   * again. What it does not hold any more is gone from the program, and new tensors are parameters, buffers or constants as the
   * module has them. Inputs and results keep their number and order. What new nodes give is noted, and the program is validated.
   *
   * @example
   * ```ts
   * const gm = program.unlift();
   * gm.setSubmodule("scale", new GraphModule());
   * const edited = program.relift(gm);
   * ```
   */
  relift(graphModule: GraphModule): ExportedProgram {
    checkGraphModule("relift", graphModule);
    const { graphModule: lifted, graphSignature, ...held } = relift(this.#parts, graphModule);
    return this.update(lifted, graphSignature, held);
  }

  /**
   * The program that passes make of this one, which see its parameters, buffers and constants as attributes of the module, as passes
   * do that fold or fuse weights: {@link unlift}, the passes, and {@link relift}. It is this program where they change nothing.
   *
   * @example
   * ```ts
   * const fused = program.withLiftedState(fuseBatchNorm, (graphModule) => ({ graphModule, modified: constantFold(graphModule) }));
   * ```
   */
  withLiftedState(...passes: Pass[]): ExportedProgram {
    const { graphModule, modified } = new PassManager({ passes }).run(this.unlift());
    return modified ? this.relift(graphModule) : this;
  }

  /** Refused, as in PyTorch. */
  forward(): never {
    throw fxError(
      "InvalidOption",
      "Unable to call ExportedProgram directly. You should use `exported_program.module()` instead.",
      { help: "program.module()(x)" },
    );
  }

  /**
   * Holds the program to the rules of its dialects: `ExportedProgram.validate()`. Everything that breaks one is told, the
   * first thing in PyTorch's words.
   *
   * @example
   * ```ts
   * program.graph.outputNode()?.prepend(program.graph.callMethod("relu", [x]));
   * program.validate(); // call_module is not valid: got a class 'relu'
   * ```
   */
  validate(): void {
    const { own, known } = verifiersOf(this.#parts.verifiers);
    withEngine({ ...this.#parts, verifiers: known }, (program) => {
      program.validate();
    });
    for (const verifier of own) verifier.check(this);
  }

  /**
   * The program that passes make of this one. The passes run on a copy; nodes that they leave alone keep their names. Inputs
   * and results may get other names, which the signature follows, but not another number or order. What comes out is
   * validated.
   *
   * @example
   * ```ts
   * const smaller = program.transform(new CSEPass());
   * ```
   */
  transform(...passes: Pass[]): ExportedProgram {
    const copy = this.clone();
    const { graphModule, modified } = new PassManager({ passes }).run(copy.graphModule);
    if (!modified) return this;
    const res = copy.update(graphModule, followSignature(this.graphSignature, graphModule.graph));
    // Nobody else has the copy, so that its tensors go over.
    const tensors = brought.get(copy);
    if (tensors !== undefined) brought.set(res, tensors);
    return res;
  }

  /**
   * The same program with another graph and its signature: `ExportedProgram._update`. Reads of the same item of a result
   * become one, which the signature follows, what new nodes give is noted, and the program is validated.
   *
   * @example
   * ```ts
   * const updated = program.update(graphModule, program.graphSignature);
   * ```
   */
  update(graphModule: GraphModule, graphSignature: GraphSignature, options: ProgramUpdate = {}): ExportedProgram {
    checkGraphModule("update", graphModule);
    const isSignature = (graphSignature as unknown) instanceof GraphSignature;
    checkGiven("update", isSignature, "a GraphSignature", "program.graphSignature is that of the program");
    checkOptions("update", options, ["state", "constants", "verifiers"]);
    noteValues(graphModule, rangesOf(this.#parts));
    const { modified } = mergeGetitems(graphModule);
    const signature = modified ? followSignature(graphSignature, graphModule.graph) : graphSignature.clone();
    const { state = this.#parts.state, constants = this.#parts.constants, verifiers = this.#parts.verifiers } = options;
    const changed = { graphModule, graphSignature: signature, state, constants, verifiers: [...verifiers] };
    const res = new ExportedProgram({ ...this.#parts, ...changed });
    res.validate();
    return res;
  }

  /**
   * A program of its own with copies of the graph and of all tensors: `copy.deepcopy`. What is noted of nodes is kept as far
   * as files keep it.
   *
   * @example
   * ```ts
   * const copy = program.clone();
   * ```
   */
  clone(): ExportedProgram {
    const { verifiers } = this.#parts;
    const known = new ExportedProgram({ ...this.#parts, verifiers: verifiersOf(verifiers).known });
    const res = openProgram(known.toFxg(), {});
    res.#parts.verifiers = [...verifiers];
    return res;
  }

  /**
   * The same program in terms of fewer operators: `ExportedProgram.run_decompositions()`. The operators of the table, by
   * default those of {@link defaultDecompositions}, are decomposed until none of them is left. Writes become new values:
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
    const operators = namesOf("runDecompositions", table);
    return notingSources(this.graph, () => this.through((program) => program.run_decompositions(operators)));
  }

  /**
   * What {@link unflatten} is made of: the program in terms of the modules that it was exported from.
   *
   * @internal
   */
  unflattenedParts(): ProgramParts {
    return withEngine(this.#parts, (program) => decodedParts(program.unflatten()));
  }

  /**
   * The joint program of a loss and its gradients: `torch.export.experimental._export_forward_backward(ep, index)`. What the
   * program gives is followed by a gradient for each parameter and each input that requires one, and the operators of the
   * table are decomposed. {@link TrainingModule} runs it.
   *
   * @example
   * ```ts
   * const joint = program.exportForwardBackward({ jointLossIndex: 0 });
   * joint.graphSignature.outputSpecs.map((it) => it.kind); // ["LOSS_OUTPUT", "GRADIENT_TO_PARAMETER", …]
   * ```
   */
  exportForwardBackward(options: ForwardBackwardOptions = {}): ExportedProgram {
    checkOptions("exportForwardBackward", options, ["jointLossIndex", "table"]);
    const index = options.jointLossIndex ?? 0;
    if (!Number.isInteger(index) || index < 0 || index > 0xffffffff) {
      throw fxError("IndexOutOfRange", `${index} is not the place of a result`);
    }
    const operators = namesOf("exportForwardBackward", options.table);
    return this.through((program) => program.export_forward_backward(index, operators));
  }

  /**
   * The program in the byte format of tracefx: the content of an `.fxg` file. The function `save` writes PyTorch's archives.
   *
   * @example
   * ```ts
   * await writeFile("model.fxg", program.toFxg());
   * ```
   */
  toFxg(): Bytes {
    return withEngine(this.#parts, (program) => program.save() as Bytes);
  }

  /**
   * What the program checks of its sizes (`target`), and what it says of them (`source`), as `TranslationValidator` takes
   * it: expressions of symbols, each with the name of the node that it is of, or `null`.
   */
  guards(): ProgramGuards {
    return withEngine(this.#parts, (program) => JSON.parse(program.guards()) as ProgramGuards);
  }

  /** The graph, the signature, the constraints, the sizes and the operators as tables: what `tracefx inspect` shows. */
  inspect(): string {
    return withEngine(this.#parts, (program) => program.inspect(false));
  }

  /** PyTorch's `str(exported_program)`: Python with what is known of each value, the signature, and the ranges. */
  toString(): string {
    return withEngine(this.#parts, (program) => program.text());
  }

  /** What Node's console shows: the text of the program, and inside of other values its name alone. */
  [Symbol.for("nodejs.util.inspect.custom")](depth: number, options: { readonly depth?: number | null }): string {
    if (this.#held === undefined) return "ExportedProgram(disposed)";
    return isOutermost(depth, options) ? this.toString() : "ExportedProgram";
  }

  #exampleLeaves(value: unknown): ExampleInput[] {
    const [args, kwargs, ...others] = Array.isArray(value) ? (value as unknown[]) : [];
    const isPair = Array.isArray(args) && typeof kwargs === "object" && kwargs !== null && others.length === 0;
    if (!isPair) {
      throw fxError(
        "InvalidOption",
        "Example inputs should be a tuple containing example arguments (as a tuple), and example kwargs (as a dictionary).",
        { help: "program.exampleInputs = [[x], {}]" },
      );
    }
    const { inSpec } = this.callSpec;
    if (inSpec === null) throw fxError("InputStructure", "the program does not say what its arguments are");
    const hasKeywords = (inSpec.children[1]?.children.length ?? 0) > 0 || Object.keys(kwargs).length > 0;
    try {
      return flattenCall(hasKeywords ? [...(args as unknown[]), kwargs] : args, inSpec, this.#parts) as ExampleInput[];
    } catch (cause) {
      const reason = cause instanceof FxError ? cause.reason : String(cause);
      throw fxError("InputStructure", `Trying to flatten user inputs with exported input tree spec: ${reason}`, {
        cause,
        help: "Please check that the inputs have the same number and type of args and kwargs as the ones you used when tracing.",
      });
    }
  }

  /**
   * Gives the memory of the state, the constants and the example inputs back that the program brought with it, as a program
   * from a file does.
   * The tensors of the module that it was exported from stay, and so do those that it was given later; modules that
   * {@link ExportedProgram.module} made have a state of their own. A program that was disposed of refuses to be used.
   *
   * @example
   * ```ts
   * using program = await load("model.pt2");
   * const model = program.module();
   * ```
   */
  dispose(): void {
    this.#held = undefined;
    for (const tensor of brought.get(this) ?? []) tensor.dispose();
    brought.delete(this);
  }

  [Symbol.dispose](): void {
    this.dispose();
  }

  /** @internal Notes what new nodes give, which files say of each, and gives what nodes refused. */
  noteValues(): string[] {
    return noteValues(this.graphModule, rangesOf(this.#parts));
  }

  /** @internal What the engine makes of the program. */
  through(change: (program: EngineProgram) => EngineProgram): ExportedProgram {
    return withEngine(this.#parts, (program) => decoded(change(program)));
  }

  /** @internal Lends the program, as it is now, to what calls the engine. */
  withEngine<T>(body: (program: EngineProgram) => T): T {
    return withEngine(this.#parts, body);
  }

  #tensor(name: string): Tensor {
    const constant = this.constants.get(name);
    const tensor = this.#parts.state.get(name)?.tensor ?? (constant?.kind === "tensor" ? constant.tensor : undefined);
    if (tensor === undefined) throw fxError("AttributeMissing", `the program holds no tensor \`${name}\``);
    return tensor;
  }
}

Object.setPrototypeOf(ExportedProgram.prototype, answeringPythonNames("an ExportedProgram"));
showThemselves(ExportedProgram);

for (const name of [
  "graphModule",
  "graph",
  "graphSignature",
  "stateDict",
  "rangeConstraints",
  "moduleCallGraph",
  "callSpec",
  "verifier",
  "dialect",
  "verifiers",
  "tensorConstants",
  "constants",
] as const) {
  const { get } = Object.getOwnPropertyDescriptor(ExportedProgram.prototype, name) as { get(): unknown };
  Object.defineProperty(ExportedProgram.prototype, name, {
    configurable: true,
    get,
    set() {
      const attribute = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
      throw fxError("InvalidOption", `Unable to set ExportedProgram's ${attribute} attribute.`, {
        help: "program.update(graphModule, graphSignature) makes another program",
      });
    },
  });
}

/** The names of the operators that are decomposed, for the engine. */
function namesOf(what: string, table: ReadonlySet<string> | undefined): string | undefined {
  if (table === undefined) return undefined;
  const names: readonly unknown[] | undefined = table instanceof Set || Array.isArray(table) ? [...table] : undefined;
  const isTable = names?.every((it) => typeof it === "string") === true;
  checkGiven(what, isTable, "a Set of the names of operators as table", "defaultDecompositions() makes one");
  return JSON.stringify(names);
}

/** The tensors that are of a program alone, since the engine made them for it. */
const brought = new WeakMap<ExportedProgram, readonly Tensor[]>();

/** The ranges of the symbols; null is no bound. */
function rangesOf({ rangeConstraints }: ProgramParts): NoteValuesCall["ranges"] {
  const res: Record<string, readonly [min: number | null, max: number | null]> = {};
  // A range of an expression is none of a symbol.
  for (const [name, { min, max }] of rangeConstraints) if (/^\w+$/.test(name)) res[name] = [boundOf(min), boundOf(max)];
  return res;
}

/** A bound that is too large for a number bounds nothing. */
function boundOf(value: number | bigint | undefined): number | null {
  return value === undefined || !Number.isSafeInteger(Number(value)) ? null : Number(value);
}

/** Does something with a program in the engine's memory, which is freed afterwards. */
export function withEngine<T>(parts: ProgramParts, body: (program: EngineProgram) => T): T {
  const { bytes, storages } = encodeProgram(parts, layoutOf);
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

/**
 * A program as {@link ExportedProgram.module} gives it, on its tensors themselves: a call sees what was written to them, and what it writes
 * is seen by whoever has them.
 */
export function moduleOnState(program: ExportedProgram, precision: (typeof PRECISIONS)[number]): ProgramModule {
  const parts = partsOfProgram(program);
  for (const { tensor } of parts.state.values()) moveToEngine(tensor);
  for (const it of parts.constants.values()) if (it.kind === "tensor") moveToEngine(it.tensor);
  const { run, runner } = moduleSettings("compile", { precision });
  return withEngine(
    parts,
    (it) => new ProgramModule(callPartsOfProgram(parts), runner(it).with_shared_state(), run, parts),
  );
}

/** What calls need to know of a program. */
function callPartsOfProgram(parts: ProgramParts): CallParts {
  const inputs = parts.graphModule.graph.findNodes({ op: "placeholder" });
  return callPartsOf(parts, new Map(inputs.map((it) => [it.name, it.meta.get("val")])));
}

/** Opens a program from the bytes of a `.pt2` archive or an `.fxg` file. */
export function openProgram(bytes: Uint8Array, limits: Readonly<Record<string, number>>): ExportedProgram {
  return call((engine) => decoded(engine.Program.open(bytes, JSON.stringify(limits))));
}

/**
 * The operators that PyTorch decomposes by default, by qualified name: `torch.export.default_decompositions()`. The set is
 * the caller's, to take names out of it or to put more in.
 */
export function defaultDecompositions(): Set<string> {
  return call((engine) => new Set(JSON.parse(engine.default_decompositions()) as string[]));
}

/** A program of the engine, which is freed. */
export function decoded(program: EngineProgram): ExportedProgram {
  const parts = decodedParts(program);
  const res = new ExportedProgram(parts);
  const constants = [...parts.constants.values()].flatMap((it) => (it.kind === "tensor" ? [it.tensor] : []));
  const examples = (parts.exampleInputs ?? []).flatMap(tensorsIn);
  brought.set(res, [...Array.from(parts.state.values(), (it) => it.tensor), ...constants, ...examples]);
  return res;
}

function tensorsIn(example: ExampleInput): readonly Tensor[] {
  if (Array.isArray(example)) return example.flatMap(tensorsIn);
  return example instanceof Tensor ? [example] : [];
}

function decodedParts(program: EngineProgram): ProgramParts {
  let storages: InstanceType<Engine["Storages"]> | undefined;
  try {
    const beside = program.storages();
    storages = beside;
    return decodeProgram(program.outline(), (...view) => viewHandle(beside, ...view));
  } finally {
    storages?.free();
    program.free();
  }
}

function describe(tensor: Tensor): string {
  return `${tensor.dtype}[${tensor.shape.join(", ")}]`;
}
