/**
 * Finding the parts of a graph that a backend runs, and making a call of each: `torch.fx.passes.infra.partitioner` and
 * `torch.fx.passes.utils.fuser_utils`.
 *
 * @module
 */
import { checkNode } from "../graph/args.ts";
import {
  type FuseCall,
  PARTITIONER_OPTIONS,
  type PartitionAnswer,
  type PartitionerOptions,
} from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkList, checkOptions } from "../base/given.ts";
import { checkSupport, type OperatorSupportBase, supportedNodes } from "./operatorSupport.ts";

/** Nodes that are to be one call. */
export interface Partition {
  /** The number. */
  readonly id: number;
  /** The nodes. */
  readonly nodes: ReadonlySet<Node>;
}

/**
 * Groups the nodes that a backend supports: `torch.fx.passes.infra.partitioner.CapabilityBasedPartitioner`. The partitions are
 * those of torch.fx, and take time linear in the graph.
 *
 * @example
 * ```ts
 * const support = createOpSupport((_, node) => node.target === "torch.relu");
 * const partitioner = new CapabilityBasedPartitioner(gm, support, { allowsSingleNodePartition: true });
 * partitioner.partitionAndFuse(); // calls fused_0, fused_1…
 * ```
 */
export class CapabilityBasedPartitioner {
  readonly graphModule: GraphModule;
  readonly operatorSupport: OperatorSupportBase;
  readonly #options: Partial<PartitionerOptions>;

  constructor(
    graphModule: GraphModule,
    operatorSupport: OperatorSupportBase,
    options: Partial<PartitionerOptions> = {},
  ) {
    checkGraphModule("CapabilityBasedPartitioner", graphModule);
    checkSupport("CapabilityBasedPartitioner", operatorSupport);
    checkOptions("CapabilityBasedPartitioner", options, PARTITIONER_OPTIONS);
    this.graphModule = graphModule;
    this.operatorSupport = operatorSupport;
    this.#options = options;
  }

  /** The partitions. */
  proposePartitions(): Partition[] {
    const isSupported = supportedNodes(this.graphModule, this.operatorSupport);
    const options = { isSupported, options: this.#options };
    const { answer, before } = runPass<PartitionAnswer[], GraphModule>(this.graphModule, "propose_partitions", {
      options,
    });
    return answer.map(({ id, nodes }) => ({ id, nodes: new Set(nodes.map((it) => before[it] as Node)) }));
  }

  /** The partitions without nodes that compute nothing at their ends: those of `nonComputeOps`. */
  removeBookendNonComputeOps(partitions: readonly Partition[]): Partition[] {
    const options = { partitions: placesOf(this.graphModule, partitions), options: this.#options };
    const name = "remove_bookend_non_compute_ops";
    const { answer, before } = runPass<number[][], GraphModule>(this.graphModule, name, { options });
    return partitions.map(({ id }, at) => ({ id, nodes: new Set(answer[at]?.map((it) => before[it] as Node)) }));
  }

  /** Makes a call of a module of each partition, in place. */
  fusePartitions(partitions: readonly Partition[], prefix = "fused_"): GraphModule {
    return fuseByPartitions(this.graphModule, partitions, { prefix });
  }

  /** Finds the partitions and makes a call of a module of each, in place. */
  partitionAndFuse(prefix = "fused_"): GraphModule {
    return this.fusePartitions(this.proposePartitions(), prefix);
  }
}

/** How {@link fuseByPartitions} makes modules. */
export type FusePartitionsOptions = Partial<Omit<FuseCall, "partitions">>;

/**
 * Makes a call of a module of each of these groups of nodes, in place, and sorts the graph:
 * `torch.fx.passes.utils.fuser_utils.fuse_by_partitions`. Throws where a call would need its own result.
 *
 * @example
 * ```ts
 * fuseByPartitions(gm, [{ nodes: new Set([conv, relu]) }]); // calls fused_0
 * ```
 */
export function fuseByPartitions(
  module: GraphModule,
  partitions: readonly Pick<Partition, "nodes">[],
  how: FusePartitionsOptions = {},
): GraphModule {
  checkGraphModule("fuseByPartitions", module);
  checkOptions("fuseByPartitions", how, ["prefix", "alwaysReturnTuple"]);
  const { prefix = "fused_", alwaysReturnTuple = false } = how;
  const options = { partitions: placesOf(module, partitions), prefix, alwaysReturnTuple };
  return runPass<string[], GraphModule>(module, "fuse_by_partitions", { options }).module;
}

/** The places of the nodes of each partition. */
function placesOf(module: GraphModule, partitions: readonly Pick<Partition, "nodes">[]): number[][] {
  checkList("fuseByPartitions", "partitions", partitions);
  const places = new Map(Array.from(module.graph.nodes, (it, at) => [it, at]));
  const place = (node: Node): number => {
    checkNode("a partition", node);
    const at = places.get(node);
    if (at === undefined) throw fxError("NodeForeign", `${node.name} is not in the graph`, { node: node.name });
    return at;
  };
  return partitions.map((it) => {
    if (it?.nodes instanceof Set) return Array.from(it.nodes, place);
    throw fxError("InvalidArgument", "a partition has a set of nodes", { help: "{ nodes: new Set([a, b]) }" });
  });
}
