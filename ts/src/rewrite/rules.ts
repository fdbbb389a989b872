/**
 * Rules: patterns with what takes their place, as values that run in sets. The engine runs them.
 *
 * @module
 */
import type { Bytes } from "../base/bytes.ts";
import type { Fired, ReplaceOptions, RulesRequest, RuleTrace } from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import { Graph } from "../graph/graph.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { checkGiven, checkList, checkOptions } from "../base/given.ts";
import { loadGraphModule, saveGraphModule } from "../save/graphModule.ts";
import type { Outlined } from "../wire/outline.ts";
import { notingValues } from "./noteValues.ts";
import { runPass } from "./bridge.ts";
import { checkGraphModule } from "./checks.ts";
import { MATCHING, type MatcherOptions, needsNotes, type PatternSource, patternOf, withOwner } from "./matcher.ts";
import { engineOptions, isVerified, type ReplacePatternOptions } from "./replacePattern.ts";

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
    checkOptions("Rule", options, [...MATCHING, "verify"]);
    this.name = name;
    this.pattern = patternOf(pattern);
    this.replacement = patternOf(replacement);
    this.options = options;
  }

  /**
   * The rule as an `.fxg` file, which {@link Rule.load} reads, and Rust: the file holds a module with the pattern and the
   * replacement, and the rest as notes.
   *
   * @example
   * ```ts
   * await writeFile("neg_of_neg.fxg", rule.save());
   * ```
   */
  save(): Bytes {
    const res = new GraphModule({}, new Graph(), CLASS);
    res.meta.set(NAME, this.name);
    res.meta.set(OPTIONS, JSON.stringify(engineOptions(this.options, true)));
    for (const part of ["pattern", "replacement"] as const) {
      const it = this[part];
      const graph = (it instanceof Graph ? it : it.graph).clone();
      // What tracing noted, such as the places of files, is no part of the rule.
      for (const node of graph.nodes) node.meta.clear();
      res.addSubmodule(part, it instanceof Graph ? GraphModule.ofGraph(graph) : new GraphModule(it, graph));
    }
    return saveGraphModule(res);
  }

  /** Reads what {@link Rule.save}, or Rust, wrote. A file has no code in it. */
  static load(file: Uint8Array): Rule {
    const { meta, attributes } = loadGraphModule(file);
    const part = (name: string): GraphModule => {
      const found = attributes.get(name);
      if (found?.kind === "module" && found.module instanceof GraphModule) return found.module;
      throw fxError("AttributeMissing", `the file holds no ${name}, and so no rule`, {
        help: "loadGraphModule reads other modules",
      });
    };
    const name = meta.get(NAME);
    const options = meta.get(OPTIONS);
    const { matching = {}, verify = false } = typeof options === "string" ? readOptions(options) : {};
    // A replacement fixes these two, whatever the options of its matcher say.
    const { matchOutput: _, removeOverlappingMatches: __, ...rest } = matching as MatcherOptions;
    const how = { ...rest, ...(verify === false ? {} : { verify }) };
    return new Rule(typeof name === "string" ? name : "rule", part("pattern"), part("replacement"), how);
  }
}

/** The options of a file; the engine checks what is in them. */
function readOptions(text: string): Partial<ReplaceOptions> {
  try {
    return JSON.parse(text) as Partial<ReplaceOptions>;
  } catch (cause) {
    throw fxError("WireMalformed", "the options of the rule are no JSON", { cause });
  }
}

/** The class of a module that holds a rule, and the notes in which its name and options stand. */
const CLASS = "tracefx.Rule";
const NAME = "tracefx.rule.name";
const OPTIONS = "tracefx.rule.options";

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
    checkList("RuleSet", "rules", rules);
    for (const it of rules)
      checkGiven("RuleSet", (it as unknown) instanceof Rule, "rules in its list", "new Rule(…) makes one");
    this.rules = rules;
  }

  /** Applies each rule once, in order, wherever it matches, and says what was applied where. */
  runOnce(gm: GraphModule): RuleTrace {
    checkGraphModule("runOnce", gm);
    return this.#run(gm, {});
  }

  /**
   * Applies rules until none matches any more. Rules that go on for ever are stopped after `maxFired` applications, by
   * default a thousand and ten for each node.
   */
  runToFixpoint(gm: GraphModule, options: Pick<RulesRequest, "maxFired"> = {}): RuleTrace {
    checkOptions("runToFixpoint", options, ["maxFired"]);
    checkGraphModule("runToFixpoint", gm);
    const { maxFired } = options;
    return this.#run(gm, { toFixpoint: true, ...(maxFired === undefined ? {} : { maxFired }) });
  }

  #run(gm: GraphModule, how: Partial<RulesRequest>): RuleTrace {
    const names = this.rules.map(({ name }) => name);
    const options = this.rules.map((it) => engineOptions(it.options, true));
    const others = this.rules.flatMap(({ pattern, replacement }) => [withOwner(pattern), withOwner(replacement)]);
    const notes = this.rules.some(({ options: it }) => needsNotes(it) || isVerified(it.verify));
    const call = { options: { ...how, names, options }, others, notes };
    return notingValues(gm, () => runPass<RuleTrace, GraphModule>(gm, "run_rules", call).answer);
  }
}

export type { Fired, RuleTrace };
