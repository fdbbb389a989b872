/**
 * Names of nodes, by the rules of `torch.fx.graph._Namespace`.
 *
 * @module
 */
import { ILLEGAL_NAMES } from "../../../bindings/names.ts";
import { checkText } from "../base/given.ts";

/**
 * Gives each node a name of its own. A name once given is never given again, not even after its node was erased.
 *
 * @example
 * ```ts
 * const names = new Namespace();
 * ["add", "add", "sum", ""].map((it) => names.createName(it)); // ["add", "add_1", "sum_1", "_unnamed"]
 * ```
 */
export class Namespace {
  readonly #used = new Set<string>();
  readonly #bases = new Map<string, Base>();

  /** A free name, as close to the candidate as the rules allow. */
  createName(wanted: string): string {
    let candidate = legalIdentifier(wanted);
    const [stem, suffix] = splitSuffix(candidate);
    const base = this.#base(stem);
    let num = base.last;
    if (suffix !== undefined && !this.#used.has(candidate)) {
      num = suffix;
    } else if (ILLEGAL_NAMES.has(candidate)) {
      num = successor(num);
      candidate = `${candidate}_${num}`;
    }
    if (this.#used.has(candidate)) {
      const startsDense = num <= base.dense;
      if (startsDense) num = base.dense;
      do {
        num = successor(num);
        candidate = `${stem}_${num}`;
      } while (this.#used.has(candidate));
      if (startsDense) base.dense = num;
    }
    this.#used.add(candidate);
    base.last = num;
    return candidate;
  }

  #base(stem: string): Base {
    let base = this.#bases.get(stem);
    if (base === undefined) this.#bases.set(stem, (base = { last: 0, dense: 0 }));
    return base;
  }

  /** Takes names, and notes for each base the suffix that was given last. */
  take(used: Iterable<string>, suffixes: Iterable<readonly [base: string, suffix: Suffix]>): void {
    for (const name of used) this.#used.add(name);
    for (const [stem, suffix] of suffixes) this.#base(stem).last = suffix;
  }

  /** How many names were given. */
  get size(): number {
    return this.#used.size;
  }

  /** The names that were given. */
  used(): Iterable<string> {
    return this.#used;
  }

  /** For each base the suffix that was given last, zero for none. */
  *suffixes(): Iterable<[base: string, suffix: Suffix]> {
    for (const [stem, { last }] of this.#bases) yield [stem, last];
  }

  /** Takes exactly this name; `false` where it is taken already. */
  reserve(name: string): boolean {
    if (this.#used.has(name)) return false;
    this.#used.add(name);
    return true;
  }

  /** Takes a name that another namespace, which was a copy of this one, gave with this suffix. */
  follow(name: string, base: string | undefined, suffix: Suffix): void {
    this.#used.add(name);
    if (base !== undefined) this.#base(base).last = suffix;
  }

  /** Whether this name was given already. */
  isUsed(name: string): boolean {
    return this.#used.has(name);
  }

  /** A namespace that has given these names, one after the other, and nothing else. */
  static of(names: Iterable<string>): Namespace {
    const res = new Namespace();
    for (const name of names) if (res.createName(name) !== name) res.reserve(name);
    return res;
  }

  /** A namespace with the same names given. */
  clone(): Namespace {
    const res = new Namespace();
    for (const name of this.#used) res.#used.add(name);
    for (const [stem, base] of this.#bases) res.#bases.set(stem, { ...base });
    return res;
  }
}

/** The number after a name: a bigint only where it is beyond what a number holds exactly. */
type Suffix = number | bigint;

/** What is known of the names that begin alike. */
interface Base {
  /** The suffix that was given last, zero for none. */
  last: Suffix;
  /**
   * The largest `k` such that `base_1` to `base_k` are all used. Names are never freed, so the search for a free suffix
   * may begin there; without it, many clashes of one base would take quadratic time.
   */
  dense: Suffix;
}

function successor(suffix: Suffix): Suffix {
  return typeof suffix === "number" && suffix < Number.MAX_SAFE_INTEGER ? suffix + 1 : BigInt(suffix) + 1n;
}

/** `PascalCase` as `pascal_case`; `ALL_CAPS` as `all_caps`. */
export const snakeCase = remembering((text) => text.replace(/(?<=[a-z])(?=[A-Z])/g, "_").toLowerCase());

/** The candidate with each run of characters that no identifier has replaced by one underscore. */
const legalIdentifier = remembering((candidate) => {
  checkText("a node", "its name", candidate);
  const legal = candidate.replace(/[^0-9A-Za-z_]+/g, "_");
  if (legal === "") return "_unnamed";
  return /^\d/.test(legal) ? `_${legal}` : legal;
});

/** How many names are remembered; hostile ones must not fill the memory. */
const MAX_REMEMBERED = 10_000;

/** The same function, that remembers what it gave: a model has the same names in every trace. */
function remembering(compute: (text: string) => string): (text: string) => string {
  const known = new Map<string, string>();
  return (text) => {
    let res = known.get(text);
    if (res === undefined) {
      res = compute(text);
      if (known.size < MAX_REMEMBERED) known.set(text, res);
    }
    return res;
  };
}

/** Suffixes of this size and more count as part of the name, as in the engine, which keeps them in 128 bits. */
const MAX_SUFFIX = (2n ** 128n - 1n) / 2n;

/** `a_12` as `a` and 12. */
function splitSuffix(name: string): [base: string, suffix: Suffix | undefined] {
  const at = name.lastIndexOf("_");
  const digits = name.slice(at + 1);
  if (
    at < 1 ||
    !isDigit(name.charCodeAt(name.length - 1)) ||
    !/^\d+$/.test(digits) ||
    digits.replace(/^0+/, "").length > 39
  )
    return [name, undefined];
  const number = Number(digits);
  const suffix = Number.isSafeInteger(number) ? number : BigInt(digits);
  return suffix < MAX_SUFFIX ? [name.slice(0, at), suffix] : [name, undefined];
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}
