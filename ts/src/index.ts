/**
 * tracefx: torch.fx and torch.export for TypeScript.
 *
 * @module
 */
// oxlint-disable-next-line import/no-unassigned-import -- puts members on tensors and functions into the table
import "./install.ts";

export { DTYPES, type DType } from "../../bindings/dtypes.ts";
export type { Bytes } from "./base/bytes.ts";
export { differentiateOperator, inferOperator, operatorTolerance } from "./engine/dispatch.ts";
export { showInConsole } from "./base/inspect.ts";
export { associativeScan, type AssociativeScanOptions } from "./export/associativeScan.ts";
export { compile, type CompiledModule, type CompileOptions } from "./export/compile.ts";
export { Dim, type DimBounds, type DimFactory, DimHint, type DimSpec, DimVar, dims } from "./export/dim.ts";
export { type DynamicShapes, type DynamicShapesBuilder, resolveDynamicShapes } from "./export/dynamicShapes.ts";
export { unsafeRemoveAutoFunctionalizedPass } from "./export/removeAutoFunctionalized.ts";
export {
  DictSpec,
  type IntermediateSpec,
  IntVar,
  type IntVarOptions,
  type LeafIntSpec,
  type LeafSpec,
  ObjectSpec,
  ParamsSpec,
  type ParamsSpecValue,
  SeqSpec,
  ShapesSpec,
  type ShapesSpecOptions,
  ShapeVar,
  STATIC,
  TensorSpec,
} from "./export/dynamicSpec.ts";
export { DimConstraints } from "./export/dimConstraints.ts";
export {
  bindSymbols,
  evalGuards,
  type EvalGuardsOptions,
  evaluateGuardsExpression,
  type GuardsExpressionOptions,
  produceGuardsExpression,
} from "./export/guards.ts";
export { refineDynamicShapesFromSuggestedFixes } from "./export/refineShapes.ts";
export {
  replayShapeEnvEvents,
  ShapeEnvEvent,
  shapeEnvCheckStateEqual,
  type ShapeEventName,
} from "./export/shapeEvents.ts";
export {
  type DeferredAssertion,
  type SessionInput,
  type SessionOptions,
  type SessionResult,
  ShapeSession,
} from "./export/shapes.ts";
export { DimDynamic, StatelessSymbolicContext, type SymbolicContextOptions } from "./export/symbolicContext.ts";
export { AdditionalInputs, ShapesCollection } from "./export/shapesCollection.ts";
export {
  type CallSpec,
  defaultDecompositions,
  type ExampleInputs,
  ExportedProgram,
  type ForwardBackwardOptions,
  type ProgramGuards,
  type ProgramUpdate,
} from "./export/exportedProgram.ts";
export type { ModuleOptions } from "./export/moduleOptions.ts";
export { type DraftExport, draftExport } from "./export/draftExport.ts";
export { DraftExportReport, type FailureData, FailureReport, type FailureType } from "./export/draftReport.ts";
export {
  moduleToNestedDict,
  type NestedModule,
  normalizeSourceName,
  trackDynamismAcrossExamples,
} from "./export/dynamism.ts";
export { CustomDecompTable, type OperatorKey } from "./export/decompTable.ts";
export {
  isPt2Package,
  loadPt2,
  type PackageOptions,
  packagePt2,
  type PT2ArchiveContents,
  PT2ArchiveReader,
  PT2ArchiveWriter,
} from "./export/packages.ts";
export { exportProgram, type ExportOptions } from "./export/exportProgram.ts";
export {
  type ExportMethod,
  ExportPackage,
  type Exporter,
  type ExporterOptions,
  type OverloadSpec,
  stickyExport,
  type StickyExportOptions,
  type StickyForward,
} from "./export/lazyExport.ts";
export {
  type DecompositionTable,
  getIsolatedGraphmodule,
  makeFx,
  type MakeFxOptions,
} from "./export/makeFx.ts";
export {
  decompose,
  DecompositionInterpreter,
  type DecompositionInterpreterOptions,
  selectiveDecompose,
  type SelectiveDecomposeOptions,
} from "./export/decompositionInterpreter.ts";
export * as func from "./export/func.ts";
export type { Decomposition } from "./export/makeFxTracer.ts";
export {
  checkConsistent,
  constrainRange,
  constrainUnify,
  expectTrue,
  guardBool,
  guardFloat,
  guardingHintOrThrow,
  guardInt,
  guardOrFalse,
  guardOrTrue,
  guardScalar,
  hasGuardingHint,
  hasStaticValue,
  isConcreteBool,
  isConcreteFloat,
  optimizationHint,
  type RangeBounds,
  type Sizes,
  staticallyKnownFalse,
  staticallyKnownTrue,
  symAnd,
  symEq,
  symOr,
} from "./export/symbolicShapes.ts";
export { type Condition, guard, type Size, TracedNumber } from "./export/traced.ts";
export { programOf } from "./export/ofGraphModule.ts";
export { type DataclassOptions, registerDataclass } from "./export/registerDataclass.ts";
export type { ReadableFile } from "./engine/source.ts";
export { type LoadOptions, load, type ProgramSource } from "./export/load.ts";
export { type ProgramTarget, type SaveProgramOptions, save, saveTo } from "./export/save.ts";
export type {
  CallSignature,
  Constant,
  ModuleCallEntry,
  ProgramParts,
  RangeConstraint,
  StateEntry,
  TreeSpec,
} from "./export/program.ts";
export { type PlanReport, ProgramModule, type RunAsyncOptions, type RunDevice } from "./export/programModule.ts";
export { drawTensor, tensorFromGpuBuffer, tensorFromImage } from "./export/gpuBuffers.ts";
export type {
  GivenCanvas,
  GivenGpu,
  GivenGpuBuffer,
  GivenImage,
  GivenTexture,
  GpuBufferOptions,
  GpuTensor,
  ImageOptions,
} from "./tensor/gpuTensor.ts";
export { type NpzOptions, readNpz } from "./export/npz.ts";
export { type DeviceLocation, liftConstantsPass, moveToDevicePass } from "./export/programPasses.ts";
export { registerVerifier, Verifier } from "./export/verifier.ts";
export type { AutocastOptions, Context } from "./torch/contexts.ts";
export { type FlatArgsAdapter, type FlatArgsQuestion, UnflattenedModule, unflatten } from "./export/unflatten.ts";
export {
  type Argument,
  type BackwardSignature,
  type ConstantOrName,
  type ConstantValue,
  GraphSignature,
  replaceCallSignatureUses,
  type InputKind,
  type InputSpec,
  type OutputKind,
  type OutputSpec,
} from "./export/signature.ts";
export { type StepResult, TrainingModule } from "./export/trainingModule.ts";
export {
  type NormalizedArguments,
  normalizedArguments,
  normalizeFunction,
  normalizeModule,
  type NormalizeOptions,
} from "./fx/normalize.ts";
export {
  checkForMutableOperation,
  getSignatureForTorchOp,
  OperatorSignature,
  type SignatureParameter,
  typeMatches,
} from "./fx/operatorSignatures.ts";
export type { ArgumentType } from "./functions/schemas.ts";
export * from "./trace/index.ts";
export {
  type NodeTiming,
  type ProfileOptions,
  type ProfilerOptions,
  ProfilingInterpreter,
} from "./fx/profiler.ts";
export { MetaProxy, MetaTracer, type MetaTracerOptions } from "./passes/metaTracer.ts";
export { ShapeProp, type ShapePropOptions } from "./passes/shapeProp.ts";
export type { TensorMetadata } from "./engine/tensorMetadata.ts";
export {
  type DAG,
  type DAGNode,
  type DevicePartition,
  getCommLatencyBetween,
  getLatencyOfPartitionedGraph,
  getNodeToPartitionMapping,
  getPartitionToLatencyMapping,
  Partitioner,
  type PartitionerConfig,
  type PartitionResult,
} from "./passes/acceleratorPartitioner.ts";
export {
  AnnotateTypesWithSchema,
  annotateGetitemNodes,
  mergeGetitems,
  type CSEOptions,
  CSEPass,
  functionalize,
  type FunctionalizeOptions,
  fuseBatchNorm,
  getCSEBannedOps,
  insertDeferredRuntimeAsserts,
  linearPermuteFusion,
  mergeMatmul,
  NormalizeArgs,
  NormalizeOperators,
  reinplace,
} from "./rewrite/enginePasses.ts";
export { constantFold, type ConstantFoldOptions } from "./passes/constantFold.ts";
export { FakeTensorProp } from "./passes/fakeTensorProp.ts";
export {
  getSizeOfAllNodes,
  getSizeOfNode,
  getTensorMeta,
  replaceTargetNodesWith,
  type SizeBytes,
} from "./passes/graphManipulation.ts";
export {
  extractSubgraph,
  fuse,
  type FuseOptions,
  matchesModulePattern,
  optimizeForInference,
  type PassConfig,
  removeDropout,
  replaceNodeModule,
} from "./passes/optimization.ts";
export { extractAttrsForLowering, liftLoweringAttrsToNodes, type LoweringAttrs } from "./passes/paramFetch.ts";
export { FoldedGraphModule, type FoldOptions, splitConstSubgraphs } from "./passes/constFold.ts";
export {
  anyChain,
  chain,
  createOpSupport,
  type IsNodeSupported,
  OperatorSupport,
  type OperatorSupportBase,
  OpSupports,
  type Submodules,
  type SupportedArgumentDTypes,
} from "./passes/operatorSupport.ts";
export {
  CapabilityBasedPartitioner,
  fuseByPartitions,
  type FusePartitionsOptions,
  type Partition,
} from "./passes/partitioner.ts";
export type {
  Device,
  InsertedAsserts,
  MinimizerOptions,
  NodeLatency,
  PartitionerOptions,
  PartitionLatency,
  PartitionMode,
  RuntimeAssertCall,
  TraverseMethod,
} from "../../bindings/passes.ts";
export {
  type MinimizerBackends,
  type MinimizerReport,
  type MinimizerSettings,
  NetMinimizer,
  type RunBackend,
} from "./passes/netMinBase.ts";
export {
  type GenerateInputsOptions,
  generateInputsForSubmodules,
  type NodeEvent,
  NodeEventTracker,
  type PrintEventsOptions,
  Splitter,
  type SplitterSettings,
  type SplitterSubgraph,
} from "./passes/splitterBase.ts";
export { splitByTags, splitModule, type SplitModuleOptions, splitModuleSimple } from "./passes/splitModule.ts";
export {
  eraseNodes,
  type FuseAsOptions,
  fuseAsGraphmodule,
  type FusedNodes,
  getUniqueAttrNameInModule,
  insertSubgm,
  removeSelfClone,
} from "./passes/fuserUtils.ts";
export { compareGraphs, type LiftedSubgraph, type LiftOptions, liftSubgraphAsModule } from "./passes/subgraphs.ts";
export { swapModules } from "./passes/swapModules.ts";
export * as passManager from "./rewrite/legacyPassManager.ts";
export { findAccFusions, getAccOpsName, getNodeTarget, isNodeOutputTensor } from "./passes/toolsCommon.ts";
export {
  type LeftOut,
  PassBase,
  type Pass,
  type PassFunction,
  type PassResult,
  passResultWrapper,
} from "./rewrite/passBase.ts";
export {
  type ModuleCheck,
  type PassConstraint,
  PassManager,
  type PassManagerOptions,
  thisBeforeThatPassConstraint,
} from "./rewrite/passManager.ts";
export {
  type Attribute,
  type BufferOptions,
  type ForwardHook,
  type ForwardPreHook,
  type Handle,
  Module,
} from "./nn/module.ts";
export type { NamedOptions, NamedTensorOptions } from "./nn/named.ts";
export {
  loadGraphModule,
  type LoadModuleOptions,
  type ModuleClass,
  type ModuleClasses,
  saveGraphModule,
  type SaveOptions,
} from "./save/graphModule.ts";
export { type PackingJson, restorePacking as remakePacking } from "./save/packing.ts";
export { type ModuleParts, remakeModule } from "./save/records.ts";
export { deepCopy } from "./nn/deepCopy.ts";
export { type CheckpointDict, type CheckpointValue, loadCheckpoint, readCheckpoint } from "./nn/checkpoint.ts";
export * as nn from "./nn/index.ts";
export * as optim from "./optim/index.ts";
export { Parameter, type ParameterOptions } from "./nn/parameter.ts";
export { anyOf, optional } from "./rewrite/alternatives.ts";
export {
  type InternalMatch,
  type MatcherOptions,
  type Miss,
  type PatternSource,
  SubgraphMatcher,
  SubgraphMatcherWithNameNodeMap,
} from "./rewrite/matcher.ts";
export {
  type Match,
  type MatchFilter,
  type ReplacedPatterns,
  type ReplacementCallback,
  type ReplacePatternOptions,
  replacePattern,
  replacePatternWithFilters,
  type VerifyOptions,
} from "./rewrite/replacePattern.ts";
export {
  checkSubgraphsConnected,
  getSourcePartitions,
  type SourceClass,
  type SourcePartition,
  type WantedSource,
} from "./rewrite/sourceMatcher.ts";
export { type Fired, Rule, type RuleOptions, RuleSet, type RuleTrace } from "./rewrite/rules.ts";
export { readNpy, writeNpy } from "./tensor/npy.ts";
export { readSafetensors, type SafetensorsFile, writeSafetensors } from "./tensor/safetensors.ts";
export { type Torch, torch } from "./torch.ts";
export type { FloatInfo, IntInfo } from "./torch/info.ts";
export type { OperatorNamespace, OperatorOverload, OperatorPacket, Operators, OwnOperators } from "./torch/ops.ts";
export type { AutogradOptions, CustomOp, CustomOpOptions, DispatchKey } from "./library/library.ts";
export type { Backward, BackwardContext, OperatorFunction, SetupContext } from "./library/operator.ts";
export {
  type ConditionAnswer,
  type ConstraintAnswer,
  type ConstraintsOptions,
  evaluateConditionalWithConstraints,
  type SmtSolver,
  type SolverAnswer,
  solveWith,
  toSmtLib,
  transformAllConstraints,
  transformAllConstraintsWith,
} from "./types/constraints.ts";
export {
  annotate,
  Dyn,
  type GradualType,
  isConsistent,
  isMorePrecise,
  type TensorDim,
  TensorType,
} from "./types/tensorType.ts";
export {
  type InferenceRule,
  type RefinementRule,
  type TransformationRule,
  registerAlgebraicExpressionsInferenceRule,
  registerInferenceRule,
  registerRefinementRule,
  registerTransformationRule,
  type RuleTarget,
} from "./types/rules.ts";
export { GraphTypeChecker, inferSymbolicTypes, type InferSymbolicTypesOptions } from "./types/typeChecker.ts";
export * as unification from "./types/unification.ts";
export { type GuardAnswer, type SymbolRange, TranslationValidator } from "./types/validator.ts";
