/**
 * Graphs alone: building, walking, editing, checking and printing them, with neither the engine nor the tracer. The package's own
 * name has all of this, too; a page that imports `tracefx/graph` downloads no more than it uses.
 *
 * @example
 * ```ts
 * import { Graph } from "tracefx/graph";
 *
 * const graph = new Graph();
 * const x = graph.placeholder("x");
 * graph.output(graph.callFunction("torch.relu", [x]));
 * graph.lint();
 * console.log(String(graph));
 * ```
 * @module
 */
export * from "../base/errors.ts";
export type { Opcode } from "../base/opcode.ts";
export {
  Complex,
  complex,
  device,
  DeviceArg,
  Dict,
  dtype,
  DTypeArg,
  Ellipsis,
  EllipsisType,
  Float,
  float,
  layout,
  LayoutArg,
  type LayoutName,
  List,
  memoryFormat,
  MemoryFormatArg,
  type MemoryFormatName,
  op,
  OpArg,
  Slice,
  Tuple,
} from "../base/values.ts";
export {
  type Arg,
  type ArgInput,
  isNode,
  type Kwargs,
  type KwargsInput,
  mapAggregate,
  mapArg,
  slice,
  tuple,
} from "./args.ts";
export type { AnnotationOptions } from "./codegen/annotations.ts";
export { BoxedCodeGen, type BodyTransformer, CodeGen, type CodeLine } from "./codegen/codegen.ts";
export type { FunctionHead, Parameter as CodeParameter } from "./codegen/codegen.ts";
export type { CodeOptions, GeneratedCode } from "./codegen/generate.ts";
export type { CodeGlobal } from "./codegen/globals.ts";
export { type InputTree, type OutputTree, PyTreeCodeGen, type PyTreeInfo } from "./codegen/pytree.ts";
export { EditableGraph, type NodeQuery } from "./editableGraph.ts";
export { type CopyOptions, Graph } from "./graph.ts";
export { GraphHooks, type NodeHook, type ReplaceHook } from "./hooks.ts";
export { hasSideEffect } from "./impure.ts";
export {
  type BindingKey,
  CallMethodKey,
  computeUnbackedBindings,
  ConvertIntKey,
  DivideByKey,
  keyGet,
  type KeyPath,
} from "./unbackedBindings.ts";
export type { InsertScope } from "./insertPoint.ts";
export { type LastUses, lastUses } from "./lastUse.ts";
export { type ImpurityOptions, Node, type ReplaceOptions } from "./node.ts";
export { firstCallFunctionNnModuleStack, getNodeContext } from "./nodeContext.ts";
export type { NodeList } from "./nodeList.ts";
export type { FormatOptions } from "./print.ts";
export { formatReadable } from "./readable.ts";
export {
  findSymbolBindingFxNodes,
  freeSymbols,
  freeUnbackedSymbols,
  fxPlaceholderTargets,
  fxPlaceholderVals,
  hasFreeSymbols,
  hasFreeUnbackedSymbols,
  hasSymbolicSizesStrides,
  isAccessorNode,
  isConcreteInt,
  isSymbolBindingFxNode,
  isSymbolic,
  type SymbolSource,
} from "./symbols.ts";
export type { NamedTarget } from "./target.ts";
export { legalizeGraph, stableTopologicalSort, topoSort, validatePartition } from "./topological.ts";
export * as traceback from "./traceback.ts";
export { SymExpr, type SymInt, TensorMeta, type TensorMetaFields, type Val, ValSequence } from "./val.ts";
