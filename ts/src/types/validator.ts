/**
 * Validation of guards: whether those that are checked imply those that were asked for.
 *
 * @module
 */
import type { GuardAnswer } from "../bindings/passes.ts";
import { Graph } from "../graph/graph.ts";
import { runPass } from "../rewrite/bridge.ts";

export type { GuardAnswer } from "../bindings/passes.ts";

/** The sizes that a symbol may have; `null` is no bound. */
export type SymbolRange = readonly [min: number | null, max: number | null];

/**
 * Checks guards on symbolic sizes, as `torch.fx.experimental.validator.TranslationValidator` does: whenever the target
 * expressions hold, the source expressions must hold, too. Expressions are written as PyTorch prints them.
 *
 * @example
 * ```ts
 * const validator = new TranslationValidator();
 * validator.addVar("s0", [2, null]);
 * validator.addSourceExpr("Mod(s0, 2) == 0");
 * validator.addTargetExpr("Mod(s0, 4) == 0");
 * validator.validate().validation; // "valid"
 * ```
 */
export class TranslationValidator {
  readonly #ranges = new Map<string, SymbolRange>();
  readonly #source: string[] = [];
  readonly #target: string[] = [];
  readonly #assertions: string[] = [];

  /** Adds a symbol with its range. */
  addVar(symbol: string, range: SymbolRange = [null, null]): void {
    this.#ranges.set(symbol, range);
  }

  /** Adds what is asked for. */
  addSourceExpr(expr: string): void {
    this.#source.push(expr);
  }

  /** Adds what is checked when the program runs. */
  addTargetExpr(expr: string): void {
    this.#target.push(expr);
  }

  /** Adds what holds anyway. */
  addAssertion(expr: string): void {
    this.#assertions.push(expr);
  }

  /**
   * Checks the guards. Where nothing is known of them, the answer has the question for another solver.
   *
   * @throws {@link RewriteError} with sizes for which the target holds and the source does not.
   */
  validate(): GuardAnswer {
    const options = {
      ranges: Object.fromEntries(this.#ranges),
      source: this.#source,
      target: this.#target,
      assertions: this.#assertions,
    };
    // Guards are of no graph; the pass takes an empty one.
    const graph = new Graph();
    graph.output(null);
    return runPass<GuardAnswer, Graph>(graph, "validate_guards", { options }).answer;
  }
}
