/**
 * Replacing a pattern wherever it stands: `torch.fx.subgraph_rewriter`. The search and the replacing are the engine's; filters
 * and callbacks are asked in between.
 *
 * @module
 */
import type {
  MatchAnswer,
  ReplacedAnswer,
  ReplaceOptions,
  ReplaceRequest,
  VerifyOptions as EngineVerifyOptions,
} from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { Arg } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { Module } from "../nn/module.ts";
import { notingValues } from "./noteValues.ts";
import { checkGraphModule } from "./checks.ts";
import type { Outlined } from "../wire/outline.ts";
import { nodeAt, readArg } from "./answers.ts";
import { runPass } from "./bridge.ts";
import {
  graphOf,
  type InternalMatch,
  MATCHING,
  type MatcherOptions,
  needsNotes,
  type PatternSource,
  patternOf,
  readMatches,
  withOwner,
} from "./matcher.ts";
import { checkOptions } from "../base/given.ts";

/** A match that was replaced: `torch.fx.Match`. */
export interface Match {
  /** The node of the pattern from which the match was found. */
  readonly anchor: Node;
  /** What each node of the pattern stood for; inputs stand for what has taken their place since. */
  readonly nodesMap: ReadonlyMap<Node, Arg>;
}

/** A match that was replaced, with the nodes that were made: `torch.fx.subgraph_rewriter.ReplacedPatterns`. */
export interface ReplacedPatterns extends Match {
  readonly replacements: readonly Node[];
}

/** Says whether a match is to be replaced: anything but `true` is a no, and may be a reason. */
export type MatchFilter = (match: InternalMatch, originalGraph: Graph, patternGraph: Graph) => boolean | string;

/** Makes what one match is replaced by. */
export type ReplacementCallback = (match: InternalMatch, originalGraph: Graph, patternGraph: Graph) => PatternSource;

/** How replacements are checked on random inputs; see {@link ReplacePatternOptions.verify}. */
export type VerifyOptions = Partial<EngineVerifyOptions>;

/**
 * How {@link replacePatternWithFilters} finds and replaces: as a {@link MatcherOptions | matcher} does, without the output
 * of the pattern, and of matches that share a node the first.
 */
export interface ReplacePatternOptions extends Omit<MatcherOptions, "matchOutput" | "removeOverlappingMatches"> {
  /** A match is replaced where all of these say `true`. */
  readonly matchFilters?: readonly MatchFilter[];
  /** Makes a replacement for each match, instead of one for all. It is called for all matches before the first is replaced. */
  readonly replacementCallback?: ReplacementCallback;
  /**
   * Whether each replacement is run on random inputs of the matched dtypes and sizes, beside the nodes that it replaces: where
   * they differ it is refused, with the difference, and nothing is changed. Dtypes and sizes are those of `meta["val"]`, so
   * {@link FakeTensorProp} comes first; parameters and buffers are made at random, too. Off by default.
   */
  readonly verify?: boolean | VerifyOptions;
}

/**
 * Replaces the pattern wherever it stands, of matches that share a node the first: `torch.fx.replace_pattern`. The module
 * is changed in place, or not at all where the replacement does not fit. In a graph whose nodes say what they give (`meta.val`), as in
 * a program, the new ones do, too.
 *
 * @example
 * ```ts
 * replacePattern(
 *   gm,
 *   (x: Tensor, y: Tensor) => torch.relu(torch.add(x, y)),
 *   (x: Tensor, y: Tensor) => torch.clamp(torch.add(x, y), 0),
 * );
 * ```
 */
export function replacePattern(gm: GraphModule, pattern: PatternSource, replacement: PatternSource): Match[] {
  return replacePatternWithFilters(gm, pattern, replacement);
}

/**
 * Replaces the pattern where it stands and the filters let it: `torch.fx.subgraph_rewriter.replace_pattern_with_filters`.
 *
 * @example
 * ```ts
 * const isNumber = ({ placeholderNodes: [, by] }: InternalMatch) => typeof by === "number" || "not a number";
 * replacePatternWithFilters(gm, times, shift, { matchFilters: [isNumber] });
 * ```
 */
export function replacePatternWithFilters(
  gm: GraphModule,
  pattern: PatternSource,
  replacement: PatternSource | undefined,
  options: ReplacePatternOptions = {},
): ReplacedPatterns[] {
  checkGraphModule("replacePattern", gm);
  checkOptions("replacePatternWithFilters", options, [...MATCHING, "matchFilters", "replacementCallback", "verify"]);
  const { matchFilters = [], replacementCallback: callback, ...how } = options;
  const { verify, ...rest } = how;
  if (!Array.isArray(matchFilters)) {
    throw fxError("InvalidOption", "matchFilters is a list of functions", { help: "put the filter into a list" });
  }
  const wanted = patternOf(pattern);
  if (replacement === undefined && callback === undefined) {
    throw fxError("InvalidOption", "Must provide either a replacement GraphModule or a replacement callback");
  }
  const keepsSubmodules = !(replacement instanceof Module);
  const request: Partial<ReplaceRequest> = { options: engineOptions(how, keepsSubmodules) };
  const others: Outlined[] = [withOwner(wanted)];
  if (matchFilters.length > 0 || callback !== undefined) {
    const matches = matchesOf(gm, wanted, rest);
    const isWanted = (it: InternalMatch) =>
      matchFilters.every((filter) => filter(it, gm.graph, graphOf(wanted)) === true);
    request.matches = [...matches.keys()].filter((at) => isWanted(matches[at] as InternalMatch));
    if (callback !== undefined) {
      const made = request.matches.map((at) => callback(matches[at] as InternalMatch, gm.graph, graphOf(wanted)));
      const different = [...new Set(made)];
      request.replacements = made.map((it) => different.indexOf(it));
      others.push(...different.map((it) => withOwner(patternOf(it))));
    }
  }
  if (callback === undefined) others.push(withOwner(patternOf(replacement as PatternSource)));
  const call = { options: request, others, notes: needsNotes(rest) || isVerified(verify) };
  const { answer, before } = notingValues(gm, () =>
    runPass<ReplacedAnswer[], GraphModule>(gm, "replace_pattern", call),
  );
  const patternNodes = [...graphOf(wanted).nodes];
  const after = [...gm.graph.nodes];
  return answer.map(({ anchor, nodesMap, replacements }) => ({
    anchor: nodeAt(patternNodes, anchor),
    nodesMap: new Map(nodesMap.map(([node, it]) => [nodeAt(patternNodes, node), readArg(it, { before, after })])),
    replacements: replacements.map((it) => nodeAt(after, it)),
  }));
}

/** The options as the engine takes them. */
export function engineOptions(
  { verify, ...matching }: Omit<ReplacePatternOptions, "matchFilters" | "replacementCallback">,
  keepsSubmodules: boolean,
): ReplaceOptions {
  const how = verify === true ? {} : verify;
  return { matching, keepsSubmodules, ...(isVerified(how) ? { verify: how } : {}) } as ReplaceOptions;
}

/** Whether replacements are verified, for which the engine has to know dtypes and sizes. */
export function isVerified(verify: boolean | VerifyOptions | undefined): boolean {
  return verify !== undefined && verify !== false;
}

function matchesOf(gm: GraphModule, pattern: Outlined, options: MatcherOptions): InternalMatch[] {
  const run = { options, others: [withOwner(pattern)], notes: needsNotes(options) };
  const { answer, before } = runPass<MatchAnswer[], GraphModule>(gm, "SubgraphMatcher", run);
  return readMatches(answer, pattern, before);
}
