/**
 * The nodes of a graph, to walk.
 *
 * @module
 */
import { showThemselves } from "../base/inspect.ts";
import { answeringPythonNames } from "../base/pythonNames.ts";
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

  /** The node at a position; a negative one counts from the end. Takes time linear in the number of nodes. */
  at(index: number): Node | undefined {
    return this.toArray().at(index);
  }

  /** The first node of which `test` holds. */
  find<T extends Node>(test: (node: Node, index: number) => node is T): T | undefined;
  find(test: (node: Node, index: number) => boolean): Node | undefined;
  find(test: (node: Node, index: number) => boolean): Node | undefined {
    let index = 0;
    for (const node of this) if (test(node, index++)) return node;
    return undefined;
  }

  /** The position of the first node of which `test` holds, or -1. */
  findIndex(test: (node: Node, index: number) => boolean): number {
    let index = 0;
    for (const node of this) {
      if (test(node, index)) return index;
      index++;
    }
    return -1;
  }

  /** The last node of which `test` holds. */
  findLast<T extends Node>(test: (node: Node, index: number) => node is T): T | undefined;
  findLast(test: (node: Node, index: number) => boolean): Node | undefined;
  findLast(test: (node: Node, index: number) => boolean): Node | undefined {
    let index = this.length;
    for (const node of this.reversed()) if (test(node, --index)) return node;
    return undefined;
  }

  /** The nodes of which `test` holds. */
  filter<T extends Node>(test: (node: Node, index: number) => node is T): T[];
  filter(test: (node: Node, index: number) => boolean): Node[];
  filter(test: (node: Node, index: number) => boolean): Node[] {
    const res: Node[] = [];
    let index = 0;
    for (const node of this) if (test(node, index++)) res.push(node);
    return res;
  }

  /** What `make` gives of each node. */
  map<T>(make: (node: Node, index: number) => T): T[] {
    const res: T[] = [];
    for (const node of this) res.push(make(node, res.length));
    return res;
  }

  /** What `make` gives of each node, one after the other: an array for its elements. */
  flatMap<T>(make: (node: Node, index: number) => T | readonly T[]): T[] {
    return this.map(make).flat() as T[];
  }

  /** What `combine` makes of `initial` and the first node, of that and the second, and so on. */
  reduce<T>(combine: (value: T, node: Node, index: number) => T, initial: T): T {
    let res = initial;
    this.forEach((node, index) => (res = combine(res, node, index)));
    return res;
  }

  /** Does something with each node; what it does to the graph is seen, as in a walk. */
  forEach(act: (node: Node, index: number) => void): void {
    let index = 0;
    for (const node of this) act(node, index++);
  }

  /** Whether `test` holds of any node. */
  some(test: (node: Node, index: number) => boolean): boolean {
    return this.find(test) !== undefined;
  }

  /** Whether `test` holds of all nodes. */
  every(test: (node: Node, index: number) => boolean): boolean {
    return this.find((node, index) => !test(node, index)) === undefined;
  }

  /** Whether the node is one of these. */
  includes(node: Node): boolean {
    return this.find((it) => it === node) !== undefined;
  }

  /** The position of the node, or -1. Takes time linear in the number of nodes. */
  indexOf(node: Node): number {
    return this.toArray().indexOf(node);
  }

  /** The nodes from one position to before another, as of an array. */
  slice(start?: number, end?: number): Node[] {
    return this.toArray().slice(start, end);
  }

  /** The names, as Python prints a list of nodes. */
  toString(): string {
    return `[${this.map((it) => it.name).join(", ")}]`;
  }

  /** What Node's console shows. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `NodeList(${this.length}) ${this.toString()}`;
  }

  /** The nodes from the last to the first. */
  reversed(): IterableIterator<Node> {
    return new Walk(this.#order, this.#order.last, false);
  }
}

showThemselves(NodeList);

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

Object.setPrototypeOf(NodeList.prototype, answeringPythonNames("a NodeList", { positions: true }));

/** Whether a value is a graph: what has nodes in their order. */
export function isGraph(value: unknown): boolean {
  return typeof value === "object" && value !== null && "nodes" in value && value.nodes instanceof NodeList;
}
