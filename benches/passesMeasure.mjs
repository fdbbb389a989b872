/**
 * The passes of the package on synthetic graphs: the median milliseconds of each call, encoding and edit script included, as
 * a JSON object. The graphs are those of `crates/engine/benches/passes.rs`; each is new to the engine when the clock starts, and
 * what its making left in the nursery was collected, as `passes.py` collects it.
 *
 *     npm run -s build -w ts && node benches/passesMeasure.mjs [NAME…]
 *
 * @module
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import {
  CapabilityBasedPartitioner,
  createOpSupport,
  CSEPass,
  FakeTensorProp,
  Graph,
  GraphModule,
  init,
  legalizeGraph,
  replacePattern,
  ShapeProp,
  splitModule,
  SubgraphMatcher,
  tensor,
  torch,
} from "../ts/dist/index.js";

await init();
setFlagsFromString("--expose-gc");
/** @type {(options: { type: "minor" }) => void} */
const collect = runInNewContext("gc");
const CYCLE = ["relu", "neg", "sigmoid", "tanh", "abs"];
const OTHERS = ["neg", "sigmoid", "tanh", "abs", "neg", "sin", "cos", "exp"];

const chain = (/** @type {number} */ n, isDead = false) => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  let last = x;
  for (let at = 0; at < n; at++) last = graph.callFunction(`torch.${CYCLE[at % 5]}`, [last]);
  graph.output(isDead ? x : last);
  return GraphModule.ofGraph(graph);
};

const duplicates = (/** @type {number} */ n) => {
  const graph = new Graph();
  let last = graph.placeholder("x");
  for (let at = 0; at < n / 4; at++) {
    const a = graph.callFunction("torch.ops.aten.sin.default", [last]);
    const b = graph.callFunction("torch.ops.aten.sin.default", [last]);
    const both = graph.callFunction("torch.ops.aten.add.Tensor", [a, b]);
    last = graph.callFunction("torch.ops.aten.neg.default", [both]);
  }
  graph.output(last);
  return GraphModule.ofGraph(graph);
};

const patterns = (/** @type {number} */ n) => {
  const graph = new Graph();
  const x = graph.placeholder("x");
  let last = x;
  for (let at = 0; at < n / 10; at++) {
    last = graph.callFunction("torch.relu", [graph.callFunction("torch.add", [last, x])]);
    for (const other of OTHERS) last = graph.callFunction(`torch.${other}`, [last]);
  }
  graph.output(last);
  return GraphModule.ofGraph(graph);
};

const pattern = (/** @type {any} */ a, /** @type {any} */ b) => torch.relu(torch.add(a, b));
const replacement = (/** @type {any} */ a, /** @type {any} */ b) => torch.mul(a, b);
const places = (/** @type {GraphModule} */ gm) => new Map([...gm.graph.nodes].map((node, at) => [node, at]));

/** @type {Record<string, [(n: number) => GraphModule, (gm: GraphModule) => unknown]>} */
const BENCHES = {
  "dce.nothing_dead": [chain, (gm) => gm.graph.eliminateDeadCode()],
  "dce.all_dead_chain": [(n) => chain(n, true), (gm) => gm.graph.eliminateDeadCode()],
  "cse.half_duplicates": [duplicates, (gm) => new CSEPass().run(gm)],
  "replace_pattern.n/10_matches": [patterns, (gm) => replacePattern(gm, pattern, replacement)],
  "subgraph_matcher.n/10_matches": [patterns, (gm) => new SubgraphMatcher(pattern).match(gm.graph)],
  "split_module.4_parts": [
    chain,
    (gm) => {
      const place = places(gm);
      return splitModule(gm, (node) => Math.floor(/** @type {number} */ (place.get(node) * 4) / place.size));
    },
  ],
  fake_tensor_prop: [chain, (gm) => new FakeTensorProp(gm).propagate(tensor([1.5]))],
  shape_prop: [chain, (gm) => new ShapeProp(gm).propagate(tensor([1.5]))],
  legalize_graph: [chain, (gm) => legalizeGraph(gm.graph)],
  "partitioner.propose": [
    chain,
    (gm) => {
      const place = places(gm);
      const support = createOpSupport((_, node) => node.op === "call_function" && Number(place.get(node)) % 5 !== 0);
      return new CapabilityBasedPartitioner(gm, support).proposePartitions();
    },
  ],
};

/** @type {(make: (n: number) => GraphModule, run: (gm: GraphModule) => unknown, n: number) => number} */
function measure(make, run, n) {
  run(make(n));
  /** @type {number[]} */
  const times = [];
  const begin = performance.now();
  while (times.length < 5 || (performance.now() - begin < 2000 && times.length < 50)) {
    const gm = make(n);
    // Twice, so that what survives is old.
    for (let round = 0; round < 2; round++) collect({ type: "minor" });
    const start = performance.now();
    run(gm);
    times.push(performance.now() - start);
  }
  return times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0;
}

const picked = process.argv.slice(2);
/** @type {Record<string, number>} */
const times = {};
for (const [name, [make, run]] of Object.entries(BENCHES)) {
  if (picked.length > 0 && !picked.some((part) => name.includes(part))) continue;
  for (const n of [1000, 10_000, 100_000]) times[`${name}/${n}`] = Number(measure(make, run, n).toFixed(3));
}
console.log(JSON.stringify(times));
