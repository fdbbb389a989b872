/**
 * Finding where a pattern stands in a graph: `torch.fx.passes.utils.matcher_utils`. The search is the engine's.
 *
 * @module
 */
import {
  MATCHER_OPTIONS,
  type MatchAnswer,
  type MatcherOptions as EngineOptions,
  type MissAnswer,
} from "../../../bindings/passes.ts";
import type { Arg } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { type Traceable, symbolicTrace } from "../trace/tracer.ts";
import type { Outlined } from "../wire/outline.ts";
import { nodeAt, readArg } from "./answers.ts";
import { runPass } from "./bridge.ts";
import { checkOptions } from "../base/given.ts";

/** How a {@link SubgraphMatcher} matches. All is off that is not given, but `removeOverlappingMatches`. */
export type MatcherOptions = Partial<EngineOptions>;

/** The options of a search that are those of a replacement too. */
export const MATCHING = MATCHER_OPTIONS.filter((it) => it !== "matchOutput" && it !== "removeOverlappingMatches");

/** A pattern or replacement: a graph, a module, or a function that is traced. */
export type PatternSource = Outlined | Traceable;

/**
 * One place where a pattern stands: `torch.fx.passes.utils.matcher_utils.InternalMatch`. Keys are nodes of the pattern, and
 * values are arguments of the graph, since a wildcard stands for a literal too.
 */
export interface InternalMatch {
  /** The nodes of the pattern from which the search began. */
  readonly anchors: readonly Node[];
  /** What each node of the pattern stands for. */
  readonly nodesMap: ReadonlyMap<Node, Arg>;
  /** What the inputs of the pattern stand for, in order. */
  readonly placeholderNodes: readonly Arg[];
  /** What the returned nodes stand for, in order. */
  readonly returningNodes: readonly Arg[];
  /** What the names stand for that the pattern returns; see {@link SubgraphMatcherWithNameNodeMap}. */
  readonly nameNodeMap: ReadonlyMap<string, Arg>;
}

/** How near a search came to a match, and what kept it from one. */
export interface Miss {
  /** The node of the pattern from which the search began. */
  readonly anchor: Node;
  /** What that stood for; nothing where no node of the graph could be it. */
  readonly candidate: Node | undefined;
  /** The node of the pattern for which nothing fits. */
  readonly node: Node;
  /** What was there instead. */
  readonly found: Arg | undefined;
  /** What was expected, for people. */
  readonly expected: string;
  /** How many nodes of the pattern stood for something by then. */
  readonly nBound: number;
}

/**
 * Finds where a pattern stands in a graph: `torch.fx.passes.utils.matcher_utils.SubgraphMatcher`. The inputs of the pattern
 * are wildcards.
 *
 * @example
 * ```ts
 * const matcher = new SubgraphMatcher((x: Tensor, y: Tensor) => torch.relu(torch.add(x, y)));
 * for (const { nodesMap, returningNodes } of matcher.match(gm.graph)) console.log(returningNodes);
 * ```
 */
export class SubgraphMatcher {
  /** The pattern. */
  readonly pattern: Outlined;
  readonly #options: MatcherOptions;
  readonly #pass: string;

  /** A matcher for this pattern; throws a `RewriteError` where the pattern can match nothing. */
  constructor(pattern: PatternSource, options: MatcherOptions = {}) {
    checkOptions("SubgraphMatcher", options, MATCHER_OPTIONS);
    this.pattern = patternOf(pattern);
    this.#options = options;
    this.#pass = this.passName();
    // The engine looks at a pattern before it searches, even where there is nothing to find.
    this.match(new Graph());
  }

  /** The matches, in the order of what the first returned node of the pattern stands for. */
  match(graph: Outlined, nodeNameMatch = this.#options.nodeNameMatch ?? ""): InternalMatch[] {
    const target = withOwner(graph);
    const options = { ...this.#options, nodeNameMatch };
    const run = { options, others: [withOwner(this.pattern)], notes: needsNotes(options) };
    const { answer, before } = runPass<MatchAnswer[], Outlined>(target, this.#pass, run);
    return readMatches(answer, this.pattern, before);
  }

  /**
   * Why the pattern does not stand where it could, or is not replaced there since a write keeps its nodes apart: for each
   * anchor the miss in which most of the pattern stood for something. Of what can be replaced nothing is told.
   */
  explain(graph: Outlined): Miss[] {
    const run = { options: this.#options, others: [withOwner(this.pattern)], notes: needsNotes(this.#options) };
    const { answer, before } = runPass<MissAnswer[], Outlined>(withOwner(graph), "explain_match", run);
    const patternNodes = [...graphOf(this.pattern).nodes];
    return answer.map(({ anchor, candidate, node, found, expected, nBound }) => ({
      anchor: nodeAt(patternNodes, anchor),
      candidate: candidate === null ? undefined : nodeAt(before, candidate),
      node: nodeAt(patternNodes, node),
      found: found.map((it) => readArg(it, { before }))[0],
      expected,
      nBound,
    }));
  }

  /** The name of the engine's pass. */
  protected passName(): string {
    return "SubgraphMatcher";
  }
}

/**
 * A matcher for a pattern that names its nodes: the pattern returns a dict of names and nodes last, and
 * {@link InternalMatch.nameNodeMap} says what they stand for. The dict itself is no part of the pattern.
 *
 * @example
 * ```ts
 * const matcher = new SubgraphMatcherWithNameNodeMap((x: Tensor) => {
 *   const exp = torch.exp(x);
 *   const relu = torch.relu(exp);
 *   return tuple(relu, { exp, relu });
 * });
 * matcher.match(gm.graph)[0]?.nameNodeMap.get("exp");
 * ```
 */
export class SubgraphMatcherWithNameNodeMap extends SubgraphMatcher {
  protected override passName(): string {
    return "SubgraphMatcherWithNameNodeMap";
  }
}

/** Whether the engine has to know dtypes and sizes. */
export function needsNotes({ constraints = {} }: MatcherOptions): boolean {
  return Object.keys(constraints).length > 0;
}

/** The graph or module of a pattern; functions and modules without a graph are traced. */
export function patternOf(source: PatternSource): Outlined {
  return source instanceof Graph || source instanceof GraphModule ? source : symbolicTrace(source);
}

/** The graph of a graph or module. */
export function graphOf(it: Outlined): Graph {
  return it instanceof Graph ? it : it.graph;
}

/** A graph with the module that it is of, for nodes that refer to its attributes. */
export function withOwner(it: Outlined): Outlined {
  return it instanceof Graph ? (it.owningModule ?? it) : it;
}

/** The matches that the engine tells. */
export function readMatches(
  answer: readonly MatchAnswer[],
  pattern: Outlined,
  before: readonly Node[],
): InternalMatch[] {
  const patternNodes = [...graphOf(pattern).nodes];
  const read = (it: unknown) => readArg(it, { before });
  return answer.map(({ anchors, nodesMap, placeholderNodes, returningNodes, nameNodeMap }) => ({
    anchors: anchors.map((it) => nodeAt(patternNodes, it)),
    nodesMap: new Map(nodesMap.map(([node, found]) => [nodeAt(patternNodes, node), read(found)])),
    placeholderNodes: placeholderNodes.map(read),
    returningNodes: returningNodes.map(read),
    nameNodeMap: new Map(nameNodeMap.map(([name, found]) => [name, read(found)])),
  }));
}
