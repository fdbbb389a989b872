/**
 * The kind `matcher`: where a pattern stands in a graph.
 *
 * @module
 */
import { init, SubgraphMatcher } from "tracefx";
import { build, Difference, encodeArg, same } from "./corpus.mjs";

/** @typedef {import("./corpus.mjs").EncodedGraph} EncodedGraph */
/**
 * @typedef {{ options: { pattern: EncodedGraph, match_output: boolean, match_placeholder: boolean,
 *   remove_overlapping_matches: boolean, ignore_literals: boolean }, before: EncodedGraph, matches?: unknown[] }} Case
 */

/** Finds. */
export async function checkMatcher(/** @type {Case} */ { options, before, matches }) {
  await init();
  const matcher = new SubgraphMatcher(build(options.pattern), {
    matchOutput: options.match_output,
    matchPlaceholder: options.match_placeholder,
    removeOverlappingMatches: options.remove_overlapping_matches,
    ignoreLiterals: options.ignore_literals,
  });
  const found = matcher.match(build(before));
  if (matches === undefined) throw new Difference("nothing was refused");
  const told = found.map((it) => ({
    anchors: it.anchors.map(({ name }) => name),
    nodes_map: encodeMap(it.nodesMap),
    placeholder_nodes: it.placeholderNodes.map(encodeArg),
    returning_nodes: it.returningNodes.map(encodeArg),
  }));
  same(told, matches, "matches");
}

/**
 * What nodes of the pattern stand for, in the encoding of the corpus.
 * @type {(map: ReadonlyMap<import("tracefx").Node, import("tracefx").Arg>) => unknown[]}
 */
export function encodeMap(map) {
  return Array.from(map, ([node, it]) => [node.name, encodeArg(it)]);
}
