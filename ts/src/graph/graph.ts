/**
 * The graph: an ordered list of nodes, `torch.fx.Graph`.
 *
 * @module
 */
import { fxError, GraphError, type FxError } from "../errors.ts";
import { freezeArgs, freezeKwargs, inputNodes, mapArg, mapArgs, mapKwargs } from "./args.ts";
import type { Arg, ArgInput, Kwargs, KwargsInput } from "./args.ts";
import { findProblems } from "./lint.ts";
import type { Module } from "../nn/module.ts";
import { Namespace, snakeCase } from "./namespace.ts";
import { checkMember, checkTarget, clearArguments, copyNotes, Node, OPCODES, setArguments, stateOf } from "./node.ts";
import type { Opcode } from "./node.ts";
import { NodeList } from "./nodeList.ts";
import { Order } from "./order.ts";
import { formatGraph, formatTabular, tabularRows } from "./print.ts";
import type { Tuple } from "./values.ts";

/** Which nodes {@link Graph.findNodes} looks for. */
export interface NodeQuery {
  readonly op: Opcode;
  /** Required for `call_function`, as in FX. */
  readonly target?: string;
}

/** Restores the insertion point that was there before, when it is disposed. */
export interface InsertScope extends Disposable {
  dispose(): void;
}

type InsertPoint =
  | { readonly at: "end" }
  | { readonly at: "before"; readonly node: Node }
  | { readonly at: "after"; readonly node: Node };

const END: InsertPoint = { at: "end" };

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

  /** The nodes, in order. Walking them survives edits, as in FX. */
  readonly nodes: NodeList = new NodeList(this.#order);

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

  /** The nodes with this opcode and target, in order; takes time linear in the number of nodes. */
  findNodes({ op, target }: NodeQuery): Node[] {
    if (op === "call_function" && target === undefined) {
      throw fxError("GraphArgument", "findNodes needs a target for call_function");
    }
    return Array.from(this.nodes).filter((it) => it.op === op && (target === undefined || it.target === target));
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
    target: string,
    args: readonly ArgInput[] = [],
    kwargs: KwargsInput = {},
    name?: string,
    type?: string,
  ): Node {
    const node = this.#make(op, target, freezeArgs(args), freezeKwargs(kwargs), () =>
      this.#names.createName(name ?? nameOfTarget(op, target)),
    );
    node.type = type;
    return node;
  }

  /** Makes a node with exactly this name, even one that FX would change: exported programs have such names. */
  createNamedNode(op: Opcode, target: string, args: readonly ArgInput[], kwargs: KwargsInput, name: string): Node {
    return this.#make(op, target, freezeArgs(args), freezeKwargs(kwargs), () => this.#reserved(name));
  }

  /** Makes an input. */
  placeholder(name: string, type?: string, defaultValue?: ArgInput): Node {
    return this.createNode("placeholder", name, defaultValue === undefined ? [] : [defaultValue], {}, name, type);
  }

  /** Makes a node that reads an attribute of the module. */
  getAttr(path: string, type?: string): Node {
    return this.createNode("get_attr", path, [], {}, undefined, type);
  }

  /** Makes a call of a function or operator, by its qualified name. */
  callFunction(target: string, args: readonly ArgInput[] = [], kwargs: KwargsInput = {}, type?: string): Node {
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
    const copy = this.#make(node.op, node.target, args, kwargs, () => this.#names.createName(node.name));
    copyNotes(node, copy);
    return copy;
  }

  /**
   * Copies all nodes of another graph but its output, and returns what that output returns, in terms of this graph.
   * Nodes that `valMap` knows are not copied, so a graph is inlined by giving its placeholders' values; the others are
   * added to it.
   *
   * @example
   * ```ts
   * const inlined = graph.graphCopy(other, new Map([[otherInput, x]]));
   * ```
   */
  graphCopy(graph: Graph, valMap: Map<Node, Arg> = new Map()): Arg | undefined {
    // A graph may be copied into itself, where the walk would go on over the copies.
    const sources = [...graph.nodes];
    for (const node of sources) {
      if (valMap.has(node)) continue;
      const mapped = (it: Node): Arg => {
        const value = valMap.get(it);
        if (value !== undefined) return value;
        throw fxError("GraphInvalid", `Argument '${it.name}' was used before it has been defined`, { node: node.name });
      };
      if (node.op === "output") return node.args[0] === undefined ? undefined : mapArg(node.args[0], mapped);
      valMap.set(node, this.nodeCopy(node, mapped));
    }
    return undefined;
  }

  /** A graph of its own with the same nodes, names and users. Meta values are shared, the maps that hold them are not. */
  clone(): Graph {
    const res = new Graph();
    const copies = new Map<Node, Node>();
    for (const node of this.nodes) {
      const copy = res.createNamedNode(node.op, node.target, [], {}, node.name);
      copies.set(node, copy);
    }
    const copyOf = (it: Node): Node => copies.get(it) as Node;
    for (const [node, copy] of copies) {
      setArguments(copy, mapArgs(node.args, copyOf), mapKwargs(node.kwargs, copyOf));
      copyNotes(node, copy);
    }
    for (const [node, copy] of copies) {
      const { users } = stateOf(copy);
      users.clear();
      for (const user of node.users) users.add(copyOf(user));
    }
    res.#names = this.#names.clone();
    return res;
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
    clearArguments(node);
    this.#order.remove(stateOf(node));
    this.#point = settled(this.#point);
  }

  /** Moves a node to stand just before another one. */
  moveBefore(node: Node, anchor: Node): void {
    this.#move(node, anchor, () => anchor);
  }

  /** Moves a node to stand just after another one. */
  moveAfter(node: Node, anchor: Node): void {
    this.#move(node, anchor, () => anchor.next);
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
    if (node.name !== candidate) stateOf(node).name = this.#names.createName(candidate);
    return node.name;
  }

  /** Gives the node exactly this name. */
  setName(node: Node, name: string): void {
    checkMember(this, node);
    if (node.name !== name) stateOf(node).name = this.#reserved(name);
  }

  /**
   * Erases the nodes that nothing uses and that are not impure, from the end to the beginning, and returns whether
   * anything changed. Another predicate replaces the rule wholly, as in FX: unused inputs go unless it holds on to them.
   * Throws where the graph is not well formed.
   *
   * @example
   * ```ts
   * graph.eliminateDeadCode((node) => node.isImpure() || node.target === "builtins.print");
   * ```
   */
  eliminateDeadCode(isImpure: (node: Node) => boolean = (node) => node.isImpure()): boolean {
    this.lint();
    let isChanged = false;
    for (const node of this.nodes.reversed()) {
      if (node.users.size > 0 || isImpure(node)) continue;
      this.eraseNode(node);
      isChanged = true;
    }
    return isChanged;
  }

  /**
   * Throws where the graph is not well formed: the first problem is the error, the others are its notes. With a module,
   * the attributes and modules that nodes refer to must be there.
   */
  lint(owner?: Module): void {
    const [first, ...others] = this.problems(owner);
    if (first === undefined) return;
    const notes = others.map((it) => `%${it.node}: ${it.reason}`);
    throw new GraphError(first.kind, first.reason, {
      ...(first.node === undefined ? {} : { node: first.node }),
      notes,
    });
  }

  /** Everything that {@link Graph.lint} would complain of. */
  problems(owner?: Module): FxError[] {
    return findProblems(this, owner);
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

  #make(op: Opcode, target: string, args: Tuple, kwargs: Kwargs, name: () => string): Node {
    if (!OPCODES.includes(op)) {
      throw fxError("GraphArgument", `there is no opcode \`${op}\``, { help: `one of ${OPCODES.join(", ")}` });
    }
    checkTarget(target);
    for (const input of inputNodes(args, kwargs)) checkMember(this, input);
    const node = new Node(this, op, target, name());
    this.#order.insert(stateOf(node), this.#nodeAtPoint());
    setArguments(node, args, kwargs);
    if (this.#point.at === "after") this.#point = { at: "after", node };
    return node;
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

/** The insertion point, on the node that followed where its own was erased. */
function settled(point: InsertPoint): InsertPoint {
  if (point.at === "end" || !point.node.isErased) return point;
  const { next } = point.node;
  return next === undefined ? END : { at: "before", node: next };
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
