/**
 * Splitting a graph into what an accelerator runs and what the CPU runs: `torch.fx.passes.splitter_base`.
 *
 * @module
 */
import { SPLITTER_OPTIONS, type SplitterOptions, type SubgraphsAnswer } from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { ShapeProp } from "./shapeProp.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkSupport, type OperatorSupportBase, supportedNodes } from "./operatorSupport.ts";
import { splitByTags } from "./splitModule.ts";
import { isNodeOutputTensor } from "./toolsCommon.ts";
import { checkList, checkOptions } from "../base/given.ts";

/** How a {@link Splitter} splits graphs. */
export interface SplitterSettings extends Partial<SplitterOptions> {
  /** The largest number of parts; without it there may be any number. */
  readonly maxAccSplits?: number;
  /** Whether a part with one result gives a tuple of it. */
  readonly returnTuple?: boolean;
}

/** A part. */
export interface SplitterSubgraph {
  /** Its tag, which is the name of its module. */
  readonly tag: string;
  /** Whether the accelerator runs it. */
  readonly isAcc: boolean;
  /** The nodes. */
  readonly nodes: readonly Node[];
}

/** Why a node is, or is not, for the accelerator. */
export interface NodeEvent {
  /** The node. */
  readonly node: Node;
  /** What happened, in torch.fx's words. */
  readonly desc: string;
  /** The node because of which it did. */
  readonly dep: Node | undefined;
}

/**
 * Splits a module into parts that an accelerator runs, `_run_on_acc_0` and so on, and parts that the CPU runs. Values that
 * are no tensors stay on one side. The sample inputs tell which values are tensors.
 *
 * @example
 * ```ts
 * const splitter = new Splitter(gm, [x], support, { minAccModuleSize: 2 });
 * const split = splitter.split();
 * split.getSubmodule("_run_on_acc_0");
 * ```
 */
export class Splitter {
  readonly module: GraphModule;
  /** The parts, in the order in which they run. */
  readonly subgraphs: readonly SplitterSubgraph[];
  /** What happened to each node, in order: what FX's `NodeEventTracker` keeps. */
  readonly events: readonly NodeEvent[];
  readonly #settings: SplitterSettings;

  constructor(
    module: GraphModule,
    sampleInput: readonly unknown[],
    operatorSupport: OperatorSupportBase,
    settings: SplitterSettings = {},
  ) {
    checkGraphModule("Splitter", module);
    checkList("Splitter", "sampleInput", sampleInput);
    checkSupport("Splitter", operatorSupport);
    checkOptions("Splitter", settings, [...SPLITTER_OPTIONS, "maxAccSplits", "returnTuple"]);
    this.module = module;
    this.#settings = settings;
    new ShapeProp(module).propagate(...sampleInput);
    const { maxAccSplits: _, returnTuple: __, ...options } = settings;
    const isSupported = supportedNodes(module, operatorSupport);
    const isTensor = Array.from(module.graph.nodes, isNodeOutputTensor);
    const { answer, before } = runPass<SubgraphsAnswer, GraphModule>(module, "find_subgraphs", {
      options: { isSupported, isTensor, options },
    });
    const at = (place: number): Node => before[place] as Node;
    this.subgraphs = answer.subgraphs.map(({ nodes, ...rest }) => ({ ...rest, nodes: nodes.map(at) }));
    this.events = answer.events.map(({ node, desc, dep }) => ({
      node: at(node),
      desc,
      dep: dep === null ? undefined : at(dep),
    }));
  }

  /** The name of the part that each node is in, by the name of the node. */
  getNodeSubmoduleMap(): Map<string, string> {
    return new Map(this.subgraphs.flatMap(({ tag, nodes }) => nodes.map((it) => [it.name, tag] as const)));
  }

  /** The module that calls the parts. The module that was given stays as it is. */
  split(): GraphModule {
    const { maxAccSplits = 0, returnTuple = false } = this.#settings;
    if (maxAccSplits > 0 && this.subgraphs.length > maxAccSplits) {
      const count = this.subgraphs.length;
      throw fxError("PassFailed", `cannot fulfill the limit of ${maxAccSplits} parts: there are ${count}`, {
        help: "allow more parts, or raise minAccModuleSize",
      });
    }
    const tags = new Map(this.subgraphs.flatMap(({ tag, nodes }) => nodes.map((it) => [it, tag] as const)));
    const names = this.subgraphs.map(({ tag }) => tag);
    return splitByTags(this.module, names, tags, { returnTuple });
  }
}
