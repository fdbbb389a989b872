/**
 * The order of nodes: a doubly linked list with position labels, so that insertion and "is `a` before `b`" take constant
 * time. Labels are spread again locally when there is no room between two of them.
 *
 * @module
 */

/** A place in an {@link Order}. A place that was removed keeps its own links, so that an iteration on it can go on. */
export class Link<T> {
  readonly value: T;
  prev: Link<T> | undefined;
  next: Link<T> | undefined;
  label = 0;
  isLive = false;

  constructor(value: T) {
    this.value = value;
  }
}

/** Labels are integers that a double holds exactly, below this. */
const BITS = 52;
const LIMIT = 2 ** BITS;
const SPACING = 2 ** 10;
/** The first label. Labels around it are small integers, which JavaScript engines keep in place; larger ones are objects. */
const START = 2 ** 29;

/** An ordered list of links. */
export class Order<T> {
  #first: Link<T> | undefined;
  #last: Link<T> | undefined;
  #length = 0;
  #relabelled = 0;

  /** The number of live links. */
  get length(): number {
    return this.#length;
  }

  /** How many labels were changed to make room; what an insertion costs beyond constant time. */
  get relabelled(): number {
    return this.#relabelled;
  }

  get first(): Link<T> | undefined {
    return this.#first;
  }

  get last(): Link<T> | undefined {
    return this.#last;
  }

  /** The live link after this one; of a removed link, the one that followed when it was removed. */
  next(link: Link<T>): Link<T> | undefined {
    let next = link.next;
    while (next !== undefined && !next.isLive) next = next.next;
    return next;
  }

  /** The live link before this one; of a removed link, the one that preceded when it was removed. */
  prev(link: Link<T>): Link<T> | undefined {
    let prev = link.prev;
    while (prev !== undefined && !prev.isLive) prev = prev.prev;
    return prev;
  }

  /** Inserts a link that is not in the list before another, or at the end. */
  insert(link: Link<T>, before: Link<T> | undefined): void {
    const prev = before === undefined ? this.#last : before.prev;
    link.prev = prev;
    link.next = before;
    link.isLive = true;
    if (prev === undefined) this.#first = link;
    else prev.next = link;
    if (before === undefined) this.#last = link;
    else before.prev = link;
    this.#length += 1;
    const label = between(prev?.label, before?.label);
    if (label === undefined) this.#spread(link);
    else link.label = label;
  }

  /** Takes a link out of the list. */
  remove(link: Link<T>): void {
    const { prev, next } = link;
    if (prev === undefined) this.#first = next;
    else prev.next = next;
    if (next === undefined) this.#last = prev;
    else next.prev = prev;
    link.isLive = false;
    this.#length -= 1;
  }

  /** Puts all live links into this order. */
  relink(links: readonly Link<T>[]): void {
    const step = Math.min(SPACING, Math.floor(LIMIT / (links.length + 1)));
    let label = Math.min(START, LIMIT - step * (links.length + 1));
    let prev: Link<T> | undefined;
    for (let at = 0; at < links.length; at++) {
      const link = links[at] as Link<T>;
      link.prev = prev;
      if (prev !== undefined) prev.next = link;
      link.label = label += step;
      prev = link;
    }
    if (prev !== undefined) prev.next = undefined;
    this.#first = links[0];
    this.#last = prev;
  }

  /**
   * Spreads the labels of the smallest enclosing window around `link` that is sparse enough. Windows double, and the
   * density that is allowed falls as they grow (Bender et al., "Two simplified algorithms for maintaining order in a
   * list", 2002), so an insertion costs O(log n) on average.
   */
  #spread(link: Link<T>): void {
    const anchor = (link.prev ?? link.next)?.label ?? LIMIT / 2;
    let first = link;
    let last = link;
    let count = 1;
    for (let bits = 8; bits < BITS; bits++) {
      const size = 2 ** bits;
      const low = Math.floor(anchor / size) * size;
      for (let it = first.prev; it !== undefined && it.label >= low; it = it.prev) {
        first = it;
        count += 1;
      }
      for (let it = last.next; it !== undefined && it.label < low + size; it = it.next) {
        last = it;
        count += 1;
      }
      if (count < Math.max(2, size * 0.7 ** bits)) {
        this.#relabel(first, count, low, size);
        return;
      }
    }
    this.#relabel(this.#first as Link<T>, this.#length, 0, LIMIT);
  }

  #relabel(first: Link<T>, count: number, low: number, size: number): void {
    const step = Math.floor(size / (count + 1));
    let at: Link<T> | undefined = first;
    for (let i = 1; i <= count && at !== undefined; i++, at = at.next) at.label = low + i * step;
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
