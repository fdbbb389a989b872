/**
 * A graph module as a program for calls of one kind.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import type { PRECISIONS } from "../../../bindings/command.ts";
import { addContext, FxError, fxError } from "../base/errors.ts";
import { callOperator } from "../engine/dispatch.ts";
import { moveToEngine } from "../engine/tensors.ts";
import type { EngineValue } from "../engine/values.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { Interpreter, placeOf } from "../fx/interpreter.ts";
import type { Graph } from "../graph/graph.ts";
import type { TensorMeta } from "../graph/val.ts";
import { Module } from "../nn/module.ts";
import { contiguousStrides } from "../tensor/layout.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type PytreeSpec, treeFlatten, treeUnflatten } from "../trace/pytree.ts";
import { isConstant, isSameConstant } from "./constants.ts";
import { Dim } from "./dim.ts";
import { type ExportedProgram, moduleOnState } from "./exportedProgram.ts";
import { exportProgram } from "./exportProgram.ts";
import { typeName } from "./moduleInputs.ts";
import { leafNames } from "./placeholderNames.ts";
import type { PlanReport, ProgramModule } from "./programModule.ts";

/** Where the graph module stands in what is exported. */
const FQN = "graph_module";

/** Stands for a tensor among arguments, so that what is known of a call keeps none alive. */
const TENSOR = Symbol("tensor");

/** What the calls that one program is for are given besides tensors. */
class CallKind {
  /** The arguments, nested ones flattened, with {@link TENSOR} for tensors. */
  readonly #leaves: readonly unknown[];
  /** How they are nested. */
  readonly #spec: PytreeSpec;

  constructor(leaves: readonly unknown[], spec: PytreeSpec) {
    this.#leaves = leaves;
    this.#spec = spec;
  }

  equals(other: CallKind): boolean {
    if (this === other) return true;
    if (this.#leaves.length !== other.#leaves.length || !this.#spec.equals(other.#spec)) return false;
    return this.#leaves.every((it, at) => isSameConstant(it, other.#leaves[at]));
  }

  /** The arguments with these tensors. */
  with(tensors: readonly unknown[]): readonly unknown[] {
    let next = 0;
    const leaves = this.#leaves.map((it) => (it === TENSOR ? tensors[next++] : it));
    return treeUnflatten(leaves, this.#spec) as unknown[];
  }
}

/** The kinds of calls with so many tensors and nothing else, of which most calls are. */
const plainKinds: CallKind[] = [];

/** What a call is given: tensors, and what is taken as constant. */
export class CallInputs {
  readonly kind: CallKind;
  readonly tensors: readonly Tensor[];

  /** @throws `InputType` where something is given that may change while it stays the same. */
  constructor(graph: Graph, given: readonly unknown[]) {
    const isPlain = given.every((it) => it instanceof Tensor);
    const known = isPlain ? plainKinds[given.length] : undefined;
    if (isPlain && known !== undefined) {
      this.tensors = given;
      this.kind = known;
      return;
    }
    const [leaves, spec] = treeFlatten(given);
    for (const [at, it] of leaves.entries()) {
      if (!(it instanceof Tensor) && !isConstant(it)) throw notConstant(it, inputNames(graph, spec)[at] ?? "");
    }
    this.tensors = leaves.filter((it) => it instanceof Tensor);
    this.kind = new CallKind(
      leaves.map((it) => (it instanceof Tensor ? TENSOR : it)),
      spec,
    );
    if (isPlain) plainKinds[given.length] = this.kind;
  }

  /** The names of the tensors, after the inputs of the graph. */
  names(graph: Graph): string[] {
    const [leaves, spec] = treeFlatten(this.kind.with(this.tensors));
    const names = inputNames(graph, spec).filter((_, at) => leaves[at] instanceof Tensor);
    const taken = new Set<string>();
    for (let name of names) {
      // Different keys of an object may give one name.
      while (taken.has(name)) name += "_";
      taken.add(name);
    }
    return [...taken];
  }
}

/** A name for each leaf of what a graph is given. */
function inputNames(graph: Graph, { children }: PytreeSpec): string[] {
  const inputs = graph.findNodes({ op: "placeholder" });
  return children.flatMap((it, at) => {
    const { target } = inputs[at] ?? inputs.at(-1) ?? { target: "*input" };
    const name = target.replace(/^\*+/, "");
    return leafNames(name === target && at < inputs.length ? name : `${name}_${at}`, it);
  });
}

function notConstant(value: unknown, place: string): FxError {
  const help = "give tensors and numbers, or say what its parts are: registerPytreeNode(...)";
  return fxError("InputType", `the input ${place} is of the type ${typeName(value)}, which may change unseen`, {
    help,
  });
}

/** What is known of a tensor that is given; a size is `undefined` where it may be any from two on. */
interface KnownTensor {
  readonly dtype: DType;
  readonly sizes: readonly (number | undefined)[];
  /** In elements; `undefined` for row-major ones. */
  readonly strides: readonly number[] | undefined;
}

function knownOf(tensor: Tensor): KnownTensor {
  const strides = tensor.stride();
  const isRowMajor = contiguousStrides(tensor.shape).every((it, dim) => it === strides[dim]);
  return { dtype: tensor.dtype, sizes: tensor.shape, strides: isRowMajor ? undefined : strides };
}

function isKnown({ dtype, shape }: Tensor, known: KnownTensor, strides: readonly number[] | undefined): boolean {
  if (dtype !== known.dtype || shape.length !== known.sizes.length) return false;
  if (!known.sizes.every((size, dim) => (size === undefined ? (shape[dim] as number) > 1 : size === shape[dim])))
    return false;
  return strides === known.strides || (strides?.every((it, dim) => it === known.strides?.[dim]) ?? false);
}

/** Where a result comes from. */
type Result =
  | { readonly kind: "computed" }
  /** A tensor that is given, or one that the module holds. */
  | { readonly kind: "input"; readonly place: number }
  | { readonly kind: "held"; readonly path: string }
  /** A program knows fewer kinds of numbers than JavaScript. */
  | { readonly kind: "constant"; readonly value: unknown };

/** A graph module as a program, for calls of one kind. */
export class CompiledCall implements Disposable {
  readonly #module: ProgramModule;
  readonly #program: ExportedProgram;
  readonly #kind: CallKind;
  /** What its program calls the tensors. */
  readonly #names: readonly string[];
  readonly #known: readonly KnownTensor[];
  readonly #outSpec: PytreeSpec;
  readonly #results: readonly Result[];
  readonly #graphModule: GraphModule;

  /**
   * Exports the module as it is called with these. Sizes in which an earlier call had others are dynamic; `undefined` says that of a size.
   */
  constructor(
    graphModule: GraphModule,
    inputs: CallInputs,
    sizes: readonly (readonly (number | undefined)[])[],
    precision: (typeof PRECISIONS)[number],
  ) {
    const { kind, tensors } = inputs;
    let [leaves, outSpec] = treeFlatten(null);
    class Root extends Module {
      override forward(named: Readonly<Record<string, Tensor>> = {}): unknown {
        const interpreter = new Interpreter(graphModule);
        const result = interpreter.runWith(kind.with(Object.values(named)), { enableIoProcessing: false });
        [leaves, outSpec] = treeFlatten(result);
        return leaves;
      }
    }
    const root = new Root();
    root.attributes.set(FQN, { kind: "module", module: graphModule });
    const dims = sizes.map((it) => it.map((size) => (size === undefined ? Dim.AUTO : null)));
    const isDynamic = dims.flat().some((it) => it !== null);
    this.#names = inputs.names(graphModule.graph);
    const options = { verify: false, checkSources: false } as const;
    // An export tells tensors apart, so that of two that are one in this call, or one that the module holds, it would use one alone.
    const examples = tensors.map((it) => callOperator("aten.alias", [it]) as Tensor);
    try {
      const given = isDynamic ? { ...options, dynamicShapes: this.#named(dims) } : options;
      this.#program = exportProgram(root, [], this.#named(examples), given);
      this.#module = moduleOnState(this.#program, precision);
    } finally {
      for (const it of examples) it.dispose();
    }
    this.#graphModule = graphModule;
    this.#kind = kind;
    this.#outSpec = outSpec;
    const { inputSpecs, outputSpecs } = this.#program.graphSignature;
    const given = inputSpecs.filter((it) => it.kind === "USER_INPUT");
    const metas = new Map(
      this.#program.graph.findNodes({ op: "placeholder" }).map((it) => [it.name, it.meta.get("val")]),
    );
    this.#known = tensors.map((tensor, at) => {
      const { sizes: found } = metas.get(given[at]?.arg.name ?? "") as TensorMeta;
      return { ...knownOf(tensor), sizes: found.map((size) => (typeof size === "number" ? size : undefined)) };
    });
    this.#results = outputSpecs
      .filter((it) => it.kind === "USER_OUTPUT")
      .map(({ arg }, at): Result => {
        if (isConstant(leaves[at])) return { kind: "constant", value: leaves[at] };
        if (arg.type !== "tensor") return { kind: "computed" };
        const place = given.findIndex((it) => it.arg.name === arg.name);
        if (place >= 0) return { kind: "input", place };
        const held = inputSpecs.find((it) => it.arg.name === arg.name)?.target;
        return held === undefined ? { kind: "computed" } : { kind: "held", path: held.slice(FQN.length + 1) };
      });
  }

  /** Whether a size may be any. */
  get isDynamic(): boolean {
    return this.#known.some(({ sizes }) => sizes.includes(undefined));
  }

  /** Whether a call with these is of this kind. */
  isFor(inputs: CallInputs): boolean {
    return (
      this.#kind.equals(inputs.kind) &&
      inputs.tensors.every((it, at) => isKnown(it, this.#known[at] as KnownTensor, knownOf(it).strides))
    );
  }

  /**
   * The sizes of a call that is of this kind but for sizes, with `undefined` for those in which the two differ; `undefined` where they
   * differ in something else.
   */
  sizesBeside(inputs: CallInputs): (number | undefined)[][] | undefined {
    if (!this.#kind.equals(inputs.kind)) return undefined;
    const res: (number | undefined)[][] = [];
    for (const [at, tensor] of inputs.tensors.entries()) {
      const known = this.#known[at] as KnownTensor;
      const { dtype, strides } = knownOf(tensor);
      const isAlike =
        dtype === known.dtype && tensor.ndim === known.sizes.length && (strides ?? known.strides) === undefined;
      if (!isAlike) return undefined;
      res.push(
        tensor.shape.map((size, dim) =>
          size > 1 && known.sizes[dim] !== size && known.sizes[dim] !== 1 ? undefined : size,
        ),
      );
    }
    return res;
  }

  run(inputs: CallInputs): unknown {
    // As calls of operators do: what the graph gives may be a view of an input.
    for (const it of inputs.tensors) moveToEngine(it);
    const leaves = this.#explained(() => this.#module.runFlat(inputs.tensors));
    const values = leaves.map((it, at) => {
      const result = this.#results[at];
      if (result?.kind !== "input" && result?.kind !== "held") return it;
      if (it instanceof Tensor) it.dispose();
      return result.kind === "input" ? inputs.tensors[result.place] : tensorAt(this.#graphModule, result.path);
    });
    return this.#output(values);
  }

  runInto(inputs: CallInputs, outputs: readonly Tensor[]): unknown {
    return this.#output(this.#explained(() => this.#module.runFlatInto(inputs.tensors, outputs)));
  }

  explain(inputs: CallInputs): PlanReport {
    const { tensors } = inputs;
    return this.#module.explain(tensors.length === 0 ? [] : [this.#named(tensors)]);
  }

  [Symbol.dispose](): void {
    this.#module.dispose();
  }

  #named<T>(values: readonly T[]): Record<string, T> {
    return Object.fromEntries(values.map((it, at) => [this.#names[at] as string, it]));
  }

  #output(values: readonly unknown[]): unknown {
    const leaves = values.map((it, at) => {
      const result = this.#results[at];
      return result?.kind === "constant" ? result.value : it;
    });
    const output = this.#outSpec.isLeaf ? leaves[0] : treeUnflatten(leaves, this.#outSpec);
    return this.#graphModule.graph.processOutputs(output as never);
  }

  /** Runs it, and adds the user's line to an error in a node of the program. */
  #explained(run: () => EngineValue[]): EngineValue[] {
    try {
      return run();
    } catch (error) {
      if (error instanceof FxError && error.node !== undefined) {
        const node = Array.from(this.#program.graph.nodes).find((it) => it.name === error.node);
        if (node !== undefined) addContext(error, node.name, placeOf(node));
      }
      throw error;
    }
  }
}

function tensorAt(module: GraphModule, path: string): Tensor | undefined {
  const found = module.findAttribute(path);
  return found?.kind === "module" ? undefined : found?.tensor;
}
