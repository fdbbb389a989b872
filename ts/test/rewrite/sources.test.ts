/** Where nodes come from, as PyTorch finds it (`tests/oracle/gen_sources.py`), and as traces here note it. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, test } from "vitest";
import {
  checkSubgraphsConnected,
  getSourcePartitions,
  Graph,
  GraphModule,
  init,
  nn,
  type Opcode,
  type SourcePartition,
  type Tensor,
  torch,
  Tracer,
} from "../../src/index.ts";

interface Case {
  readonly name: string;
  readonly nodes: readonly {
    readonly name: string;
    readonly op: Opcode;
    readonly args: readonly string[];
    readonly uses: readonly string[];
    readonly meta: Readonly<Record<string, string>>;
  }[];
  readonly wanted: readonly string[];
  readonly partitions: readonly (readonly [string, readonly Readonly<Record<string, readonly string[]>>[]])[];
  readonly connected: readonly (readonly [number, number])[];
}

const file = new URL("../../../tests/fixtures/sources/cases.jsonl", import.meta.url);
const cases = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Case);

beforeAll(async () => {
  await init();
});

/** The graph of a case: what stands in lists and behind keywords is in a list behind the other arguments. */
function graphOf({ nodes }: Case): Graph {
  const graph = new Graph();
  const made = new Map<string, ReturnType<Graph["createNode"]>>();
  const find = (name: string) => made.get(name) ?? expect.fail(`there is no ${name}`);
  for (const { name, op, args, uses, meta } of nodes) {
    const others = uses.filter((it) => !args.includes(it)).map(find);
    const node = graph.createNode(op, name, [...args.map(find), ...(others.length > 0 ? [others] : [])], {}, name);
    for (const [key, text] of Object.entries(meta)) node.meta.set(key, text);
    made.set(name, node);
  }
  return graph;
}

const names = (nodes: SourcePartition["nodes"]) => nodes.map((it) => it.name);
const told = (it: SourcePartition) => ({
  nodes: names(it.nodes),
  input_nodes: names(it.inputNodes),
  output_nodes: names(it.outputNodes),
  params: names(it.params),
});

describe("getSourcePartitions", () => {
  test.each(cases.map((it) => [it.name, it] as const))("finds what PyTorch finds: %s", (_, recorded) => {
    const found = getSourcePartitions(graphOf(recorded), recorded.wanted);
    expect([...found].map(([source, them]) => [source, them.map(told)])).toEqual(recorded.partitions);
    const all = [...found.values()].flat();
    const pairs = all.flatMap((a, from) => all.map((b, to) => ({ a, b, pair: [from, to] })));
    const connected = pairs.filter(({ a, b }) => checkSubgraphsConnected(a, b)).map(({ pair }) => pair);
    expect(connected).toEqual(recorded.connected);
  });

  test("takes classes, and leaves out what the filter refuses", () => {
    const graph = graphOf(cases[0] as Case);
    const found = getSourcePartitions(graph, [nn.Linear], (node) => node.name !== "linear_1");
    expect(found.get(nn.Linear)?.map(({ source }) => source)).toEqual([nn.Linear, nn.Linear]);
  });

  test("reads what a trace notes", () => {
    class Inside extends Tracer {
      override isLeafModule(): boolean {
        return false;
      }
    }
    class Net extends nn.Module {
      readonly first = new nn.Linear(3, 4);
      readonly second = new nn.Linear(4, 3);
      override forward(x: Tensor): Tensor {
        return this.second.forward(torch.relu(this.first.forward(x)));
      }
    }
    const net = new Net();
    const gm = new GraphModule(net, new Inside().trace(net));
    const partitions = getSourcePartitions(gm.graph, [nn.Linear]).get(nn.Linear) ?? [];
    expect(partitions.map(({ nodes }) => nodes.map((node) => node.op))).toEqual([["call_function"], ["call_function"]]);
    const [first, second] = partitions;
    if (first === undefined || second === undefined) throw new Error("both calls are found");
    expect([checkSubgraphsConnected(first, second), checkSubgraphsConnected(second, first)]).toEqual([false, false]);
    expect(names(first.outputNodes).concat(names(second.outputNodes))).toEqual(["linear", "linear_1"]);
  });
});
