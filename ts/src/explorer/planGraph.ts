/**
 * A plan as a graph: its steps are nodes, and the buffers that they give are the edges between them.
 *
 * @module
 */
import type { ExportedProgram } from "../export/exportedProgram.ts";
import type { PlanReport } from "../export/programModule.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { tuple } from "../graph/args.ts";
import { Graph } from "../graph/graph.ts";
import { type Node, notesOf } from "../graph/node.ts";
import { type DType, DTYPES } from "../../../bindings/dtypes.ts";
import { inputSlots } from "./inputs.ts";
import { STEP } from "./steps.ts";

/** The notes of a node that its step keeps: where the code is, and in which module. */
const KEPT = ["nn_module_stack", "stack_trace"] as const;

/**
 * The plan of a program as a graph. A step is of the last of the nodes that it joins; what it reads are the results of the steps from which
 * that node is reached in the graph without another step in between. Steps of one node follow each other. Weights are in the steps.
 *
 * @example
 * ```ts
 * import { GraphModel, planGraph, profileProgram } from "tracefx/explorer";
 *
 * const plan = new GraphModel(planGraph(program, profileProgram(program)));
 * ```
 */
export function planGraph(program: ExportedProgram, report: PlanReport): GraphModule {
  const graph = new Graph();
  const made = new Map<Node, Node>();
  for (const { node, val } of inputSlots(program)) {
    const input = graph.placeholder(node.name);
    // A graph of its own would give some names a number, such as those of builtins.
    input.name = node.name;
    if (val !== undefined) input.meta.set("val", val);
    made.set(node, input);
  }
  const nodes = new Map([...program.graph.nodes].map((it) => [it.name, it]));
  /** The steps, and the inputs, that a node is reached from without another step in between. */
  const sources = (node: Node): Set<Node> => {
    const [found, seen, open] = [new Set<Node>(), new Set<Node>(), [...node.allInputNodes]];
    for (let it = open.pop(); it !== undefined; it = open.pop()) {
      if (seen.has(it)) continue;
      seen.add(it);
      const step = made.get(it);
      if (step !== undefined) found.add(step);
      else open.push(...it.allInputNodes);
    }
    return found;
  };
  const last = new Map(report.steps.map((it) => [it.node, it]));
  for (const row of report.steps) {
    const node = nodes.get(row.node);
    const before = node && made.get(node);
    const reads = node === undefined ? [] : before === undefined ? [...sources(node)].toReversed() : [before];
    const step = graph.callFunction(row.step, reads);
    // The last step of a node has its name, by which the node is found.
    step.rename(last.get(row.node) === row ? row.node : `${row.node}_${row.step}`);
    step.meta.set(STEP, row);
    for (const key of KEPT) {
      const note = node && notesOf(node)?.get(key);
      if (note !== undefined) step.meta.set(key, note);
    }
    const result = resultOf(row.result);
    if (result !== undefined) step.meta.set("tensor_meta", result);
    if (node !== undefined) made.set(node, step);
  }
  const output = program.graph.outputNode();
  graph.output(tuple(...(output === undefined ? [] : [...sources(output)].toReversed())));
  return new GraphModule({}, graph, "Plan");
}

/** Dtype and sizes of a result such as `f32[1, 64]`; undefined of several, and of what the data decides. */
function resultOf(text: string): { readonly dtype: DType; readonly shape: readonly number[] } | undefined {
  const [, short, sizes = ""] = /^(\w+)\[([\d, ]*)\]$/.exec(text) ?? [];
  const dtype = (Object.keys(DTYPES) as DType[]).find((it) => DTYPES[it].short === short);
  return dtype && { dtype, shape: (sizes.match(/\d+/g) ?? []).map(Number) };
}
