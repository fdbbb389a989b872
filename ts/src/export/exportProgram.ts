/**
 * Modules as programs: `torch.export.export`.
 *
 * @module
 */
import { withoutModes } from "../engine/modes.ts";
import { type FxError, fxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import { type Arg, isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { hasFreeUnbackedSymbols } from "../graph/symbols.ts";
import { SymExpr, type Val } from "../graph/val.ts";
import { Module } from "../nn/module.ts";
import type { Tensor } from "../tensor/tensor.ts";
import { argumentOf, constantOf } from "./arguments.ts";
import type { DynamicShapes } from "./dynamicShapes.ts";
import { ShapesSpec } from "./dynamicSpec.ts";
import { ExportedProgram } from "./exportedProgram.ts";
import { type ExportInputs, ExportTracer } from "./exportTracer.ts";
import { withTensors } from "./givenArrays.ts";
import type { LiftedConstant } from "./liftedConstants.ts";
import {
  assertConvertedTensors,
  assertSizes,
  noteAdded,
  removeUnusedDetach,
  replaceModes,
  replaceSizes,
} from "./exportPasses.ts";
import { ModuleInputs, typeName } from "./moduleInputs.ts";
import { renameSubgraphInputs } from "./placeholderNames.ts";
import type { Constant, ExampleInput, ProgramParts, StateEntry } from "./program.ts";
import { partsOfModule, ProgramModule } from "./programModule.ts";
import { type SessionInput, type SessionOptions, ShapeSession } from "./shapes.ts";
import { GraphSignature, type OutputSpec } from "./signature.ts";
import { StateGuard } from "./stateGuard.ts";
import { Tracepoints } from "./tracepoints.ts";
import { unlift } from "./unlift.ts";
import { verifyProgram } from "./verifyProgram.ts";
import { checkOptions } from "../base/given.ts";

/** How {@link exportProgram} exports. */
export interface ExportOptions {
  /**
   * What is said of the sizes of inputs, by the names of the arguments or in their order; sizes of which nothing is said are
   * those of the examples.
   */
  readonly dynamicShapes?: DynamicShapes;
  /**
   * Paths of modules whose calls keep what they take and give: `moduleCallGraph` has their signatures, and {@link unflatten}
   * gives modules that can be replaced by others that are called in the same way.
   */
  readonly preserveModuleCallSignature?: Iterable<string>;
  /**
   * Whether the module and the program run once on the example inputs and are compared, which is the default. Neither the
   * module nor the inputs are changed by it; `false` saves the time of both runs.
   */
  readonly verify?: boolean;
  /**
   * What happens where a function may decide something about a traced value and nobody could read it: `true`, which is the default,
   * tells, once for each function; `"strict"` refuses; `false` checks no source.
   */
  readonly checkSources?: boolean | "strict";
  /**
   * Whether conditions on inputs that are more than bounds and equalities of sizes are asserted by the program, and not refused where
   * they contradict `dynamicShapes`: `prefer_deferred_runtime_asserts_over_guards`.
   */
  readonly preferDeferredRuntimeAssertsOverGuards?: boolean;
  /** PyTorch's other way to export, by reading bytecode, is not there: only `false` is taken. */
  readonly strict?: boolean;
}

/** The names of {@link ExportOptions}. */
export const EXPORT_OPTIONS = [
  "dynamicShapes",
  "preserveModuleCallSignature",
  "verify",
  "checkSources",
  "preferDeferredRuntimeAssertsOverGuards",
  "strict",
] as const;

/**
 * Exports a module, or a program that can be called: `torch.export.export`. It is run once, on what is known of the example inputs without their elements,
 * and every operator that it calls is recorded. The program's parameters and buffers are those of the module.
 *
 * Decisions on sizes are made here and now; decisions on elements are refused: {@link cond} and `torch.where` are in the graph.
 *
 * @example
 * ```ts
 * const program = exportProgram(model, [image], {}, { dynamicShapes: { x: { 0: Dim("batch") } } });
 * console.log(String(program.graph));
 * const logits = program.module()(image);
 * ```
 *
 * @param args the positional arguments of `forward`; a typed array among them is a tensor
 * @param kwargs the keyword arguments: an object that `forward` gets behind the others
 */
export function exportProgram(
  exported: Module | ProgramModule,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
  options: ExportOptions = {},
): ExportedProgram {
  return exportWith(exported, args, kwargs, options, MAKERS);
}

/** What makes the parts of an export. */
export interface ExportMakers {
  session(inputs: readonly SessionInput[], options: SessionOptions): ShapeSession;
  tracer(shapes: ShapeSession, inputs: ExportInputs): ExportTracer;
}

const MAKERS: ExportMakers = {
  session: (inputs, options) => new ShapeSession(inputs, options),
  tracer: (shapes, inputs) => new ExportTracer(shapes, inputs),
};

/** {@link exportProgram} with other parts. */
export function exportWith(
  exported: Module | ProgramModule,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>>,
  options: ExportOptions,
  makers: ExportMakers,
): ExportedProgram {
  checkOptions("exportProgram", options, EXPORT_OPTIONS);
  const module = exported instanceof ProgramModule ? unlifted(partsOfModule(exported)) : exported;
  checkExportArguments(module, args, kwargs, options);
  const [exampleArgs, exampleKwargs] = withTensors([args, kwargs] as const);
  const inputs = new ModuleInputs(module, exampleArgs, exampleKwargs, options.dynamicShapes ?? null);
  const { preferDeferredRuntimeAssertsOverGuards = false } = options;
  using shapes = makers.session(inputs.leaves, { preferDeferredRuntimeAssertsOverGuards });
  if (options.dynamicShapes instanceof ShapesSpec) options.dynamicShapes.tell(shapes, inputs.leaves);
  const tracer = makers.tracer(shapes, inputs.placeholdersFor(shapes));
  tracer.checkSources = options.checkSources ?? true;
  const tracepoints = new Tracepoints(module, options.preserveModuleCallSignature ?? []);
  const state = new StateGuard(module);
  let recorded: Graph;
  try {
    recorded = withoutModes(() => tracepoints.within(tracer, () => tracer.trace(module)));
    state.checkAssignments(tracer, recorded);
  } finally {
    state.restore();
  }
  removeUnusedDetach(recorded);
  assertConvertedTensors(recorded);
  const sizes = shapes.finish();
  const { rangeConstraints, guards, replace } = sizes;
  const graphModule = tracer.moduleOf(recorded, "GraphModule");
  // What is asserted of data is asserted while the graph still names the symbols that turned out to be numbers.
  replaceSizes(graphModule, (it) => (it instanceof SymExpr && hasFreeUnbackedSymbols(it) ? it : replace(it)));
  assertSizes(graphModule, sizes);
  replaceSizes(graphModule, replace);
  const constants = tracer.takeConstants();
  replaceModes(graphModule);
  const { graph } = graphModule;
  const specs = inputs.finish(graph, constants);
  renameSubgraphInputs(graphModule);
  const preserved = tracepoints.collect(graphModule);
  noteAdded(graph);
  const program = new ExportedProgram({
    graphModule,
    graphSignature: new GraphSignature(specs, outputSpecs(graph)),
    state: stateOf(module),
    opaqueState: new Map(),
    constants: constantsOf(module, constants),
    rangeConstraints,
    moduleCallGraph: inputs.callGraph(preserved),
    verifiers: ["TRAINING"],
    guards,
    exampleInputs: inputs.leaves.map(({ value }) => value as ExampleInput),
    opsetVersion: new Map([["aten", 10]]),
    schemaVersion: [8, 20],
    torchVersion: "2.13.0",
    namedtupleFields: new Map(),
    extraFiles: new Map(),
  });
  if (options.verify !== false) {
    const given = Object.keys(exampleKwargs).length === 0 ? exampleArgs : [...exampleArgs, exampleKwargs];
    const { outSpec } = inputs;
    verifyProgram(module, program, { given, outSpec, warn: tell });
  }
  return program;
}

function unlifted(parts: ProgramParts): GraphModule {
  return unlift(parts, (it) => new ExportedProgram(it));
}

function tell({ message }: FxError): void {
  // oxlint-disable-next-line no-console -- the program is there, and whoever exports has to look
  console.warn(message);
}

/** Refuses what cannot be exported, or not with these arguments. */
export function checkExportArguments(
  module: unknown,
  args: unknown,
  kwargs: unknown,
  { strict = false }: ExportOptions,
): void {
  if (!(module instanceof Module)) {
    throw fxError(
      "InvalidOption",
      `Expected \`mod\` to be an instance of \`torch.nn.Module\`, got ${typeName(module)}`,
      {
        help: "put the function into the forward of a class that extends Module",
      },
    );
  }
  if (!Array.isArray(args)) {
    throw fxError("InputType", `Expecting \`args\` to be a tuple of example positional inputs, got ${typeName(args)}`, {
      help: "give an array: exportProgram(model, [x])",
    });
  }
  if (!isOptions(kwargs)) throw fxError("InputType", `Expecting \`kwargs\` to be an object, got ${typeName(kwargs)}`);
  if (strict) {
    throw fxError("NotImplemented", "strict export reads Python's bytecode, and there is none", {
      help: "leave strict out: the module is run on values without elements",
    });
  }
}

function outputSpecs(graph: Graph): OutputSpec[] {
  const leaves = (graph.outputNode()?.args[0] ?? []) as readonly Arg[];
  return Array.from(
    leaves,
    (leaf): OutputSpec => ({
      kind: "USER_OUTPUT",
      arg: isNode(leaf) ? argumentOf(leaf.name, leaf.meta.get("val") as Val) : constantOf("", leaf),
      target: undefined,
    }),
  );
}

/** The state of the module: what `stateDict` has, the parameters first. */
function stateOf(module: Module): Map<string, StateEntry> {
  const state = module.stateDict();
  const parameters = module.namedParameters({ removeDuplicate: false });
  const names = [...[...parameters.keys()].filter((it) => state.has(it)), ...state.keys()];
  return new Map(
    names.map((fqn) => {
      const tensor = state.get(fqn) as Tensor;
      return [fqn, { tensor, isParameter: parameters.has(fqn), requiresGrad: tensor.requiresGrad }];
    }),
  );
}

/** The constants that the graph uses, and the buffers that the state leaves out. */
function constantsOf(module: Module, lifted: readonly LiftedConstant[]): Map<string, Constant> {
  const state = module.stateDict();
  const res = new Map<string, Constant>();
  for (const [fqn, tensor] of module.namedBuffers({ removeDuplicate: false })) {
    if (!state.has(fqn)) res.set(fqn, { kind: "tensor", tensor });
  }
  for (const { fqn, tensor } of lifted) res.set(fqn, { kind: "tensor", tensor });
  return res;
}
