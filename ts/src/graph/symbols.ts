/**
 * Which symbols sizes and values depend on, and which nodes bind them: the part of `torch.fx.experimental.symbolic_shapes` that
 * reads graphs.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { checkNode } from "./args.ts";
import { type Expression, parseExpression } from "./expression.ts";
import { checkGraph, type Graph } from "./graph.ts";
import type { Node } from "./node.ts";
import { isVal, SymExpr, TensorMeta, type Val, ValSequence } from "./val.ts";

/** A value, several of them, or nothing. */
export type SymbolSource = Val | undefined | readonly SymbolSource[];

/** How the names of symbols begin whose values only the data tells. */
const UNBACKED = /^(?:u|zuf)\d+$/;

/**
 * The names of the symbols that a value depends on: those of a tensor are in its sizes, strides and offset. `free_symbols`.
 *
 * @example
 * ```ts
 * freeSymbols(node.meta.get("val") as TensorMeta); // Set { "s77" }
 * ```
 */
export function freeSymbols(value: SymbolSource): Set<string> {
  const res = new Set<string>();
  collect(value, res);
  return res;
}

/**
 * Whether a value depends on symbols: `has_free_symbols`.
 *
 * @example
 * ```ts
 * hasFreeSymbols([2, 3]); // false
 * ```
 */
export function hasFreeSymbols(value: SymbolSource): boolean {
  return freeSymbols(value).size > 0;
}

/**
 * The names of the symbols that a value depends on and that only the data tells, such as what `item()` gives:
 * `free_unbacked_symbols`.
 *
 * @example
 * ```ts
 * freeUnbackedSymbols(item.meta.get("val") as SymExpr); // Set { "u0" }
 * ```
 */
export function freeUnbackedSymbols(value: SymbolSource): Set<string> {
  return new Set([...freeSymbols(value)].filter((it) => UNBACKED.test(it)));
}

/**
 * Whether a value depends on symbols that only the data tells: `has_free_unbacked_symbols`.
 *
 * @example
 * ```ts
 * hasFreeUnbackedSymbols(new SymExpr("Symbol('u0', integer=True)")); // true
 * ```
 */
export function hasFreeUnbackedSymbols(value: SymbolSource): boolean {
  return freeUnbackedSymbols(value).size > 0;
}

function collect(value: SymbolSource, into: Set<string>): void {
  if (value instanceof TensorMeta) {
    for (const it of [...value.sizes, ...value.strides, value.storageOffset]) collect(it, into);
  } else if (value instanceof SymExpr) collectNames(parseExpression(value), into);
  else if (value instanceof ValSequence) for (const it of value.items) collect(it, into);
  else if (Array.isArray(value)) for (const it of value as readonly SymbolSource[]) collect(it, into);
  else checkGiven("freeSymbols", value === undefined || isVal(value), "a value that `meta.val` may have");
}

function collectNames(expression: Expression, into: Set<string>): void {
  if (expression.kind === "symbol") into.add(expression.name);
  else if (expression.kind === "call") for (const it of expression.args) collectNames(it, into);
}

/**
 * Whether a number or truth value is an expression, and no constant: `is_symbolic`.
 *
 * @example
 * ```ts
 * isSymbolic(3); // false
 * ```
 */
export function isSymbolic(value: Val): boolean {
  return value instanceof SymExpr && hasFreeSymbols(value);
}

/**
 * Whether a size is known as a number: `is_concrete_int`.
 *
 * @example
 * ```ts
 * isConcreteInt(3); // true
 * ```
 */
export function isConcreteInt(value: number | bigint | SymExpr): boolean {
  return !(value instanceof SymExpr) || parseExpression(value).kind === "number";
}

/**
 * Whether sizes, strides or the offset of a tensor depend on symbols: `has_symbolic_sizes_strides`.
 *
 * @example
 * ```ts
 * hasSymbolicSizesStrides(node.meta.get("val") as TensorMeta);
 * ```
 */
export function hasSymbolicSizesStrides(tensor: TensorMeta): boolean {
  checkGiven("hasSymbolicSizesStrides", tensor instanceof TensorMeta, "a TensorMeta", 'node.meta.get("val") is one');
  return hasFreeSymbols(tensor);
}

/**
 * The name of the symbol whose value a node gives: an input that is a size, or a node whose size only the data tells.
 * `is_symbol_binding_fx_node`.
 *
 * @example
 * ```ts
 * isSymbolBindingFxNode(item); // "u0"
 * ```
 */
export function isSymbolBindingFxNode(node: Node): string | undefined {
  checkNode("isSymbolBindingFxNode", node);
  const val = node.meta.get("val");
  const expression = val instanceof SymExpr ? parseExpression(val) : undefined;
  if (expression?.kind !== "symbol") return undefined;
  return node.op === "placeholder" || UNBACKED.test(expression.name) ? expression.name : undefined;
}

/**
 * The nodes that give the values of symbols, the first of each: `find_symbol_binding_fx_nodes`.
 *
 * @example
 * ```ts
 * findSymbolBindingFxNodes(program.graph).get("u0")?.name; // "item"
 * ```
 */
export function findSymbolBindingFxNodes(graph: Graph): Map<string, Node> {
  checkGraph("findSymbolBindingFxNodes", graph);
  const res = new Map<string, Node>();
  for (const node of graph.nodes) {
    const symbol = isSymbolBindingFxNode(node);
    if (symbol !== undefined && !res.has(symbol)) res.set(symbol, node);
  }
  return res;
}

const ACCESSORS: ReadonlySet<string> = new Set(
  [
    "sym_size",
    "sym_size.default",
    "sym_size.int",
    "sym_stride",
    "sym_stride.default",
    "sym_stride.int",
    "sym_storage_offset",
    "sym_storage_offset.default",
    "sym_numel.default",
  ].map((it) => `torch.ops.aten.${it}`),
);

/**
 * Whether a node reads a size, a stride or an offset of a tensor: `is_accessor_node`.
 *
 * @example
 * ```ts
 * const sizes = program.graph.nodes.filter(isAccessorNode);
 * ```
 */
export function isAccessorNode(node: Node): boolean {
  checkNode("isAccessorNode", node);
  return node.op === "call_function" && ACCESSORS.has(node.target);
}

/**
 * What is known of the inputs of a graph, in order: `fx_placeholder_vals`.
 *
 * @example
 * ```ts
 * fxPlaceholderVals(program.graphModule);
 * ```
 */
export function fxPlaceholderVals(module: { readonly graph: Graph }): unknown[] {
  checkGraph("fxPlaceholderVals", module?.graph);
  return module.graph.findNodes({ op: "placeholder" }).map((it) => it.meta.get("val"));
}

/**
 * The names of the inputs of a graph, in order: `fx_placeholder_targets`.
 *
 * @example
 * ```ts
 * fxPlaceholderTargets(program.graphModule); // ["p_weight", "x"]
 * ```
 */
export function fxPlaceholderTargets(module: { readonly graph: Graph }): string[] {
  checkGraph("fxPlaceholderTargets", module?.graph);
  return module.graph.findNodes({ op: "placeholder" }).map((it) => it.target);
}
