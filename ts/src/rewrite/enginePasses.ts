/**
 * Passes of the engine that change a graph in place, under torch.fx's names.
 *
 * @module
 */
import { CSE_BANNED_OPS } from "../../../bindings/effects.ts";
import {
  ANNOTATE_OPTIONS,
  type AnnotateOptions,
  CSE_OPTIONS,
  FUNCTIONALIZE_OPTIONS,
  type FunctionalizeOptions as EngineFunctionalizeOptions,
  type InsertedAsserts,
  type LeftOut,
  NORMALIZE_ARGS_OPTIONS,
  type NormalizeArgsOptions,
  RUNTIME_ASSERT_CALL,
  type RuntimeAssertCall,
} from "../../../bindings/passes.ts";
import { fxError } from "../base/errors.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { type NamedTarget, targetOf } from "../graph/target.ts";
import { runPass } from "./bridge.ts";
import { checkGraphModule } from "./checks.ts";
import { checkOptions } from "../base/given.ts";
import { notingValues } from "./noteValues.ts";
import { PassBase, type PassResult } from "./passBase.ts";

/** What a pass of the engine says. */
interface Answer {
  readonly modified: boolean;
  readonly leftOut?: readonly LeftOut[];
}

function inPlace(graphModule: GraphModule, name: string, options: object = {}, notes = false): PassResult {
  checkGraphModule(name, graphModule);
  const { answer } = notingValues(graphModule, () =>
    runPass<Answer, GraphModule>(graphModule, name, { options, notes }),
  );
  const { modified, leftOut = [] } = answer;
  return { graphModule, modified, ...(leftOut.length > 0 ? { leftOut } : {}) };
}

/** Which calls {@link CSEPass} leaves alone. */
export interface CSEOptions {
  /** Functions that are not merged; of an operator without an overload, all overloads are meant. */
  readonly bannedOps?: Iterable<string | NamedTarget>;
}

/**
 * The operators that must not be merged because two calls of them give different values or change something:
 * `get_CSE_banned_ops`.
 *
 * @example
 * ```ts
 * new CSEPass({ bannedOps: getCSEBannedOps() }).run(gm);
 * ```
 */
export function getCSEBannedOps(): Set<string> {
  return new Set(CSE_BANNED_OPS);
}

/**
 * Merges calls that compute the same from the same, in place: `torch.fx.passes.dialect.common.cse_pass.CSEPass`. The first of
 * them stays. `1`, `1.0` and `True` are different here, as are `0.0` and `-0.0`.
 *
 * @example
 * ```ts
 * const { modified } = new CSEPass().call(gm);
 * ```
 */
export class CSEPass extends PassBase {
  readonly #bannedOps: readonly string[];

  constructor(options: CSEOptions = {}) {
    super();
    checkOptions("CSEPass", options, CSE_OPTIONS);
    const { bannedOps = [] } = options;
    if (typeof bannedOps === "string" || typeof bannedOps?.[Symbol.iterator] !== "function") {
      throw fxError("InvalidOption", "bannedOps is a list of functions", {
        help: `give ["${typeof bannedOps === "string" ? bannedOps : "aten.add.Tensor"}"]`,
      });
    }
    this.#bannedOps = Array.from(bannedOps, targetOf);
  }

  override call(graphModule: GraphModule): PassResult {
    return inPlace(graphModule, "CSEPass", { bannedOps: this.#bannedOps });
  }
}

/**
 * Gives calls of functions and of modules of `torch.nn` their arguments in one form, in place, with all defaults there:
 * `torch.fx.experimental.normalize.NormalizeArgs`. What is known of the values of nodes tells overloads apart; a call that
 * stays ambiguous is left as it is.
 *
 * @example
 * ```ts
 * new NormalizeArgs({ normalizeToOnlyUseKwargs: false }).run(gm);
 * ```
 */
export class NormalizeArgs extends PassBase {
  readonly #options: Partial<NormalizeArgsOptions>;

  constructor(options: Partial<NormalizeArgsOptions> = {}) {
    super();
    checkOptions("NormalizeArgs", options, NORMALIZE_ARGS_OPTIONS);
    this.#options = options;
  }

  override call(graphModule: GraphModule): PassResult {
    return inPlace(graphModule, "NormalizeArgs", this.#options, true);
  }
}

/**
 * Gives nodes without a type the one that the function, the module or the attribute has, in place:
 * `torch.fx.experimental.schema_type_annotation.AnnotateTypesWithSchema`.
 *
 * @example
 * ```ts
 * new AnnotateTypesWithSchema({ annotateModules: false }).run(gm);
 * ```
 */
export class AnnotateTypesWithSchema extends PassBase {
  readonly #options: Partial<AnnotateOptions>;

  constructor(options: Partial<AnnotateOptions> = {}) {
    super();
    checkOptions("AnnotateTypesWithSchema", options, ANNOTATE_OPTIONS);
    this.#options = options;
  }

  override call(graphModule: GraphModule): PassResult {
    return inPlace(graphModule, "AnnotateTypesWithSchema", this.#options);
  }
}

/**
 * Spells `torch.add` and its like as Python's operators, in place, and annotates types:
 * `torch.fx.experimental.normalize.NormalizeOperators`. Calls with options such as `alpha` are left alone.
 *
 * @example
 * ```ts
 * new NormalizeOperators().run(gm);
 * ```
 */
export class NormalizeOperators extends PassBase {
  override call(graphModule: GraphModule): PassResult {
    return inPlace(graphModule, "NormalizeOperators");
  }
}

/**
 * Gives each item of an annotated tuple or list the type that it has: `torch.fx.passes.annotate_getitem_nodes`.
 *
 * @example
 * ```ts
 * annotateGetitemNodes(gm);
 * ```
 */
export function annotateGetitemNodes(graphModule: GraphModule): void {
  inPlace(graphModule, "annotate_getitem_nodes");
}

/**
 * Makes one node of all that read the same item of the same result, by its number or name, in place and in the graphs inside:
 * what `ExportedProgram` does when it is made.
 *
 * @example
 * ```ts
 * const { modified } = mergeGetitems(gm);
 * ```
 */
export function mergeGetitems(graphModule: GraphModule): PassResult {
  return inPlace(graphModule, "merge_getitems");
}

/** What {@link functionalize} takes out. */
export type FunctionalizeOptions = Partial<EngineFunctionalizeOptions>;

/**
 * Takes writes out of a graph of operators, in place: `torch.func.functionalize`. Who looks at the same storage gets the new
 * values, and what was written to an input is copied into it at the end. The inputs must be known (`meta.val`).
 *
 * @example
 * ```ts
 * functionalize(gm, { remove: "mutations_and_views" });
 * ```
 */
export function functionalize(graphModule: GraphModule, options: FunctionalizeOptions = {}): GraphModule {
  checkOptions("functionalize", options, FUNCTIONALIZE_OPTIONS);
  inPlace(graphModule, "functionalize", options, true);
  return graphModule;
}

/**
 * Makes operators write into their first argument where that is not needed afterwards, in place:
 * `torch.fx.passes.reinplace`. The values of the nodes must be known, from `FakeTensorProp` or `ShapeProp`.
 *
 * @example
 * ```ts
 * new FakeTensorProp(gm).propagate(x);
 * reinplace(gm);
 * ```
 */
export function reinplace(graphModule: GraphModule): GraphModule {
  inPlace(graphModule, "reinplace", {}, true);
  return graphModule;
}

/**
 * Inserts checks of what must hold of sizes that only the data decides, behind the nodes that give them, in place:
 * `torch.fx.passes.runtime_assert.insert_deferred_runtime_asserts`. What nodes give must be known (`meta.val`), as it is in
 * exported programs. The answer says which conditions are not checked, since no node gives one of their symbols.
 *
 * @example
 * ```ts
 * insertDeferredRuntimeAsserts(gm, { ranges: { u0: [2, null] }, asserts: ["u0 <= s0"] });
 * ```
 */
export function insertDeferredRuntimeAsserts(
  graphModule: GraphModule,
  known: Partial<RuntimeAssertCall> = {},
): InsertedAsserts {
  checkOptions("insertDeferredRuntimeAsserts", known, RUNTIME_ASSERT_CALL);
  const call = { options: known, notes: true };
  return runPass<InsertedAsserts, GraphModule>(graphModule, "insert_deferred_runtime_asserts", call).answer;
}

/**
 * Takes batch normalizations in evaluation into the convolutions and linear layers before them, in place, in graphs of
 * operators: what `fuse` does of modules. The new weights are computed in the graph; `constantFold` computes them once.
 * `leftOut` says of each normalization that stays why it does.
 *
 * @example
 * ```ts
 * const { leftOut = [] } = fuseBatchNorm(gm);
 * for (const { node, reason } of leftOut) console.warn(`${node}: ${reason}`);
 * constantFold(gm);
 * ```
 */
export function fuseBatchNorm(graphModule: GraphModule): PassResult {
  return inPlace(graphModule, "fuse_batch_norm", {}, true);
}

/**
 * Makes linear layers whose result is only used with its last two dimensions swapped give it that way, in place, in graphs
 * of operators: inductor's `linear_permute_fusion`. What nodes give must be known (`meta.val`). `leftOut` says of each swap
 * of a linear layer that stays why it does.
 *
 * @example
 * ```ts
 * linearPermuteFusion(gm);
 * ```
 */
export function linearPermuteFusion(graphModule: GraphModule): PassResult {
  return inPlace(graphModule, "linear_permute_fusion", {}, true);
}

/**
 * Merges products of matrices that have the same right-hand side and do not depend on each other, in place:
 * `torch.fx.experimental.merge_matmul`. Arguments must be known to be matrices, from `FakeTensorProp` or `ShapeProp`.
 *
 * @example
 * ```ts
 * new FakeTensorProp(gm).propagate(x, y);
 * mergeMatmul(gm);
 * ```
 */
export function mergeMatmul(graphModule: GraphModule): GraphModule {
  inPlace(graphModule, "merge_matmul", {}, true);
  return graphModule;
}
