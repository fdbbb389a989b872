/**
 * What a pass is: `torch.fx.passes.infra.pass_base`.
 *
 * @module
 */
import type { LeftOut } from "../../../bindings/passes.ts";
import { checkFunction } from "../base/given.ts";
import { checkOverriding } from "../base/pythonNames.ts";
import { GraphModule } from "../fx/graphModule.ts";

export type { LeftOut };

/** What a pass gave: `torch.fx.passes.infra.pass_base.PassResult`. */
export interface PassResult {
  /** The module, which may be another one than the pass was given. */
  readonly graphModule: GraphModule;
  /** Whether the pass changed anything. */
  readonly modified: boolean;
  /** What the pass looks for and left as it is, with the reason, from passes that say so. */
  readonly leftOut?: readonly LeftOut[];
}

/**
 * A pass over modules. What extends it says what it does in `call`, and may refuse modules before (`requires`) and after
 * (`ensures`).
 *
 * @example
 * ```ts
 * class ReplaceAddWithMul extends PassBase {
 *   override call(graphModule: GraphModule): PassResult {
 *     const adds = graphModule.graph.findNodes({ op: "call_function", target: "operator.add" });
 *     for (const node of adds) node.target = "operator.mul";
 *     return { graphModule, modified: adds.length > 0 };
 *   }
 * }
 * ```
 */
export abstract class PassBase {
  /** Runs the pass between its checks: what calling the pass does in PyTorch. */
  run(graphModule: GraphModule): PassResult | undefined {
    checkOverriding(this, PassBase);
    this.requires(graphModule);
    const result = this.call(graphModule);
    this.ensures(graphModule);
    return result;
  }

  /** Runs the pass. */
  abstract call(graphModule: GraphModule): PassResult | undefined;

  /** Throws where the pass cannot run on the module. */
  requires(_graphModule: GraphModule): void {}

  /** Throws where the pass left behind what it should not have. */
  ensures(_graphModule: GraphModule): void {}
}

/** A function that is a pass. */
export type PassFunction = (graphModule: GraphModule) => PassResult | undefined;

/** A pass: an object of a class, or a function. */
export type Pass = PassBase | PassFunction;

/** The name of a pass: of its class, or of the function. */
export function passName(pass: Pass): string {
  return typeof pass === "function" ? pass.name : pass.constructor.name;
}

/** Runs a pass of either kind. */
export function runPassOn(pass: Pass, graphModule: GraphModule): PassResult | undefined {
  return typeof pass === "function" ? pass(graphModule) : pass.run(graphModule);
}

/**
 * Makes a pass of a function that gives a module, or nothing where it changes the one that it is given:
 * `torch.fx.passes.infra.pass_manager.pass_result_wrapper`. The module counts as changed.
 *
 * @example
 * ```ts
 * const pass = passResultWrapper((gm) => void gm.graph.eliminateDeadCode());
 * ```
 */
export function passResultWrapper(run: (graphModule: GraphModule) => unknown): PassFunction {
  checkFunction("passResultWrapper", "the pass", run);
  const pass: PassFunction = (graphModule) => {
    const result = run(graphModule);
    if (isPassResult(result)) return result;
    return { graphModule: result instanceof GraphModule ? result : graphModule, modified: true };
  };
  Object.defineProperty(pass, "name", { value: run.name });
  return pass;
}

/** Whether this is what a pass gives. */
export function isPassResult(value: unknown): value is PassResult {
  return typeof value === "object" && value !== null && "graphModule" in value;
}
