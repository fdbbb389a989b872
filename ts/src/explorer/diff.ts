/**
 * What two graphs have in common: nodes that are matched by name and operator, and by what they use.
 *
 * @module
 */
import type { Node } from "../graph/node.ts";
import { mapArg } from "../graph/args.ts";
import { repr } from "../graph/print.ts";
import type { GraphModel } from "./model.ts";
import { nodeRun } from "./measured.ts";
import type { ProgramRun } from "./run.ts";
import type { Difference } from "./theme.ts";

/** How the items of two models differ. */
export interface ModelDiff {
  /** The item of the second model that each item of the first is matched with. */
  readonly matches: ReadonlyMap<number, number>;
  /** Of the first model: what the second has not, and what differs there. */
  readonly before: ReadonlyMap<number, Difference>;
  /** Of the second model: what the first has not, and what differs there. */
  readonly after: ReadonlyMap<number, Difference>;
  /** The nodes of the first model that differ from their matches themselves, and not in what they hold alone. */
  readonly changed: ReadonlySet<number>;
}

/**
 * Compares two models. Nodes of one operator are matched by their arguments, in the order of the programs; then by the inputs alone, and
 * then by name. What has another operator, other arguments or another value then differs. Symbols may have other names.
 */
export function compareModels(before: GraphModel, after: GraphModel): ModelDiff {
  const matching = new Matching(before, after);
  const { matches } = matching;
  const [differences, others] = [new Map<number, Difference>(), new Map<number, Difference>()];
  const changed = new Set<number>();
  const symbols = new Renaming();
  for (const { index, node } of before.items) {
    const other = matches.get(index);
    if (other === undefined) differences.set(index, "removed");
    else if (node !== undefined && matching.differs(index, other, symbols)) {
      changed.add(index);
      differences.set(index, "changed");
      others.set(other, "changed");
    }
  }
  for (const { index } of after.items) if (!matching.isTaken(index)) others.set(index, "added");
  return { matches, before: within(before, differences), after: within(after, others), changed };
}

/** Which nodes of two models are one another. */
class Matching {
  readonly matches = new Map<number, number>();
  readonly #taken = new Set<number>();
  readonly #before: GraphModel;
  readonly #after: GraphModel;
  /** The nodes of the second model by their arguments, and by their inputs alone. */
  readonly #byArguments = new Candidates();
  readonly #byInputs = new Candidates();

  constructor(before: GraphModel, after: GraphModel) {
    this.#before = before;
    this.#after = after;
    const ids = new Map(after.items.map((it) => [it.id, it]));
    for (const { node, index } of after.items) {
      if (node === undefined) continue;
      this.#byArguments.add(keyOf(node, this.#second), index);
      this.#byInputs.add(looseKeyOf(node, this.#second), index);
    }
    for (const { node, index, id } of before.items) {
      const same = ids.get(id);
      if (node !== undefined) this.#matchEqual(index, node);
      else if (same !== undefined && same.node === undefined) this.#match(index, same.index);
    }
    // A node that has changed takes no other's equal; what uses it is equal once it is matched.
    for (const { node, index, id } of before.items) {
      if (node === undefined || this.matches.has(index) || this.#matchEqual(index, node)) continue;
      const same = ids.get(id);
      const named = same?.node?.op === node.op && !this.#taken.has(same.index) ? same.index : undefined;
      this.#match(index, this.#byInputs.free(looseKeyOf(node, this.#first), this.#taken) ?? named);
    }
  }

  isTaken(index: number): boolean {
    return this.#taken.has(index);
  }

  /** Whether two nodes that are matched differ. */
  differs(index: number, other: number, symbols: Renaming): boolean {
    const [a, b] = [this.#before.items[index]?.node, this.#after.items[other]?.node];
    if (a === undefined || b === undefined) return a !== b;
    if (a.op !== b.op || a.target !== b.target) return true;
    if (argumentsOf(a, this.#first) !== argumentsOf(b, this.#second)) return true;
    return !symbols.agree(this.#before.value(index), this.#after.value(other));
  }

  #matchEqual(index: number, node: Node): boolean {
    return this.#match(index, this.#byArguments.free(keyOf(node, this.#first), this.#taken));
  }

  #match(index: number, other: number | undefined): boolean {
    if (other === undefined) return false;
    this.matches.set(index, other);
    this.#taken.add(other);
    return true;
  }

  /** What stands for an input: the item of the second model; of the graph of a branch, its name. */
  readonly #first: NameOf = (input) => {
    const index = this.#before.indexOf(input);
    return index === undefined ? `%${input.target}` : `%${this.matches.get(index) ?? "?"}`;
  };

  readonly #second: NameOf = (input) => `%${this.#after.indexOf(input) ?? input.target}`;
}

type NameOf = (input: Node) => string;

/** Items by keys, in order. */
class Candidates {
  readonly #lists = new Map<string, { readonly items: number[]; next: number }>();

  add(key: string, item: number): void {
    const list = this.#lists.get(key);
    if (list === undefined) this.#lists.set(key, { items: [item], next: 0 });
    else list.items.push(item);
  }

  /** The first item of a key that is not taken. */
  free(key: string, taken: ReadonlySet<number>): number | undefined {
    const list = this.#lists.get(key);
    if (list === undefined) return undefined;
    while (taken.has(list.items[list.next] ?? -1)) list.next++;
    return list.items[list.next];
  }
}

/** The symbols of one program by those of another. */
class Renaming {
  readonly #to = new Map<string, string>();
  readonly #from = new Map<string, string>();

  /** Whether two values are the same but for the names of symbols, each of which always has one name in the other program. */
  agree(a: string, b: string): boolean {
    if (a.replaceAll(SYMBOL, "$") !== b.replaceAll(SYMBOL, "$")) return false;
    const [first, second] = [a.match(SYMBOL) ?? [], b.match(SYMBOL) ?? []];
    for (const [at, name] of first.entries()) {
      const other = second[at] as string;
      if ((this.#to.get(name) ?? other) !== other || (this.#from.get(other) ?? name) !== name) return false;
      this.#to.set(name, other);
      this.#from.set(other, name);
    }
    return true;
  }
}

/** The names that PyTorch gives to symbols: `s77`, `u0`, `zuf1`. */
const SYMBOL = /\b(?:s|u|zf|zuf)\d+\b/g;

/** What holds something that differs differs, too, so that it is seen while it is closed. */
function within(model: GraphModel, differences: Map<number, Difference>): Map<number, Difference> {
  for (const { index, parent } of model.items.toReversed()) {
    if (differences.has(index) && parent >= 0 && !differences.has(parent)) differences.set(parent, "changed");
  }
  return differences;
}

/** An operator with its arguments. Inputs of the program and attributes are known by their names alone. */
function keyOf(node: Node, nameOf: NameOf): string {
  const isGiven = node.op === "placeholder" || node.op === "get_attr";
  return `${node.op} ${node.target} ${isGiven ? "" : argumentsOf(node, nameOf)}`;
}

/** An operator with its inputs, without constants. */
function looseKeyOf(node: Node, nameOf: NameOf): string {
  return `${node.op} ${node.target} ${node.allInputNodes.map(nameOf).join(" ")}`;
}

/** The arguments as text, with a name for each node in them. */
function argumentsOf(node: Node, nameOf: NameOf): string {
  const kwargs = Object.entries(node.kwargs).toSorted(([a], [b]) => (a < b ? -1 : 1));
  const named = kwargs.map(([name, it]) => `${name}=${repr(mapArg(it, nameOf))}`);
  return [...Array.from(node.args, (it) => repr(mapArg(it, nameOf))), ...named].join(", ");
}

/** A node whose values part. */
export interface Parting {
  /** The item of the first model. */
  readonly item: number;
  /** How far the values are apart, as a share of the largest of them. */
  readonly distance: number;
}

/**
 * The first node of the first program whose value is another one in the run of the second, by 256 of its elements; undefined where all
 * that are matched agree to within a tolerance.
 */
export function firstParting(
  before: GraphModel,
  runBefore: ProgramRun,
  after: GraphModel,
  runAfter: ProgramRun,
  { matches }: ModelDiff,
  tolerance: number,
): Parting | undefined {
  for (const { index } of before.items) {
    const [a, b] = [nodeRun(before, runBefore, index), nodeRun(after, runAfter, matches.get(index) ?? -1)];
    if (a === undefined || b === undefined) continue;
    const distance = distanceOf(a.sample, b.sample);
    if (distance > tolerance) return { item: index, distance };
  }
  return undefined;
}

/** The largest difference, as a share of the largest element; infinite where one is a number and the other is none. */
function distanceOf(a: Float64Array, b: Float64Array): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  let [largest, most] = [1e-30, 0];
  for (const [at, x] of a.entries()) {
    const y = b[at] as number;
    if (Object.is(x, y)) continue;
    if (!Number.isFinite(x) || !Number.isFinite(y)) return Number.POSITIVE_INFINITY;
    largest = Math.max(largest, Math.abs(x), Math.abs(y));
    most = Math.max(most, Math.abs(x - y));
  }
  return most === 0 ? 0 : most / largest;
}
