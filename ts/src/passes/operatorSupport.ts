/**
 * Which nodes a backend runs: `torch.fx.passes.operator_support`.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { isNode, checkNode } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";
import type { Module } from "../nn/module.ts";
import { type FxError, fxError } from "../base/errors.ts";
import { checkOverrides } from "../base/pythonNames.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { checkFunction } from "../base/given.ts";
import { dtypeOf, getNodeTarget, isCallable } from "./toolsCommon.ts";

/** The modules of a module, by their dotted paths. */
export type Submodules = ReadonlyMap<string, Module>;

/** Says whether a backend runs a node. */
export type IsNodeSupported = (submodules: Submodules, node: Node) => boolean;

/** Says which nodes a backend runs. */
export interface OperatorSupportBase {
  /** Whether it runs this one. */
  isNodeSupported(submodules: Submodules, node: Node): boolean;
}

/**
 * The dtypes that a function takes: those of its positional arguments, `undefined` where any will do, and those of its keyword
 * arguments. `undefined` for the whole means that any will do everywhere.
 */
export type SupportedArgumentDTypes =
  | readonly [args: readonly (readonly DType[] | undefined)[], kwargs: { readonly [name: string]: readonly DType[] }]
  | undefined;

/**
 * A table of the functions, methods and classes of modules that a backend runs, and of the dtypes that they take. What calls
 * nothing is supported.
 *
 * @example
 * ```ts
 * const support = new OperatorSupport({ "torch.add": undefined, "torch.relu": [[["float32"]], {}] });
 * ```
 */
export class OperatorSupport implements OperatorSupportBase {
  readonly #table: ReadonlyMap<string, SupportedArgumentDTypes>;

  constructor(table: { readonly [target: string]: SupportedArgumentDTypes } = {}) {
    checkOverrides(new.target, OperatorSupport);
    if (typeof table !== "object" || table === null || Array.isArray(table)) throw noTable("of targets");
    for (const [target, dtypes] of Object.entries(table)) if (!isDTypes(dtypes)) throw noTable(`at ${target}`);
    this.#table = new Map(Object.entries(table));
  }

  isNodeSupported(submodules: Submodules, node: Node): boolean {
    checkNode("isNodeSupported", node);
    if (!isCallable(node)) return true;
    const target = getNodeTarget(submodules, node);
    const dtypes = this.#table.get(target);
    if (dtypes === undefined) return this.#table.has(target);
    const [args, kwargs] = dtypes;
    return (
      args.every((allowed, at) => fits(node.args[at], allowed)) &&
      Object.entries(kwargs).every(([name, allowed]) => fits(node.kwargs[name], allowed))
    );
  }
}

function isDTypes(dtypes: SupportedArgumentDTypes): boolean {
  if (dtypes === undefined) return true;
  if (!Array.isArray(dtypes)) return false;
  const [args, kwargs] = dtypes;
  return Array.isArray(args) && typeof kwargs === "object" && kwargs !== null;
}

function noTable(where: string): FxError {
  return fxError("InvalidArgument", `OperatorSupport takes a table of dtypes, which there is not ${where}`, {
    help: 'new OperatorSupport({ "torch.add": undefined, "torch.relu": [[["float32"]], {}] })',
  });
}

/** Whether an argument has one of these dtypes, or is no node. */
function fits(arg: unknown, allowed: readonly DType[] | undefined): boolean {
  if (allowed === undefined || !isNode(arg)) return true;
  const dtype = dtypeOf(arg);
  return dtype !== undefined && allowed.includes(dtype);
}

/**
 * A backend of a function.
 *
 * @example
 * ```ts
 * const support = createOpSupport((_, node) => node.target !== "torch.sin");
 * ```
 */
export function createOpSupport(isNodeSupported: IsNodeSupported): OperatorSupportBase {
  checkFunction("createOpSupport", "isNodeSupported", isNodeSupported);
  return { isNodeSupported };
}

/**
 * What all of these support.
 *
 * @example
 * ```ts
 * const support = chain(table, OpSupports.declineIfInputDtype("int64"));
 * ```
 */
export function chain(...supports: readonly OperatorSupportBase[]): OperatorSupportBase {
  for (const it of supports) checkSupport("chain", it);
  return createOpSupport((submodules, node) => supports.every((it) => it.isNodeSupported(submodules, node)));
}

/**
 * What any of these supports.
 *
 * @example
 * ```ts
 * const support = anyChain(table, otherTable);
 * ```
 */
export function anyChain(...supports: readonly OperatorSupportBase[]): OperatorSupportBase {
  for (const it of supports) checkSupport("anyChain", it);
  return createOpSupport((submodules, node) => supports.some((it) => it.isNodeSupported(submodules, node)));
}

/**
 * Rules to be combined with {@link chain} and {@link anyChain}.
 *
 * @example
 * ```ts
 * const support = chain(table, OpSupports.declineIfNodeInNames(new Set(["add_3"])));
 * ```
 */
export const OpSupports = {
  /** Supports all nodes that take nothing of this dtype. */
  declineIfInputDtype: (dtype: DType): OperatorSupportBase =>
    createOpSupport((_, node) => node.allInputNodes.every((it) => dtypeOf(it) !== dtype)),
  /** Supports all nodes but those of these names. */
  declineIfNodeInNames: (names: ReadonlySet<string>): OperatorSupportBase => {
    if (!(names instanceof Set)) {
      throw fxError("InvalidArgument", "declineIfNodeInNames takes a set of names", { help: "new Set(names)" });
    }
    return createOpSupport((_, node) => !names.has(node.name));
  },
} as const;

/** Refuses what does not say which nodes a backend runs. */
export function checkSupport(what: string, support: OperatorSupportBase): void {
  if (typeof support?.isNodeSupported === "function") return;
  throw fxError("InvalidArgument", `${what} takes an OperatorSupport`, {
    help: "createOpSupport((submodules, node) => …) makes one of a function",
  });
}

/** For each node of a module whether a backend runs it. */
export function supportedNodes(module: GraphModule, support: OperatorSupportBase): boolean[] {
  checkGraphModule("supportedNodes", module);
  const submodules = module.namedModules();
  return Array.from(module.graph.nodes, (it) => support.isNodeSupported(submodules, it));
}
