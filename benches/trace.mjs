/**
 * Traces ResNet-50 with tracefx and with torch.fx, in turn on one machine, and prints both medians and their ratio.
 *
 *     npm run -s build -w ts && node benches/trace.mjs [--python python3] [--rounds 5]
 *
 * The model is the same, built of torch.nn's modules; tracefx notes stacks and checks the source of every function as it
 * always does, torch.fx does neither. Each round takes the median of many traces after a warm-up in a process of its own,
 * and the rounds of the two take turns, so that a busy machine disturbs both alike.
 *
 * @module
 */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const { values } = parseArgs({
  options: { python: { type: "string", default: "python3" }, rounds: { type: "string", default: "5" } },
});
const here = (/** @type {string} */ name) => fileURLToPath(new URL(name, import.meta.url));

/** @type {(command: string, file: string) => { nodes: number, ms: number }} */
function measure(command, file) {
  const [nodes, ms] = execFileSync(command, [here(file)], { encoding: "utf8" })
    .trim()
    .split(" ")
    .map(Number);
  return { nodes: nodes ?? 0, ms: ms ?? 0 };
}

/** @type {(numbers: number[]) => number} */
const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1] ?? 0;

/** @type {number[]} */
const ours = [];
/** @type {number[]} */
const theirs = [];
for (let round = 0; round < Number(values.rounds); round++) {
  const fx = measure(values.python, "trace.py");
  const own = measure(process.execPath, "traceResnet.mjs");
  if (fx.nodes !== own.nodes) throw new Error(`the graphs have ${fx.nodes} and ${own.nodes} nodes`);
  theirs.push(fx.ms);
  ours.push(own.ms);
  console.log(`round ${round}: torch.fx ${fx.ms.toFixed(2)} ms, tracefx ${own.ms.toFixed(2)} ms, ${own.nodes} nodes`);
}
const [fx, own] = [median(theirs), median(ours)];
console.log(
  `ResNet-50: torch.fx ${fx.toFixed(2)} ms, tracefx ${own.toFixed(2)} ms, ${(fx / own).toFixed(1)} times as fast`,
);
