/**
 * Validation of guards: whether those that are checked imply those that were asked for.
 *
 * @module
 */
import type { BisectAnswer, GuardAnswer } from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import { ExportedProgram } from "../export/exportedProgram.ts";
import { checkGiven, checkList, checkText } from "../base/given.ts";
import { isNode } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkSolver, type SmtSolver } from "./constraints.ts";

export type { GuardAnswer } from "../../../bindings/passes.ts";

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
  /** For each of what is asked for, the node that it is of, and how many targets there were. */
  readonly #origins: { readonly node: string | undefined; readonly known: number }[] = [];

  /**
   * The guards of a program. What is checked is the ranges of its inputs' symbols, its guards on inputs, and what its graph
   * asserts; what must follow is the other ranges, and the sizes that nodes are noted to give (`meta.val`) where their
   * operators by themselves give others. More can be asked for by {@link TranslationValidator.addSourceExpr}.
   *
   * @example
   * ```ts
   * const program = await load("model.pt2");
   * const validator = TranslationValidator.ofProgram(program);
   * validator.addSourceExpr("s0 <= 512");
   * validator.validate(); // throws, with sizes that the program takes and that are larger
   * ```
   */
  static ofProgram(program: ExportedProgram): TranslationValidator {
    if (!(program instanceof ExportedProgram)) {
      throw fxError("InvalidArgument", "TranslationValidator.ofProgram takes an ExportedProgram", {
        help: 'await load("model.pt2") gives one',
      });
    }
    const { ranges, source, target } = program.guards();
    const validator = new TranslationValidator();
    for (const [symbol, range] of Object.entries(ranges)) validator.addVar(symbol, range);
    for (const [expr] of target) validator.addTargetExpr(expr);
    for (const [expr, node] of source) validator.addSourceExpr(expr, node ?? undefined);
    return validator;
  }

  /** Adds a symbol with its range. */
  addVar(symbol: string, range: SymbolRange = [null, null]): void {
    checkList("addVar", "range", range);
    const [least, most] = range;
    if (typeof symbol !== "string" || (least !== null && most !== null && least > most)) {
      throw fxError("InvalidArgument", `addVar takes a symbol and a range, not ${symbol} and [${least}, ${most}]`, {
        help: 'a range goes from its least size to its largest: addVar("s0", [2, null])',
      });
    }
    this.#ranges.set(symbol, range);
  }

  /** Adds what is asked for, and the node for which it is. */
  addSourceExpr(expr: string, node?: Node | string): void {
    checkText("addSourceExpr", "the expression", expr);
    const name = isNode(node) ? node.name : node;
    checkGiven(
      "addSourceExpr",
      name === undefined || typeof name === "string",
      "a Node, or its name, behind the expression",
    );
    this.#source.push(expr);
    this.#origins.push({ node: name, known: this.#target.length });
  }

  /** Adds what is checked when the program runs. */
  addTargetExpr(expr: string): void {
    checkText("addTargetExpr", "the expression", expr);
    this.#target.push(expr);
  }

  /** Adds what holds anyway. */
  addAssertion(expr: string): void {
    checkText("addAssertion", "the expression", expr);
    this.#assertions.push(expr);
  }

  /**
   * Checks the guards. Where nothing is known of them, the answer has the question for another solver.
   *
   * @throws {@link RewriteError} with sizes for which the target holds and the source does not.
   */
  validate(): GuardAnswer {
    return this.#run<GuardAnswer>("validate_guards", null);
  }

  /**
   * Checks the guards, and asks another solver where the engine does not know.
   *
   * @example
   * ```ts
   * import { Z3 } from "tracefx/z3";
   * await using z3 = await Z3.load();
   * const { validation } = await validator.validateWith(z3);
   * ```
   * @throws {@link RewriteError} as {@link TranslationValidator.validate}.
   */
  async validateWith(solver: SmtSolver): Promise<GuardAnswer> {
    checkSolver("validateWith", solver);
    const own = this.validate();
    return own.validation === "unknown" ? this.#run("validate_guards", await solver.ask(own.smtLib)) : own;
  }

  /**
   * Finds where validation begins to fail: `torch.fx.experimental.validator.bisect`. It throws for an expression that does not
   * follow from what was checked when it was added, while the engine finds nothing wrong with those before it. Where
   * validation fails, passes and fails again, that need not be the first such place, and what the engine cannot decide counts
   * as right. Of a program it is a range, or a node whose sizes do not follow from what the program checks.
   *
   * @example
   * ```ts
   * try {
   *   TranslationValidator.ofProgram(program).bisect();
   * } catch (error) {
   *   if (error instanceof RewriteError) console.log(error.node, error.notes);
   * }
   * ```
   * @throws {@link RewriteError} with that expression, sizes, and its node if it is of one.
   */
  bisect(): void {
    const { at, notes } = this.#run<BisectAnswer>("bisect_guards", null);
    if (at === null) return;
    const node = this.#origins[at]?.node;
    throw fxError("VerifyFailed", `translation validation failed when evaluating: ${this.#source[at]}`, {
      node,
      notes,
      help: "for these sizes the checks that were kept pass, and what they stand for does not hold",
    });
  }

  #run<T>(pass: string, answer: string | null): T {
    const options = {
      ranges: Object.fromEntries(this.#ranges),
      source: this.#source,
      target: this.#target,
      assertions: this.#assertions,
      known: this.#origins.map((it) => it.known),
      answer,
    };
    // Guards are of no graph; the pass takes an empty one.
    const graph = new Graph();
    graph.output(null);
    return runPass<T, Graph>(graph, pass, { options }).answer;
  }
}
