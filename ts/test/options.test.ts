/**
 * Objects of options refuse what they do not know, everywhere in the package: the list of what takes options is read from the
 * sources, so that a new function has to be entered here before its options go untested.
 */
import { beforeAll, describe, expect, test } from "vitest";
import {
  associativeScan,
  CapabilityBasedPartitioner,
  constantFold,
  createOpSupport,
  CSEPass,
  AnnotateTypesWithSchema,
  Dim,
  DimDynamic,
  type ExportedProgram,
  ExportPackage,
  compile,
  evalGuards,
  exportProgram,
  formatReadable,
  functionalize,
  fuse,
  fuseByPartitions,
  generateInputsForSubmodules,
  constrainRange,
  draftExport,
  DecompositionInterpreter,
  func,
  getIsolatedGraphmodule,
  fuseAsGraphmodule,
  makeFx,
  packagePt2,
  stickyExport,
  selectiveDecompose,
  type FxError,
  Graph,
  type GraphModule,
  GraphSignature,
  inferSymbolicTypes,
  init,
  insertDeferredRuntimeAsserts,
  Interpreter,
  IntVar,
  liftSubgraphAsModule,
  load,
  loadCheckpoint,
  loadGraphModule,
  math,
  MetaTracer,
  Module,
  NetMinimizer,
  type Node,
  NodeEventTracker,
  nn,
  NormalizeArgs,
  normalizedArguments,
  normalizeFunction,
  normalizeModule,
  optim,
  optimizeForInference,
  Parameter,
  Partitioner,
  PassManager,
  passManager,
  produceGuardsExpression,
  ProfilingInterpreter,
  readCheckpoint,
  readNpz,
  registerDataclass,
  remakeModule,
  replacePatternWithFilters,
  Rule,
  RuleSet,
  save,
  saveGraphModule,
  saveTo,
  scan,
  ShapeProp,
  ShapeSession,
  ShapesSpec,
  ShapeVar,
  splitByTags,
  StatelessSymbolicContext,
  splitConstSubgraphs,
  splitModule,
  splitModuleSimple,
  Splitter,
  SubgraphMatcher,
  symbolicTrace,
  type Tensor,
  tensor,
  tensorFromGpuBuffer,
  tensorFromImage,
  torch,
  toSmtLib,
  Tracer,
  transformAllConstraints,
  transformAllConstraintsWith,
  treeFlatten,
  treeMap,
} from "tracefx";
import { FxGraphDrawer } from "../src/draw/drawer.ts";
import { GraphModel } from "../src/explorer/model.ts";
import { sceneOf } from "../src/explorer/scene.ts";
import { loadModule } from "../src/export/loading.ts";
import { EngineWorker, WorkerModule } from "../src/worker/engineWorker.ts";
import { load as loadCompiled } from "../src/runtime/runtime.ts";
import { GraphTransformObserver } from "../src/draw/drawer.ts";
import { toFolder } from "../src/node/toFolder.ts";
import { tracefx as esbuildPlugin } from "../src/plugin/esbuild.ts";
import { rewrite } from "../src/plugin/plugin.ts";
import { tracefx as rollupPlugin } from "../src/plugin/rollup.ts";
import { tracefx as vitePlugin } from "../src/plugin/vite.ts";
import { tracefx as webpackPlugin } from "../src/plugin/webpack.ts";
import { nearestName } from "../src/base/given.ts";
import { pythonName } from "../src/base/naming.ts";
import { optionSites } from "./surface.ts";
import { Z3 } from "../src/types/z3.ts";

/** What is called with options that there are not. */
// oxlint-disable-next-line typescript/no-explicit-any -- the options are wrong on purpose
type Call = (options: any) => unknown;

class Net extends Module {
  readonly linear = new nn.Linear(3, 3);

  override forward(x: Tensor): Tensor {
    return this.linear.forward(x).relu();
  }
}

const x = (): Tensor => torch.ones([2, 3]);
const ids = (): Tensor => torch.ones([4, 2, 8]);
const traced = (): GraphModule => symbolicTrace(new Net());
const relu = (): Node => traced().graph.findNodes({ op: "call_method" })[0] as Node;
const program = (): ExportedProgram => exportProgram(new Net(), [x()]);
const lines = (y: Tensor): Tensor => torch.relu(y);
const support = createOpSupport(() => true);

const CALLS: Readonly<Record<string, Call>> = {
  init: (it) => init(it),
  Dim: (it) => Dim("batch", it),
  DimFactory: (it) => Dim("batch", it),
  "DimHint.within": (it) => Dim.AUTO.within(it),
  "ExportedProgram.module": (it) => program().module(it),
  "ExportedProgram.update": (it) => program().update(program().graphModule, program().graphSignature, it),
  "ExportedProgram.exportForwardBackward": (it) => program().exportForwardBackward(it),
  compile: (it) => compile(traced(), it),
  exportProgram: (it) => exportProgram(new Net(), [x()], {}, it),
  load: (it) => load(new Uint8Array(), it),
  "explorer:sceneOf": (it) => sceneOf(new GraphModel(traced()), it),
  "load:loadModule": (it) => loadModule(new Uint8Array(), it),
  "runtime:load": (it) => loadCompiled(new Uint8Array(), it),
  "worker:EngineWorker": (it) => new EngineWorker(it),
  "worker:EngineWorker.loadModule": (it) => new EngineWorker().loadModule(new Uint8Array(), it),
  "worker:WorkerModule.runAsync": (it) => WorkerModule.prototype.runAsync([], it),
  tensorFromImage: (it) => tensorFromImage({}, it),
  tensorFromGpuBuffer: (it) => tensorFromGpuBuffer({} as never, it),
  save: (it) => save(program(), it),
  saveTo: (it) => saveTo(program(), "never.pt2", it),
  "ProgramModule.runWith": (it) => program().module().runWith([x()], it),
  "ProgramModule.profile": (it) => program().module().profile([x()], it),
  "ProgramModule.runAsync": (it) => program().module().runAsync([x()], it),
  "ProgramModule.runFlatAsync": (it) => program().module().runFlatAsync([x()], it),
  "ProgramModule.runFlat": (it) => program().module().runFlat([x()], it),
  "GraphSignature.getReplaceHook": (it) => new GraphSignature([], []).getReplaceHook(it),
  normalizedArguments: (it) => normalizedArguments(relu(), traced(), it),
  normalizeFunction: (it) => normalizeFunction("torch.relu", { args: [1], kwargs: {} }, it),
  normalizeModule: (it) => normalizeModule(new Net(), "linear", { args: [1], kwargs: {} }, it),
  "Graph.graphCopy": (it) => new Graph().graphCopy(traced().graph, new Map(), it),
  "Graph.generateCode": (it) => traced().graph.generateCode(it),
  "GraphModule.printReadable": (it) => traced().printReadable(it),
  "Node.replaceAllUsesWith": (it) => relu().replaceAllUsesWith(relu(), it),
  "Node.isImpure": (it) => relu().isImpure(it),
  "Node.formatNode": (it) => relu().formatNode(it),
  formatReadable: (it) => formatReadable(traced(), it),
  Interpreter: (it) => new Interpreter(traced(), it),
  "Interpreter.runWith": (it) => new Interpreter(traced()).runWith([x()], it),
  ProfilingInterpreter: (it) => new ProfilingInterpreter(traced(), it),
  "ProfilingInterpreter.runWith": (it) => new ProfilingInterpreter(traced()).runWith([x()], it),
  "ProfilingInterpreter.timings": (it) => new ProfilingInterpreter(traced()).timings(it),
  "ProfilingInterpreter.summary": (it) => new ProfilingInterpreter(traced()).summary(it),
  ShapeProp: (it) => new ShapeProp(traced(), it),
  "Partitioner.partitionGraph": (it) => new Partitioner().partitionGraph(traced(), { devices: [], ...it }),
  AnnotateTypesWithSchema: (it) => new AnnotateTypesWithSchema(it),
  CSEPass: (it) => new CSEPass(it),
  functionalize: (it) => functionalize(traced(), it),
  NormalizeArgs: (it) => new NormalizeArgs(it),
  constantFold: (it) => constantFold(traced(), it),
  fuse: (it) => fuse(new Net().eval(), it),
  optimizeForInference: (it) => optimizeForInference(new Net().eval(), it),
  splitConstSubgraphs: (it) => splitConstSubgraphs(new Net(), it),
  CapabilityBasedPartitioner: (it) => new CapabilityBasedPartitioner(traced(), support, it),
  fuseByPartitions: (it) => fuseByPartitions(traced(), [], it),
  "NetMinimizer.minimize": (it) =>
    new NetMinimizer(traced(), [x()], { runA: () => [], runB: () => [], compareFn: () => true }).minimize(it),
  Splitter: (it) => new Splitter(traced(), [x()], support, it),
  splitByTags: (it) => splitByTags(traced(), [], () => undefined, it),
  splitModule: (it) => splitModule(traced(), () => 0, it),
  PassManager: (it) => new PassManager(it),
  "Module.registerBuffer": (it) => new Net().registerBuffer("b", x(), it),
  "Module.setSubmodule": (it) => new Net().setSubmodule("linear", new nn.ReLU(), it),
  "Module.namedModules": (it) => new Net().namedModules(it),
  "Module.namedParameters": (it) => new Net().namedParameters(it),
  "Module.namedBuffers": (it) => new Net().namedBuffers(it),
  "Module.stateDict": (it) => new Net().stateDict(it),
  "Module.loadStateDict": (it) => new Net().loadStateDict({}, it),
  loadGraphModule: (it) => loadGraphModule(saveGraphModule(traced()), it),
  saveGraphModule: (it) => saveGraphModule(traced(), it),
  remakeModule: (it) => remakeModule("ReLU", it),
  loadCheckpoint: (it) => loadCheckpoint(new Uint8Array(), it),
  readCheckpoint: (it) => readCheckpoint(new Uint8Array(), it),
  "nn.MultiheadAttention.forward": (it) => new nn.MultiheadAttention(8, 2).call(ids(), ids(), ids(), it),
  "nn.functionalCall": (it) => nn.functionalCall(new Net(), {}, [x()], it),
  "nn.init.kaimingUniform_": (it) => nn.init.kaimingUniform_(x(), it),
  "nn.init.kaimingNormal_": (it) => nn.init.kaimingNormal_(x(), it),
  "nn.rnn.packPaddedSequence": (it) => nn.rnn.packPaddedSequence(ids(), [4, 4], it),
  "nn.rnn.packSequence": (it) => nn.rnn.packSequence([x(), x()], it),
  "nn.rnn.padSequence": (it) => nn.rnn.padSequence([x()], it),
  "nn.rnn.padPackedSequence": (it) => nn.rnn.padPackedSequence(nn.rnn.packPaddedSequence(ids(), [4, 4]), it),
  "nn.rnn.unpadSequence": (it) => nn.rnn.unpadSequence(ids(), [4, 4], it),
  "nn.TransformerEncoder.forward": (it) =>
    new nn.TransformerEncoder(new nn.TransformerEncoderLayer(8, 2), 1).call(ids(), it),
  "nn.TransformerEncoderLayer.forward": (it) => new nn.TransformerEncoderLayer(8, 2).call(ids(), it),
  "nn.TransformerDecoder.forward": (it) =>
    new nn.TransformerDecoder(new nn.TransformerDecoderLayer(8, 2), 1).call(ids(), ids(), it),
  "nn.TransformerDecoderLayer.forward": (it) => new nn.TransformerDecoderLayer(8, 2).call(ids(), ids(), it),
  "nn.Transformer.forward": (it) =>
    new nn.Transformer({ dModel: 8, nhead: 2, numEncoderLayers: 1, numDecoderLayers: 1 }).call(ids(), ids(), it),
  "nn.Transformer.generateSquareSubsequentMask": (it) => nn.Transformer.generateSquareSubsequentMask(2, it),
  "optim.Adam": (it) => new optim.Adam([new Parameter(x())], it),
  "optim.AdamW": (it) => new optim.AdamW([new Parameter(x())], it),
  "optim.SGD": (it) => new optim.SGD([new Parameter(x())], it),
  insertDeferredRuntimeAsserts: (it) => insertDeferredRuntimeAsserts(traced(), it),
  "nn.ConvTranspose1d.forward": (it) => new nn.ConvTranspose1d(1, 1, 1).call(x(), it),
  "nn.ConvTranspose2d.forward": (it) => new nn.ConvTranspose2d(1, 1, 1).call(x(), it),
  "nn.ConvTranspose3d.forward": (it) => new nn.ConvTranspose3d(1, 1, 1).call(x(), it),
  "nn.Embedding.fromPretrained": (it) => nn.Embedding.fromPretrained(x(), it),
  "nn.EmbeddingBag.fromPretrained": (it) => nn.EmbeddingBag.fromPretrained(x(), it),
  "nn.EmbeddingBag.forward": (it) => new nn.EmbeddingBag(3, 3).call(torch.zeros([2, 2], { dtype: "int64" }), it),
  "nn.LSTM.forward": (it) => new nn.LSTM(3, 3).call(x(), it),
  "nn.RNNCell.forward": (it) => new nn.RNNCell(3, 3).call(x(), it),
  "nn.GRUCell.forward": (it) => new nn.GRUCell(3, 3).call(x(), it),
  "nn.LSTMCell.forward": (it) => new nn.LSTMCell(3, 3).call(x(), it),
  "Torch.asTensor": (it) => torch.asTensor([1], it),
  Parameter: (it) => new Parameter(x(), it),
  SubgraphMatcher: (it) => new SubgraphMatcher(lines, it),
  replacePatternWithFilters: (it) => replacePatternWithFilters(traced(), lines, lines, it),
  Rule: (it) => new Rule("same", lines, lines, it),
  "RuleSet.runToFixpoint": (it) => new RuleSet([]).runToFixpoint(traced(), it),
  associativeScan: (it) => associativeScan((a: Tensor, b: Tensor) => a.add(b), x(), 0, it),
  scan: (it) => scan((sum: Tensor, row: Tensor) => [sum.add(row), row], torch.zeros([3]), x(), it),
  treeFlatten: (it) => treeFlatten([1], it),
  treeMap: (it) => treeMap((leaf) => leaf, [1], it),
  liftSubgraphAsModule: (it) => liftSubgraphAsModule(traced(), new Graph(), it),
  splitModuleSimple: (it) => splitModuleSimple(traced(), new Map(), it),
  generateInputsForSubmodules: (it) => generateInputsForSubmodules(traced(), [x()], [], it),
  "NodeEventTracker.printNode": (it) => new NodeEventTracker().printNode("relu", it),
  "passManager.loopPass": (it) => passManager.loopPass((value) => value, it),
  evalGuards: (it) => evalGuards(makeFx(lines, { tracingMode: "symbolic" })(x()), [x()], it),
  produceGuardsExpression: (it) => produceGuardsExpression(makeFx(lines, { tracingMode: "symbolic" })(x()), it),
  IntVar: (it) => new IntVar("n", it),
  ShapeVar: (it) => new ShapeVar("n", it),
  ShapeSession: (it) => new ShapeSession([], it),
  ShapesSpec: (it) => new ShapesSpec({}, it),
  StatelessSymbolicContext: (it) => new StatelessSymbolicContext([DimDynamic.STATIC], it),
  MetaTracer: (it) => new MetaTracer(it),
  constrainRange: (it) => constrainRange(3, it),
  draftExport: (it) => draftExport(new Net(), [x()], {}, it),
  packagePt2: (it) => packagePt2(program(), it),
  readNpz: (it) => readNpz(new Uint8Array(), it),
  "ExportPackage.exporter": (it) => new ExportPackage().exporter("lines", lines, it),
  "ExportPackage.package": (it) => new ExportPackage().package(it),
  stickyExport: (it) => stickyExport(new Net(), it),
  fuseAsGraphmodule: (it) => fuseAsGraphmodule(traced(), [relu()], "fused", it),
  makeFx: (it) => makeFx(lines, it),
  getIsolatedGraphmodule: (it) => getIsolatedGraphmodule(lines, [x()], {}, it),
  DecompositionInterpreter: (it) => new DecompositionInterpreter(traced(), new Graph(), it),
  selectiveDecompose: (it) => selectiveDecompose(traced(), [x()], it),
  "func.grad": (it) => func.grad(lines, it),
  "func.gradAndValue": (it) => func.gradAndValue(lines, it),
  "func.hessian": (it) => func.hessian(lines, it),
  "func.jacfwd": (it) => func.jacfwd(lines, it),
  "func.jacrev": (it) => func.jacrev(lines, it),
  "func.vjp": (it) => func.vjp(lines, [x()], it),
  "func.vmap": (it) => func.vmap(lines, it),
  "func.functionalCall": (it) => func.functionalCall(new Net(), {}, [x()], it),
  symbolicTrace: (it) => symbolicTrace(new Net(), it),
  Tracer: (it) => new Tracer(it),
  "Tracer.trace": (it) => new Tracer().trace(new Net(), it),
  registerDataclass: (it) => registerDataclass(Map, it),
  tensor: (it) => tensor([1], it),
  "TensorMembers.to": (it) => x().to(it),
  "Tensor.isContiguous": (it) => x().isContiguous(it),
  "math.prod": (it) => math.prod([1], it),
  toSmtLib: (it) => toSmtLib(traced(), it),
  transformAllConstraints: (it) => transformAllConstraints(traced(), it),
  transformAllConstraintsWith: (it) =>
    transformAllConstraintsWith(traced(), { ask: () => Promise.resolve("unknown") }, it),
  inferSymbolicTypes: (it) => inferSymbolicTypes(traced(), it),
  "plugin:rewrite": (it) => rewrite("if (x) y();", it),
  "plugin/vite:tracefx": (it) => vitePlugin(it),
  "plugin/rollup:tracefx": (it) => rollupPlugin(it),
  "plugin/esbuild:tracefx": (it) => esbuildPlugin(it),
  "plugin/webpack:tracefx": (it) => webpackPlugin(it).apply({ options: {} } as never),
  "z3:Z3.load": (it) => Z3.load(it),
  "draw:FxGraphDrawer": (it) => new FxGraphDrawer(traced(), "net", it),
  "draw:GraphTransformObserver": (it) => new GraphTransformObserver(traced(), "pass", it),
  "node:toFolder": (it) => toFolder(traced(), "never", it),
  "torch.autocast": (it) => torch.autocast("cpu", it),
  "torch.library.registerAutograd": (it) => torch.library.registerAutograd("options_test::f", () => null, it),
  "torch.library.customOp": (it) => torch.library.customOp("options_test::g", () => null, it),
  "torch.library.CustomOp.registerAutograd": (it) =>
    torch.library
      .customOp("options_test::h", (y: Tensor) => y, { schema: "(Tensor x) -> Tensor" })
      .registerAutograd(() => null, it),
};

/** What has parts that look like options and are none. */
const OTHERS: Readonly<Record<string, string>> = {
  FxError: "the details of an error: making one must not throw another",
  fxError: "as above",
};

/** Containers take modules or parameters, by name too, PyTorch's `Identity` takes anything, and two are abstract. */
const NO_OPTIONS = new Set([
  "RNNBase",
  "RNNCellBase",
  "Identity",
  "ModuleDict",
  "ModuleList",
  "ParameterDict",
  "ParameterList",
  "Sequential",
]);

/** The options of layers, which all go through one function. */
const isLayer = (name: string): boolean => /^nn\.[A-Z]\w*$/.test(name);

const sites = optionSites();
const entry = (from: string): string =>
  from.replace(/^nn\.(?=Module|Parameter)/, "").replace(/^CustomOp/, "torch.library.CustomOp");

beforeAll(async () => {
  await init();
  torch.library.define("options_test::f", "(Tensor x) -> Tensor");
});

test("everything in the package that takes options is here", () => {
  const found = new Set(sites.map((it) => entry(it.name)).filter((it) => !isLayer(it) && !(it in OTHERS)));
  expect([...found].filter((it) => !(it in CALLS))).toEqual([]);
  expect(Object.keys(CALLS).filter((it) => !found.has(it))).toEqual([]);
});

describe("an option that there is not is refused, and the nearest one is named:", () => {
  for (const { name: from, options } of sites) {
    const call = CALLS[entry(from)];
    if (call === undefined) continue;
    test(from, async () => {
      const [known] = options as readonly [string];
      for (const stray of [`${known}${known.at(-1)}`, "somethingElse"]) {
        const error = await refusal(() => call({ [stray]: 1 }));
        expect(error).toMatchObject({ kind: "InvalidOption" });
        // Calls of layers go by PyTorch's parameter list, and show its spelling.
        const [reason, help] = [error.reason, error.help ?? ""].map(plain) as [string, string];
        expect(reason).toContain(plain(stray));
        if (stray !== "somethingElse") expect(help).toContain(plain(`did you mean \`${known}\`?`));
        for (const it of options) expect(help).toContain(plain(it));
      }
    });
  }
});

test("layers refuse options that they do not have", async () => {
  const layers = Object.entries(nn).filter(
    ([layer, it]) => typeof it === "function" && it.prototype instanceof Module && !NO_OPTIONS.has(layer),
  );
  expect(layers.length).toBeGreaterThan(100);
  for (const [layer, Layer] of layers) {
    const error = await refusal(() => Reflect.construct(Layer as typeof Module, [{ somethingElse: 1 }]));
    expect(error.message, layer).toContain("somethingElse");
  }
});

test("names are found across capitals, underscores and letters", () => {
  const names = ["dynamicShapes", "preserveModuleCallSignature", "strict"];
  expect(nearestName("dynamic_shapes", names)).toBe("dynamicShapes");
  expect(nearestName("DynamicShape", names)).toBe("dynamicShapes");
  expect(nearestName("strikt", names)).toBe("strict");
  expect(nearestName("device", names)).toBeUndefined();
});

function plain(text: string): string {
  return pythonName(text).replaceAll("_", "").toLowerCase();
}

async function refusal(body: () => unknown): Promise<FxError> {
  try {
    await body();
  } catch (error) {
    return error as FxError;
  }
  throw new Error("nothing was refused");
}
