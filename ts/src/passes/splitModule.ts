/**
 * Splitting a module: `torch.fx.passes.split_module` and `torch.fx.passes.split_utils`.
 *
 * @module
 */
import { SPLIT_OPTIONS, type SplitAnswer, type SplitOptions, type TagsCall } from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkFunction, checkGiven, checkList, checkOptions } from "../base/given.ts";
import { isCallable } from "./toolsCommon.ts";

/** How {@link splitModule} makes the parts. */
export interface SplitModuleOptions extends Partial<Omit<SplitOptions, "partitionAffix">> {
  /** What stands before the number in the names of the parts: `submod_AFFIX_0`. */
  readonly partitionAffix?: string;
  /** Is given, for each module that a part calls, its path now and the path that it had. */
  readonly qualnameMap?: Map<string, string>;
}

/**
 * Splits a module: `torch.fx.passes.split_module.split_module`. The callback says for each node that calls something to
 * which part it goes; it is asked once for each, in order. The module stays as it is; the new one calls the parts, which are
 * called `submod_0` and so on, and shares its tensors.
 *
 * @example
 * ```ts
 * const half = gm.graph.nodes.length / 2;
 * let seen = 0;
 * const split = splitModule(gm, () => (seen++ < half ? 0 : 1));
 * split.getSubmodule("submod_0");
 * ```
 */
export function splitModule(
  module: GraphModule,
  splitCallback: (node: Node) => number,
  settings: SplitModuleOptions = {},
): GraphModule {
  checkGraphModule("splitModule", module);
  checkFunction("splitModule", "splitCallback", splitCallback);
  checkOptions("splitModule", settings, [...SPLIT_OPTIONS, "qualnameMap"]);
  const { qualnameMap, ...options } = settings;
  const partitionOf = module.graph.nodes.toArray().map((it) => {
    if (!isCallable(it)) return null;
    const part = splitCallback(it);
    if (Number.isSafeInteger(part)) return part;
    throw fxError("InvalidArgument", `the number of a part is an integer, not ${part}`, { node: it.name });
  });
  const how = { options: { partitionOf, options }, derive: true };
  const { answer, module: split } = runPass<SplitAnswer, GraphModule>(module, "split_module", how);
  for (const [now, before] of Object.entries(answer.qualnameMap))
    if (before !== undefined) qualnameMap?.set(now, before);
  split.meta.set("partition_names", new Set(answer.partitionNames));
  return split;
}

/**
 * Splits a module where the part of each node is known: `torch.fx.passes.split_module.split_module_simple`. Each node
 * that calls something is in one.
 *
 * @example
 * ```ts
 * const [first, second] = gm.graph.nodes.filter((it) => it.op === "call_module");
 * const split = splitModuleSimple(gm, new Map([[first, 0], [second, 1]]));
 * ```
 */
export function splitModuleSimple(
  module: GraphModule,
  nodeToPartition: ReadonlyMap<Node, number>,
  options: Pick<SplitModuleOptions, "partitionAffix"> = {},
): GraphModule {
  checkGraphModule("splitModuleSimple", module);
  checkGiven("splitModuleSimple", nodeToPartition instanceof Map, "a Map from nodes to numbers of parts");
  checkOptions("splitModuleSimple", options, ["partitionAffix"]);
  const qualnameMap = new Map<string, string>();
  const partOf = (node: Node): number => {
    const res = nodeToPartition.get(node);
    if (res !== undefined) return res;
    throw fxError("InvalidArgument", "the node has no part", {
      node: node.name,
      help: "give the map a number for each node that calls something",
    });
  };
  const split = splitModule(module, partOf, { ...options, qualnameMap });
  // Unlike `split_module`, it leaves modules their paths.
  for (const [name, part] of split.namedChildren()) {
    if (!(part instanceof GraphModule)) continue;
    for (const node of part.graph.nodes) {
      const path = node.op === "call_module" ? qualnameMap.get(`${name}.${node.target}`) : undefined;
      if (path !== undefined) node.target = path;
    }
    split.attributes.set(name, { kind: "module", module: new GraphModule(module, part.graph, part.className) });
  }
  return split;
}

/**
 * Splits a module by tags: `torch.fx.passes.split_utils.split_by_tags`. The parts have the names of the tags, and are
 * called in their order. What a part reads of the module it holds itself. The module stays as it is.
 *
 * @example
 * ```ts
 * const tags = new Map([...gm.graph.nodes].map((node) => [node, node.target === "torch.add" ? "sums" : "rest"]));
 * const split = splitByTags(gm, ["sums", "rest"], tags);
 * ```
 */
export function splitByTags(
  module: GraphModule,
  tags: readonly string[],
  tagOf: ReadonlyMap<Node, string> | ((node: Node) => string | undefined),
  how: Partial<Pick<TagsCall, "returnTuple">> = {},
): GraphModule {
  checkGraphModule("splitByTags", module);
  checkOptions("splitByTags", how, ["returnTuple"]);
  checkList("splitByTags", "tags", tags);
  if (!(tagOf instanceof Map)) checkFunction("splitByTags", "tagOf", tagOf);
  const twice = tags.find((tag, at) => tags.indexOf(tag) < at);
  if (twice !== undefined) throw fxError("InvalidArgument", `the tag ${twice} is given twice`);
  const places = new Map(tags.map((tag, at) => [tag, at]));
  const find = typeof tagOf === "function" ? tagOf : (node: Node) => tagOf.get(node);
  const options = {
    tags,
    tagOf: Array.from(module.graph.nodes, (it) => (isCallable(it) ? (places.get(find(it) ?? "") ?? null) : null)),
    returnTuple: how.returnTuple ?? false,
  };
  return runPass<null, GraphModule>(module, "split_by_tags", { options, derive: true }).module;
}
