/**
 * The graph: an ordered list of nodes, `torch.fx.Graph`.
 *
 * @module
 */
import { fxError, GraphError, type FxError } from "../errors.ts";
import { freezeArgs, freezeKwargs, inputNodes, mapArgs, mapKwargs } from "./args.ts";
import type { Arg, ArgInput, Kwargs, KwargsInput } from "./args.ts";
import { CodeGen, type BodyTransformer } from "./codegen/codegen.ts";
import { generateCode, type CodeOptions, type GeneratedCode } from "./codegen/generate.ts";
import { cloneInto, copyInto, inlineInto, type CopiedOutput } from "./copy.ts";
import { eliminateDeadCode } from "./deadCode.ts";
import { GraphHooks } from "./hooks.ts";
import { END, settled, type InsertPoint, type InsertScope } from "./insertPoint.ts";
import { findProblems } from "./lint.ts";
import type { Module } from "../nn/module.ts";
import type { GraphModule } from "./module.ts";
import { Namespace, snakeCase } from "./namespace.ts";
import { checkMember, clearArguments, copyNotes, Node, setArguments, stateOf } from "./node.ts";
import { checkOpcode, type Opcode } from "./node.ts";
import { NodeIndex } from "./nodeIndex.ts";
import { NodeList } from "./nodeList.ts";
import { Order } from "./order.ts";
import { formatGraph, formatTabular, tabularRows } from "./print.ts";
import { targetOf, type NamedTarget } from "./target.ts";
import type { Tuple } from "./values.ts";

/** Which nodes {@link Graph.findNodes} looks for. */
export interface NodeQuery {
  readonly op: Opcode;
  /** The target, which `call_function` needs, as in FX. A function stands for its name. */
  readonly target?: string | NamedTarget;
  /** Whether the nodes come in the order of the graph; without it, in any order, which takes less time. */
  readonly sort?: boolean;
}

/** How {@link Graph.graphCopy} copies. */
export interface CopyOptions {
  /** Whether to give back the output node of the source too, with what it returns. */
  readonly returnOutputNode?: boolean;
}

/**
 * An ordered list of nodes. All edits go through the graph or its nodes, so that `users` and the order always agree with
 * the arguments.
 *
 * @example
 * ```ts
 * const graph = new Graph();
 * const x = graph.placeholder("x");
 * const relu = graph.callFunction("torch.ops.aten.relu.default", [x]);
 * graph.output(tuple(relu));
 * console.log(`${graph}`);
 * ```
 */
export class Graph {
  readonly #order = new Order<Node>();
  #names = new Namespace();
  #point: InsertPoint = END;
  #version = 0;
  /** Made by the first search; most graphs are never searched. */
  #index: NodeIndex | undefined;

  /** The nodes, in order. Walking them survives edits, as in FX. */
  readonly nodes: NodeList = new NodeList(this.#order);

  /** The module whose attributes the nodes refer to. A `GraphModule` that is given the graph puts itself here. */
  owningModule: GraphModule | undefined;

  #codegen = new CodeGen();

  /** What is told about edits of this graph, besides the hooks of the module that owns it. */
  readonly hooks: GraphHooks = new GraphHooks();

  /** The names that were given. */
  get names(): Namespace {
    return this.#names;
  }

  /** Replaces the record of the names that were given, to go on naming nodes as another graph would. */
  setNames(names: Namespace): void {
    for (const { name } of this.nodes) {
      if (!names.isUsed(name)) throw fxError("GraphInvalid", `the name \`${name}\` was never given`, { node: name });
    }
    this.#names = names;
  }

  /** Grows with every edit of the nodes, their order, names and arguments, for what is computed once until then. */
  get version(): number {
    return this.#version;
  }

  /** Notes an edit; for {@link Node} only. */
  noteEdit(): void {
    this.#version += 1;
  }

  /** The first node. */
  get first(): Node | undefined {
    return this.#order.first?.value;
  }

  /** The last node. */
  get last(): Node | undefined {
    return this.#order.last?.value;
  }

  /** The last output node. */
  outputNode(): Node | undefined {
    for (const node of this.nodes.reversed()) if (node.op === "output") return node;
    return undefined;
  }

  /** Whether the node is in this graph and was not erased. */
  contains(node: Node): boolean {
    return node.graph === this && !node.isErased;
  }

  /** The node of this name; takes time linear in the number of nodes. */
  find(name: string): Node | undefined {
    for (const node of this.nodes) if (node.name === name) return node;
    return undefined;
  }

  /**
   * The nodes with this opcode and target, in order. The first search takes time linear in the number of nodes, and any
   * other no more than there are hits.
   *
   * @example
   * ```ts
   * for (const node of graph.findNodes({ op: "call_function", target: torch.relu })) node.target = "torch.tanh";
   * ```
   */
  findNodes({ op, target, sort = true }: NodeQuery): Node[] {
    checkOpcode(op);
    if (op === "call_function" && target === undefined) {
      throw fxError("GraphArgument", "findNodes needs a target for call_function");
    }
    this.#index ??= new NodeIndex(this.nodes);
    const found = this.#index.find(op, target === undefined ? undefined : targetOf(target));
    return sort ? found.toSorted((a, b) => a.compare(b)) : found;
  }

  /**
   * Makes a node at the insertion point. Without a name it is named after its target, as in FX.
   *
   * @example
   * ```ts
   * graph.createNode("call_function", "torch.add", [x, 1], {}, "shifted");
   * ```
   */
  createNode(
    op: Opcode,
    target: string | NamedTarget,
    args: readonly ArgInput[] = [],
    kwargs: KwargsInput = {},
    name?: string,
    type?: string,
  ): Node {
    const found = targetOf(target);
    return this.#make(op, found, freezeArgs(args), freezeKwargs(kwargs), {
      name: () => this.#names.createName(name ?? nameOfTarget(op, found)),
      type,
    });
  }

  /** Makes a node with exactly this name, even one that FX would change: exported programs have such names. */
  createNamedNode(op: Opcode, target: string, args: readonly ArgInput[], kwargs: KwargsInput, name: string): Node {
    return this.#make(op, target, freezeArgs(args), freezeKwargs(kwargs), { name: () => this.#reserved(name) });
  }

  /** Makes an input. */
  placeholder(name: string, type?: string, defaultValue?: ArgInput): Node {
    return this.createNode("placeholder", name, defaultValue === undefined ? [] : [defaultValue], {}, name, type);
  }

  /** Makes a node that reads an attribute of the module; warns where the owning module has no such attribute. */
  getAttr(path: string, type?: string): Node {
    if (this.owningModule !== undefined && this.owningModule.findAttribute(path) === undefined) {
      // oxlint-disable-next-line no-console -- FX warns too: the attribute may well be added later
      console.warn(`get_attr: the module that owns the graph has no attribute ${path}; add it before the graph runs`);
    }
    return this.createNode("get_attr", path, [], {}, undefined, type);
  }

  /** Makes a call of a function or operator, by its qualified name or the function itself. */
  callFunction(
    target: string | NamedTarget,
    args: readonly ArgInput[] = [],
    kwargs: KwargsInput = {},
    type?: string,
  ): Node {
    return this.createNode("call_function", target, args, kwargs, undefined, type);
  }

  /** Makes a call of a method of the first argument. */
  callMethod(method: string, args: readonly ArgInput[] = [], kwargs: KwargsInput = {}, type?: string): Node {
    return this.createNode("call_method", method, args, kwargs, undefined, type);
  }

  /** Makes a call of a sub-module, by its path. */
  callModule(path: string, args: readonly ArgInput[] = [], kwargs: KwargsInput = {}, type?: string): Node {
    return this.createNode("call_module", path, args, kwargs, undefined, type);
  }

  /** Makes the output. */
  output(result: ArgInput, type?: string): Node {
    return this.createNode("output", "output", [result], {}, undefined, type);
  }

  /**
   * Copies a node of another graph (or of this one) to the insertion point, with its arguments mapped: op, target, name
   * where it is free, type and meta.
   */
  nodeCopy(node: Node, argTransform: (node: Node) => ArgInput = (it) => it): Node {
    const args = mapArgs(node.args, argTransform);
    const kwargs = mapKwargs(node.kwargs, argTransform);
    return this.#make(node.op, node.target, args, kwargs, {
      name: () => this.#names.createName(node.name),
      source: node,
    });
  }

  /**
   * Copies all nodes of another graph but its output, and returns what that output returns, in terms of this graph; on
   * request with the output node itself. Nodes that `valMap` knows are not copied, and the others are added to it.
   *
   * @example
   * ```ts
   * const result = graph.graphCopy(other, new Map([[otherInput, x]]));
   * ```
   */
  graphCopy(graph: Graph, valMap?: Map<Node, Arg>, options?: { readonly returnOutputNode?: false }): Arg | undefined;
  graphCopy(graph: Graph, valMap: Map<Node, Arg>, options: { readonly returnOutputNode: true }): CopiedOutput;
  graphCopy(
    graph: Graph,
    valMap: Map<Node, Arg> = new Map(),
    { returnOutputNode = false }: CopyOptions = {},
  ): Arg | CopiedOutput {
    const copied = copyInto(this, graph, valMap);
    return returnOutputNode ? copied : copied?.[0];
  }

  /**
   * Puts another graph in the place of a call: copies it to the insertion point with these values for its inputs, in
   * order, and returns what it returns. An input that is not given takes its default.
   *
   * @example
   * ```ts
   * const result = graph.insertingBefore(call, () => graph.inlineGraph(callee, call.args));
   * ```
   */
  inlineGraph(graph: Graph, inputs: readonly ArgInput[]): Arg | undefined {
    return inlineInto(this, graph, inputs);
  }

  /** A graph of its own with the same nodes, names, users and hooks. Meta values are shared, their maps are not. */
  clone(): Graph {
    return cloneInto(new Graph(), this);
  }

  /**
   * Sets where new nodes go: before `node`, or at the very beginning. Nodes made there stand in the order in which they
   * were made. The point stays until it is set again, or until the scope that is returned is disposed; with a body, it
   * holds for that body.
   *
   * @example
   * ```ts
   * const relu = graph.insertingBefore(output, () => graph.callFunction("torch.relu", [x]));
   * ```
   */
  insertingBefore(node?: Node): InsertScope;
  insertingBefore<T>(node: Node | undefined, body: () => T): T;
  insertingBefore<T>(node?: Node, body?: () => T): T | InsertScope {
    const anchor = node ?? this.first;
    return this.#inserting(anchor === undefined ? END : { at: "before", node: anchor }, body);
  }

  /** Sets where new nodes go: after `node`, or at the end. See {@link Graph.insertingBefore}. */
  insertingAfter(node?: Node): InsertScope;
  insertingAfter<T>(node: Node | undefined, body: () => T): T;
  insertingAfter<T>(node?: Node, body?: () => T): T | InsertScope {
    return this.#inserting(node === undefined ? END : { at: "after", node }, body);
  }

  /** Removes a node that nothing uses; its arguments are gone. */
  eraseNode(node: Node): void {
    checkMember(this, node);
    if (node.users.size > 0) {
      const names = Array.from(node.users, (it) => it.name).join(", ");
      const reason = `Tried to erase Node ${node.name} but it still had ${node.users.size} users in the graph: {${names}}!`;
      throw fxError("NodeHasUsers", reason, {
        node: node.name,
        help: "replace its uses first, with replaceAllUsesWith",
      });
    }
    this.#tell((hooks) => hooks.erasing(node));
    this.#index?.remove(node);
    clearArguments(node);
    this.#order.remove(stateOf(node));
    this.#point = settled(this.#point);
  }

  /** Erases all nodes, with what was noted about them. The names stay given. */
  clearNodes(): void {
    for (const node of this.nodes.reversed()) {
      node.meta.clear();
      this.eraseNode(node);
    }
  }

  /** Moves a node to stand just before another one. */
  moveBefore(node: Node, anchor: Node): void {
    this.#move(node, anchor, () => anchor);
  }

  /** Moves a node to stand just after another one. */
  moveAfter(node: Node, anchor: Node): void {
    this.#move(node, anchor, () => anchor.next);
  }

  /** Puts the nodes of this graph, all of them, into this order. */
  reorder(nodes: readonly Node[]): void {
    for (const node of nodes) checkMember(this, node);
    if (nodes.length !== this.nodes.length || new Set(nodes).size !== nodes.length) {
      throw fxError("GraphArgument", `a new order needs each of the ${this.nodes.length} nodes once`);
    }
    this.noteEdit();
    for (const node of nodes) {
      this.#order.remove(stateOf(node));
      this.#order.insert(stateOf(node), undefined);
    }
  }

  /** The node after this one; see {@link Node.next}. */
  nodeAfter(node: Node): Node | undefined {
    return this.#order.next(stateOf(node))?.value;
  }

  /** The node before this one; see {@link Node.prev}. */
  nodeBefore(node: Node): Node | undefined {
    return this.#order.prev(stateOf(node))?.value;
  }

  /** Gives the node a free name close to the candidate, and returns it. */
  rename(node: Node, candidate: string): string {
    checkMember(this, node);
    if (node.name !== candidate) this.#setName(node, this.#names.createName(candidate));
    return node.name;
  }

  /** Gives the node exactly this name. */
  setName(node: Node, name: string): void {
    checkMember(this, node);
    if (node.name !== name) this.#setName(node, this.#reserved(name));
  }

  /** Makes a node do something else; see {@link Node.op} and {@link Node.target}. */
  setCall(node: Node, op: Opcode, target: string): void {
    checkMember(this, node);
    this.noteEdit();
    this.#index?.remove(node);
    const state = stateOf(node);
    state.op = op;
    state.target = target;
    this.#index?.add(node);
    state.meta?.delete("val");
  }

  /** Tells the hooks that `user` is about to use the node called `replacement` in place of `old`. */
  replacing(old: Node, replacement: string, user: Node): void {
    this.#tell((hooks) => hooks.replacing(old, replacement, user));
  }

  /**
   * Erases the nodes that nothing uses and that are not impure, from the end to the beginning, and returns whether
   * anything changed. Another predicate replaces the rule wholly, as in FX: unused inputs go unless it holds on to them.
   * The graphs that `get_attr` nodes refer to, in the module that owns this one, lose their dead code too. Throws where
   * the graph is not well formed.
   *
   * @example
   * ```ts
   * graph.eliminateDeadCode((node) => node.isImpure() || node.target === "builtins.print");
   * ```
   */
  eliminateDeadCode(isImpure: (node: Node) => boolean = (node) => node.isImpure()): boolean {
    return eliminateDeadCode(this, isImpure);
  }

  /**
   * Throws where the graph is not well formed: the first problem is the error, the others are its notes. With a module,
   * the attributes and modules that nodes refer to must be there; unless another is given, that is the owning module.
   */
  lint(owner: Module | undefined = this.owningModule): void {
    const [first, ...others] = this.problems(owner);
    if (first === undefined) return;
    const notes = others.map((it) => `%${it.node}: ${it.reason}`);
    throw new GraphError(first.kind, first.reason, {
      ...(first.node === undefined ? {} : { node: first.node }),
      notes,
    });
  }

  /** Everything that {@link Graph.lint} would complain of. */
  problems(owner: Module | undefined = this.owningModule): FxError[] {
    return findProblems(this, owner);
  }

  /** How the function around generated code looks. */
  get codegen(): CodeGen {
    return this.#codegen;
  }

  /** Generates code as this says from now on, and takes inputs and gives outputs as it says. */
  setCodegen(codegen: CodeGen): void {
    this.#codegen = codegen;
  }

  /**
   * Has the body of generated code changed by the function that `make` gives, which is told the one that does so now, to
   * call it or not. Disposing what is returned brings that one back.
   *
   * @example
   * ```ts
   * graph.onGenerateCode((current) => (body) => [{ text: "debugger;" }, ...(current?.(body) ?? body)]);
   * ```
   */
  onGenerateCode(make: (current: BodyTransformer | undefined) => BodyTransformer): Disposable {
    const codegen = this.#codegen;
    const previous = codegen.bodyTransformer;
    codegen.bodyTransformer = make(previous);
    return { [Symbol.dispose]: () => void (codegen.bodyTransformer = previous) };
  }

  /** The inputs of the graph, of what its code is called with. */
  processInputs(...inputs: readonly unknown[]): readonly unknown[] {
    return this.#codegen.processInputs(...inputs);
  }

  /** What the code of the graph gives, of the output of the graph. */
  processOutputs(output: unknown): unknown {
    return this.#codegen.processOutputs(output);
  }

  /** JavaScript that computes what the graph does: `torch.fx.Graph.python_code`. */
  generateCode(options?: CodeOptions): GeneratedCode {
    return generateCode(this, options);
  }

  /** Prints a table of the nodes. */
  printTabular(): void {
    // oxlint-disable-next-line no-console -- printing is what it is for
    console.log(formatTabular(this));
  }

  /** The rows of {@link Graph.printTabular}: opcode, name, target, args and kwargs of each node. */
  tabular(): string[][] {
    return tabularRows(this);
  }

  /** PyTorch's `str(graph)`. */
  toString(): string {
    return formatGraph(this);
  }

  #make(op: Opcode, target: string, args: Tuple, kwargs: Kwargs, { name, type, source }: NodeDetails): Node {
    checkOpcode(op);
    for (const input of inputNodes(args, kwargs)) checkMember(this, input);
    const node = new Node(this, op, targetOf(target), name());
    this.#order.insert(stateOf(node), this.#nodeAtPoint());
    setArguments(node, args, kwargs);
    if (source === undefined) node.type = type;
    else copyNotes(source, node);
    if (this.#point.at === "after") this.#point = { at: "after", node };
    this.#index?.add(node);
    this.#tell((hooks) => hooks.created(node));
    return node;
  }

  #setName(node: Node, name: string): void {
    this.noteEdit();
    for (const user of node.users) this.replacing(node, name, user);
    stateOf(node).name = name;
  }

  #tell(event: (hooks: GraphHooks) => void): void {
    event(this.hooks);
    if (this.owningModule !== undefined) event(this.owningModule.graphHooks);
  }

  #nodeAtPoint() {
    switch (this.#point.at) {
      case "end":
        return undefined;
      case "before":
        return stateOf(this.#point.node);
      case "after":
        return this.#order.next(stateOf(this.#point.node));
    }
  }

  #inserting<T>(point: InsertPoint, body: (() => T) | undefined): T | InsertScope {
    if (point.at !== "end") checkMember(this, point.node);
    const previous = this.#point;
    this.#point = point;
    const dispose = (): void => {
      this.#point = settled(previous);
    };
    if (body === undefined) return { dispose, [Symbol.dispose]: dispose };
    try {
      return body();
    } finally {
      dispose();
    }
  }

  #move(node: Node, anchor: Node, before: () => Node | undefined): void {
    checkMember(this, node);
    checkMember(this, anchor);
    if (node === anchor) return;
    this.noteEdit();
    this.#order.remove(stateOf(node));
    const next = before();
    this.#order.insert(stateOf(node), next === undefined ? undefined : stateOf(next));
  }

  #reserved(name: string): string {
    if (this.#names.reserve(name)) return name;
    throw fxError("GraphInvalid", `the name \`${name}\` is taken`, {
      node: name,
      help: "rename finds a free name close to it",
    });
  }
}

/** What a new node gets besides what it does. */
interface NodeDetails {
  /** Called once all else is known to be right, so that a refused node takes no name. */
  readonly name: () => string;
  readonly type?: string | undefined;
  /** The node that this is a copy of. */
  readonly source?: Node;
}

/** The name that FX gives to a node of this target: a function's `__name__` or the string, in snake case. */
function nameOfTarget(op: Opcode, target: string): string {
  if (op === "call_function") return snakeCase(functionName(target));
  const isMagic = target.length > 4 && target.startsWith("__") && target.endsWith("__");
  return snakeCase(isMagic ? target.slice(2, -2) : target);
}

/** Python's `__name__` of a function from its qualified name; an operator's is `name.overload`. */
function functionName(target: string): string {
  if (!target.startsWith("torch.ops.")) return target.slice(target.lastIndexOf(".") + 1);
  const rest = target.slice("torch.ops.".length);
  return rest.slice(rest.indexOf(".") + 1);
}
