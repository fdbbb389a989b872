/**
 * Tracing, and what traces give: graph modules, what runs them, and their graphs. The package's own name has all of this, too;
 * `tracefx/trace` comes without programs, passes, layers and the object `torch`, which `tracefx/nn` and `tracefx/torch` have.
 *
 * @example
 * ```ts
 * import { F, symbolicTrace, type Tensor } from "tracefx/trace";
 *
 * const gm = symbolicTrace((x: Tensor) => F.relu(x).add(1));
 * console.log(gm.code);
 * ```
 * @module
 */
// oxlint-disable-next-line import/no-unassigned-import -- puts members on tensors and functions into the table
import "./install.ts";

export * from "../graph/index.ts";
export { engineVersion, type InitOptions, init, initSync, isLoaded, restart } from "../engine/engine.ts";
export type { ModuleSource } from "../engine/module.ts";
export type { Variant } from "../engine/variant.ts";
export { functionNamed } from "../functions/table.ts";
export { GraphModule, type Root } from "../fx/graphModule.ts";
export { type InterpreterOptions, Interpreter, type RunOptions, type RunWatch } from "../fx/interpreter.ts";
export { Transformer } from "./transformer.ts";
export { checkpoint, type CheckpointOptions } from "./checkpoint.ts";
export { cond, map, scan, whileLoop } from "./controlFlow.ts";
export type { Inputs } from "./inputs.ts";
export { type ConcreteArgs, PH, PHBase } from "./placeholder.ts";
export type { PytreeNodeType } from "./containers.ts";
export {
  registerPytreeNode,
  treeFlatten,
  treeMap,
  type TreeOptions,
  PytreeSpec,
  treeUnflatten,
} from "./pytree.ts";
export {
  isFxSymbolicTracing,
  isFxTracing,
  type SymbolicTraceOptions,
  symbolicTrace,
  type Traceable,
  type TraceOptions,
  Tracer,
  type TracerOptions,
} from "./tracer.ts";
export { RewritingTracer } from "./rewritingTracer.ts";
export { GraphAppendingTracer, Proxy, TracerBase } from "./tracerBase.ts";
export type { VerifyInputs } from "./verify.ts";
export type { TracedValue } from "./proxy.ts";
export type { Subgraph, SubgraphCall } from "./subgraph.ts";
export { proxyableClass, wrap } from "../functions/wrap.ts";
export { tensor, tensorFromBytes, type TensorInput, type TensorOptions } from "../tensor/construct.ts";
export type { Element, ElementArray } from "../tensor/elements.ts";
export type { IndexedValue, IndexPart } from "../functions/indexing.ts";
export type { TensorMembers, ToOptions } from "../functions/tensorMembers.ts";
export { type NestedElements, Tensor } from "../tensor/tensor.ts";
export { keep, tidy } from "../tensor/tidy.ts";
export * as F from "../torch/functional/index.ts";
export type {
  DeviceLike,
  DTypeLike,
  Int,
  LayoutLike,
  MemoryFormatLike,
  Real,
  Scalar,
} from "../base/types.ts";
export type { NamedResults } from "../base/results.ts";
export * as builtins from "../functions/builtins.ts";
export * as math from "../functions/math.ts";
export * as operator from "../functions/operator.ts";
