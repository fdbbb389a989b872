/**
 * Graphs inside the graph that is traced: the branches and bodies of control flow.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import type { PytreeSpec } from "./pytree.ts";

/** A function that was traced into a graph of its own. */
export interface Subgraph {
  readonly graph: Graph;
  /** The placeholders of its parameters. */
  readonly inputs: readonly Node[];
  /** For each node around it that it uses, the placeholder that stands for it inside. */
  readonly lifted: Map<Node, Node>;
  /** The structure of what the function gave. */
  readonly outSpec: PytreeSpec;
}

/** How a function is called that is traced into a graph of its own. */
export interface SubgraphCall {
  /** What it is called with, given the traced values of its inputs. */
  readonly arguments: (inputs: readonly unknown[]) => readonly unknown[];
  /** What the inputs stand for, where the caller knows. */
  readonly values?: readonly unknown[];
  /** Whether the graph gives one value as it is, or its values in a list, and no tuple. */
  readonly output?: "value" | "list";
}

/** The functions of the user's that functions of the package call for them; undefined for those that call none. */
const CHECKED = new WeakMap<Function, Function | undefined>();

/** Has the source of `theirs` checked where a trace runs `own`, which gives it its arguments. */
export function checkInsteadOf(own: Function, theirs: Function): void {
  CHECKED.set(own, theirs);
}

/** Says that a function is one of the package that a trace runs as it does the user's: its source decides nothing. */
export function ofPackage<F extends Function>(own: F): F {
  CHECKED.set(own, undefined);
  return own;
}

/** The function whose source is checked where a trace runs this one; undefined for one of the package. */
export function checkedFunction(fn: Function): Function | undefined {
  let res: Function | undefined = fn;
  while (res !== undefined && CHECKED.has(res)) res = CHECKED.get(res);
  return res;
}

/** One graph of those that are being recorded, innermost first. */
export class Level {
  readonly graph: Graph;
  readonly outer: Level | undefined;
  /** Placeholders for nodes of the graph around. */
  readonly lifted: Map<Node, Node> = new Map();

  constructor(graph: Graph, outer: Level | undefined) {
    this.graph = graph;
    this.outer = outer;
  }

  /** The level that has this graph: this one or one around it. */
  find(graph: Graph): Level | undefined {
    return this.graph === graph ? this : this.outer?.find(graph);
  }

  /** What stands here for a node of a level around: a placeholder on each level in between. */
  lift(node: Node): Node {
    if (node.graph === this.graph || this.outer === undefined) return node;
    const outside = this.outer.lift(node);
    let inside = this.lifted.get(outside);
    if (inside === undefined) {
      inside = addPlaceholder(this.graph, outside);
      this.lifted.set(outside, inside);
    }
    return inside;
  }
}

/** Adds a placeholder for a node of another graph, behind the placeholders that are there. */
export function addPlaceholder(graph: Graph, { name }: Node): Node {
  const last = graph.findNodes({ op: "placeholder" }).at(-1);
  if (last !== undefined) return graph.insertingAfter(last, () => graph.placeholder(name));
  return graph.insertingBefore(undefined, () => graph.placeholder(name));
}

/** Who knows the graph around, and how the values that its sub-graphs use go over to them. */
export interface FreeValues {
  readonly graph: Graph;
  /** The order in which the values that each sub-graph uses become operands. */
  orderFreeValues(used: readonly (readonly Node[])[]): Node[];
  /** Notes about the input of a sub-graph what is known of the value that it stands for. */
  noteFreeValue(input: Node, value: Node): void;
}

/**
 * Gives graphs that are called with the same operands the same inputs: those of their functions, and then what any of them
 * uses of the graph around, which is returned.
 */
export function shareFreeValues(tracer: FreeValues, subgraphs: readonly Subgraph[]): Node[] {
  const free = tracer.orderFreeValues(subgraphs.map(({ lifted }) => [...lifted.keys()]));
  for (const { graph, inputs, lifted } of subgraphs) {
    let last = inputs.at(-1);
    for (const node of free) {
      const placeholder = lifted.get(node) ?? addPlaceholder(graph, node);
      tracer.noteFreeValue(placeholder, node);
      if (last === undefined) graph.first?.prepend(placeholder);
      else last.append(placeholder);
      last = placeholder;
    }
  }
  if (free.some((it) => it.graph !== tracer.graph)) throw fxError("Internal", "an operand is of no graph around");
  return free;
}
