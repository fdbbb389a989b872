/**
 * What a graph is made of, and every way to change it: nodes in order, their names, and where the next one goes.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkFunction, checkGiven, checkList, checkOptions, checkText } from "../base/given.ts";
import { checkNode, freezeArgs, freezeKwargs, inputNodes, isNode, mapArgs, mapKwargs, NO_KWARGS } from "./args.ts";
import type { ArgInput, Kwargs, KwargsInput } from "./args.ts";
import { GraphHooks } from "./hooks.ts";
import { END, settled, type InsertPoint, type InsertScope } from "./insertPoint.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { Namespace, snakeCase } from "./namespace.ts";
import { checkMember, checkOpcode, clearArguments, copyNotes, firstArguments } from "./node.ts";
import type { Node } from "./node.ts";
import type { Opcode } from "../base/opcode.ts";
import { nodeOf, type NodeState, stateOf } from "./nodeState.ts";
import { NodeIndex } from "./nodeIndex.ts";
import { NodeList } from "./nodeList.ts";
import { Order } from "./order.ts";
import { targetOf, type NamedTarget } from "./target.ts";
import type { Tuple } from "../base/values.ts";

/** Which nodes {@link Graph.findNodes} looks for. */
export interface NodeQuery {
  readonly op: Opcode;
  /** The target, which `call_function` needs, as in FX. A function stands for its name. */
  readonly target?: string | NamedTarget;
  /** Whether the nodes come in the order of the graph; without it, in any order, which takes less time. */
  readonly sort?: boolean;
}

/**
 * The part of a {@link Graph} that holds its nodes. Everything that changes a graph is here, so that `users`, the order, the
 * names and the searches always agree with the arguments.
 */
export abstract class EditableGraph {
  readonly #order = new Order<NodeState>();
  #names = new Namespace();
  #point: InsertPoint = END;
  #version = 0;
  /** Made by the first search; most graphs are never searched. */
  #index: NodeIndex | undefined;

  /** The nodes, in order. Walking them survives edits, as in FX. */
  readonly nodes: NodeList = new NodeList(this.#order);

  #owner: GraphModule | undefined;
  /** The hooks of the owner: every property of a module is read through a Proxy, and edits are many. */
  #ownerHooks: GraphHooks | undefined;

  /** What is told about edits of this graph, besides the hooks of the module that owns it. */
  readonly hooks: GraphHooks = new GraphHooks();

  /** The module whose attributes the nodes refer to. A `GraphModule` that is given the graph puts itself here. */
  get owningModule(): GraphModule | undefined {
    return this.#owner;
  }

  set owningModule(owner: GraphModule | undefined) {
    this.#owner = owner;
    this.#ownerHooks = owner?.graphHooks;
  }

  /** The names that were given. */
  get names(): Namespace {
    return this.#names;
  }

  /** Replaces the record of the names that were given, to go on naming nodes as another graph would. */
  setNames(names: Namespace): void {
    checkGiven("setNames", names instanceof Namespace, "a Namespace", "graph.names.clone() is that of another graph");
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
    return nodeOf(this.#order.first);
  }

  /** The last node. */
  get last(): Node | undefined {
    return nodeOf(this.#order.last);
  }

  /** The last output node. */
  outputNode(): Node | undefined {
    for (const node of this.nodes.reversed()) if (node.op === "output") return node;
    return undefined;
  }

  /** Whether the node is in this graph and was not erased. */
  contains(node: Node): boolean {
    if (!isNode(node)) return false;
    const own: EditableGraph = node.graph;
    return own === this && !node.isErased;
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
  findNodes(query: NodeQuery): Node[] {
    checkOptions("findNodes", query, ["op", "target", "sort"]);
    const { op, target, sort = true } = query;
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
    kwargs: KwargsInput = NO_KWARGS,
    name?: string,
    type?: string,
  ): Node {
    const found = targetOf(target);
    const [frozenArgs, frozenKwargs] = [freezeArgs(args), freezeKwargs(kwargs)];
    const inputs = this.#checked(op, frozenArgs, frozenKwargs);
    const given = this.#names.createName(name ?? nameOfTarget(op, found));
    const node = this.#place(op, found, given, frozenArgs, frozenKwargs, inputs);
    node.type = type;
    return this.#told(node);
  }

  /** Makes a node with exactly this name, even one that FX would change: exported programs have such names. */
  createNamedNode(op: Opcode, target: string, args: readonly ArgInput[], kwargs: KwargsInput, name: string): Node {
    const [frozenArgs, frozenKwargs] = [freezeArgs(args), freezeKwargs(kwargs)];
    const inputs = this.#checked(op, frozenArgs, frozenKwargs);
    return this.#told(this.#place(op, targetOf(target), this.#reserved(name), frozenArgs, frozenKwargs, inputs));
  }

  /**
   * Copies a node of another graph (or of this one) to the insertion point, with its arguments mapped: op, target, name
   * where it is free, type and meta.
   */
  nodeCopy(node: Node, argTransform: (node: Node) => ArgInput = (it) => it): Node {
    checkNode("nodeCopy", node);
    checkFunction("nodeCopy", "argTransform", argTransform);
    const args = mapArgs(node.args, argTransform);
    const kwargs = mapKwargs(node.kwargs, argTransform);
    const inputs = this.#checked(node.op, args, kwargs);
    const copy = this.#place(node.op, node.target, this.#names.createName(node.name), args, kwargs, inputs);
    copyNotes(node, copy);
    return this.#told(copy);
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
    return this.#inserting("insertingBefore", anchor === undefined ? END : { at: "before", node: anchor }, body);
  }

  /** Sets where new nodes go: after `node`, or at the end. See {@link Graph.insertingBefore}. */
  insertingAfter(node?: Node): InsertScope;
  insertingAfter<T>(node: Node | undefined, body: () => T): T;
  insertingAfter<T>(node?: Node, body?: () => T): T | InsertScope {
    return this.#inserting("insertingAfter", node === undefined ? END : { at: "after", node }, body);
  }

  /** Removes a node that nothing uses; its arguments are gone. */
  eraseNode(node: Node): void {
    this.#checkErasable(node);
    if (this.#isWatched()) {
      this.#tellErasing(node);
      // A hook may have erased the node, or begun to use it.
      if (node.isErased) return;
      this.#checkErasable(node);
    }
    this.#version += 1;
    this.#index?.remove(node);
    clearArguments(node);
    this.#order.remove(stateOf(node));
    this.#point = settled(this.#point);
  }

  /** Erases nodes that nothing else uses, given in order, users before what they use. */
  eraseNodes(nodes: readonly Node[]): void {
    checkList("eraseNodes", "nodes", nodes);
    let doomed: ReadonlySet<Node> | undefined;
    const check = (node: Node): void => {
      if (!stateOf(node).isUsed()) return;
      doomed ??= new Set(nodes);
      for (const user of node.users) if (!doomed.has(user)) this.#checkErasable(node);
    };
    for (const node of nodes) {
      checkMember(this, node, "eraseNodes");
      check(node);
    }
    let left = nodes;
    if (this.#isWatched()) {
      for (const node of nodes.toReversed()) this.#tellErasing(node);
      // A hook may have erased nodes, or begun to use some.
      left = nodes.filter((node) => !node.isErased);
      left.forEach(check);
    }
    this.noteEdit();
    for (const node of left) {
      this.#index?.remove(node);
      clearArguments(node);
      this.#order.remove(stateOf(node));
    }
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
    this.#move("moveBefore", node, anchor, () => stateOf(anchor));
  }

  /** Moves a node to stand just after another one. */
  moveAfter(node: Node, anchor: Node): void {
    this.#move("moveAfter", node, anchor, () => this.#order.next(stateOf(anchor)));
  }

  /** Puts the nodes of this graph, all of them, into this order. */
  reorder(nodes: readonly Node[]): void {
    checkList("reorder", "nodes", nodes);
    for (let at = 0; at < nodes.length; at++) {
      const node = nodes[at] as Node;
      checkMember(this, node, "reorder");
      stateOf(node).place = at;
    }
    // Of a node that is there twice, the place is the later one.
    if (nodes.length !== this.nodes.length || !nodes.every((node, at) => stateOf(node).place === at)) {
      throw fxError("GraphArgument", `a new order needs each of the ${this.nodes.length} nodes once`);
    }
    this.noteEdit();
    this.#order.relink(nodes.map(stateOf));
  }

  /** The node after this one; see {@link Node.next}. */
  nodeAfter(node: Node): Node | undefined {
    checkNode("nodeAfter", node);
    return nodeOf(this.#order.next(stateOf(node)));
  }

  /** The node before this one; see {@link Node.prev}. */
  nodeBefore(node: Node): Node | undefined {
    checkNode("nodeBefore", node);
    return nodeOf(this.#order.prev(stateOf(node)));
  }

  /** Gives the node a free name close to the candidate, and returns it. */
  rename(node: Node, candidate: string): string {
    checkMember(this, node, "rename");
    checkText("rename", "the name", candidate);
    if (node.name !== candidate) this.#setName(node, this.#names.createName(candidate));
    return node.name;
  }

  /** Gives the node exactly this name. */
  setName(node: Node, name: string): void {
    checkMember(this, node, "setName");
    checkText("setName", "the name", name);
    if (node.name !== name) this.#setName(node, this.#reserved(name));
  }

  /** Gives every node the name that `names` has for it, all at once; the others keep theirs. */
  renameAll(names: ReadonlyMap<Node, string>): void {
    checkGiven("renameAll", names instanceof Map, "a Map from nodes to names");
    const taken = new Namespace();
    for (const node of this.nodes) {
      const name = names.get(node) ?? node.name;
      if (!taken.reserve(name)) throw fxError("GraphInvalid", `two nodes are called \`${name}\``, { node: node.name });
    }
    this.#names = taken;
    for (const [node, name] of names) if (node.name !== name) this.#setName(node, name);
  }

  /** Makes a node do something else; see {@link Node.op} and {@link Node.target}. */
  setCall(node: Node, op: Opcode, target: string): void {
    checkMember(this, node, "setCall");
    this.noteEdit();
    this.#index?.remove(node);
    const state = stateOf(node);
    state.opcode = op;
    state.callee = target;
    this.#index?.add(node);
    state.forgetVal();
  }

  /** Tells the hooks that `user` is about to use the node called `replacement` in place of `old`. */
  replacing(old: Node, replacement: string, user: Node): void {
    this.hooks.replacing(old, replacement, user);
    this.#ownerHooks?.replacing(old, replacement, user);
  }

  /** The inputs of a node that may be made. This comes before its name is given, so that a refused node takes none. */
  #checked(op: Opcode, args: Tuple, kwargs: Kwargs): readonly Node[] {
    checkOpcode(op);
    const inputs = inputNodes(args, kwargs);
    for (let at = 0; at < inputs.length; at++) checkMember(this, inputs[at] as Node);
    return inputs;
  }

  #place(op: Opcode, target: string, name: string, args: Tuple, kwargs: Kwargs, inputs: readonly Node[]): Node {
    const node = this.newNode(op, target, name);
    this.#order.insert(stateOf(node), this.#nodeAtPoint());
    firstArguments(node, args, kwargs, inputs);
    this.#version += 1;
    if (this.#point.at === "after") this.#point = { at: "after", node };
    return node;
  }

  #told(node: Node): Node {
    this.#index?.add(node);
    this.hooks.created(node);
    this.#ownerHooks?.created(node);
    return node;
  }

  #checkErasable(node: Node): void {
    checkMember(this, node, "eraseNode");
    if (!stateOf(node).isUsed()) return;
    const names = Array.from(node.users, (it) => it.name).join(", ");
    const reason = `Tried to erase Node ${node.name} but it still had ${node.users.size} users in the graph: {${names}}!`;
    throw fxError("NodeHasUsers", reason, {
      node: node.name,
      help: "replace its uses first, with replaceAllUsesWith",
    });
  }

  #setName(node: Node, name: string): void {
    this.noteEdit();
    for (const user of node.users) this.replacing(node, name, user);
    stateOf(node).ownName = name;
  }

  /** Whether anybody wants to be told of edits. */
  #isWatched(): boolean {
    return !this.hooks.isEmpty || this.#ownerHooks?.isEmpty === false;
  }

  #tellErasing(node: Node): void {
    this.hooks.erasing(node);
    this.#ownerHooks?.erasing(node);
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

  #inserting<T>(what: string, point: InsertPoint, body: (() => T) | undefined): T | InsertScope {
    if (point.at !== "end") checkMember(this, point.node, what);
    if (body !== undefined) checkFunction(what, "its body", body);
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

  #move(what: string, node: Node, anchor: Node, before: () => NodeState | undefined): void {
    checkMember(this, node, what);
    checkMember(this, anchor, what);
    if (node === anchor) return;
    this.noteEdit();
    this.#order.remove(stateOf(node));
    this.#order.insert(stateOf(node), before());
  }

  #reserved(name: string): string {
    if (this.#names.reserve(name)) return name;
    throw fxError("GraphInvalid", `the name \`${name}\` is taken`, {
      node: name,
      help: "rename finds a free name close to it",
    });
  }

  /** A node of this graph that stands nowhere yet. */
  protected abstract newNode(op: Opcode, target: string, name: string): Node;
}

/** The name that FX gives to a node of this target: a function's `__name__` or the string, in snake case. */
export function nameOfTarget(op: Opcode, target: string): string {
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
