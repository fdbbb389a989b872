/**
 * Constraints on the shapes for which a graph runs: `torch.fx.experimental.migrate_gradual_types`.
 *
 * The engine solves what it decides; the rest is text in SMT-LIB 2, which Z3 answers where it is given.
 *
 * @module
 */
import { checkNode } from "../graph/args.ts";
import type { ConditionAnswer, ConstraintAnswer, SolverAnswer } from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkOptions } from "../base/given.ts";
import { moduleSpecs } from "./modules.ts";
import { hasOwnConstraints, hasOwnRules, type Ruled, withConstraints, withoutOwnNodes } from "./rules.ts";
import { checkType, type TensorType } from "./tensorType.ts";

export type { ConditionAnswer, ConstraintAnswer, SolverAnswer } from "../../../bindings/passes.ts";

/** What constraints are solved with. */
export interface ConstraintsOptions {
  /** Types that nodes are to have. */
  readonly require?: Iterable<readonly [Node, TensorType]>;
  /** How many steps the solver of the engine takes before it says `unknown`. */
  readonly budget?: number;
}

/**
 * Generates the constraints of a graph whose inputs are annotated, transforms them, and solves them:
 * `transform_all_constraints`.
 *
 * @example
 * ```ts
 * const { answer } = transformAllConstraints(gm);
 * if (answer.verdict === "unsat") console.log("there are no inputs for which this graph runs");
 * ```
 */
export function transformAllConstraints(gm: GraphModule, options: ConstraintsOptions = {}): ConstraintAnswer {
  return constraintsOf(gm, options, null);
}

/**
 * {@link transformAllConstraints}, and where the engine does not know, the answer of another solver.
 *
 * @example
 * ```ts
 * import { Z3 } from "tracefx/z3";
 * await using z3 = await Z3.load();
 * const { answer, variables } = await transformAllConstraintsWith(gm, z3);
 * console.log(answer.verdict, answer.types);
 * ```
 */
export async function transformAllConstraintsWith(
  gm: GraphModule,
  solver: SmtSolver,
  options: ConstraintsOptions = {},
): Promise<ConstraintAnswer> {
  checkSolver("transformAllConstraintsWith", solver);
  const own = transformAllConstraints(gm, options);
  if (own.answer.verdict !== "unknown") return own;
  return constraintsOf(gm, options, await solver.ask(own.answer.smtLib));
}

function constraintsOf(gm: GraphModule, options: ConstraintsOptions, answer: string | null): ConstraintAnswer {
  checkGraphModule("transformAllConstraints", gm);
  checkOptions("transformAllConstraints", options, ["require", "budget"]);
  const { module: shown, copies } = shownOf(gm);
  const copied = new Map([...shown.graph.nodes].map((node, place) => [node, place]));
  const places = new Map([...gm.graph.nodes].map((node) => [node, copied.get(copies?.get(node) ?? node) as number]));
  const require = requirements(options.require ?? []).map(([node, type]) => [placeOf(places, node), String(type)]);
  const call = { modules: moduleSpecs(shown), require, budget: options.budget ?? null, answer };
  const res = runPass<ConstraintAnswer, GraphModule>(shown, "transform_all_constraints", { options: call }).answer;
  return { ...res, variables: Array.from(places.values(), (place) => res.variables[place] ?? null) };
}

/** The module that the engine makes constraints of: without nodes of rules of one's own, or with what these say. */
function shownOf(gm: GraphModule): Pick<Ruled, "module"> & Partial<Ruled> {
  if (hasOwnConstraints(gm)) return withConstraints(gm);
  return hasOwnRules(gm) ? withoutOwnNodes(gm) : { module: gm };
}

/**
 * The constraints of a graph as SMT-LIB 2 text.
 *
 * @example
 * ```ts
 * writeFileSync("constraints.smt2", toSmtLib(gm)); // z3 constraints.smt2
 * ```
 */
export function toSmtLib(gm: GraphModule, options: ConstraintsOptions = {}): string {
  return transformAllConstraints(gm, options).answer.smtLib;
}

/**
 * Whether a condition on sizes can hold, and whether it can fail, given the nodes before it:
 * `evaluate_conditional_with_constraints`. Where one of them cannot, the branch is decided.
 *
 * @example
 * ```ts
 * const { condition, negation } = evaluateConditionalWithConstraints(gm, node);
 * if (negation.verdict === "unsat") console.log("the branch is always taken");
 * ```
 */
export function evaluateConditionalWithConstraints(gm: GraphModule, node: Node): ConditionAnswer {
  checkGraphModule("evaluateConditionalWithConstraints", gm);
  checkNode("evaluateConditionalWithConstraints", node);
  const places = new Map([...gm.graph.nodes].map((it, place) => [it, place]));
  const options = { modules: moduleSpecs(gm), node: placeOf(places, node) };
  return runPass<ConditionAnswer, GraphModule>(gm, "evaluate_conditional_with_constraints", { options }).answer;
}

/** The nodes with the types that they are to have; what is none is refused. */
function requirements(given: NonNullable<ConstraintsOptions["require"]>): (readonly [Node, TensorType])[] {
  const isList = typeof given === "object" && Symbol.iterator in given;
  const pairs = isList ? [...given] : undefined;
  if (pairs === undefined || !pairs.every(Array.isArray)) {
    throw fxError("InvalidArgument", "transformAllConstraints takes pairs of a node and a type as require", {
      help: "give them in brackets: [[node, new TensorType([2, Dyn])]]",
    });
  }
  for (const [node, type] of pairs) {
    checkNode("transformAllConstraints", node);
    checkType("transformAllConstraints", type);
  }
  return pairs;
}

function placeOf(places: ReadonlyMap<Node, number>, node: Node): number {
  const place = places.get(node);
  if (place === undefined) throw fxError("NodeForeign", `%${node.name} is not in this graph`, { node: node.name });
  return place;
}

/**
 * A solver that reads SMT-LIB 2: `Z3` of `tracefx/z3`, or a process that is given the text.
 *
 * @example
 * ```ts
 * const z3: SmtSolver = {
 *   ask: async (text) => execFileSync("z3", ["-in"], { input: text, encoding: "utf8" }),
 * };
 * ```
 */
export interface SmtSolver {
  /** What the solver prints for this text: `sat` and the model, `unsat`, or `unknown`. */
  ask(smtLib: string): Promise<string>;
}

/** Refuses what cannot be asked, such as a solver that is still loading. */
export function checkSolver(what: string, solver: SmtSolver): void {
  if (typeof (solver as SmtSolver | null | undefined)?.ask === "function") return;
  throw fxError("InvalidArgument", `${what} takes a solver that can be asked`, {
    help: "await Z3.load() of tracefx/z3 gives one",
  });
}

/**
 * The answer of the engine, or that of another solver where the engine does not know.
 *
 * @example
 * ```ts
 * import { Z3 } from "tracefx/z3";
 * await using z3 = await Z3.load();
 * const { condition } = evaluateConditionalWithConstraints(gm, node);
 * const verdict = await solveWith(condition, z3);
 * ```
 */
export async function solveWith(
  answer: Pick<SolverAnswer, "verdict" | "smtLib">,
  solver: SmtSolver,
): Promise<SolverAnswer["verdict"]> {
  checkSolver("solveWith", solver);
  if (answer.verdict !== "unknown") return answer.verdict;
  const [word] = (await solver.ask(answer.smtLib)).trim().split(/\s/u);
  return word === "sat" || word === "unsat" ? word : "unknown";
}
