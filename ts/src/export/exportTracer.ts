/**
 * The tracer of `exportProgram`: it runs a module on values of which everything is known but the elements, and records every
 * operator that is called.
 *
 * @module
 */
import { type OperatorRecorder, recordingOperators, resolveOperator } from "../engine/dispatch.ts";
import { fxError } from "../errors.ts";
import { nameResults } from "../functions/results.ts";
import { schemasOf } from "../functions/schemas.ts";
import { type Arg, type ArgInput, isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import { GraphModule } from "../graph/module.ts";
import { nameOfTarget } from "../graph/editableGraph.ts";
import type { Node, Opcode } from "../graph/node.ts";
import { isVal, SymExpr, type SymInt, TensorMeta, type Val, ValSequence } from "../graph/val.ts";
import { device, type MemoryFormatArg, ValueTuple } from "../graph/values.ts";
import { tensorVal } from "../interpret/tensorMetadata.ts";
import type { Attribute, Module } from "../nn/module.ts";
import { observeLiterals } from "../tensor/literal.ts";
import { Tensor } from "../tensor/tensor.ts";
import type { Inputs } from "../trace/inputs.ts";
import type { TracedValue } from "../trace/proxy.ts";
import type { Scope } from "../trace/scope.ts";
import { type CapturedStack, currentStack, enterDeep, leave, stackText, traceError } from "../trace/stack.ts";
import { type Traceable, Tracer } from "../trace/tracer.ts";
import { valsOfControlFlow } from "./controlFlowVals.ts";
import type { ShapeSession } from "./shapes.ts";
import { TracedNumber, TracedTensor, type ValueTracer } from "./traced.ts";

/** A constant that the module uses and that became an input of the graph. */
export interface LiftedConstant {
  readonly node: Node;
  /** Its qualified name: where the module has it, or a new one. */
  readonly fqn: string;
  readonly tensor: Tensor;
}

/** How the tracer makes the inputs of the graph, and what it does at the end. */
export interface ExportInputs {
  /** Makes the placeholders, and gives what runs the module. */
  create(tracer: ExportTracer): Inputs;
}

/** What is known of a traced tensor whatever its sizes are. */
const KNOWN_PARTS: ReadonlySet<string> = new Set(
  "dtype device layout ndim dim ndimension requiresGrad isFloatingPoint isComplex isSigned itemsize elementSize".split(
    " ",
  ),
);

/** What is known of one with static sizes. */
const STATIC_PARTS: ReadonlySet<string> = new Set([
  ...KNOWN_PARTS,
  ..."shape size stride numel nelement nbytes storageOffset isContiguous".split(" "),
]);

function isSymbolic({ sizes }: TensorMeta): boolean {
  return sizes.some((it) => it instanceof SymExpr);
}

/** What becomes of a tensor of numbers before anything uses it. */
const LITERAL_COPIES = new Set(["torch.ops.aten.lift_fresh_copy.default", "torch.ops.aten.detach_.default"]);

/** Where a number of the trace comes from. */
interface Origin {
  readonly target: string;
  readonly args: readonly unknown[];
}

/** Records a module as a graph of operators. */
export class ExportTracer extends Tracer implements OperatorRecorder, ValueTracer {
  /** The input in front of which constants go. */
  firstUserInput: Node | undefined;
  readonly #shapes: ShapeSession;
  readonly #inputs: ExportInputs;
  readonly #isDynamic: boolean;
  readonly #values = new Map<Tensor, TracedTensor>();
  readonly #numbers = new Map<string, TracedNumber>();
  readonly #origins = new Map<TracedNumber, Origin | Node>();
  readonly #lifted: { readonly node: Node; readonly tensor: Tensor }[] = [];
  readonly #graphs = new Map<Graph, Map<string, GraphModule>>();
  readonly #sortKeys = new Map<Node, string>();
  readonly #callsOf = new Map<string, number>();

  constructor(shapes: ShapeSession, inputs: ExportInputs) {
    super();
    this.#shapes = shapes;
    this.#isDynamic = shapes.values.some((it) => it instanceof SymExpr || (it instanceof TensorMeta && isSymbolic(it)));
    this.#inputs = inputs;
  }

  override isTracedValue(value: unknown): boolean {
    return value instanceof TracedTensor || value instanceof TracedNumber;
  }

  /** Of dynamic sizes, JavaScript's comparisons know nothing, so nobody may decide on any. */
  protected override get knownParts(): ReadonlySet<string> {
    return this.#isDynamic ? KNOWN_PARTS : STATIC_PARTS;
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
    const lift = (made: Tensor, isDetached: boolean): Tensor => this.#literal(made, isDetached);
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
      const traced = new TracedTensor(meta, node, this);
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

  /** Records that a buffer gets other elements. */
  copyInto(buffer: Tensor, source: Tensor): void {
    const node = this.createNode(
      "call_function",
      "torch.ops.aten.copy_.default",
      [this.createArg(buffer), this.createArg(source)],
      {},
    );
    for (const [key, value] of this.tracedOf(source).node.meta) node.meta.set(key, value);
  }

  /** The constants that became inputs, in the order of their first use; those that nothing uses are taken out. */
  takeConstants(): LiftedConstant[] {
    const used = this.#lifted.filter(({ node }) => !this.#removeUnused(node));
    let count = 0;
    return used.map(({ node, tensor }) => ({
      node,
      tensor,
      fqn: this.pathOfTensor(tensor) ?? `lifted_tensor_${count++}`,
    }));
  }

  /** Takes out a constant that is copied at most, and whether it was one. */
  #removeUnused(node: Node): boolean {
    const chain = [node];
    for (let at = node; at.users.size > 0; ) {
      const [user] = at.users;
      if (at.users.size > 1 || user === undefined || !LITERAL_COPIES.has(user.target)) return false;
      chain.push(user);
      at = user;
    }
    for (const it of chain.toReversed()) it.graph.eraseNode(it);
    return true;
  }

  /** The traced value for a tensor: a parameter, a buffer, or a constant, which becomes an input when it is used. */
  tracedOf(tensor: Tensor): TracedTensor {
    if (tensor instanceof TracedTensor) return tensor;
    let traced = this.#values.get(tensor);
    if (traced === undefined) {
      traced = new TracedTensor(tensorVal(tensor), () => this.#liftConstant(tensor), this);
      this.#values.set(tensor, traced);
    }
    return traced;
  }

  override getattr(_module: Module, _name: string, { tensor }: Attribute & { readonly tensor: Tensor }): unknown {
    return this.tracedOf(tensor);
  }

  callOperator(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    if (isIdle(name, args, kwargs)) return args[0];
    const outer = enterDeep(ExportTracer.prototype.callOperator);
    try {
      return this.#record(name, args, kwargs);
    } finally {
      leave(outer);
    }
  }

  /** The calls that control flow makes: of a function with graphs, and for its results. */
  override createProxy(
    op: Opcode,
    target: string,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>>,
    name?: string,
    type?: string,
  ): TracedValue {
    const [results, index] = args;
    if (target === "operator.getitem" && Array.isArray(results)) return results[index as number] as TracedValue;
    const { args: positional, kwargs: named } = this.createArguments({ args, kwargs });
    const node = this.createNode(op, target, positional, named, name, type);
    const graphs = args.filter(isNode).map((it) => this.#graphs.get(this.graph)?.get(it.target)?.graph);
    const operands = args.filter((it) => Array.isArray(it)).map((list) => list.map((it) => this.valOf(it)));
    const stack = (slice: TensorMeta, count: SymInt): TensorMeta =>
      this.#infer("aten.new_empty", [slice, [count, ...slice.sizes]], {}) as TensorMeta;
    node.meta.set("val", new ValSequence("tuple", valsOfControlFlow(target, { graphs, operands, stack })));
    return this.proxy(node);
  }

  /** A graph of control flow belongs to the graph that calls it, under a name with its next free number. */
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
    return value instanceof TracedNumber ? this.#nodeOfNumber(value).name : undefined;
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

  number(expr: SymInt | boolean, origin?: Origin): unknown {
    if (!(expr instanceof SymExpr)) return typeof expr === "bigint" ? Number(expr) : expr;
    let known = this.#numbers.get(expr.srepr);
    if (known === undefined) {
      known = new TracedNumber(expr, this);
      this.#numbers.set(expr.srepr, known);
    }
    if (origin !== undefined && !this.#origins.has(known)) this.#origins.set(known, origin);
    return known;
  }

  item(tensor: TracedTensor): unknown {
    return this.callOperator("aten.item", [tensor], {});
  }

  compute(target: string, args: readonly unknown[]): unknown {
    const plain = args.map(withoutTraced);
    const result = recordingOperators(undefined, () => this.#shapes.call(target, plain)) as SymInt | boolean;
    return this.number(result, { target, args });
  }

  decide({ expr }: TracedNumber): boolean {
    return recordingOperators(undefined, () => this.#shapes.decide(expr, currentPlace()));
  }

  check({ expr }: TracedNumber, message: string): void {
    recordingOperators(undefined, () => this.#shapes.check(expr, message === "" ? undefined : message));
  }

  protected override createTensorArg(tensor: Tensor): Arg {
    return this.adopt(this.tracedOf(tensor).node);
  }

  override createArg(value: unknown, depth = 0): Arg {
    if (value instanceof TracedNumber) return this.adopt(this.#nodeOfNumber(value));
    if (value instanceof SymExpr) return this.createArg(this.number(value), depth);
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
    meta.set("nn_module_stack", this.#moduleStack(scope));
    const text = stackText([stack]);
    if (text !== "") meta.set("stack_trace", text);
  }

  /** PyTorch's form of it: from keys to paths and classes, the root first. */
  #moduleStack(scope: Scope): Map<string, readonly [path: string, type: string]> {
    const inner: Scope[] = [];
    for (let at: Scope | undefined = scope; at?.outer !== undefined; at = at.outer)
      if (at.path !== "") inner.unshift(at);
    const root = ["L__self__", ["", this.root.className]] as const;
    return new Map([root, ...inner.map(({ key, path, type }) => [`L__self__${key}`, [path, type]] as const)]);
  }

  #record(name: string, given: readonly unknown[], named: Readonly<Record<string, unknown>>): unknown {
    if (named["out"] !== undefined && named["out"] !== null) {
      throw traceError("NotImplemented", `${name} with \`out\` is not exported`, {
        help: "use its result, or write it with y.copy_(result)",
      });
    }
    const known = (tensor: Tensor): TensorMeta => this.tracedOf(tensor).meta;
    const call = recordingOperators(undefined, () =>
      resolveOperator(name, given.map(withoutTraced), mapValues(named, withoutTraced), known),
    );
    const kwargs = withFactoryDefaults(name, call.name, call.kwargs);
    const positional = call.args.map((it) => this.createArg(it));
    const keywords = mapValues(kwargs, (it) => this.createArg(it)) as Record<string, ArgInput>;
    const target = `torch.ops.${call.name}`;
    // A name such as `__and__` is taken as that of a method: without its underscores.
    const packet = nameOfTarget("call_method", call.name.split(".")[1] ?? "");
    const node = this.createNode("call_function", target, positional, keywords, packet);
    this.#noteFunction(node, packet);
    const results = this.#infer(
      call.name,
      call.args.map((it) => this.#known(it)),
      mapValues(kwargs, (it) => this.#known(it)),
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
    if (val instanceof TensorMeta) return new TracedTensor(val, node, this);
    if (val instanceof SymExpr) {
      const number = this.number(val) as TracedNumber;
      if (!this.#origins.has(number)) this.#origins.set(number, node);
      return number;
    }
    if (val instanceof ValSequence)
      return val.items.map((it, index) => (it === null ? null : this.#item(node, index, it)));
    return val;
  }

  #item(node: Node, index: number, val: unknown): unknown {
    const item = this.createNode("call_function", "operator.getitem", [node, index], {}, "getitem");
    item.meta.set("val", asVal(val, "list"));
    const fn = node.meta.get("torch_fn");
    if (fn !== undefined) item.meta.set("torch_fn", fn);
    return this.#wrapped(asVal(val, "list"), item);
  }

  #noteFunction(node: Node, packet: string): void {
    const count = (this.#callsOf.get(packet) ?? 0) + 1;
    this.#callsOf.set(packet, count);
    node.meta.set("torch_fn", [`${packet}_${count}`, `function.${packet}`]);
  }

  #nodeOfNumber(number: TracedNumber): Node {
    const origin = this.#origins.get(number);
    if (origin === undefined) throw fxError("Internal", `nothing gives the size ${number.expr.srepr}`);
    if (!("target" in origin) || "graph" in origin) return origin as Node;
    const args = origin.args.map((it) => this.createArg(it));
    const node = this.createNode(
      "call_function",
      origin.target,
      args,
      {},
      nameOfTarget("call_function", origin.target),
    );
    node.meta.set("val", number.expr);
    this.#origins.set(number, node);
    return node;
  }

  #literal(made: Tensor, isDetached: boolean): Tensor {
    const copy = this.callOperator("aten.lift_fresh_copy", [made], {}) as Tensor;
    return isDetached ? (this.callOperator("aten.detach_", [copy], {}) as Tensor) : copy;
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

/** The user's line, for what errors say of guards. */
function currentPlace(): string {
  return (stackText([currentStack()]).split("\n")[0] ?? "").replace(/^at /, "");
}

/** What an operator gave, as the note of a node. */
function asVal(value: unknown, sequence: "list" | "tuple"): Val {
  if (!Array.isArray(value)) return value as Val;
  return new ValSequence(
    sequence,
    value.map((it) => asVal(it, "list")),
  );
}

/** An argument with expressions in the place of traced numbers. */
function withoutTraced(value: unknown): unknown {
  if (value instanceof TracedNumber) return value.expr;
  return Array.isArray(value) ? value.map(withoutTraced) : value;
}

function mapValues(
  values: Readonly<Record<string, unknown>>,
  map: (value: unknown) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, map(value)]));
}

/** Whether Python's method gives the tensor back without calling an operator. */
function isIdle(name: string, [self]: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): boolean {
  if (name !== "aten.contiguous" || !(self instanceof Tensor) || self.isDisposed) return false;
  const format = kwargs["memory_format"] as MemoryFormatArg | undefined;
  return self.isContiguous(format === undefined ? {} : { memoryFormat: format });
}

/** PyTorch's functions that make tensors say where, and that the memory is not pinned, whether asked to or not. */
function withFactoryDefaults(
  called: string,
  overload: string,
  kwargs: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  const [, packet = "", name = ""] = overload.split(".");
  // An overload that was called by its name is taken as it is.
  if (called === overload) return kwargs;
  const schema = schemasOf(packet).find((it) => (it.overload === "" ? "default" : it.overload) === name);
  if (schema === undefined || !schema.parameters.some((it) => it.name === "pin_memory")) return kwargs;
  const isFactory = !schema.parameters.some((it) => it.type === "Tensor");
  const given: Record<string, unknown> = { ...kwargs };
  if (isFactory) given["device"] ??= device("cpu");
  given["pin_memory"] ??= false;
  const order = schema.parameters.map((it) => it.name);
  return Object.fromEntries(Object.entries(given).toSorted(([a], [b]) => order.indexOf(a) - order.indexOf(b)));
}
