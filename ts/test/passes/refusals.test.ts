import { beforeAll, expect, test } from "vitest";
import {
  anyChain,
  CapabilityBasedPartitioner,
  chain,
  checkSubgraphsConnected,
  createOpSupport,
  CSEPass,
  extractAttrsForLowering,
  findAccFusions,
  functionalize,
  fuseByPartitions,
  getNodeTarget,
  getSizeOfAllNodes,
  getSizeOfNode,
  getSourcePartitions,
  getTensorMeta,
  type GraphModule,
  init,
  Interpreter,
  isNodeOutputTensor,
  liftLoweringAttrsToNodes,
  NetMinimizer,
  NormalizeArgs,
  OperatorSupport,
  OpSupports,
  PassManager,
  passResultWrapper,
  ShapeProp,
  splitByTags,
  splitModule,
  Splitter,
  symbolicTrace,
  tensor,
  torch,
  Transformer,
} from "../../src/index.ts";
import { FxGraphDrawer } from "../../src/draw/fxGraphDrawer.ts";
import { GraphTransformObserver } from "../../src/draw/graphTransformObserver.ts";
import { thrown } from "../thrown.ts";

beforeAll(async () => {
  await init();
});

/** What JavaScript may give where types say something else. */
const WRONG = [undefined, null, 5, Symbol("it"), {}];

type Use = (wrong: never, gm: GraphModule) => unknown;

const every = createOpSupport(() => true);
const same = { runA: () => 0, runB: () => 0, compareFn: () => true };
const nothing = new Map();

const USES: Readonly<Record<string, Use>> = {
  "getSourcePartitions of no graph": (it) => getSourcePartitions(it, ["Linear"]),
  "getSourcePartitions of no sources": (it, gm) => getSourcePartitions(gm.graph, it),
  "checkSubgraphsConnected of no first partition": (it) => checkSubgraphsConnected(it, { nodes: [] } as never),
  "checkSubgraphsConnected of no second partition": (it) => checkSubgraphsConnected({ nodes: [] } as never, it),
  "NetMinimizer without inputs": (it, gm) => new NetMinimizer(gm, it, same),
  "NetMinimizer without backends": (it, gm) => new NetMinimizer(gm, [0], it),
  "NetMinimizer without a backend": (it, gm) => new NetMinimizer(gm, [0], { ...same, runB: it }),
  "ShapeProp of no module": (it) => new ShapeProp(it),
  "Interpreter of no module": (it) => new Interpreter(it),
  "Transformer of no module": (it) => new Transformer(it),
  "getSizeOfAllNodes of no module": (it) => getSizeOfAllNodes(it),
  "getSizeOfNode of no module": (it, gm) => getSizeOfNode(it, gm.graph.outputNode() as never),
  "getSizeOfNode of no node": (it, gm) => getSizeOfNode(gm, it),
  "getTensorMeta of no node": (it) => getTensorMeta(it),
  "getNodeTarget of no node": (it) => getNodeTarget(nothing, it),
  "isNodeOutputTensor of no node": (it) => isNodeOutputTensor(it),
  "findAccFusions of no module": (it) => findAccFusions(it, new Set()),
  "findAccFusions of no set": (it, gm) => findAccFusions(gm, it),
  "extractAttrsForLowering of no module": (it) => extractAttrsForLowering(it),
  "liftLoweringAttrsToNodes of no module": (it) => liftLoweringAttrsToNodes(it),
  "isNodeSupported of no node": (it) => new OperatorSupport().isNodeSupported(nothing, it),
  "createOpSupport of no function": (it) => createOpSupport(it),
  "chain of no support": (it) => chain(every, it),
  "anyChain of no support": (it) => anyChain(every, it),
  "declineIfNodeInNames of no set": (it) => OpSupports.declineIfNodeInNames(it),
  "CapabilityBasedPartitioner without a support": (it, gm) => new CapabilityBasedPartitioner(gm, it),
  "fuseByPartitions of no partitions": (it, gm) => fuseByPartitions(gm, it),
  "fuseByPartitions of no set of nodes": (it, gm) => fuseByPartitions(gm, [{ nodes: it }]),
  "fuseByPartitions of no node": (it, gm) => fuseByPartitions(gm, [{ nodes: new Set([it]) }]),
  "PassManager of no constraint": (it) => new PassManager({ constraints: [it] }),
  "addConstraint of no constraint": (it) => new PassManager().addConstraint(it),
  "addChecks of no check": (it) => new PassManager().addChecks(it),
  "PassManager on no module": (it) => new PassManager().run(it),
  "passResultWrapper of no function": (it) => passResultWrapper(it),
  "splitModule without a callback": (it, gm) => splitModule(gm, it),
  "splitByTags without tags": (it, gm) => splitByTags(gm, ["a"], it),
  "Splitter of no module": (it) => new Splitter(it, [], every),
  "Splitter without a support": (it, gm) => new Splitter(gm, [tensor([1])], it),
  "FxGraphDrawer of no module": (it) => new FxGraphDrawer(it, "it"),
  "GraphTransformObserver of no module": (it) => new GraphTransformObserver(it, "it"),
};

const traced = () => symbolicTrace((x: unknown) => torch.relu(torch.sin(x as never)));

test.each(Object.entries(USES))("%s is refused", (_, use) => {
  const codes = WRONG.map((it) => thrown(() => use(it as never, traced())).code);
  expect(new Set(codes)).toEqual(new Set(["FX0304"]));
});

test("options that are no object are refused", () => {
  const gm = traced();
  const uses: readonly Use[] = [
    (it) => new ShapeProp(gm, it),
    (it) => new NetMinimizer(gm, [0], same).minimize(it),
    (it) => new NormalizeArgs(it),
    (it) => functionalize(gm, it),
    (it) => new CSEPass({ bannedOps: it }),
    (it) => new FxGraphDrawer(gm, "it", it),
    (it) => new GraphTransformObserver(gm, "it", it),
    (it) => splitModule(gm, () => 0, it),
  ];
  for (const use of uses) for (const it of [null, 5, Symbol("it")]) thrown(() => use(it as never, gm));
});

/** What a refusal says, and what it advises. */
function told(body: () => unknown): readonly (string | undefined)[] {
  const { message, help } = thrown(body);
  return [message.split("\n")[0], help];
}

test("what is wrong with the argument is said", () => {
  const gm = traced();
  expect(told(() => getSourcePartitions(gm as never, ["Linear"]))).toMatchInlineSnapshot(`
    [
      "FX0304: getSourcePartitions takes a Graph",
      "give the graph of the module: gm.graph",
    ]
  `);
  expect(told(() => getSourcePartitions(gm.graph, "Linear" as never))).toMatchInlineSnapshot(`
    [
      "FX0304: getSourcePartitions takes a list as wantedSources",
      "give it in brackets: [wantedSources]",
    ]
  `);
  expect(told(() => new CapabilityBasedPartitioner(gm, (() => true) as never))).toMatchInlineSnapshot(`
    [
      "FX0304: CapabilityBasedPartitioner takes an OperatorSupport",
      "createOpSupport((submodules, node) => …) makes one of a function",
    ]
  `);
  expect(told(() => new ShapeProp(undefined as never))).toMatchInlineSnapshot(`
    [
      "FX0304: an interpreter takes a GraphModule",
      "symbolicTrace(module) makes one of a module or a function",
    ]
  `);
  expect(told(() => new OperatorSupport({ "torch.relu": ["float32"] as never }))).toMatchInlineSnapshot(`
    [
      "FX0304: OperatorSupport takes a table of dtypes, which there is not at torch.relu",
      "new OperatorSupport({ "torch.add": undefined, "torch.relu": [[["float32"]], {}] })",
    ]
  `);
  expect(told(() => OpSupports.declineIfNodeInNames(["relu"] as never))).toMatchInlineSnapshot(`
    [
      "FX0304: declineIfNodeInNames takes a set of names",
      "new Set(names)",
    ]
  `);
});
