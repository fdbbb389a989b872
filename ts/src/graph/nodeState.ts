/**
 * What a node holds.
 *
 * @module
 */
import { type Kwargs, NO_KWARGS, NodeBase } from "./args.ts";
import type { Node } from "./node.ts";
import type { Opcode } from "../base/opcode.ts";
import { type Link, NOWHERE } from "./order.ts";
import { Tuple } from "../base/values.ts";

export const NO_ARGS = Tuple.frozen([]);
export const NO_INPUTS: readonly Node[] = [];

/**
 * What only the graph may change. A node is an object of this class, whose fields the type of nodes hides: an object of its
 * own beside each node would take as much room again, and as long to find.
 */
export abstract class NodeState extends NodeBase implements Link<NodeState> {
  before: NodeState | undefined;
  after: NodeState | undefined;
  label = NOWHERE;
  opcode: Opcode;
  callee: string;
  ownName: string;
  positional: Tuple = NO_ARGS;
  named: Kwargs = NO_KWARGS;
  inputs: readonly Node[] = NO_INPUTS;
  /** The user, where there is no set of them: most values are used once, and a set takes more room than a node. */
  userOrUsers: Node | Set<Node> | undefined;
  /** Where the node stood when the graph was written; true of a later writing only once that has come by. */
  place = 0;
  notes: Map<string, unknown> | undefined;
  /** What is to be noted as `val` where there is no map yet, which takes more room than a node. */
  val: unknown;
  /** Makes notes that are dear to make, when they are first read. */
  later: ((meta: Map<string, unknown>) => void) | undefined;

  constructor(opcode: Opcode, callee: string, name: string) {
    super();
    this.opcode = opcode;
    this.callee = callee;
    this.ownName = name;
  }

  /** Forgets what the node gives, which an edit has changed. */
  forgetVal(): void {
    // What is still to be told of the value is told before: it stays noted.
    if (this.later !== undefined && (this.val !== undefined || this.notes?.has("val") === true)) this.tellNotes();
    this.notes?.delete("val");
    this.val = undefined;
  }

  /** What was noted, all of it, in a map. */
  tellNotes(): Map<string, unknown> {
    // Most nodes of a large graph have no notes, so the map is made when somebody asks for it.
    this.notes ??= new Map();
    if (this.val !== undefined) this.notes.set("val", this.val);
    this.val = undefined;
    const { later } = this;
    this.later = undefined;
    later?.(this.notes);
    return this.notes;
  }

  /** The nodes that use this one, in the order in which they began to. */
  userSet(): Set<Node> {
    const known = this.userOrUsers;
    if (known instanceof Set) return known;
    return (this.userOrUsers = new Set(known === undefined ? [] : [known]));
  }

  isUsed(): boolean {
    const known = this.userOrUsers;
    return known instanceof Set ? known.size > 0 : known !== undefined;
  }

  addUser(node: Node): void {
    if (this.userOrUsers === undefined) this.userOrUsers = node;
    else if (this.userOrUsers !== node) this.userSet().add(node);
  }

  removeUser(node: Node): void {
    const known = this.userOrUsers;
    if (known === node) this.userOrUsers = undefined;
    else if (known instanceof Set) known.delete(node);
  }

  clearUsers(): void {
    // Somebody may hold the set.
    if (this.userOrUsers instanceof Set) this.userOrUsers.clear();
    else this.userOrUsers = undefined;
  }

  /** Calls `visit` for each user, in order, without making a set for one. */
  forEachUser(visit: (user: Node) => void): void {
    const known = this.userOrUsers;
    if (known instanceof Set) for (const user of known) visit(user);
    else if (known !== undefined) visit(known);
  }
}

/** What only the graph may change, of this node. */
export function stateOf(node: Node): NodeState {
  return node as unknown as NodeState;
}

/** The node of this state. */
export function nodeOf(state: NodeState): Node;
export function nodeOf(state: NodeState | undefined): Node | undefined;
export function nodeOf(state: NodeState | undefined): Node | undefined {
  return state as unknown as Node | undefined;
}

/** {@link NodeState} as the type of nodes shows it: without its fields. */
export const HiddenState = NodeState as unknown as abstract new (op: Opcode, target: string, name: string) => NodeBase;
