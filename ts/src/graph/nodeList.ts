/**
 * The nodes of a graph, to walk.
 *
 * @module
 */
import type { Node } from "./node.ts";
import { nodeOf, type NodeState } from "./nodeState.ts";
import type { Order } from "./order.ts";

/**
 * The nodes of a graph in order. A walk survives edits: a node inserted after the current one is visited, one inserted
 * before is not, an erased one is skipped, and erasing the current one goes on with the next.
 */
export class NodeList implements Iterable<Node> {
  readonly #order: Order<NodeState>;

  constructor(order: Order<NodeState>) {
    this.#order = order;
  }

  /** The number of nodes. */
  get length(): number {
    return this.#order.length;
  }

  [Symbol.iterator](): IterableIterator<Node> {
    return new Walk(this.#order, this.#order.first, true);
  }

  /** All nodes as they are now, in a fraction of the time that a walk takes. */
  toArray(): Node[] {
    return this.#order.toArray() as unknown[] as Node[];
  }

  /** The nodes from the last to the first. */
  reversed(): IterableIterator<Node> {
    return new Walk(this.#order, this.#order.last, false);
  }
}

/** An iterator by hand: it takes a fraction of the time that a generator takes. */
class Walk implements IterableIterator<Node> {
  readonly #order: Order<NodeState>;
  readonly #isForward: boolean;
  /** Where the walk begins, or the link that it gave last. */
  #link: NodeState | undefined;
  #hasBegun = false;

  constructor(order: Order<NodeState>, from: NodeState | undefined, isForward: boolean) {
    this.#order = order;
    this.#link = from;
    this.#isForward = isForward;
  }

  [Symbol.iterator](): this {
    return this;
  }

  next(): IteratorResult<Node, undefined> {
    // The step is taken late, so that an edit of what comes next is seen.
    if (this.#hasBegun && this.#link !== undefined) {
      this.#link = this.#isForward ? this.#order.next(this.#link) : this.#order.prev(this.#link);
    }
    this.#hasBegun = true;
    return this.#link === undefined ? { value: undefined, done: true } : { value: nodeOf(this.#link), done: false };
  }
}

/** Whether a value is a graph: what has nodes in their order. */
export function isGraph(value: unknown): boolean {
  return typeof value === "object" && value !== null && "nodes" in value && value.nodes instanceof NodeList;
}
