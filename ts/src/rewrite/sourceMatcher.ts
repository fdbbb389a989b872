/**
 * Which nodes come from one call of a function or module: `torch.fx.passes.utils.source_matcher_utils`.
 *
 * @module
 */
import { checkGraph } from "../graph/graph.ts";
import type { SourceAnswer, SourcesRequest } from "../../../bindings/passes.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { type NamedTarget, targetOf } from "../graph/target.ts";
import { builtinNameOf } from "../nn/builtin.ts";
import { Module } from "../nn/module.ts";
import { nodeAt } from "./answers.ts";
import { noteText } from "../wire/notes.ts";
import { runPass } from "./bridge.ts";
import { checkFunction, checkList } from "../base/given.ts";
import { fxError } from "../base/errors.ts";

/**
 * A function or class that nodes come from: itself, or its name, such as `torch.nn.modules.linear.Linear`, `Linear`,
 * `torch.nn.functional.linear`, or `linear` as `torch_fn` has it.
 */
export type WantedSource = string | NamedTarget | SourceClass;

/** A class of modules, whatever its constructor takes. */
export interface SourceClass {
  readonly name: string;
  readonly prototype: Module;
}

/** The nodes that one call was decomposed into. */
export interface SourcePartition<S extends WantedSource = WantedSource> {
  /** The nodes, in order. */
  readonly nodes: readonly Node[];
  /** The function or class. */
  readonly source: S;
  /**
   * The nodes outside that these take as arguments, but for attributes. As in PyTorch, those in lists and behind keywords are
   * not among them.
   */
  readonly inputNodes: readonly Node[];
  /** The nodes of these that others use. */
  readonly outputNodes: readonly Node[];
  /** The attributes that stand among the nodes. */
  readonly params: readonly Node[];
}

/** The notes that say where a node comes from. */
const ORIGINS = ["source_fn_stack", "torch_fn", "nn_module_stack"] as const;

/**
 * Finds the nodes that come from these functions and modules, each call for itself:
 * `torch.fx.passes.utils.source_matcher_utils.get_source_partitions`. A node says where it comes from by `source_fn_stack`;
 * where it does not, by `torch_fn`, and by the innermost module of `nn_module_stack`. Sources of which there are no nodes are
 * not in the answer. Partitions in which the filter refuses a node are left out.
 *
 * @example
 * ```ts
 * for (const { nodes, inputNodes } of getSourcePartitions(gm.graph, [nn.Linear]).get(nn.Linear) ?? []) {
 *   console.log(nodes, inputNodes);
 * }
 * ```
 */
export function getSourcePartitions<S extends WantedSource>(
  graph: Graph,
  wantedSources: readonly S[],
  filterFn?: (node: Node) => boolean,
): Map<S, SourcePartition<S>[]> {
  checkGraph("getSourcePartitions", graph);
  checkList("getSourcePartitions", "wantedSources", wantedSources);
  if (filterFn !== undefined) checkFunction("getSourcePartitions", "filterFn", filterFn);
  const sourceOf = new Map(wantedSources.map((it) => [nameOf(it), it]));
  const options = {
    wantedSources: [...sourceOf.keys()],
    origins: Array.from(graph.nodes, originsOf),
  } as SourcesRequest;
  const { answer } = runPass<[string, SourceAnswer[]][], Graph>(graph, "get_source_partitions", { options });
  const all = [...graph.nodes];
  const at = (places: readonly number[]) => places.map((it) => nodeAt(all, it));
  return new Map(
    answer.map(([name, found]) => {
      const source = sourceOf.get(name) as S;
      const partitions = found.map(({ nodes, inputNodes, outputNodes, params }) => ({
        nodes: at(nodes),
        source,
        inputNodes: at(inputNodes),
        outputNodes: at(outputNodes),
        params: at(params),
      }));
      return [source, partitions.filter((it) => filterFn === undefined || it.nodes.every(filterFn))];
    }),
  );
}

/**
 * Whether a node of the second partition uses one of the first:
 * `torch.fx.passes.utils.source_matcher_utils.check_subgraphs_connected`.
 *
 * @example
 * ```ts
 * const [conv] = getSourcePartitions(gm.graph, [nn.Conv2d]).get(nn.Conv2d) ?? [];
 * const [relu] = getSourcePartitions(gm.graph, [nn.ReLU]).get(nn.ReLU) ?? [];
 * if (conv && relu) checkSubgraphsConnected(conv, relu);
 * ```
 */
export function checkSubgraphsConnected(subgraph1: SourcePartition, subgraph2: SourcePartition): boolean {
  [subgraph1, subgraph2].forEach(checkPartition);
  const inside = new Set(subgraph2.nodes);
  return subgraph1.nodes.some((node) => [...node.users].some((it) => inside.has(it)));
}

function checkPartition(partition: SourcePartition): void {
  if (Array.isArray(partition?.nodes)) return;
  throw fxError("InvalidArgument", "checkSubgraphsConnected takes two partitions", {
    help: "getSourcePartitions finds them",
  });
}

function nameOf(source: WantedSource): string {
  return isSourceClass(source) ? (builtinNameOf(source) ?? source.name) : targetOf(source);
}

function isSourceClass(source: WantedSource): source is SourceClass {
  return typeof source === "function" && (source as SourceClass).prototype instanceof Module;
}

/** The notes of a node as a file has them. A trace here notes them as maps and lists. */
function originsOf({ meta }: Node): Record<string, string> {
  const res: Record<string, string> = {};
  for (const key of ORIGINS) {
    const text = noteText(key, meta.get(key));
    if (text !== undefined) res[key] = text;
  }
  return res;
}
