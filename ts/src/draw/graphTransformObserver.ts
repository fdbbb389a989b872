/**
 * What a pass does to a graph, noted while it runs: `torch.fx.passes.graph_transform_observer`.
 *
 * @module
 */
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkOptions } from "../base/given.ts";
import type { DotGraph } from "./dot.ts";
import { FxGraphDrawer } from "./fxGraphDrawer.ts";

/** What becomes of the drawings of {@link GraphTransformObserver}. */
export interface ObserverOptions {
  /**
   * Takes the drawings of the graph before and after, where the pass changed it: the names of files, as PyTorch calls them,
   * and texts in DOT. What the pass erased or made is yellow, all else grey. Without it nothing is drawn.
   */
  readonly log?: (file: string, dot: string) => void;
}

let passes = 0;

/**
 * Notes which nodes of a module are made and erased while a pass runs, and draws the graph before and after.
 * It listens while {@link GraphTransformObserver.applyGmPass} runs.
 *
 * @example
 * ```ts
 * const observer = new GraphTransformObserver(gm, "cse", { log: (file, dot) => writeFileSync(file, dot) });
 * observer.applyGmPass((gm) => new CSEPass().run(gm));
 * console.log(observer.createdNodes, observer.erasedNodes);
 * ```
 */
export class GraphTransformObserver {
  /** The name of the pass. */
  readonly passname: string;
  /** The names of the nodes that were made. */
  readonly createdNodes: Set<string> = new Set();
  /** The names of the nodes that were erased. */
  readonly erasedNodes: Set<string> = new Set();
  readonly #module: GraphModule;
  readonly #log: ObserverOptions["log"];

  constructor(module: GraphModule, passname: string, options: ObserverOptions = {}) {
    checkGraphModule("GraphTransformObserver", module);
    checkOptions("GraphTransformObserver", options, ["log"]);
    this.#module = module;
    this.passname = passname;
    this.#log = options.log;
  }

  /** Observes a pass over the module, and gives what the pass gave. */
  applyGmPass<T>(pass: (module: GraphModule) => T): T {
    this.createdNodes.clear();
    this.erasedNodes.clear();
    const before = this.#log && this.#draw();
    const hooks = this.#module.graphHooks;
    using _created = hooks.onCreate((node) => this.createdNodes.add(node.name));
    using _erased = hooks.onErase((node) => this.erasedNodes.add(node.name));
    const result = pass(this.#module);
    if (before !== undefined) this.#write(before);
    return result;
  }

  /** Observes a pass over the graph of the module, and gives what the pass gave. */
  applyGraphPass<T>(pass: (graph: Graph) => T): T {
    return this.applyGmPass((module) => pass(module.graph));
  }

  #draw(): DotGraph {
    const options = { ignoreGetattr: true, ignoreParametersAndBuffers: true };
    return new FxGraphDrawer(this.#module, this.passname, options).getDotGraph();
  }

  #write(before: DotGraph): void {
    passes += 1;
    if (this.createdNodes.size === 0 && this.erasedNodes.size === 0) return;
    const drawings = [
      ["input", before, this.erasedNodes],
      ["output", this.#draw(), this.createdNodes],
    ] as const;
    for (const [side, drawing, changed] of drawings) {
      drawing.fill((name) => (changed.has(name) ? "yellow" : "grey"));
      this.#log?.(`pass_${passes}_${this.passname}_${side}_graph.dot`, String(drawing));
    }
  }
}
