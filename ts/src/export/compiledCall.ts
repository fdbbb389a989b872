/**
 * A graph module as a program for calls of one kind.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import type { PRECISIONS } from "../../../bindings/command.ts";
import { addContext, FxError } from "../base/errors.ts";
import { Complex, DeviceArg, DTypeArg, Float, LayoutArg, MemoryFormatArg } from "../base/values.ts";
import { callOperator } from "../engine/dispatch.ts";
import { moveToEngine } from "../engine/tensors.ts";
import type { EngineValue } from "../engine/values.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { Interpreter, placeOf } from "../fx/interpreter.ts";
import type { TensorMeta } from "../graph/val.ts";
import { Module } from "../nn/module.ts";
import { contiguousStrides } from "../tensor/layout.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type PytreeSpec, treeFlatten, treeUnflatten } from "../trace/pytree.ts";
import { Dim } from "./dim.ts";
import { type ExportedProgram, moduleOnState } from "./exportedProgram.ts";
import { exportProgram } from "./exportProgram.ts";
import type { PlanReport, ProgramModule } from "./programModule.ts";

/** Where the graph module stands in what is exported. */
const FQN = "graph_module";

/** What a call is given: tensors, and what is taken as constant. */
export class CallInputs {
  readonly tensors: readonly Tensor[];
  readonly #leaves: readonly unknown[];
  /** How they are nested; `undefined` for tensors alone, of which there is nothing to say. */
  readonly #spec: PytreeSpec | undefined;

  constructor(given: readonly unknown[]) {
    if (given.every((it) => it instanceof Tensor)) {
      this.#leaves = this.tensors = given;
      return;
    }
    [this.#leaves, this.#spec] = treeFlatten(given);
    this.tensors = this.#leaves.filter((it) => it instanceof Tensor);
  }

  /** Whether a call with these is one like that with the others, but for the tensors. */
  isLike(others: CallInputs): boolean {
    if (this.#leaves.length !== others.#leaves.length) return false;
    if (this.#spec === undefined || others.#spec === undefined) return this.#spec === others.#spec;
    if (!this.#spec.equals(others.#spec)) return false;
    return this.#leaves.every((it, at) => isSameConstant(it, others.#leaves[at]));
  }

  /** The same arguments with other tensors. */
  with(tensors: readonly unknown[]): readonly unknown[] {
    if (this.#spec === undefined) return tensors;
    let next = 0;
    const leaves = this.#leaves.map((it) => (it instanceof Tensor ? tensors[next++] : it));
    return treeUnflatten(leaves, this.#spec) as unknown[];
  }
}

const VALUES = [Float, Complex, DTypeArg, DeviceArg, LayoutArg, MemoryFormatArg];

function isSameConstant(a: unknown, b: unknown): boolean {
  if (a instanceof Tensor) return b instanceof Tensor;
  return Object.is(a, b) || VALUES.some((it) => a instanceof it && b instanceof it && `${a}` === `${b}`);
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

/** A graph module as a program, for calls of one kind. */
export class CompiledCall implements Disposable {
  readonly #module: ProgramModule;
  readonly #program: ExportedProgram;
  readonly #inputs: CallInputs;
  readonly #known: readonly KnownTensor[];
  readonly #outSpec: PytreeSpec;
  /** Results that are tensors which were there: an input by its place, or one that the module holds by its path. */
  readonly #given: readonly (number | string | undefined)[];
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
    let outSpec: PytreeSpec | undefined;
    class Root extends Module {
      override forward(...tensors: readonly Tensor[]): unknown {
        const interpreter = new Interpreter(graphModule);
        const result = interpreter.runWith(inputs.with(tensors), { enableIoProcessing: false });
        const [leaves, spec] = treeFlatten(result);
        outSpec = spec;
        return leaves;
      }
    }
    const root = new Root();
    root.attributes.set(FQN, { kind: "module", module: graphModule });
    const dims = sizes.map((it) => it.map((size) => (size === undefined ? Dim.AUTO : null)));
    const isDynamic = dims.flat().some((it) => it !== null);
    const options = { verify: false, checkSources: false } as const;
    // An export tells tensors apart, so that of two that are one in this call, or one that the module holds, it would use one alone.
    const examples = inputs.tensors.map((it) => callOperator("aten.alias", [it]) as Tensor);
    const program = exportProgram(root, examples, {}, isDynamic ? { ...options, dynamicShapes: [dims] } : options);
    this.#graphModule = graphModule;
    this.#program = program;
    this.#inputs = inputs;
    this.#outSpec = outSpec ?? treeFlatten(null)[1];
    const { inputSpecs, outputSpecs } = program.graphSignature;
    const given = inputSpecs.filter((it) => it.kind === "USER_INPUT");
    const metas = new Map(program.graph.findNodes({ op: "placeholder" }).map((it) => [it.name, it.meta.get("val")]));
    this.#known = inputs.tensors.map((tensor, at) => {
      const { sizes: found } = metas.get(given[at]?.arg.name ?? "") as TensorMeta;
      return { ...knownOf(tensor), sizes: found.map((size) => (typeof size === "number" ? size : undefined)) };
    });
    this.#given = outputSpecs
      .filter((it) => it.kind === "USER_OUTPUT")
      .map(({ arg }) => {
        if (arg.type !== "tensor") return undefined;
        const place = given.findIndex((it) => it.arg.name === arg.name);
        const held = inputSpecs.find((it) => it.arg.name === arg.name)?.target;
        return place < 0 ? held?.slice(FQN.length + 1) : place;
      });
    this.#module = moduleOnState(program, precision);
    for (const it of examples) it.dispose();
  }

  /** Whether a size may be any. */
  get isDynamic(): boolean {
    return this.#known.some(({ sizes }) => sizes.includes(undefined));
  }

  /** Whether a call with these is of this kind. */
  isFor(inputs: CallInputs): boolean {
    return (
      this.#inputs.isLike(inputs) &&
      inputs.tensors.every((it, at) => isKnown(it, this.#known[at] as KnownTensor, knownOf(it).strides))
    );
  }

  /**
   * The sizes of a call that is of this kind but for sizes, with `undefined` for those in which the two differ; `undefined` where they
   * differ in something else.
   */
  sizesBeside(inputs: CallInputs): (number | undefined)[][] | undefined {
    if (!this.#inputs.isLike(inputs)) return undefined;
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
      const given = this.#given[at];
      if (given === undefined) return it;
      if (it instanceof Tensor) it.dispose();
      return typeof given === "number" ? inputs.tensors[given] : tensorAt(this.#graphModule, given);
    });
    return this.#output(values);
  }

  runInto(inputs: CallInputs, outputs: readonly Tensor[]): unknown {
    return this.#output(this.#explained(() => this.#module.runFlatInto(inputs.tensors, outputs)));
  }

  explain(inputs: CallInputs): PlanReport {
    return this.#module.explain(inputs.tensors);
  }

  [Symbol.dispose](): void {
    this.#module.dispose();
  }

  #output(leaves: readonly unknown[]): unknown {
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
