/**
 * Computing what depends on constants alone once: `torch.fx.experimental.const_fold`.
 *
 * @module
 */
import type { FoldAnswer } from "../../../bindings/passes.ts";
import { GraphModule, type Root } from "../fx/graphModule.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { ParameterList } from "../nn/parameterContainer.ts";
import { Parameter } from "../nn/parameter.ts";
import { runPass } from "../rewrite/bridge.ts";
import { symbolicTrace, type Traceable } from "../trace/tracer.ts";
import { Tensor } from "../tensor/tensor.ts";
import { tensor } from "../tensor/construct.ts";
import { checkOptions } from "../base/given.ts";

/** What is folded. */
export interface FoldOptions {
  /** Nodes that are not folded, even in the modules that are called: a call is folded as a whole. */
  readonly skipFoldingNodeFn?: (node: Node) => boolean;
  /** Nodes that have effects beside those that are known to. */
  readonly isImpureNode?: (node: Node) => boolean;
}

/** A module whose constant part is a module of its own, which runs once, before the first call. */
export class FoldedGraphModule extends GraphModule {
  /** The attribute that the graph reads the results from. */
  readonly fxConstFoldedAttrsName: string | undefined;
  #hasFoldingBeenRun = false;

  constructor(root: Root = {}, graph?: Graph, constSubgraphModule?: GraphModule, attrsName?: string) {
    super(root, graph, "FoldedGraphModule");
    // States have PyTorch's names.
    if (constSubgraphModule !== undefined) this.addModule("const_subgraph_module", constSubgraphModule);
    this.fxConstFoldedAttrsName = attrsName;
  }

  /** Computes what depends on constants alone; `undefined` where nothing does. */
  get constSubgraphModule(): GraphModule | undefined {
    const found = this.attributes.get("const_subgraph_module");
    return found?.kind === "module" ? (found.module as GraphModule) : undefined;
  }

  /** Whether the constant part was run. */
  get hasFoldingBeenRun(): boolean {
    return this.#hasFoldingBeenRun;
  }

  /** Runs the constant part, unless it was run, and keeps its results. */
  runFolding(): void {
    const { constSubgraphModule } = this;
    if (this.#hasFoldingBeenRun || constSubgraphModule === undefined) return;
    const results = constSubgraphModule.forward();
    this.#hasFoldingBeenRun = true;
    const module = Array.isArray(results) ? new ParameterList(results.map(parameterOf)) : undefined;
    this.attributes.set(
      this.fxConstFoldedAttrsName as string,
      module === undefined ? { kind: "parameter", tensor: parameterOf(results) } : { kind: "module", module },
    );
  }

  override forward(...args: readonly unknown[]): unknown {
    this.runFolding();
    return super.forward(...args);
  }
}

/**
 * Takes what depends on parameters and constants alone out of a module: `split_const_subgraphs`. What has no graph yet is
 * traced. The module stays as it is;
 * the new one runs that part before its first call, or when {@link FoldedGraphModule.runFolding} is called.
 *
 * @example
 * ```ts
 * const folded = splitConstSubgraphs(gm);
 * folded.runFolding();
 * folded.forward(x);
 * ```
 */
export function splitConstSubgraphs(root: Traceable, options: FoldOptions = {}): FoldedGraphModule {
  checkOptions("splitConstSubgraphs", options, ["skipFoldingNodeFn", "isImpureNode"]);
  const { skipFoldingNodeFn, isImpureNode } = options;
  const module = root instanceof GraphModule ? root : symbolicTrace(root);
  const nodes = [...module.graph.nodes];
  const asked = {
    isSkipped: skipFoldingNodeFn === undefined ? [] : nodes.map((it) => holds(module, it, skipFoldingNodeFn)),
    isImpure: isImpureNode === undefined ? [] : nodes.map(isImpureNode),
  };
  const call = { options: asked, derive: true };
  const { answer, module: folded } = runPass<FoldAnswer | null, GraphModule>(module, "split_const_subgraphs", call);
  if (answer === null) return new FoldedGraphModule(folded, folded.graph);
  const constant = folded.getSubmodule("const_subgraph_module") as GraphModule;
  return new FoldedGraphModule(folded, folded.graph, constant, answer.attrsName);
}

/** Whether a predicate holds of a node or of one in the module that it calls. */
function holds(owner: GraphModule, node: Node, predicate: (node: Node) => boolean): boolean {
  if (node.op === "placeholder" || node.op === "output") return false;
  if (predicate(node)) return true;
  const called = node.op === "call_module" ? owner.getSubmodule(node.target) : undefined;
  return called instanceof GraphModule && Array.from(called.graph.nodes).some((it) => holds(called, it, predicate));
}

function parameterOf(value: unknown): Parameter {
  // A view of a parameter does not follow it any more.
  const data = value instanceof Tensor ? value.detach().clone() : tensor([Number(value)]);
  return new Parameter(data, { requiresGrad: value instanceof Tensor && value.requiresGrad });
}
