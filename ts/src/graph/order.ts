/**
 * The order of nodes: a doubly linked list with position labels, so that insertion and "is `a` before `b`" take constant
 * time. Labels are spread again locally when there is no room between two of them.
 *
 * @module
 */

/** What stands in an {@link Order}. What was removed keeps its own links, so that an iteration on it can go on. */
export interface Link<T> {
  before: T | undefined;
  after: T | undefined;
  /** Grows along the order; {@link NOWHERE} for what is in none. */
  label: number;
}

/** The label of what is in no order. */
export const NOWHERE = -1;

/** Whether this stands in an order. */
export function isPlaced<T>(link: Link<T>): boolean {
  return link.label !== NOWHERE;
}

/** Labels are integers that a double holds exactly, below this. */
const BITS = 52;
const LIMIT = 2 ** BITS;
const SPACING = 2 ** 10;
/** The first label. Labels around it are small integers, which JavaScript engines keep in place; larger ones are objects. */
const START = 2 ** 29;

/** An ordered list of links. */
export class Order<T extends Link<T>> {
  #first: T | undefined;
  #last: T | undefined;
  #length = 0;
  #relabelled = 0;
  /**
   * The live links in order, unless an edit anywhere but at the end came since they were listed. Garbage collectors move
   * what an array holds to neighbouring places, where a walk takes a fraction of the time that scattered links take.
   */
  #listed: T[] | undefined = [];

  /** The number of live links. */
  get length(): number {
    return this.#length;
  }

  /** How many labels were changed to make room; what an insertion costs beyond constant time. */
  get relabelled(): number {
    return this.#relabelled;
  }

  get first(): T | undefined {
    return this.#first;
  }

  get last(): T | undefined {
    return this.#last;
  }

  /** All live links as they are now. */
  toArray(): T[] {
    if (this.#listed === undefined) {
      this.#listed = [];
      for (let link = this.#first; link !== undefined; link = this.next(link)) this.#listed.push(link);
    }
    return this.#listed.slice();
  }

  /** The live link after this one; of a removed link, the one that followed when it was removed. */
  next(link: T): T | undefined {
    let next = link.after;
    while (next !== undefined && !isPlaced(next)) next = next.after;
    return next;
  }

  /** The live link before this one; of a removed link, the one that preceded when it was removed. */
  prev(link: T): T | undefined {
    let prev = link.before;
    while (prev !== undefined && !isPlaced(prev)) prev = prev.before;
    return prev;
  }

  /** Inserts a link that is not in the list before another, or at the end. */
  insert(link: T, before: T | undefined): void {
    if (before === undefined) this.#listed?.push(link);
    else this.#listed = undefined;
    const prev = before === undefined ? this.#last : before.before;
    link.before = prev;
    link.after = before;
    if (prev === undefined) this.#first = link;
    else prev.after = link;
    if (before === undefined) this.#last = link;
    else before.before = link;
    this.#length += 1;
    const label = between(prev?.label, before?.label);
    if (label === undefined) this.#spread(link);
    else link.label = label;
  }

  /** Takes a link out of the list, which does not hold it any longer. */
  remove(link: T): void {
    const { before, after } = link;
    if (before === undefined) this.#first = after;
    else before.after = after;
    if (after === undefined) {
      this.#last = before;
      this.#listed?.pop();
    } else {
      after.before = before;
      this.#listed = undefined;
    }
    link.label = NOWHERE;
    this.#length -= 1;
  }

  /** Puts all live links into this order. */
  relink(links: readonly T[]): void {
    const step = Math.min(SPACING, Math.floor(LIMIT / (links.length + 1)));
    let label = Math.min(START, LIMIT - step * (links.length + 1));
    let prev: T | undefined;
    for (let at = 0; at < links.length; at++) {
      const link = links[at] as T;
      link.before = prev;
      if (prev !== undefined) prev.after = link;
      link.label = label += step;
      prev = link;
    }
    if (prev !== undefined) prev.after = undefined;
    this.#first = links[0];
    this.#last = prev;
    this.#listed = links.slice();
  }

  /**
   * Spreads the labels of the smallest enclosing window around `link` that is sparse enough. Windows double, and the
   * density that is allowed falls as they grow (Bender et al., "Two simplified algorithms for maintaining order in a
   * list", 2002), so an insertion costs O(log n) on average.
   */
  #spread(link: T): void {
    const anchor = (link.before ?? link.after)?.label ?? LIMIT / 2;
    let first = link;
    let last = link;
    let count = 1;
    for (let bits = 8; bits < BITS; bits++) {
      const size = 2 ** bits;
      const low = Math.floor(anchor / size) * size;
      for (let it = first.before; it !== undefined && it.label >= low; it = it.before) {
        first = it;
        count += 1;
      }
      for (let it = last.after; it !== undefined && it.label < low + size; it = it.after) {
        last = it;
        count += 1;
      }
      if (count < Math.max(2, size * 0.7 ** bits)) {
        this.#relabel(first, count, low, size);
        return;
      }
    }
    this.#relabel(this.#first as T, this.#length, 0, LIMIT);
  }

  #relabel(first: T, count: number, low: number, size: number): void {
    const step = Math.floor(size / (count + 1));
    let at: T | undefined = first;
    for (let i = 1; i <= count && at !== undefined; i++, at = at.after) at.label = low + i * step;
    this.#relabelled += count;
  }
}

/** A label between two neighbours, or `undefined` where there is no room. */
function between(low: number | undefined, high: number | undefined): number | undefined {
  if (low === undefined && high === undefined) return START;
  if (high === undefined && (low as number) + SPACING < LIMIT) return (low as number) + SPACING;
  if (low === undefined && (high as number) - SPACING > 0) return (high as number) - SPACING;
  const [from, to] = [low ?? 0, high ?? LIMIT];
  const middle = Math.floor((from + to) / 2);
  return middle === from || middle === to ? undefined : middle;
}
