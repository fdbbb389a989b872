/**
 * One step of a graph: `torch.fx.Node`.
 *
 * @module
 */
import { OPCODES } from "../../../bindings/wire.ts";
import { fxError, type FxError } from "../base/errors.ts";
import {
  checkNode,
  forEachNode,
  freezeArg,
  freezeArgs,
  freezeKwargs,
  inputNodes,
  mapArgs,
  mapKwargs,
  NO_KWARGS,
  type ArgInput,
  type Kwargs,
  type KwargsInput,
  NodeBase,
} from "./args.ts";
import type { EditableGraph } from "./editableGraph.ts";
import type { Graph } from "./graph.ts";
import { isImpureNode } from "./impure.ts";
import type { Module } from "../nn/module.ts";
import { HiddenState, NO_ARGS, NO_INPUTS, stateOf } from "./nodeState.ts";
import { isPlaced } from "./order.ts";
import type { Opcode } from "../base/opcode.ts";
import { formatNode, type FormatOptions } from "./print.ts";
import { isOutermost, showThemselves } from "../base/inspect.ts";
import { answeringPythonNames, answerMembersOf } from "../base/pythonNames.ts";
import { targetOf, type NamedTarget } from "./target.ts";
import { Tuple } from "../base/values.ts";
import { checkFunction, checkOptions } from "../base/given.ts";

/** How {@link Node.isImpure} decides. */
export interface ImpurityOptions {
  /** The module whose sub-modules are asked whether they are impure; the owning module, where none is given. */
  readonly owner?: Module | undefined;
  /** Whether drawing from a random generator counts. */
  readonly impureRandom?: boolean;
}

/** How to replace the uses of a node; see {@link Node.replaceAllUsesWith}. */
export interface ReplaceOptions {
  /** Whether this user is to use the new node; without it, all are. */
  readonly filter?: (user: Node) => boolean;
  /** Whether the new node, which must have no meta yet, gets the meta of the old one. */
  readonly propagateMeta?: boolean;
}

/**
 * One step of a graph. Nodes are made by {@link Graph}; assigning `args` or `kwargs` keeps the `users` of all nodes right.
 *
 * @example
 * ```ts
 * for (const node of graph.nodes) {
 *   if (node.op === "call_function" && node.target === "torch.relu") node.target = "torch.ops.aten.gelu.default";
 * }
 * ```
 */
export class Node extends HiddenState {
  /** The graph that the node belongs to, even after its erasure. */
  readonly graph: Graph;
  /** The Python type of the value, where it was annotated. */
  type: string | undefined;

  /** For {@link Graph} only. */
  constructor(graph: Graph, op: Opcode, target: string, name: string) {
    super(op, target, name);
    this.graph = graph;
  }

  /** What passes have noted about the node: `val`, `stack_trace`, `nn_module_stack`… */
  get meta(): Map<string, unknown> {
    return stateOf(this).tellNotes();
  }

  /** What the node does. */
  get op(): Opcode {
    return stateOf(this).opcode;
  }

  set op(op: Opcode) {
    checkOpcode(op);
    this.graph.setCall(this, op, stateOf(this).callee);
  }

  /** Where the node was made: the stack that tracing noted under `stack_trace`. */
  get stackTrace(): string | undefined {
    const trace = this.meta.get("stack_trace");
    return typeof trace === "string" ? trace : undefined;
  }

  set stackTrace(trace: string | undefined) {
    if (trace === undefined) this.meta.delete("stack_trace");
    else this.meta.set("stack_trace", trace);
  }

  /** The name, unique in the graph. Assigning gives exactly this name and throws where it is taken. */
  get name(): string {
    return stateOf(this).ownName;
  }

  set name(name: string) {
    this.graph.setName(this, name);
  }

  /** Gives the node a free name close to the candidate, and returns it: FX's `_rename`. */
  rename(candidate: string): string {
    return this.graph.rename(this, candidate);
  }

  /**
   * What the node acts on: the qualified name of a function as `str(graph)` prints it (`torch.ops.aten.add.Tensor`,
   * `operator.getitem`), a method's name, or the path of an attribute, module or input. A function may be assigned too.
   */
  get target(): string {
    return stateOf(this).callee;
  }

  set target(target: string | NamedTarget) {
    this.graph.setCall(this, stateOf(this).opcode, targetOf(target));
  }

  /** The positional arguments, frozen. Assigning makes this node the last user of each of its inputs, as in FX. */
  get args(): Tuple {
    return stateOf(this).positional;
  }

  set args(args: readonly ArgInput[]) {
    setArguments(this, freezeArgs(args), stateOf(this).named);
  }

  /** The keyword arguments, frozen, in order. */
  get kwargs(): Kwargs {
    return stateOf(this).named;
  }

  set kwargs(kwargs: KwargsInput) {
    setArguments(this, stateOf(this).positional, freezeKwargs(kwargs));
  }

  /** The nodes that use this one, each once, in the order in which they began to. */
  get users(): ReadonlySet<Node> {
    return stateOf(this).userSet();
  }

  /** The distinct nodes among the arguments, in order of first appearance, args before kwargs. */
  get allInputNodes(): Node[] {
    return [...stateOf(this).inputs];
  }

  /** Whether the node is still in its graph. */
  get isErased(): boolean {
    return !isPlaced(stateOf(this));
  }

  /** The node after this one. After an erasure it still answers: with the node that followed. */
  get next(): Node | undefined {
    return this.graph.nodeAfter(this);
  }

  /** The node before this one. After an erasure it still answers: with the node that preceded. */
  get prev(): Node | undefined {
    return this.graph.nodeBefore(this);
  }

  /** Negative where this node stands before `other` in the graph, positive where after, 0 where it is the same. */
  compare(other: Node): number {
    checkMember(this.graph, this);
    checkMember(this.graph, other, "compare");
    return stateOf(this).label - stateOf(other).label;
  }

  /** Moves `node` to stand just before this one. */
  prepend(node: Node): void {
    checkNode("prepend", node);
    this.graph.moveBefore(node, this);
  }

  /** Moves `node` to stand just after this one. */
  append(node: Node): void {
    checkNode("append", node);
    this.graph.moveAfter(node, this);
  }

  /** Replaces one positional argument; a negative index counts from the end. */
  updateArg(index: number, arg: ArgInput): void {
    const at = index < 0 ? index + this.args.length : index;
    if (!Number.isInteger(at) || at < 0 || at >= this.args.length) {
      const reason = `there is no argument ${index}: the node has ${this.args.length}`;
      throw fxError("GraphArgument", reason, { node: this.name });
    }
    const frozen = freezeArg(arg);
    setArguments(this, Tuple.frozen(this.args.with(at, frozen)), this.kwargs);
  }

  /** Sets one keyword argument. */
  updateKwarg(name: string, arg: ArgInput): void {
    this.kwargs = new Map<string, ArgInput>([...Object.entries(this.kwargs), [name, arg]]);
  }

  /** Inserts a positional argument. The node keeps its place among the users of its other inputs. */
  insertArg(index: number, arg: ArgInput): void {
    if (!Number.isInteger(index) || index < 0 || index > this.args.length) {
      const reason = `insertArg index must be between 0 and ${this.args.length}, and is ${index}`;
      throw fxError("GraphArgument", reason, { node: this.name });
    }
    checkMember(this.graph, this);
    const frozen = freezeArg(arg);
    forEachNode(frozen, (it) => checkMember(this.graph, it));
    this.graph.noteEdit();
    const state = stateOf(this);
    state.positional = Tuple.frozen(state.positional.toSpliced(index, 0, frozen));
    state.inputs = inputNodes(state.positional, state.named);
    forEachNode(frozen, (it) => stateOf(it).addUser(this));
    state.forgetVal();
  }

  /** Replaces `oldInput` by `newInput` in the arguments of this node. */
  replaceInputWith(oldInput: Node, newInput: Node): void {
    checkNode("replaceInputWith", oldInput);
    checkMember(this.graph, newInput, "replaceInputWith");
    this.graph.replacing(oldInput, newInput.name, this);
    const swap = (it: Node): Node => (it === oldInput ? newInput : it);
    setArguments(this, mapArgs(this.args, swap), mapKwargs(this.kwargs, swap));
  }

  /**
   * Makes the users of this node use `replacement` instead, and returns those that changed, in users order.
   *
   * @example
   * ```ts
   * const negated = graph.insertingAfter(x, () => graph.callFunction("torch.neg", [x]));
   * x.replaceAllUsesWith(negated, { filter: (user) => user !== negated });
   * ```
   */
  replaceAllUsesWith(replacement: Node, options: ReplaceOptions = {}): Node[] {
    checkOptions("replaceAllUsesWith", options, ["filter", "propagateMeta"]);
    const { filter = () => true, propagateMeta = false } = options;
    checkMember(this.graph, this);
    checkMember(this.graph, replacement, "replaceAllUsesWith");
    checkFunction("replaceAllUsesWith", "filter", filter);
    if (propagateMeta) {
      if (replacement.meta.size > 0) {
        throw fxError("GraphArgument", "propagateMeta needs a replacement without meta", { node: replacement.name });
      }
      for (const [key, value] of this.meta) replacement.meta.set(key, value);
    }
    const changed = [...this.users].filter((user) => filter(user));
    for (const user of changed) user.replaceInputWith(this, replacement);
    return changed;
  }

  /** Whether the node does something besides giving a value: FX's `is_impure`. The owner knows about called modules. */
  isImpure(options: ImpurityOptions = {}): boolean {
    checkOptions("isImpure", options, ["owner", "impureRandom"]);
    const { owner = this.graph.owningModule, impureRandom = true } = options;
    return isImpureNode(this, owner, impureRandom);
  }

  /** One line of `str(graph)`: FX's `format_node`. */
  formatNode(options?: FormatOptions): string {
    return formatNode(this, options);
  }

  /** The name. */
  override toString(): string {
    return this.name;
  }

  /** What Node's console shows: the line of the node, and inside of other values its name, as in Python. */
  [Symbol.for("nodejs.util.inspect.custom")](depth: number, options: { readonly depth?: number | null }): string {
    return isOutermost(depth, options) ? (this.formatNode() ?? this.name) : this.name;
  }
}

Object.setPrototypeOf(
  NodeBase.prototype,
  answeringPythonNames("a Node", {
    advice: { normalized_arguments: 'import { normalizedArguments } from "tracefx": normalizedArguments(node, gm)' },
  }),
);
showThemselves(Node);
answerMembersOf(Node);

/** Throws where what `what` is given is no node, or is of another graph, or was erased. */
export function checkMember(graph: EditableGraph, node: Node, what = "the graph"): void {
  const own: EditableGraph | undefined = (node as Node | undefined)?.graph;
  // A module has a graph too, and is not erased.
  if (own === graph && node.isErased === false) return;
  checkNode(what, node);
  throw foreign(node, own === graph ? "was erased from the graph" : "belongs to another graph");
}

/** Throws where this is no opcode, as a caller without types may have it. */
export function checkOpcode(op: Opcode): void {
  if (OPCODES.includes(op)) return;
  throw fxError("GraphArgument", `there is no opcode \`${op}\``, { help: `one of ${OPCODES.join(", ")}` });
}

/** Changes the arguments of a node and keeps the users right. */
export function setArguments(node: Node, args: Tuple, kwargs: Kwargs): void {
  checkMember(node.graph, node);
  const inputs = inputNodes(args, kwargs);
  for (const input of inputs) checkMember(node.graph, input);
  node.graph.noteEdit();
  const state = stateOf(node);
  for (const input of state.inputs) stateOf(input).removeUser(node);
  state.positional = args;
  state.named = kwargs;
  state.inputs = inputs;
  for (const input of inputs) stateOf(input).addUser(node);
  state.forgetVal();
}

/** Gives a new node its arguments, which were checked. */
export function firstArguments(node: Node, args: Tuple, kwargs: Kwargs, inputs: readonly Node[]): void {
  const state = stateOf(node);
  state.positional = args;
  state.named = kwargs;
  state.inputs = inputs;
  for (let at = 0; at < inputs.length; at++) stateOf(inputs[at] as Node).addUser(node);
}

/** Puts the users of a node into this order; they are the same ones. */
export function orderUsers(node: Node, users: readonly Node[]): void {
  const state = stateOf(node);
  state.clearUsers();
  for (const user of users) state.addUser(user);
}

/** What was noted about a node, where somebody noted something: unlike `node.meta` it makes no map for this. */
export function notesOf(node: Node): Map<string, unknown> | undefined {
  const { notes, val, later } = stateOf(node);
  return later === undefined && val === undefined ? notes : node.meta;
}

/**
 * Notes what a node gives, as `node.meta.set("val", val)` does. When somebody reads the meta, `tell` notes what else there is
 * to say of the value.
 */
export function noteVal(node: Node, val: unknown, tell?: (meta: Map<string, unknown>) => void): void {
  const state = stateOf(node);
  if (state.later !== undefined && state.later !== tell) state.tellNotes();
  if (state.notes === undefined) state.val = val;
  else state.notes.set("val", val);
  state.later = tell;
}

/** Takes the arguments away from a node that is being erased. */
export function clearArguments(node: Node): void {
  const state = stateOf(node);
  const { inputs } = state;
  for (let at = 0; at < inputs.length; at++) stateOf(inputs[at] as Node).removeUser(node);
  state.positional = NO_ARGS;
  state.named = NO_KWARGS;
  state.inputs = NO_INPUTS;
  state.forgetVal();
}

/** Gives a copy of a node the notes of its source. */
export function copyNotes(from: Node, to: Node): void {
  to.type = from.type;
  const { notes, val, later } = stateOf(from);
  if (val !== undefined) noteVal(to, val);
  // What is not made yet is made for each of them, so that neither sees what is noted about the other from now on.
  stateOf(to).later = later;
  if (notes !== undefined) stateOf(to).notes = new Map(notes);
}

function foreign(node: Node, why: string): FxError {
  return fxError("NodeForeign", `node ${node.name} ${why}`, {
    help: "use a node of this graph; graph.graphCopy and graph.nodeCopy bring nodes over",
  });
}

/** Adds notes that are only made when somebody reads the meta of the node. */
export function noteLater(node: Node, make: (meta: Map<string, unknown>) => void): void {
  stateOf(node).later = make;
}
