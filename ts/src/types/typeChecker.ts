/**
 * The gradual type checker, and the inference of symbolic types. This folder has types and constraints; who solves them is
 * the engine or a solver that is given.
 *
 * @module
 */
import type { GraphModule } from "../fx/graphModule.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkOptions } from "../base/given.ts";
import { runPass } from "../rewrite/bridge.ts";
import { moduleSpecs } from "./modules.ts";
import { checkOwnNodes, hasOwnRules, inferOwnNodes } from "./rules.ts";

/**
 * Checks that the types of a graph's values fit together, and annotates every node with what follows:
 * `torch.fx.experimental.graph_gradual_typechecker.GraphTypeChecker`. What is not annotated is `Dyn`, and fits everything.
 *
 * @example
 * ```ts
 * const gm = symbolicTrace(new nn.Sequential(new nn.Linear(4, 2), new nn.ReLU()));
 * for (const input of gm.graph.findNodes({ op: "placeholder" })) input.type = String(new TensorType([Dyn, 4]));
 * new GraphTypeChecker(gm).typeCheck();
 * ```
 */
export class GraphTypeChecker {
  readonly #traced: GraphModule;

  constructor(traced: GraphModule) {
    checkGraphModule("GraphTypeChecker", traced);
    this.#traced = traced;
  }

  /**
   * Checks the graph.
   *
   * @throws {@link RewriteError} where types do not fit; the annotations stay as they were.
   */
  typeCheck(): boolean {
    if (hasOwnRules(this.#traced)) checkOwnNodes(this.#traced, check);
    else check(this.#traced);
    return true;
  }
}

/** How types are inferred. */
export interface InferSymbolicTypesOptions {
  /** Whether to stop after one pass, as `infer_symbolic_types_single_pass` does. */
  readonly singlePass?: boolean;
}

/**
 * Names the unknown dimensions of a graph that was checked, finds those that are equal, and writes the sizes that
 * convolutions give in terms of those that go in: `torch.fx.experimental.unify_refinements.infer_symbolic_types`.
 *
 * @example
 * ```ts
 * new GraphTypeChecker(gm).typeCheck();
 * inferSymbolicTypes(gm); // TensorType[(Dyn, 3)] becomes TensorType[(~0, 3)]
 * ```
 */
export function inferSymbolicTypes(gm: GraphModule, options: InferSymbolicTypesOptions = {}): void {
  checkGraphModule("inferSymbolicTypes", gm);
  checkOptions("inferSymbolicTypes", options, ["singlePass"]);
  const { singlePass = false } = options;
  const infer = (it: GraphModule): void =>
    void runPass(it, "infer_symbolic_types", { options: { modules: moduleSpecs(it), singlePass } });
  if (hasOwnRules(gm)) inferOwnNodes(gm, infer);
  else infer(gm);
}

function check(gm: GraphModule): void {
  runPass(gm, "type_check", { options: { modules: moduleSpecs(gm) } });
}
