/**
 * The tracer of `makeFx`: it records what a function does below autograd, in operators that are not written in terms of others.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import { nameResults } from "../base/results.ts";
import type { ResolvedCall } from "../engine/dispatch.ts";
import type { AutocastMode } from "../engine/recorder.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import type { Arg } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { SymExpr } from "../graph/val.ts";
import type { Attribute, Module } from "../nn/module.ts";
import type { ModuleCall } from "../nn/observe.ts";
import { Parameter } from "../nn/parameter.ts";
import { type CapturedStack, stackText, traceError } from "../record/stack.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Inputs } from "../trace/inputs.ts";
import type { Scope } from "../trace/scope.ts";
import type { Traceable } from "../trace/tracer.ts";
import { COMPOSITES } from "./compositeFunctions.ts";
import { isComposite } from "./dispatchFacts.ts";
import { evaluate } from "./evaluateNodes.ts";
import { ExportTracer } from "./exportTracer.ts";
import { mapValues } from "./recordedCall.ts";
import type { ShapeSession } from "./shapes.ts";
import { type WrittenOut, writtenOut } from "./singleCall.ts";
import { TracedTensor } from "./traced.ts";

/**
 * What stands for an operator: called with the arguments of the overload, those by name in an object behind the others. One that
 * gives `undefined` leaves the operator as it is, as `NotImplemented` does in Python.
 */
export type Decomposition = (...args: never[]) => unknown;

/** Decompositions by qualified name: `torch.ops.aten.silu.default`. */
export type Decompositions = ReadonlyMap<string, Decomposition>;

/** What {@link MakeFxTracer} traces with. */
export interface MakeFxSettings {
  readonly decompositions: Decompositions;
  /** Whether composite operators stay as they are, and contexts are recorded. */
  readonly isPreDispatch: boolean;
  /** What is traced: elements of single numbers are refused where they are asked for, with `"real"`. */
  readonly mode: "fake" | "real" | "symbolic";
  /** Where the root has tensors already. */
  readonly paths?: ReadonlyMap<Tensor, string>;
  /** Whether the root has an attribute of this name, be it one that the graph does not use. */
  readonly isTaken?: (name: string) => boolean;
}

const REFUSED_ITEM =
  "It appears that you're trying to get value out of a tracing tensor with aten._local_scalar_dense.default - erroring out! It's likely that this is caused by data-dependent control flow or similar.  It may be possible to trace this with dynamic shapes; try setting tracing_mode='symbolic' in your make_fx call.";

/** Decompositions call others, and never that many. */
const MAX_DEPTH = 64;

/** Records what a function does below autograd. */
export class MakeFxTracer extends ExportTracer {
  readonly #settings: MakeFxSettings;
  readonly #attributes = new Map<Tensor, string>();
  /** Single numbers that the source says, by what is traced of them. */
  readonly #literals = new Map<Tensor, Tensor>();
  #decompositions: Decompositions;
  /** How many decompositions run in one another. */
  #depth = 0;

  constructor(shapes: ShapeSession, create: (tracer: MakeFxTracer) => Inputs, settings: MakeFxSettings) {
    super(shapes, { create: (tracer) => create(tracer as MakeFxTracer) });
    this.#settings = settings;
    this.#decompositions = settings.decompositions;
    for (const [tensor, path] of settings.paths ?? []) this.#attributes.set(tensor, path);
  }

  /** The graph, and tensors that are attributes of the root of it, by path. */
  traced(root: Traceable): { readonly graph: Graph; readonly held: ReadonlyMap<string, Attribute> } {
    const graph = this.trace(root);
    return { graph, held: new Map(this.root.attributes) };
  }

  /** Runs `body` with other decompositions. */
  withDecompositions<T>(decompositions: Decompositions, body: () => T): T {
    const outer = this.#decompositions;
    this.#decompositions = decompositions;
    try {
      return body();
    } finally {
      this.#decompositions = outer;
    }
  }

  /** Modules are looked through, whoever holds them. */
  override callModule({ run, args }: ModuleCall): unknown {
    return run(...args);
  }

  override getattr(_module: Module, _name: string, { tensor }: Attribute & { readonly tensor: Tensor }): unknown {
    return tensor;
  }

  /** Nodes are noted to be what is current where that is asked for, and not otherwise. */
  protected override get preserved(): readonly string[] {
    return [];
  }

  override setGradEnabled(isEnabled: boolean): void {
    if (this.#settings.isPreDispatch) super.setGradEnabled(isEnabled);
  }

  override enterAutocast(mode: AutocastMode): () => void {
    if (this.#settings.isPreDispatch) return super.enterAutocast(mode);
    throw fxError("NotImplemented", "makeFx records what is below autocast, and cannot cast there", {
      help: "makeFx(fn, { preDispatch: true }) records the autocast itself",
    });
  }

  override callOperator(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    if (name === "aten.item" || name === "aten._local_scalar_dense") {
      const known = this.#literals.get(args[0] as Tensor);
      if (known !== undefined) return known.item();
      if (this.#settings.mode === "real") throw traceError("TraceCoercion", REFUSED_ITEM);
    }
    // What is written may be a literal, be it through a view: nobody knows then what the source says.
    if (/^aten\.\w*[a-z0-9]_(?:\.|$)/.test(name) || (kwargs["out"] ?? null) !== null) this.#literals.clear();
    return super.callOperator(name, args, kwargs);
  }

  protected override replaced(call: ResolvedCall): { readonly value: unknown } | undefined {
    const isKept = this.#settings.isPreDispatch || !isComposite(call.name);
    const own = this.#decompositions.get(`torch.ops.${call.name}`);
    const value = this.#by(own, call) ?? (isKept ? undefined : this.#by(COMPOSITES.get(call.name), call));
    if (value !== undefined) return { value };
    return isKept ? undefined : this.#composed(call);
  }

  protected override createTensorArg(tensor: Tensor): Arg {
    if (tensor instanceof TracedTensor) return super.createTensorArg(tensor);
    let path = this.#attributes.get(tensor);
    if (path === undefined) {
      const isParameter = tensor instanceof Parameter;
      path = this.#freePath(isParameter ? "_param_constant" : "_tensor_constant");
      this.root.attributes.set(path, { kind: isParameter ? "parameter" : "constant", tensor });
      this.#attributes.set(tensor, path);
    }
    const target = path;
    return this.adopt(
      this.inOutermost(() => {
        const node = this.createNode("get_attr", target, [], {});
        node.meta.set("val", tensorVal(tensor));
        return node;
      }),
    );
  }

  protected override noteOrigin(meta: Map<string, unknown>, _scope: Scope, stack: CapturedStack | undefined): void {
    const text = stack === undefined ? "" : stackText([stack]);
    if (text !== "") meta.set("stack_trace", text);
  }

  #freePath(prefix: string): string {
    const { isTaken } = this.#settings;
    let path = this.getFreshQualname(prefix);
    for (let at = 0; isTaken?.(path) === true || this.root.findAttribute(path) !== undefined; at++)
      path = `${prefix}${at}`;
    return path;
  }

  /** What a function gives in the place of a call. */
  #by(fn: Decomposition | undefined, { name, args, kwargs }: ResolvedCall): unknown {
    if (fn === undefined) return undefined;
    const given = (it: unknown): unknown => this.#given(it);
    const options = Object.keys(kwargs).length > 0 ? [mapValues(kwargs, given)] : [];
    if (this.#depth >= MAX_DEPTH) {
      throw fxError("LimitExceeded", `the decomposition of ${name} calls itself, or too many others in one another`, {
        help: "a decomposition must not call what it stands for, nor what comes to that",
      });
    }
    this.#depth++;
    try {
      return (fn as (...args: unknown[]) => unknown)(...args.map(given), ...options);
    } finally {
      this.#depth--;
    }
  }

  /** A value that an operator is given, as functions of the user's take it. */
  #given(value: unknown): unknown {
    if (value instanceof SymExpr) return this.numberAt(value);
    return Array.isArray(value) ? value.map((it) => this.#given(it)) : value;
  }

  protected override liftLiteral(made: Tensor): Tensor {
    const copy = this.callOperator("aten.lift_fresh_copy", [made], {}) as Tensor;
    if (made.numel() === 1) this.#literals.set(copy, made);
    return copy;
  }

  /**
   * What a composite operator is written in, called in its place. Of symbols the engine knows what is told of them, and not what
   * the examples decided: where it needs that, the operator stays.
   */
  #composed(call: ResolvedCall): { readonly value: unknown } | undefined {
    let written: WrittenOut;
    try {
      written = writtenOut(call, this.inferred(call), (tensor) => this.simplified(this.valOf(tensor)));
    } catch (error) {
      const isUndecided = error instanceof FxError && error.kind === "NotImplemented";
      if (this.#settings.mode === "symbolic" && isUndecided) return undefined;
      throw error;
    }
    const { graph, values, results, writes, givesItems } = written;
    const inputs = graph.findNodes({ op: "placeholder" });
    const known = new Map<Node, unknown>(inputs.map((it, at) => [it, values[at]]));
    evaluate(graph, this.root, [...results, ...writes.map((it) => it.value)], known);
    for (const { input, value } of writes) this.callOperator("aten.copy_", [values[input], known.get(value)], {});
    const given = results.map((it) => known.get(it));
    return { value: givesItems ? nameResults(call.name, given) : given[0] };
  }
}
