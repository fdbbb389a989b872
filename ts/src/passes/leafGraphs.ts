/**
 * Modules that are leaves of a graph, with graphs of their own while a pass looks at them.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import { tuple } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { isVal, type Val } from "../graph/val.ts";
import type { Module } from "../nn/module.ts";
import { symbolicTrace, Tracer } from "../trace/tracer.ts";
import { inEvaluation, traceCall } from "./leafTrace.ts";

/** Looks into every module, and takes inputs to have the number of dimensions that a module wants. */
class InsideTracer extends Tracer {
  readonly assumesInputs = true;

  override isLeafModule(): boolean {
    return false;
  }
}

/**
 * Propagates through a module that has the same graphs, and for each called module that has none the graph of its trace, in
 * evaluation. Where the path of one depends on its inputs, what these are is propagated first. The tensors are the same.
 */
export function propagateThroughLeaves(module: GraphModule, propagate: (module: GraphModule) => void): void {
  const inside = new Inside();
  try {
    const shadow = inside.shadow(module);
    const opaque = new Set(module.graph.findNodes({ op: "call_module" }).filter((it) => inside.isOpaque(module, it)));
    if (opaque.size === 0) propagate(shadow);
    else propagateByCalls(module, shadow, { opaque, propagate });
  } finally {
    for (const [graph, owner] of inside.owners) graph.owningModule = owner;
  }
}

/** What {@link propagateByCalls} does. */
interface ByCalls {
  /** Calls of modules whose path depends on their inputs. */
  readonly opaque: ReadonlySet<Node>;
  readonly propagate: (module: GraphModule) => void;
}

/** Propagates up to each opaque call, which is then traced on what is known of its arguments. */
function propagateByCalls(module: GraphModule, shadow: GraphModule, { opaque, propagate }: ByCalls): void {
  const steps = new GraphModule({}, undefined, module.className);
  for (const [name, attribute] of shadow.attributes) steps.attributes.set(name, attribute);
  const graph = new Graph();
  steps.graph = graph;
  const copies = new Map<Node, Node>();
  const copyOf = (node: Node): Node => copies.get(node) as Node;
  for (const node of module.graph.nodes) {
    if (!opaque.has(node)) {
      copies.set(node, graph.nodeCopy(node, copyOf));
      continue;
    }
    const inputs = node.allInputNodes;
    const output = graph.output(tuple(...inputs.map(copyOf)));
    propagate(steps);
    graph.eraseNode(output);
    const known = inputs.map((it) => [it, valOf(copyOf(it))] as const);
    const path = freePath(steps);
    steps.addSubmodule(path, traceCall(module.getSubmodule(node.target), node, new Map(known)));
    copies.set(node, graph.callModule(path, inputs.map(copyOf)));
  }
  propagate(steps);
  for (const [node, copy] of copies) {
    const val = copy.meta.get("val");
    if (val !== undefined) node.meta.set("val", val);
  }
}

function valOf({ name, meta }: Node): Val {
  const val = meta.get("val");
  if (isVal(val)) return val;
  throw fxError("NotImplemented", `nothing is known of %${name}, on which the path of a module may depend`, {
    node: name,
  });
}

function freePath({ attributes }: GraphModule): string {
  for (let count = 0; ; count++) if (!attributes.has(`_leaf_${count}`)) return `_leaf_${count}`;
}

class Inside {
  /** The graphs that belong to others, and to whom. */
  readonly owners = new Map<Graph, GraphModule | undefined>();
  readonly #shadows = new Map<Module, GraphModule>();
  readonly #traced = new Map<Module, Module>();

  /** Whether a call is of a module without a graph, or of one in which there is such a call. */
  isOpaque(owner: GraphModule, { target }: Node): boolean {
    const found = owner.findAttribute(target);
    if (found?.kind !== "module") return false;
    const { module } = found;
    if (!(module instanceof GraphModule)) return !(this.#called(module) instanceof GraphModule);
    return module.graph.findNodes({ op: "call_module" }).some((it) => this.isOpaque(module, it));
  }

  /** A module with the graph and the tensors of another, and with what is made of the modules in it. */
  shadow(module: Module): GraphModule {
    const known = this.#shadows.get(module);
    if (known !== undefined) return known;
    const res = new GraphModule({}, undefined, module.className);
    this.#shadows.set(module, res);
    if (module instanceof GraphModule) {
      const { graph } = module;
      this.owners.set(graph, graph.owningModule);
      res.graph = graph;
    }
    for (const [name, attribute] of module.attributes) res.attributes.set(name, attribute);
    if (!(module instanceof GraphModule)) return res;
    for (const { op, target } of module.graph.nodes)
      if (op === "call_module") this.#place(module, res, target.split("."));
    for (const [name, attribute] of module.attributes) {
      if (attribute.kind !== "module" || !(attribute.module instanceof GraphModule)) continue;
      if (res.attributes.get(name) === attribute) {
        res.attributes.set(name, { kind: "module", module: this.shadow(attribute.module) });
      }
    }
    return res;
  }

  /** Puts what is made of the module at a path there, in shadows of the modules above it. */
  #place(module: Module, shadow: GraphModule, [name, ...rest]: readonly string[]): void {
    const found = name === undefined ? undefined : module.attributes.get(name);
    if (name === undefined || found?.kind !== "module") return;
    const made = rest.length === 0 ? this.#called(found.module) : this.shadow(found.module);
    shadow.attributes.set(name, { kind: "module", module: made });
    if (rest.length > 0) this.#place(found.module, made as GraphModule, rest);
  }

  #called(module: Module): Module {
    if (module instanceof GraphModule) return this.shadow(module);
    let res = this.#traced.get(module);
    if (res === undefined) this.#traced.set(module, (res = traced(module)));
    return res;
  }
}

/** The trace of a module; the module where there is none. */
function traced(module: Module): Module {
  return inEvaluation(module, () => {
    try {
      return symbolicTrace(module, { tracer: new InsideTracer() });
    } catch (problem) {
      if (problem instanceof FxError) return module;
      throw problem;
    }
  });
}
