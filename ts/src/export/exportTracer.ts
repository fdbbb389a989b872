/**
 * The tracer of `exportProgram`: it runs a module on values of which everything is known but the elements, and records every
 * operator that is called.
 *
 * @module
 */
import { type ResolvedCall, resolveOperator } from "../engine/dispatch.ts";
import { type AutocastMode, type OperatorRecorder, recordingOperators } from "../engine/recorder.ts";
import { fxError } from "../base/errors.ts";
import { nameResults } from "../base/results.ts";
import { type Arg, type ArgInput, isNode } from "../graph/args.ts";
import { nameOfTarget } from "../graph/editableGraph.ts";
import type { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { isVal, SymExpr, type SymInt, TensorMeta, type Val, ValSequence } from "../graph/val.ts";
import { DTypeArg, ValueTuple } from "../base/values.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { runningNode } from "../fx/runningNode.ts";
import type { Attribute, Module } from "../nn/module.ts";
import { observeLiterals } from "../tensor/literal.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Inputs } from "../trace/inputs.ts";
import type { TracedValue } from "../trace/proxy.ts";
import { moduleStackFrom, type Scope } from "../trace/scope.ts";
import { type CapturedStack, enterDeep, ERROR_FRAMES, leave, stackText } from "../record/stack.ts";
import type { Subgraph, SubgraphCall } from "../trace/subgraph.ts";
import { type Traceable, Tracer } from "../trace/tracer.ts";
import { valsOfControlFlow } from "./controlFlowVals.ts";
import { isDynamic, knownPartsOf } from "./knownParts.ts";
import { refuseInputWrites } from "./inputWrites.ts";
import { type LiftedConstant, usedConstants } from "./liftedConstants.ts";
import { writeOut } from "./outArguments.ts";
import { asVal, currentPlace, isIdle, mapValues, withFactoryDefaults, withoutTraced } from "./recordedCall.ts";
import type { ShapeSession } from "./shapes.ts";
import { TracedNumber, TracedTensor } from "./traced.ts";
import { TracedNumbers } from "./tracedNumbers.ts";

/** How the tracer makes the inputs of the graph, and what it does at the end. */
export interface ExportInputs {
  /** Makes the placeholders, and gives what runs the module. */
  create(tracer: ExportTracer): Inputs;
}

/** What is kept of the node of a graph that is exported again. */
const PRESERVED = ["stack_trace", "nn_module_stack", "custom"];

/** Operators that read sizes. */
const SIZES = /^aten\.sym_(size|stride|numel|storage_offset)(?:\.(?:int|default))?$/;

/** Records a module as a graph of operators. */
export class ExportTracer extends Tracer implements OperatorRecorder {
  override get isSymbolic(): boolean {
    return false;
  }

  /** The input in front of which constants go. */
  firstUserInput: Node | undefined;
  readonly #shapes: ShapeSession;
  readonly #inputs: ExportInputs;
  readonly #isDynamic: boolean;
  readonly #values = new Map<Tensor, TracedTensor>();
  readonly #numbers: TracedNumbers;
  readonly #lifted: { readonly node: Node; readonly tensor: Tensor }[] = [];
  readonly #graphs = new Map<Graph, Map<string, GraphModule>>();
  readonly #sortKeys = new Map<Node, string>();
  readonly #callsOf = new Map<string, number>();

  constructor(shapes: ShapeSession, inputs: ExportInputs) {
    super();
    this.#shapes = shapes;
    this.#numbers = new TracedNumbers(shapes, this);
    this.#isDynamic = shapes.values.some(isDynamic);
    this.#inputs = inputs;
  }

  override isTracedValue(value: unknown): boolean {
    return value instanceof TracedTensor || value instanceof TracedNumber;
  }

  /** Of dynamic sizes, JavaScript's comparisons know nothing, so nobody may decide on any. */
  protected override get knownParts(): ReadonlySet<string> {
    return knownPartsOf(this.#isDynamic);
  }

  /** Nodes have no stacks of the modules around. */
  protected override get stackFrames(): number {
    return ERROR_FRAMES;
  }

  protected override get seesAssignments(): boolean {
    return true;
  }

  protected override isRecorded(_kind: Attribute["kind"]): boolean {
    return true;
  }

  /** Every module is looked into. */
  override isLeafModule(_module: Module, _path: string): boolean {
    return false;
  }

  /** Records what the module does. */
  override trace(root: Traceable): Graph {
    const lift = (made: Tensor, isDetached: boolean): Tensor => this.liftLiteral(made, isDetached);
    return recordingOperators(this, () => observeLiterals(lift, () => super.trace(root)));
  }

  protected override createInputs(): Inputs {
    return this.#inputs.create(this);
  }

  /** An input of the graph, of which this is known. */
  placeholder(name: string, val: Val): Node {
    const node = this.createNode("placeholder", name, [], {});
    node.meta.set("val", val);
    return node;
  }

  /** Makes the traced value of a tensor with elements. Of several inputs that are the same tensor, the last one is used. */
  trackTensor(tensor: Tensor, node: Node): TracedTensor {
    const meta = node.meta.get("val") as TensorMeta;
    const known = this.#values.get(tensor);
    if (known === undefined) {
      const traced = new TracedTensor(meta, node, this.#numbers);
      this.#values.set(tensor, traced);
      return traced;
    }
    known.retrace(meta, node);
    return known;
  }

  /** A number that an input is. */
  numberOf(expr: SymExpr, node: Node): unknown {
    return this.#wrapped(expr, node);
  }

  /** The constants that became inputs, in the order of their first use; those that nothing uses are taken out. */
  takeConstants(): LiftedConstant[] {
    return usedConstants(this.#lifted, (tensor) => this.pathOfTensor(tensor));
  }

  /** The traced value for a tensor: a parameter, a buffer, or a constant, which becomes an input when it is used. */
  tracedOf(tensor: Tensor): TracedTensor {
    if (tensor instanceof TracedTensor) return tensor;
    let traced = this.#values.get(tensor);
    if (traced === undefined) {
      traced = new TracedTensor(tensorVal(tensor), () => this.#liftConstant(tensor), this.#numbers);
      this.#values.set(tensor, traced);
    }
    return traced;
  }

  override getattr(_module: Module, _name: string, { tensor }: Attribute & { readonly tensor: Tensor }): unknown {
    return this.tracedOf(tensor);
  }

  /** A value that passes a point is an item of it from there on. */
  passTracepoint(target: string, values: readonly unknown[], notes: Readonly<Record<string, string>>): unknown[] {
    const vals = values.map((it) => (it instanceof Tensor ? this.tracedOf(it).meta : (it as Val)));
    const node = this.createNode(
      "call_function",
      target,
      values.map((it) => this.createArg(it)),
      notes,
    );
    node.meta.set("val", asVal(vals, "tuple"));
    return values.map((value, index) => {
      // Other values have an item, too, as in PyTorch; nothing uses it.
      const item = this.#itemNode(node, index, vals[index]);
      if (!(value instanceof Tensor)) return value;
      const traced = this.tracedOf(value);
      traced.retrace(traced.meta, item);
      return traced;
    });
  }

  setGradEnabled(isEnabled: boolean): void {
    this.#boundary("torch._C._set_grad_enabled", [isEnabled]);
  }

  enterAutocast({ deviceType, dtype, isEnabled, isCacheEnabled }: AutocastMode): () => void {
    const args = [deviceType, new DTypeArg(dtype), isEnabled, isCacheEnabled];
    const entered = this.#boundary("torch.amp.autocast_mode._enter_autocast", args);
    return () => void this.#boundary("torch.amp.autocast_mode._exit_autocast", [entered]);
  }

  /** What is kept of the node that runs. */
  protected get preserved(): readonly string[] {
    return PRESERVED;
  }

  /** What a graph does that is exported again comes from where its nodes came from, as PyTorch has it. */
  override createNode(...call: Parameters<Tracer["createNode"]>): Node {
    const node = super.createNode(...call);
    const from = call[0] === "placeholder" ? undefined : runningNode();
    for (const key of from === undefined ? [] : this.preserved) {
      const note = from?.meta.get(key);
      if (note !== undefined) node.meta.set(key, note);
    }
    return node;
  }

  callOperator(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const size = this.#sizeOf(name, args);
    if (size !== undefined) return size;
    if (isIdle(name, args, kwargs)) return args[0];
    const outer = enterDeep(ExportTracer.prototype.callOperator);
    try {
      return this.#record(name, args, kwargs);
    } finally {
      leave(outer);
    }
  }

  /** What control flow gives is known when it is called: its items need no node. */
  override createProxy(...call: Parameters<Tracer["createProxy"]>): TracedValue {
    const [, target, [results, index]] = call;
    if (target === "operator.getitem" && Array.isArray(results)) return results[index as number] as TracedValue;
    return super.createProxy(...call);
  }

  /** What a tensor becomes that is made of numbers in the source. */
  protected liftLiteral(made: Tensor, isDetached: boolean): Tensor {
    const copy = this.callOperator("aten.lift_fresh_copy", [made], {}) as Tensor;
    return isDetached ? (this.callOperator("aten.detach_", [copy], {}) as Tensor) : copy;
  }

  /** What is recorded in the place of a call, and the value of that; undefined where the call itself is. */
  protected replaced(_call: ResolvedCall): { readonly value: unknown } | undefined {
    return undefined;
  }

  /** What the call of an overload gives, as notes of nodes tell it. */
  protected inferred({ name, args, kwargs }: ResolvedCall): Val {
    const known = mapValues(kwargs, (it) => this.#known(it));
    const results = this.#infer(
      name,
      args.map((it) => this.#known(it)),
      known,
    );
    return asVal(results, "list");
  }

  /** What is known of a value in terms of the symbols that are left. */
  protected simplified(val: Val): Val {
    return this.#shapes.simplify(val);
  }

  /** The traced value of an expression of sizes; a number where it is one. */
  protected numberAt(expr: SymExpr): unknown {
    return this.#numbers.number(expr);
  }

  /** Notes what control flow gives: calls of functions with graphs. */
  protected override noteCall(node: Node, args: readonly unknown[]): void {
    const graphs = args.filter(isNode).map((it) => this.#graphs.get(this.graph)?.get(it.target)?.graph);
    const operands = args.filter((it) => Array.isArray(it)).map((list) => list.map((it) => this.valOf(it)));
    const stack = (slice: TensorMeta, count: SymInt): TensorMeta =>
      this.#infer("aten.new_empty", [slice, [count, ...slice.sizes]], {}) as TensorMeta;
    node.meta.set("val", new ValSequence("tuple", valsOfControlFlow(node.target, { graphs, operands, stack })));
  }

  /** A graph of control flow belongs to the graph that calls it, under a name with its next free number. */
  override traceSubgraph(fn: (...args: unknown[]) => unknown, names: readonly string[], call: SubgraphCall): Subgraph {
    const traced = super.traceSubgraph(fn, names, call);
    refuseInputWrites(traced.graph);
    return traced;
  }

  override addSubgraph(name: string, graph: Graph): Node {
    const siblings = this.#graphs.get(this.graph) ?? new Map<string, GraphModule>();
    this.#graphs.set(this.graph, siblings);
    let count = 0;
    while (siblings.has(`${name}${count}`)) count++;
    siblings.set(`${name}${count}`, this.moduleOf(graph, name));
    return this.createNode("get_attr", `${name}${count}`, [], {});
  }

  /** A graph with those that it calls. */
  moduleOf(graph: Graph, name: string): GraphModule {
    const module = GraphModule.ofGraph(graph, name);
    for (const [path, inner] of this.#graphs.get(graph) ?? []) module.addSubmodule(path, inner);
    return module;
  }

  override nameOf(value: unknown): string | undefined {
    if (value instanceof Tensor) return this.tracedOf(value).node.name;
    return value instanceof TracedNumber ? this.#numbers.nodeOf(value).name : undefined;
  }

  override sliceOf(value: unknown): unknown {
    return this.#infer("aten.select.int", [this.#known(value), 0, 0], {});
  }

  /** PyTorch's order: what all graphs use and then what each uses more, by name, what the module holds first. */
  override orderFreeValues(used: readonly (readonly Node[])[]): Node[] {
    const key = (node: Node): string => this.#sortKeys.get(node) ?? `l_${node.name}_`;
    const others = new Set(used.at(-1));
    const shared = (used[0] ?? []).filter((it) => others.has(it));
    const ordered = [shared, ...used].map((nodes) => nodes.toSorted((a, b) => (key(a) < key(b) ? -1 : 1)));
    return [...new Set(ordered.flat())];
  }

  override noteFreeValue(input: Node, value: Node): void {
    if (!input.meta.has("val")) input.meta.set("val", value.meta.get("val"));
  }

  /** Notes where an input comes from, by which PyTorch sorts the values that branches use. */
  noteSource(node: Node, source: string): void {
    this.#sortKeys.set(node, `l_${source}_`);
  }

  /** The value of a node of which something is known. */
  override proxy(node: Node): TracedValue {
    return this.#wrapped(node.meta.get("val") as Val, node) as TracedValue;
  }

  protected override createTensorArg(tensor: Tensor): Arg {
    return this.adopt(this.tracedOf(tensor).node);
  }

  override createArg(value: unknown, depth = 0): Arg {
    if (value instanceof TracedNumber) return this.adopt(this.#numbers.nodeOf(value));
    if (value instanceof SymExpr) return this.createArg(this.#numbers.number(value), depth);
    return super.createArg(value, depth);
  }

  protected override adopt(node: Node): Node {
    const adopted = super.adopt(node);
    if (adopted !== node && !adopted.meta.has("val")) adopted.meta.set("val", node.meta.get("val"));
    return adopted;
  }

  protected override noteInput(input: Node, value: unknown): void {
    input.meta.set("val", this.valOf(value));
  }

  /** What is known of a value. */
  valOf(value: unknown): Val {
    if (value instanceof Tensor) return this.tracedOf(value).meta;
    if (value instanceof TracedNumber) return value.expr;
    if (isNode(value)) return value.meta.get("val") as Val;
    if (isVal(value) || typeof value === "string") return value as Val;
    if (Array.isArray(value)) {
      const isTuple = value instanceof ValueTuple;
      return new ValSequence(
        isTuple ? "tuple" : "list",
        value.map((it) => this.valOf(it)),
      );
    }
    throw fxError("Internal", "nothing is known of a value of the trace");
  }

  protected override noteOrigin(meta: Map<string, unknown>, scope: Scope, stack: CapturedStack | undefined): void {
    if (stack === undefined) return;
    meta.set("nn_module_stack", moduleStackFrom(this.root, scope));
    const text = stackText([stack]);
    if (text !== "") meta.set("stack_trace", text);
  }

  /** What a graph reads of sizes is a number, as what code reads of them. */
  #sizeOf(name: string, [tensor, dim]: readonly unknown[]): unknown {
    const [, what] = SIZES.exec(name) ?? [];
    if (what === undefined || !(tensor instanceof Tensor)) return undefined;
    const traced = this.tracedOf(tensor);
    if (what === "numel") return traced.numel();
    if (what === "storage_offset") return traced.storageOffset();
    if (typeof dim !== "number") return undefined;
    return what === "size" ? traced.shape.at(dim) : traced.stride().at(dim);
  }

  #record(name: string, given: readonly unknown[], named: Readonly<Record<string, unknown>>): unknown {
    const metaOf = (tensor: Tensor): TensorMeta => this.tracedOf(tensor).meta;
    const call = recordingOperators(undefined, () =>
      resolveOperator(name, given.map(withoutTraced), mapValues(named, withoutTraced), metaOf),
    );
    if (named["out"] !== undefined && named["out"] !== null) {
      const { dtype } = call.kwargs;
      return writeOut(this, name, given, dtype === undefined ? named : { ...named, dtype });
    }
    const instead = this.replaced(call);
    if (instead !== undefined) return instead.value;
    const kwargs = withFactoryDefaults(name, call.name, call.kwargs);
    const positional = call.args.map((it) => this.createArg(it));
    const keywords = mapValues(kwargs, (it) => this.createArg(it)) as Record<string, ArgInput>;
    const target = `torch.ops.${call.name}`;
    // A name such as `__and__` is taken as that of a method: without its underscores.
    const packet = nameOfTarget("call_method", call.name.split(".")[1] ?? "");
    const node = this.createNode("call_function", target, positional, keywords, packet);
    this.#noteFunction(node, packet);
    const known = mapValues(kwargs, (it) => this.#known(it));
    const results = this.#infer(
      call.name,
      call.args.map((it) => this.#known(it)),
      known,
    );
    const count = call.givenBack.length;
    if (count === 0) {
      node.meta.set("val", null);
      return null;
    }
    if (count === 1) {
      node.meta.set("val", asVal(results, "list"));
      const at = call.givenBack[0];
      return this.#result(results, node, at === undefined ? undefined : (call.args[at] as Tensor | undefined));
    }
    const items = results as readonly unknown[];
    node.meta.set("val", asVal(items, "tuple"));
    return nameResults(
      name,
      items.map((it, index) => (it === null ? null : this.#item(node, index, it))),
    );
  }

  #infer(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    return recordingOperators(undefined, () => this.#shapes.infer(name, args, kwargs, currentPlace()));
  }

  /** What is known of an argument. */
  #known(value: unknown): unknown {
    if (value instanceof Tensor) return this.tracedOf(value).meta;
    return Array.isArray(value) ? value.map((it) => this.#known(it)) : value;
  }

  /** The result of a call; what the operator gave back is what it was given. */
  #result(result: unknown, node: Node, given: Tensor | undefined): unknown {
    if (given instanceof Tensor && result instanceof TensorMeta) {
      this.tracedOf(given).retrace(result, node);
      return given;
    }
    return this.#wrapped(asVal(result, "list"), node);
  }

  #wrapped(val: Val, node: Node): unknown {
    if (val instanceof TensorMeta) return new TracedTensor(val, node, this.#numbers);
    if (val instanceof SymExpr) return this.#numbers.number(val, node);
    if (val instanceof ValSequence)
      return val.items.map((it, index) => (it === null ? null : this.#item(node, index, it)));
    return val;
  }

  #item(node: Node, index: number, val: unknown): unknown {
    return this.#wrapped(asVal(val, "list"), this.#itemNode(node, index, val));
  }

  #itemNode(node: Node, index: number, val: unknown): Node {
    const item = this.createNode("call_function", "operator.getitem", [node, index], {}, "getitem");
    item.meta.set("val", asVal(val, "list"));
    const fn = node.meta.get("torch_fn");
    if (fn !== undefined) item.meta.set("torch_fn", fn);
    return item;
  }

  /** A node at which other modes begin to hold; no line of the user's belongs to it. */
  #boundary(target: string, args: readonly ArgInput[]): Node {
    const node = this.createNode("call_function", target, args, {});
    node.meta.delete("stack_trace");
    return node;
  }

  #noteFunction(node: Node, packet: string): void {
    const count = (this.#callsOf.get(packet) ?? 0) + 1;
    this.#callsOf.set(packet, count);
    node.meta.set("torch_fn", [`${packet}_${count}`, `function.${packet}`]);
  }

  #liftConstant(tensor: Tensor): Node {
    const make = (): Node => this.placeholder(`const_${this.#lifted.length}`, tensorVal(tensor));
    const node = this.inOutermost(() => {
      const before = this.firstUserInput ?? this.#firstCall();
      return before === undefined ? make() : this.graph.insertingBefore(before, make);
    });
    this.#lifted.push({ node, tensor });
    return node;
  }

  #firstCall(): Node | undefined {
    for (const node of this.graph.nodes) if (node.op !== "placeholder") return node;
    return undefined;
  }
}
