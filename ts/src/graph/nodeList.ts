/**
 * The nodes of a graph, to walk.
 *
 * @module
 */
import type { Node } from "./node.ts";
import type { Link, Order } from "./order.ts";

/**
 * The nodes of a graph in order. A walk survives edits: a node inserted after the current one is visited, one inserted
 * before is not, an erased one is skipped, and erasing the current one goes on with the next.
 */
export class NodeList implements Iterable<Node> {
  readonly #order: Order<Node>;

  constructor(order: Order<Node>) {
    this.#order = order;
  }

  /** The number of nodes. */
  get length(): number {
    return this.#order.length;
  }

  [Symbol.iterator](): IterableIterator<Node> {
    return walk(this.#order.first, (link) => this.#order.next(link));
  }

  /** All nodes as they are now, in less time than a walk takes. */
  toArray(): Node[] {
    const res: Node[] = [];
    for (let link = this.#order.first; link !== undefined; link = this.#order.next(link)) res.push(link.value);
    return res;
  }

  /** The nodes from the last to the first. */
  reversed(): IterableIterator<Node> {
    return walk(this.#order.last, (link) => this.#order.prev(link));
  }
}

function* walk(
  from: Link<Node> | undefined,
  step: (link: Link<Node>) => Link<Node> | undefined,
): IterableIterator<Node> {
  for (let link = from; link !== undefined; link = step(link)) yield link.value;
}
