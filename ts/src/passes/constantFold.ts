/**
 * What depends on constants alone, computed once and kept: inductor's `constant_fold`.
 *
 * @module
 */
import type { ConstantsAnswer } from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { runPass } from "../rewrite/bridge.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkOptions } from "../base/given.ts";
import { Tensor } from "../tensor/tensor.ts";

/** What {@link constantFold} folds. */
export interface ConstantFoldOptions {
  /** Whether a node may be folded: `constraint_fn`. Of one that may not, what it takes still may. */
  readonly constraintFn?: (node: Node) => boolean;
  /** The most bytes of one tensor that is made; of what would be larger, what it takes is folded. */
  readonly maxBytes?: number;
}

/**
 * Computes what depends on the tensors of a module alone, and makes the graph read the results from new buffers
 * (`_frozen_param0`), in place: `torch._inductor.constant_folding.constant_fold`. What is random, writes or is written to
 * stays, and so do calls of modules and the attributes that something else reads. Gives whether something was folded.
 *
 * @example
 * ```ts
 * constantFold(gm, { maxBytes: 1 << 20 });
 * ```
 */
export function constantFold(module: GraphModule, options: ConstantFoldOptions = {}): boolean {
  checkGraphModule("constantFold", module);
  checkOptions("constantFold", options, ["constraintFn", "maxBytes"]);
  const { constraintFn, maxBytes } = options;
  const mayFold = constraintFn === undefined ? [] : Array.from(module.graph.nodes, constraintFn);
  const run = (derive: boolean) => {
    const call = { options: { mayFold, maxBytes: maxBytes ?? null }, notes: true, derive };
    return runPass<ConstantsAnswer | null, GraphModule>(module, "constant_fold", call);
  };
  // The constants are computed before the module is changed: that may fail.
  const { answer, module: derived } = run(true);
  if (answer === null) return false;
  const { module: path, names } = answer;
  const constants = path === null ? undefined : (derived.getSubmodule(path) as GraphModule);
  const results = (constants?.forward() ?? []) as readonly unknown[];
  run(false);
  if (path === null) return true;
  module.attributes.delete(path);
  for (const [at, name] of names.entries()) {
    const result = results[at];
    if (!(result instanceof Tensor)) throw fxError("Internal", `the constant ${name} is no tensor`);
    module.attributes.set(name, { kind: "buffer", tensor: result });
  }
  return true;
}
