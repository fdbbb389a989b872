import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  type DevicePartition,
  getCommLatencyBetween,
  getLatencyOfPartitionedGraph,
  getNodeToPartitionMapping,
  getPartitionToLatencyMapping,
  getSizeOfAllNodes,
  getSizeOfNode,
  Graph,
  GraphModule,
  init,
  Module,
  type Node,
  type NodeLatency,
  type Opcode,
  Parameter,
  Partitioner,
  type PartitionMode,
  torch,
  Tuple,
} from "../../src/index.ts";

beforeAll(async () => {
  await init();
});

interface Recorded {
  readonly name: string;
  readonly modules: Record<string, { class: string; parameters: number[][] }>;
  readonly nodes: readonly {
    name: string;
    op: Opcode;
    target: string;
    args: readonly RecordedArg[];
    shape?: number[];
    output_size?: number;
    total_size?: number;
  }[];
  readonly config: {
    devices: { name: string; availableMemBytes: number; logicalId: number }[];
    mode: PartitionMode;
    transferRateBytesPerSec: number;
    nodeToLatencyMapping: Record<string, NodeLatency>;
    nodeToPartitionMapping: Record<string, number>;
    partitionToLogicalDeviceMapping: [number, number[]][];
    saturateHost: boolean;
  };
  readonly error?: string;
  readonly partitions: { id: number; nodes: string[]; used_mem_bytes: number; logical_device_ids: number[] }[];
  readonly dag: object[];
  readonly graph: string;
  readonly latency: { partitions: [number, number, number][]; graph: number };
}

type RecordedArg = { node: string } | readonly RecordedArg[];

const path = new URL("../../../tests/fixtures/devices/devices.jsonl", import.meta.url);
const cases = readFileSync(path, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Recorded);

class EmbeddingBag extends Module {}
class Linear extends Module {}

function build({ modules, nodes }: Recorded): GraphModule {
  const root: Record<string, Module> = {};
  for (const [target, { class: kind, parameters }] of Object.entries(modules)) {
    const module: Module & Record<string, unknown> = new (kind === "EmbeddingBag" ? EmbeddingBag : Linear)() as never;
    for (const [at, shape] of parameters.entries()) module[`p${at}`] = new Parameter(torch.zeros(shape));
    root[target] = module;
  }
  const graph = new Graph();
  const byName = new Map<string, Node>();
  const arg = (it: RecordedArg): never => ("node" in it ? byName.get(it.node) : Tuple.frozen(it.map(arg))) as never;
  for (const { name, op, target, args, shape } of nodes) {
    const node = graph.createNode(op, target, args.map(arg), {}, name);
    byName.set(name, node);
    if (shape !== undefined) node.meta.set("tensor_meta", { dtype: "float32", shape });
  }
  return new GraphModule(root, graph);
}

const names = (nodes: Iterable<Node>): string[] => Array.from(nodes, (it) => it.name);

describe("partitions for several devices", () => {
  test.each(cases.map((it) => [it.name, it] as const))("%s is PyTorch's", (_, recorded) => {
    const gm = build(recorded);
    const byName = new Map(Array.from(gm.graph.nodes, (it) => [it.name, it]));
    const mapping = <T>(of: Record<string, T>) =>
      new Map(Object.entries(of).map(([name, it]) => [byName.get(name) as Node, it]));
    const { config } = recorded;
    const nodeToLatencyMapping = mapping(config.nodeToLatencyMapping);
    const partitioner = new Partitioner();
    const run = () =>
      partitioner.partitionGraph(gm, {
        ...config,
        nodeToLatencyMapping,
        nodeToPartitionMapping: mapping(config.nodeToPartitionMapping),
        partitionToLogicalDeviceMapping: new Map(config.partitionToLogicalDeviceMapping),
      });
    if (recorded.error !== undefined) {
      expect(run).toThrow(recorded.error);
      return;
    }
    const { dag, moduleWithSubmodules } = run();
    const { partitions } = partitioner;
    expect(
      partitions.map((it) => ({
        id: it.partitionId,
        nodes: names(it.nodes),
        used_mem_bytes: it.usedMemBytes,
        logical_device_ids: it.logicalDeviceIds,
      })),
    ).toEqual(recorded.partitions);
    expect(
      dag.nodes.map((it) => ({
        node: it.submoduleNode.name,
        inputs: names(it.inputNodes),
        outputs: names(it.outputNodes),
        logical_device_ids: it.logicalDeviceIds,
        size_bytes: it.sizeBytes,
      })),
    ).toEqual(recorded.dag);
    expect(String(moduleWithSubmodules.graph)).toBe(recorded.graph);
    const latencies = getPartitionToLatencyMapping(gm, partitions, nodeToLatencyMapping);
    expect(
      partitions.map((it) => {
        const latency = latencies.get(it);
        return [latency?.memLatencySec, latency?.computerLatencySec, latency?.overallLatencySec];
      }),
    ).toEqual(recorded.latency.partitions);
    const rates = { nodeToLatencyMapping, transferRateBytesPerSec: config.transferRateBytesPerSec };
    expect(getLatencyOfPartitionedGraph(gm, partitions, rates)).toBe(recorded.latency.graph);
  });

  test("knows the sizes of nodes", () => {
    for (const recorded of cases) {
      const gm = build(recorded);
      const sizes = getSizeOfAllNodes(gm);
      const nodes = [...gm.graph.nodes];
      for (const [at, { output_size: outputSize, total_size: totalSize }] of recorded.nodes.entries()) {
        expect(sizes.get(nodes[at] as Node)).toEqual(outputSize === undefined ? undefined : { outputSize, totalSize });
      }
      const first = nodes[0] as Node;
      expect(getSizeOfNode(gm, first)).toEqual(sizes.get(first));
    }
  });

  test("links parts, and says what passing values takes", () => {
    const recorded = cases.find((it) => it.name === "aot_0") as Recorded;
    const gm = build(recorded);
    const nodes = [...gm.graph.nodes].filter((it) => it.op === "call_module" || it.op === "call_function");
    const halves = new Map(nodes.map((it, at) => [it, at < 4 ? 3 : 5] as const));
    const partitioner = new Partitioner();
    partitioner.partitionGraph(gm, {
      devices: recorded.config.devices,
      mode: "aot_based",
      nodeToPartitionMapping: halves,
      partitionToLogicalDeviceMapping: new Map([
        [3, [0]],
        [5, [1]],
      ]),
    });
    const [parent, child] = partitioner.partitions as [DevicePartition, DevicePartition];
    expect([parent.partitionId, child.partitionId, child.bfsLevel]).toEqual([3, 5, 1]);
    expect([...parent.children]).toEqual([child]);
    expect([...child.parents]).toEqual([parent]);
    expect(getNodeToPartitionMapping([parent, child]).get(nodes[5] as Node)).toBe(5);
    expect(getCommLatencyBetween(gm, parent, child, 32)).toBeGreaterThan(0);
    expect(getCommLatencyBetween(gm, child, parent, 32)).toBe(0);
  });
});

test("modules that were not traced, and a config without devices, are refused", () => {
  const [partitioner, gm] = [new Partitioner(), GraphModule.ofGraph(new Graph())];
  for (const config of [undefined, {}]) {
    expect(() => partitioner.partitionGraph(gm, config as never)).toThrow("a Partitioner needs a list of devices");
  }
  expect(() => partitioner.partitionGraph(new Module() as never, { devices: [] })).toThrow("takes a GraphModule");
});
