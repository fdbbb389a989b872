/**
 * Which nodes a backend runs: `torch.fx.passes.operator_support`.
 *
 * @module
 */
import type { DType } from "../bindings/dtypes.ts";
import type { GraphModule } from "../graph/module.ts";
import { isNode } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";
import type { Module } from "../nn/module.ts";
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
    this.#table = new Map(Object.entries(table));
  }

  isNodeSupported(submodules: Submodules, node: Node): boolean {
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
  declineIfNodeInNames: (names: ReadonlySet<string>): OperatorSupportBase =>
    createOpSupport((_, node) => !names.has(node.name)),
} as const;

/** For each node of a module whether a backend runs it. */
export function supportedNodes(module: GraphModule, support: OperatorSupportBase): boolean[] {
  const submodules = module.namedModules();
  return Array.from(module.graph.nodes, (it) => support.isNodeSupported(submodules, it));
}
