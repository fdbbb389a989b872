/**
 * Where a node comes from: the node of another graph that it was made of, by which pass, and where that came from.
 *
 * @module
 */
import { checkGiven, checkText } from "../base/given.ts";
import type { Graph } from "./graph.ts";
import type { Node } from "./node.ts";

/** What a pass did to give a node: it made one for another, or put it into the place of another. */
export type NodeSourceAction = "create" | "replace";

/** A {@link NodeSource} as JSON. */
export interface NodeSourceJson {
  readonly name: string;
  readonly target: string;
  readonly graph_id: number;
  readonly pass_name: string;
  /** Actions with `+` between them. */
  readonly action: string;
  readonly from_node: readonly NodeSourceJson[];
}

/** Deeper sources are not printed. */
const PRINTED_DEPTH = 9;

const numbers = new WeakMap<Graph, number>();
let nextNumber = 0;

/** A number that no other graph of this program has. */
export function graphNumber(graph: Graph): number {
  let number = numbers.get(graph);
  if (number === undefined) numbers.set(graph, (number = nextNumber++));
  return number;
}

/**
 * Where a node comes from: `torch.fx.traceback.NodeSource`. What is made of a node notes it under `from_node`, with what that
 * node's own note says.
 *
 * @example
 * ```ts
 * const made = graph.callFunction("torch.relu", [x]);
 * made.meta.set("from_node", [new NodeSource(node, "my_pass", "create")]);
 * console.log(String(new NodeSource(made)));
 * ```
 */
export class NodeSource {
  /** The name of the node; empty where there is none. */
  readonly name: string;
  /** The target of the node. */
  readonly target: string;
  /** A number for the graph of the node; -1 where there is none. */
  readonly graphId: number;
  readonly passName: string;
  readonly action: readonly NodeSourceAction[];
  /** What the node came from. */
  readonly fromNode: readonly NodeSource[];

  constructor(node: Node | null, passName = "", action: NodeSourceAction | readonly NodeSourceAction[] = []) {
    checkText("NodeSource", "the name of the pass", passName);
    const actions = typeof action === "string" ? [action] : [...action];
    const areActions = actions.every((it) => it === "create" || it === "replace");
    checkGiven("NodeSource", areActions, 'the actions "create" and "replace" behind the name of the pass');
    this.name = node?.name ?? "";
    this.target = node?.target ?? "";
    this.graphId = node === null ? -1 : graphNumber(node.graph as Graph);
    this.passName = passName;
    this.action = Object.freeze(actions);
    this.fromNode = Object.freeze(node === null ? [] : [...sourcesOf(node)]);
  }

  /** The source that a JSON value says; undefined where it says none. */
  static fromDict(dict: NodeSourceJson | null): NodeSource | undefined {
    if (dict === null) return undefined;
    checkGiven("NodeSource.fromDict", typeof dict === "object", "what toDict() gives");
    const { name = "", target = "", graph_id: graphId = -1, pass_name: passName = "", action = "" } = dict;
    const isRight = typeof action === "string" && Array.isArray(dict.from_node ?? []);
    checkGiven("NodeSource.fromDict", isRight, "what toDict() gives");
    const sources = (dict.from_node ?? []).flatMap((it) => NodeSource.fromDict(it) ?? []);
    const actions = action.split("+").filter((it) => it === "create" || it === "replace") as NodeSourceAction[];
    const fields = {
      name,
      target,
      graphId,
      passName,
      action: Object.freeze(actions),
      fromNode: Object.freeze(sources),
    };
    return Object.assign(Object.create(NodeSource.prototype) as NodeSource, fields);
  }

  /** The source as a JSON value, with PyTorch's names. */
  toDict(): NodeSourceJson {
    return {
      name: this.name,
      target: this.target,
      graph_id: this.graphId,
      pass_name: this.passName,
      action: this.action.join("+"),
      from_node: this.fromNode.map((it) => it.toDict()),
    };
  }

  /** One line for it, and one for each that it came from, each further in. */
  printReadable(indent = 0): string {
    if (indent > PRINTED_DEPTH) return "";
    const own = `(name=${this.name}, pass_name=${this.passName}, action=${this.action.join("+")}, graph_id=${this.graphId})\n`;
    return `${"    ".repeat(indent)}${own}${this.fromNode.map((it) => it.printReadable(indent + 1)).join("")}`;
  }

  /** Whether another source says the same. */
  equals(other: unknown): boolean {
    return other instanceof NodeSource && JSON.stringify(this.toDict()) === JSON.stringify(other.toDict());
  }

  toString(): string {
    return this.printReadable();
  }
}

/** What a node notes of where it comes from. */
export function sourcesOf({ meta }: Node): readonly NodeSource[] {
  const noted = meta.get("from_node");
  return Array.isArray(noted) ? noted.filter((it): it is NodeSource => it instanceof NodeSource) : [];
}

/**
 * Where each call of a graph comes from, as JSON: `get_graph_provenance_json`.
 *
 * @example
 * ```ts
 * console.log(JSON.stringify(traceback.getGraphProvenanceJson(gm.graph), null, 2));
 * ```
 */
export function getGraphProvenanceJson(graph: Graph): Record<string, readonly NodeSourceJson[]> {
  const calls = graph.nodes.filter((it) => it.op === "call_function");
  return Object.fromEntries(calls.map((node) => [node.name, sourcesOf(node).map((it) => it.toDict())]));
}
