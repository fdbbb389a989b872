/**
 * Rules: patterns with what takes their place, as values that run in sets. The engine runs them.
 *
 * @module
 */
import type { Fired, ReplaceOptions, RulesRequest, RuleTrace } from "../bindings/passes.ts";
import type { GraphModule } from "../graph/module.ts";
import type { Outlined } from "../wire/outline.ts";
import { runPass } from "./bridge.ts";
import { needsNotes, type PatternSource, patternOf, withOwner } from "./matcher.ts";
import type { ReplacePatternOptions } from "./replacePattern.ts";

/** How a {@link Rule} matches; callbacks are no part of a rule. */
export type RuleOptions = Omit<ReplacePatternOptions, "matchFilters" | "replacementCallback">;

/**
 * A pattern and what takes its place.
 *
 * @example
 * ```ts
 * const rule = new Rule("neg_of_neg", (x: Tensor) => torch.neg(torch.neg(x)), (x: Tensor) => x);
 * ```
 */
export class Rule {
  readonly name: string;
  readonly pattern: Outlined;
  readonly replacement: Outlined;
  readonly options: RuleOptions;

  constructor(name: string, pattern: PatternSource, replacement: PatternSource, options: RuleOptions = {}) {
    this.name = name;
    this.pattern = patternOf(pattern);
    this.replacement = patternOf(replacement);
    this.options = options;
  }
}

/**
 * Rules that run together, the most urgent first.
 *
 * @example
 * ```ts
 * const { fired, isFixpoint } = new RuleSet([rule]).runToFixpoint(gm);
 * for (const { rule, replaced, made } of fired) console.log(rule, replaced, made);
 * ```
 */
export class RuleSet {
  readonly rules: readonly Rule[];

  constructor(rules: readonly Rule[]) {
    this.rules = rules;
  }

  /** Applies each rule once, in order, wherever it matches, and says what was applied where. */
  runOnce(gm: GraphModule): RuleTrace {
    return this.#run(gm, {});
  }

  /**
   * Applies rules until none matches any more. Rules that go on for ever are stopped after `maxFired` applications, by
   * default a thousand and ten for each node.
   */
  runToFixpoint(gm: GraphModule, { maxFired }: { readonly maxFired?: number } = {}): RuleTrace {
    return this.#run(gm, { toFixpoint: true, ...(maxFired === undefined ? {} : { maxFired }) });
  }

  #run(gm: GraphModule, how: Partial<RulesRequest>): RuleTrace {
    const names = this.rules.map(({ name }) => name);
    const options = this.rules.map((it) => ({ matching: it.options, keepsSubmodules: true }) as ReplaceOptions);
    const others = this.rules.flatMap(({ pattern, replacement }) => [withOwner(pattern), withOwner(replacement)]);
    const notes = this.rules.some((it) => needsNotes(it.options));
    return runPass<RuleTrace, GraphModule>(gm, "run_rules", { options: { ...how, names, options }, others, notes })
      .answer;
  }
}

export type { Fired, RuleTrace };
