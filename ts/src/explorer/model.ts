/**
 * What the explorer shows of a program or a graph module: its nodes in the modules that they were traced in.
 *
 * The model is plain: it knows no page, no picture, and not what is open. Items are numbered in the order of the program, and
 * what holds an item stands before it.
 *
 * @module
 */
import { ExportedProgram } from "../export/exportedProgram.ts";
import type { InputKind } from "../export/signature.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { checkGiven } from "../base/given.ts";
import { spell, spellOperator } from "./spelling.ts";
import { type Scope, Scopes } from "./scopes.ts";

/** What the explorer opens. */
export type Explorable = ExportedProgram | GraphModule;

/** Whether the explorer opens this as it is, without reading a file. */
export function isExplorable(source: unknown): source is Explorable {
  return source instanceof ExportedProgram || source instanceof GraphModule;
}

/** What a box stands for: a node, a module, the graph of a branch or a loop, or a run of nodes of a level with very many. */
export type ItemKind = "node" | "module" | "graph" | "range";

/** Something that can have a box. */
export interface Item {
  readonly index: number;
  readonly kind: ItemKind;
  /** Unique in the model, and the same each time that the program is opened. */
  readonly id: string;
  /** The item that holds this one; -1 at the top. */
  readonly parent: number;
  /** What is written first: the operator, or the name of the module. */
  readonly title: string;
  /** What is written below: the module around a node, or the class of a module. */
  readonly caption: string;
  readonly node: Node | undefined;
  /** A parameter, buffer or constant, which is left out until weights are asked for. */
  readonly isWeight: boolean;
  /** How many nodes are inside, weights left out; 1 for a node that holds none. */
  nNodes: number;
}

/** From this many children on, those of one level are put into runs. */
const MOST_CHILDREN = 20_000;

const WEIGHTS: ReadonlySet<InputKind> = new Set<InputKind>(["PARAMETER", "BUFFER", "CONSTANT_TENSOR", "CUSTOM_OBJ"]);

/** The items of a program or graph module, and which use which. */
export class GraphModel {
  /** What was opened. */
  readonly source: Explorable;
  readonly items: readonly Item[];
  /** Pairs of items: a value, and a node that uses it. */
  readonly uses: Int32Array;
  readonly #ofNodes: ReadonlyMap<Node, number>;
  readonly #children: readonly (readonly number[])[];
  readonly #values: (string | undefined)[] = [];

  /** Reads what is to be shown. */
  constructor(source: Explorable) {
    checkGiven("GraphModel", isExplorable(source), "an ExportedProgram or a GraphModule");
    this.source = source;
    const reading = new Reading();
    const weights = new Map<Node, string>();
    if (source instanceof ExportedProgram) {
      const inputs = source.graph.findNodes({ op: "placeholder" });
      for (const [at, { kind, target }] of source.graphSignature.inputSpecs.entries()) {
        const input = inputs[at];
        if (input !== undefined && WEIGHTS.has(kind)) weights.set(input, target ?? input.name);
      }
    }
    const graphModule = source instanceof ExportedProgram ? source.graphModule : source;
    reading.graph(graphModule, -1, "", weights);
    this.items = reading.items;
    this.uses = Int32Array.from(reading.uses);
    this.#ofNodes = reading.ofNodes;
    const children = Array.from({ length: this.items.length }, (): number[] => []);
    for (const { index, parent } of this.items) children[parent]?.push(index);
    this.#children = children;
    for (const { parent, node, isWeight } of this.items.toReversed()) {
      if (node === undefined || isWeight) continue;
      for (let at = parent; at >= 0; at = (this.items[at] as Item).parent) (this.items[at] as Item).nNodes++;
    }
  }

  /** How many nodes there are, weights left out. */
  get nNodes(): number {
    return this.items.reduce((n, it) => n + (it.node === undefined || it.isWeight ? 0 : 1), 0);
  }

  /** What an item holds, in order. */
  children(index: number): readonly number[] {
    return this.#children[index] ?? [];
  }

  /** The item of a node. */
  indexOf(node: Node): number | undefined {
    return this.#ofNodes.get(node);
  }

  /** What is known of the value of an item: `f32[1, 3, 8, 8]`; empty where nothing is. */
  value(index: number): string {
    const { node } = this.items[index] as Item;
    return (this.#values[index] ??= node === undefined ? "" : spell(node));
  }

  /** The tensor of a weight; undefined for what is no weight or is not held. */
  tensor(index: number): Tensor | undefined {
    const { node, isWeight, title } = this.items[index] as Item;
    if (!isWeight || node === undefined) return undefined;
    if (this.source instanceof ExportedProgram && node.op === "placeholder") {
      const constant = this.source.constants.get(title);
      return this.source.stateDict.get(title) ?? (constant?.kind === "tensor" ? constant.tensor : undefined);
    }
    const found = (node.graph as Graph).owningModule?.findAttribute(node.target);
    return found === undefined || found.kind === "module" ? undefined : found.tensor;
  }

  /** The items that hold this one, from outside. */
  around(index: number): number[] {
    const res: number[] = [];
    for (let at = this.items[index]?.parent ?? -1; at >= 0; at = (this.items[at] as Item).parent) res.unshift(at);
    return res;
  }
}

/** One pass over a graph and the graphs inside it. */
class Reading {
  readonly items: Item[] = [];
  readonly uses: number[] = [];
  readonly ofNodes = new Map<Node, number>();
  /** The graphs that are shown already: one that is used twice has its nodes with its first user. */
  readonly #shown = new Set<Graph>();

  graph(module: GraphModule, holder: number, prefix: string, weights: ReadonlyMap<Node, string>): void {
    const { graph } = module;
    this.#shown.add(graph);
    const nodes = Array.from(graph.nodes);
    const held = new Map<Node, GraphModule>();
    const folded = new Map(weights);
    for (const node of nodes) {
      if (node.op !== "get_attr") continue;
      const found = module.findAttribute(node.target);
      if (found?.kind !== "module") folded.set(node, node.target);
      else if (found.module instanceof GraphModule) held.set(node, found.module);
    }
    const shown = nodes.filter((it) => !held.has(it) && !folded.has(it));
    const scopes = new Scopes(shown);
    const places = new Places(this, holder, prefix);
    places.count(scopes);
    for (const node of nodes) {
      if (held.has(node) || folded.has(node)) continue;
      for (const input of node.allInputNodes) {
        if (folded.has(input) && !this.ofNodes.has(input)) this.#weight(input, folded, scopes, places);
      }
      const scope = scopes.of(node);
      const index = this.add({
        kind: "node",
        id: `${prefix}${node.name}`,
        parent: places.of(scope),
        title: titleOf(module, node),
        caption: scopes.captionOf(node),
        node,
        isWeight: false,
      });
      this.ofNodes.set(node, index);
      for (const input of node.allInputNodes) {
        const from = this.ofNodes.get(input);
        if (from !== undefined) this.uses.push(from, index);
      }
      this.#inner(module, node, index, held);
    }
    for (const node of folded.keys()) if (!this.ofNodes.has(node)) this.#weight(node, folded, scopes, places);
  }

  add(item: Omit<Item, "index" | "nNodes">): number {
    const index = this.items.length;
    this.items.push({ ...item, index, nNodes: item.kind === "node" ? 1 : 0 });
    return index;
  }

  /** A weight stands in the innermost module that has all of its users. */
  #weight(node: Node, folded: ReadonlyMap<Node, string>, scopes: Scopes, places: Places): void {
    const scope = scopes.around([...node.users]);
    const index = this.add({
      kind: "node",
      id: `${places.prefix}${node.name}`,
      parent: places.holderOf(scope),
      title: folded.get(node) as string,
      caption: node.op === "placeholder" ? "weight" : "attribute",
      node,
      isWeight: true,
    });
    this.ofNodes.set(node, index);
  }

  /** The graphs that a node calls: branches, bodies of loops, and sub-modules that are graph modules. */
  #inner(module: GraphModule, node: Node, index: number, held: ReadonlyMap<Node, GraphModule>): void {
    const id = `${(this.items[index] as Item).id}/`;
    if (node.op === "call_module") {
      const found = module.findAttribute(node.target);
      if (found?.kind !== "module" || !(found.module instanceof GraphModule)) return;
      if (!this.#shown.has(found.module.graph)) this.graph(found.module, index, id, new Map());
      return;
    }
    for (const input of node.allInputNodes) {
      const inner = held.get(input);
      if (inner === undefined || this.#shown.has(inner.graph)) continue;
      const at = this.add({
        kind: "graph",
        id: `${id}${input.target}`,
        parent: index,
        title: input.target,
        caption: "graph",
        node: undefined,
        isWeight: false,
      });
      this.graph(inner, at, `${id}${input.target}/`, new Map());
    }
  }
}

/** The items of the scopes of one graph, which are made when the first node in them is. */
class Places {
  readonly prefix: string;
  readonly #reading: Reading;
  readonly #holder: number;
  readonly #items = new Map<Scope, number>();
  /** Of a level with very many children: how long its runs are, how many children there were, and the run that goes on. */
  readonly #runs = new Map<Scope, { readonly length: number; n: number; item: number }>();

  constructor(reading: Reading, holder: number, prefix: string) {
    this.#reading = reading;
    this.#holder = holder;
    this.prefix = prefix;
  }

  count(scopes: Scopes): void {
    for (const scope of scopes.all()) {
      if (scope.nChildren > MOST_CHILDREN) {
        this.#runs.set(scope, { length: Math.ceil(Math.sqrt(scope.nChildren)), n: 0, item: -1 });
      }
    }
  }

  /** The item in which the next child of a scope stands. */
  of(scope: Scope): number {
    const holder = this.holderOf(scope);
    const run = this.#runs.get(scope);
    if (run === undefined) return holder;
    if (run.n % run.length === 0) {
      const { id } = this.#reading.items[holder] ?? { id: this.prefix };
      run.item = this.#reading.add({
        kind: "range",
        id: `${id}#${run.n}`,
        parent: holder,
        title: `${run.n}–${Math.min(run.n + run.length, scope.nChildren) - 1}`,
        caption: "nodes",
        node: undefined,
        isWeight: false,
      });
    }
    run.n++;
    return run.item;
  }

  /** The item of a scope, which is made with those around it. */
  holderOf(scope: Scope): number {
    if (scope.outer === undefined) return this.#holder;
    const found = this.#items.get(scope);
    if (found !== undefined) return found;
    const index = this.#reading.add({
      kind: "module",
      id: `${this.prefix}${scope.keys}`,
      parent: this.of(scope.outer),
      title: scope.name,
      caption: scope.className,
      node: undefined,
      isWeight: false,
    });
    this.#items.set(scope, index);
    return index;
  }
}

/** What a node is called in its box. */
function titleOf(module: GraphModule, node: Node): string {
  switch (node.op) {
    case "placeholder":
    case "output":
      return node.name;
    case "call_module": {
      const found = module.findAttribute(node.target);
      return found?.kind === "module" ? found.module.className : node.target;
    }
    case "call_method":
      return `.${node.target}`;
    case "get_attr":
      return node.target;
    case "call_function":
      return spellOperator(node.target);
  }
}
