/**
 * What a step of a plan costs in WebAssembly, and what sizes cost that are new: prints nanoseconds for each of 1,000 dependent
 * additions, of the shortest of many calls.
 *
 *     npm run -s build -w ts && node benches/steps.mjs [--seconds 1]
 *
 * A sum has another rank than the one before, which it sees through a view: such additions are not joined, and a view is no step.
 * Beside the plan of loops of one operator each, the same graph is run by the engine's interpreter, and by `gm.forward`, which
 * crosses to the engine for each node. `benches/plans.rs` of `tracefx-engine` times the same natively.
 *
 * @module
 */
import { cpus } from "node:os";
import { parseArgs } from "node:util";
import { Graph, GraphModule, init, programOf, Tensor, tensor } from "../ts/dist/index.js";

const { values } = parseArgs({ options: { seconds: { type: "string", default: "1" } } });
const N = 1000;
/** Batches of one row and more; so many that a program does not remember its plans for all of them. */
const N_BATCHES = 32;

await init();

const graph = new Graph();
const flat = graph.placeholder("flat");
const nested = graph.placeholder("nested");
let last = flat;
for (let at = 0; at < N / 2; at++) {
  const sum = graph.callFunction("torch.ops.aten.add.Tensor", [last, nested]);
  const view = graph.callFunction("torch.ops.aten.view.default", [sum, [-1, 4]]);
  last = graph.callFunction("torch.ops.aten.add.Tensor", [view, flat]);
}
graph.output(last);
const gm = new GraphModule({}, graph);
const program = programOf(gm);

/** Inputs of a batch of so many rows, the second one with a dimension in front. */
const inputsOf = (/** @type {number} */ rows) => {
  const row = [1, 2, 3, 4];
  const batch = Array.from({ length: rows }, () => row);
  const inputs = [tensor(batch, { dtype: "float32" }), tensor([batch], { dtype: "float32" })];
  // In the engine's memory from now on, as results are.
  return /** @type {Tensor[]} */ (inputs.map((it) => it.clone()));
};

/** The nanoseconds of one call, for each step. */
const timed = (/** @type {() => unknown} */ call) => {
  const start = performance.now();
  const result = call();
  const nanoseconds = ((performance.now() - start) * 1e6) / N;
  if (result instanceof Tensor) result.dispose();
  return nanoseconds;
};

/** The shortest of the calls that are made in the time. */
const shortest = (/** @type {() => unknown} */ call) => {
  let least = Number.POSITIVE_INFINITY;
  const end = performance.now() + Number(values.seconds) * 1000;
  while (performance.now() < end) least = Math.min(least, timed(call));
  return least;
};

const median = (/** @type {number[]} */ numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;

const inputs = inputsOf(1);
const plan = program.module();
const interpreted = program.module({ mode: "interpret" });
const { steps } = plan.explain(inputs);
if (steps.length !== N) throw new Error(`the plan has ${steps.length} steps instead of ${N}`);

/** The first call of a batch, and the shortest of five that repeat it. */
const newAndRepeated = (/** @type {typeof plan} */ module, /** @type {number} */ rows) => {
  const batch = inputsOf(rows);
  const [first = 0, ...others] = Array.from({ length: 6 }, () => timed(() => module(...batch)));
  return { first, repeated: Math.min(...others) };
};

const fresh = program.module();
const { first } = newAndRepeated(fresh, 1);
const batches = Array.from({ length: N_BATCHES }, (_, at) => newAndRepeated(fresh, at + 2));
fresh.dispose();

/** @type {[string, number][]} */
const rows = [
  [`plan (${steps[0]?.step})`, shortest(() => plan(...inputs))],
  ["interpreter of the engine", shortest(() => interpreted(...inputs))],
  ["gm.forward", shortest(() => gm.forward(...inputs))],
  ["first call", first],
  ["call with another batch", Math.min(...batches.map((it) => it.first))],
  ["the same batch again", Math.min(...batches.map((it) => it.repeated))],
  ["what another batch adds, median", median(batches.map((it) => it.first - it.repeated))],
];
console.log(`${cpus()[0]?.model}, Node ${process.version}; nanoseconds of a step\n`);
console.log("| | ns |\n|---|--:|");
for (const [name, ns] of rows) console.log(`| ${name} | ${ns.toFixed(0)} |`);
