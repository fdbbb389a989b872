/**
 * Partitioning a module for several devices: `torch.fx.experimental.accelerator_partitioner` and `partitioner_utils`.
 *
 * @module
 */
import {
  type DagNodeAnswer,
  type Device,
  type DevicesAnswer,
  type LatencyAnswer,
  type NodeLatency,
  PARTITIONER_CONFIG_OPTIONS,
  type PartitionerConfigOptions,
  type PartitionLatency,
} from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { tensorNotes } from "./graphManipulation.ts";
import { checkGiven, checkList, checkOptions } from "../base/given.ts";

/** Of the options, those that are no lists by the places of nodes or devices. */
type PlainOptions = Pick<PartitionerConfigOptions, "mode" | "transferRateBytesPerSec" | "saturateHost" | "limit">;

/** How {@link Partitioner} partitions a module: by size unless it is said. */
export interface PartitionerConfig extends Partial<PlainOptions> {
  /** The devices. */
  readonly devices: readonly Device[];
  /** How long each node that calls something takes, for `cost_aware` and `kl_based`. */
  readonly nodeToLatencyMapping?: ReadonlyMap<Node, NodeLatency>;
  /** The part of each node that calls something, for `aot_based`. */
  readonly nodeToPartitionMapping?: ReadonlyMap<Node, number>;
  /** The logical ids of the devices of each part, for `aot_based`. */
  readonly partitionToLogicalDeviceMapping?: ReadonlyMap<number, readonly number[]>;
}

/** A part: FX's `Partition` of `partitioner_utils`. */
export interface DevicePartition {
  /** Its number. */
  readonly partitionId: number;
  /** Its nodes, in the order of the graph; inputs and attributes are in each part that uses them. */
  readonly nodes: ReadonlySet<Node>;
  /** The bytes that it needs, its inputs from other parts included. */
  readonly usedMemBytes: number;
  /** The devices that run it. */
  readonly logicalDeviceIds: readonly number[];
  /** The parts whose values it uses. */
  readonly parents: ReadonlySet<DevicePartition>;
  /** The parts that use its values. */
  readonly children: ReadonlySet<DevicePartition>;
  /** The longest way from a part without parents, as the number of steps. */
  readonly bfsLevel: number;
}

/** A call of a part. The nodes are those of the module with the parts. */
export interface DAGNode {
  /** The call. */
  readonly submoduleNode: Node;
  /** What it takes. */
  readonly inputNodes: readonly Node[];
  /** What it gives: the items that are taken of its result, or else itself. */
  readonly outputNodes: readonly Node[];
  /** The devices that run it. */
  readonly logicalDeviceIds: readonly number[];
  /** The bytes that it needs. */
  readonly sizeBytes: number;
}

/** The calls of parts, in the order in which the module makes them. */
export interface DAG {
  /** The calls. */
  readonly nodes: readonly DAGNode[];
}

/** What {@link Partitioner.partitionGraph} makes. */
export interface PartitionResult {
  /** The calls of the parts. */
  readonly dag: DAG;
  /** The module that calls the parts, `submod_0` and so on by their numbers. */
  readonly moduleWithSubmodules: GraphModule;
}

/**
 * Partitions modules for several devices. The sizes of tensors must be known: run `ShapeProp`, or {@link getSizeOfAllNodes}
 * with inputs, before. A module that one device holds is one part.
 *
 * @example
 * ```ts
 * new ShapeProp(gm).propagate(x);
 * const devices = [0, 1].map((logicalId) => ({ name: `dev_${logicalId}`, availableMemBytes: 4096, logicalId }));
 * const { dag, moduleWithSubmodules } = new Partitioner().partitionGraph(gm, { devices });
 * dag.nodes.map((node) => node.logicalDeviceIds); // [[0], [1]]
 * ```
 */
export class Partitioner {
  /** The parts of the module that was partitioned last. */
  partitions: readonly DevicePartition[] = [];

  /** Partitions a module, which stays as it is. The module with the parts shares its tensors. */
  partitionGraph(module: GraphModule, config: PartitionerConfig): PartitionResult {
    checkOptions("partitionGraph", config ?? {}, PARTITIONER_CONFIG_OPTIONS);
    checkGraphModule("Partitioner", module);
    if (!Array.isArray(config?.devices)) {
      throw fxError("InvalidOption", "a Partitioner needs a list of devices", {
        help: "partitionGraph(gm, { devices: [{ name, availableMemBytes, logicalId }] })",
      });
    }
    const options = { config: configOptions(module, config), tensors: tensorNotes(module) };
    const how = { options, notes: true, derive: true };
    const { answer, module: split, before } = runPass<DevicesAnswer, GraphModule>(module, "partition_graph", how);
    this.partitions = partitionsOf(answer, before);
    const byName = new Map(Array.from(split.graph.nodes, (it) => [it.name, it]));
    return { dag: { nodes: answer.dag.map((it) => dagNode(it, byName)) }, moduleWithSubmodules: split };
  }
}

/**
 * The number of the part of each node: `get_node_to_partition_mapping`.
 *
 * @example
 * ```ts
 * getNodeToPartitionMapping(partitioner.partitions).get(node);
 * ```
 */
export function getNodeToPartitionMapping(partitions: readonly DevicePartition[]): Map<Node, number> {
  checkParts("getNodeToPartitionMapping", partitions);
  return new Map(partitions.flatMap(({ nodes, partitionId }) => Array.from(nodes, (it) => [it, partitionId] as const)));
}

/**
 * How long each part takes, which is what its longest path takes: `get_partition_to_latency_mapping`.
 *
 * @example
 * ```ts
 * getPartitionToLatencyMapping(gm, partitions, latencies).get(partitions[0])?.overallLatencySec;
 * ```
 */
export function getPartitionToLatencyMapping(
  module: GraphModule,
  partitions: readonly DevicePartition[],
  nodeToLatencyMapping: ReadonlyMap<Node, NodeLatency>,
): Map<DevicePartition, PartitionLatency> {
  checkLatencies("getPartitionToLatencyMapping", module, partitions, nodeToLatencyMapping);
  // The rate matters for what goes between parts only.
  const found = latencies(module, partitions, { nodeToLatencyMapping, transferRateBytesPerSec: 1 });
  return new Map(partitions.map((it, at) => [it, found.partitions[at] as PartitionLatency]));
}

/**
 * How long two parts need to pass values: `get_comm_latency_between`. Nothing where they are on the same devices, or where the
 * child uses no call of the parent.
 *
 * @example
 * ```ts
 * getCommLatencyBetween(gm, parent, child, 1e9);
 * ```
 */
export function getCommLatencyBetween(
  module: GraphModule,
  parent: DevicePartition,
  child: DevicePartition,
  transferRateBytesPerSec: number,
): number {
  checkLatencies("getCommLatencyBetween", module, [parent, child], new Map());
  const none = { memLatencySec: 0, computerLatencySec: 0 };
  const nodeToLatencyMapping = new Map(Array.from(module.graph.nodes, (it) => [it, none]));
  const { links } = latencies(module, [parent, child], { nodeToLatencyMapping, transferRateBytesPerSec });
  return links.find((it) => it.parent === 0 && it.child === 1)?.latencySec ?? 0;
}

/**
 * How long a module takes that is in parts: its longest path, with what passing values takes:
 * `get_latency_of_partitioned_graph`.
 *
 * @example
 * ```ts
 * getLatencyOfPartitionedGraph(gm, partitions, { nodeToLatencyMapping, transferRateBytesPerSec: 1e9 });
 * ```
 */
export function getLatencyOfPartitionedGraph(
  module: GraphModule,
  partitions: readonly DevicePartition[],
  rates: Required<Pick<PartitionerConfig, "nodeToLatencyMapping" | "transferRateBytesPerSec">>,
): number {
  checkLatencies("getLatencyOfPartitionedGraph", module, partitions, rates?.nodeToLatencyMapping);
  return latencies(module, partitions, rates).latencySec;
}

function checkParts(what: string, parts: readonly DevicePartition[]): void {
  checkList(what, "partitions", parts);
  for (const it of parts) {
    checkGiven(what, it?.nodes instanceof Set, "partitions", "new Partitioner().partitionGraph(gm, config) gives them");
  }
}

function checkLatencies(
  what: string,
  module: GraphModule,
  parts: readonly DevicePartition[],
  latencyOf: ReadonlyMap<Node, NodeLatency>,
): void {
  checkGraphModule(what, module);
  checkParts(what, parts);
  checkGiven(what, latencyOf instanceof Map, "a Map of latencies by node");
}

function latencies(
  module: GraphModule,
  partitions: readonly DevicePartition[],
  rates: Partial<PartitionerConfig>,
): LatencyAnswer {
  const places = placesOf(module);
  const options = {
    partitions: partitions.map(({ nodes, logicalDeviceIds }) => ({
      nodes: Array.from(nodes, (it) => placeOf(places, it)),
      logicalDeviceIds,
    })),
    config: configOptions(module, { devices: [], ...rates }),
    tensors: tensorNotes(module),
  };
  const how = { options, notes: true };
  return runPass<LatencyAnswer, GraphModule>(module, "get_latency_of_partitioned_graph", how).answer;
}

function configOptions(module: GraphModule, config: PartitionerConfig): Partial<PartitionerConfigOptions> {
  const { nodeToLatencyMapping, nodeToPartitionMapping, partitionToLogicalDeviceMapping, devices, ...rest } = config;
  const byPlace = <T>(values: ReadonlyMap<Node, T> | undefined): (T | null)[] => {
    const places = placesOf(module);
    values?.forEach((_, node) => placeOf(places, node));
    return values === undefined ? [] : Array.from(module.graph.nodes, (it) => values.get(it) ?? null);
  };
  return {
    ...rest,
    devices: devices.map(({ name, availableMemBytes, logicalId }) => ({ name, availableMemBytes, logicalId })),
    nodeToLatencyMapping: byPlace(nodeToLatencyMapping),
    nodeToPartitionMapping: byPlace(nodeToPartitionMapping),
    partitionToLogicalDeviceMapping: Array.from(partitionToLogicalDeviceMapping ?? [], ([id, ids]) => [id, [...ids]]),
  };
}

function placesOf(module: GraphModule): Map<Node, number> {
  return new Map(Array.from(module.graph.nodes, (it, at) => [it, at]));
}

function placeOf(places: ReadonlyMap<Node, number>, node: Node): number {
  const at = places.get(node);
  if (at === undefined) throw fxError("NodeForeign", `${node.name} is not in the graph`, { node: node.name });
  return at;
}

function partitionsOf({ partitions }: DevicesAnswer, before: readonly Node[]): DevicePartition[] {
  const res = partitions.map(({ id, nodes, usedMemBytes, logicalDeviceIds, bfsLevel }) => ({
    partitionId: id,
    nodes: new Set(nodes.map((it) => before[it] as Node)),
    usedMemBytes,
    logicalDeviceIds,
    parents: new Set<DevicePartition>(),
    children: new Set<DevicePartition>(),
    bfsLevel,
  }));
  for (const [at, { parents, children }] of partitions.entries()) {
    for (const it of parents) res[at]?.parents.add(res[it] as DevicePartition);
    for (const it of children) res[at]?.children.add(res[it] as DevicePartition);
  }
  return res;
}

function dagNode(answer: DagNodeAnswer, byName: ReadonlyMap<string, Node>): DAGNode {
  const named = (name: string): Node => byName.get(name) as Node;
  const { submoduleNode, inputNodes, outputNodes, logicalDeviceIds, sizeBytes } = answer;
  return {
    submoduleNode: named(submoduleNode),
    inputNodes: inputNodes.map(named),
    outputNodes: outputNodes.map(named),
    logicalDeviceIds,
    sizeBytes,
  };
}
