/**
 * Modules that are leaves of a graph, with graphs of their own while a pass looks at them.
 *
 * @module
 */
import { FxError } from "../errors.ts";
import type { Graph } from "../graph/graph.ts";
import { GraphModule } from "../graph/module.ts";
import type { Module } from "../nn/module.ts";
import { symbolicTrace, Tracer } from "../trace/tracer.ts";

/** Looks into every module, and takes inputs to have the number of dimensions that a module wants. */
class InsideTracer extends Tracer {
  readonly assumesInputs = true;

  override isLeafModule(): boolean {
    return false;
  }
}

/**
 * Calls `use` with a module that has the same graphs, and for each called module that has none the graph of its trace, in
 * evaluation. A module that cannot be traced stays as it is. The tensors are the same.
 */
export function withLeafGraphs<R>(module: GraphModule, use: (module: GraphModule) => R): R {
  const inside = new Inside();
  try {
    return use(inside.shadow(module));
  } finally {
    for (const [graph, owner] of inside.owners) graph.owningModule = owner;
  }
}

class Inside {
  /** The graphs that belong to others, and to whom. */
  readonly owners = new Map<Graph, GraphModule | undefined>();
  readonly #shadows = new Map<Module, GraphModule>();
  readonly #traced = new Map<Module, Module>();

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
  const modes = module.modules().map((it) => [it, it.training] as const);
  // Training counts batches, which a trace must not.
  for (const [it] of modes) it.training = false;
  try {
    return symbolicTrace(module, { tracer: new InsideTracer() });
  } catch (problem) {
    if (problem instanceof FxError) return module;
    throw problem;
  } finally {
    for (const [it, training] of modes) it.training = training;
  }
}
