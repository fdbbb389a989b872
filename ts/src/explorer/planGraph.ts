/**
 * A plan as a graph: its steps are nodes, and the buffers that they give are the edges between them.
 *
 * @module
 */
import type { ExportedProgram } from "../export/exportedProgram.ts";
import type { StepSources } from "../../../bindings/plans.ts";
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
 * The plan of a program as a graph. What a step reads are the inputs, and the results of the steps that wrote to the same buffers. A step is
 * of the last of the nodes that it joins. Weights are in the steps.
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
  const inputs = inputSlots(program).map(({ node, val }) => {
    const input = graph.placeholder(node.name);
    // A graph of its own would give some names a number, such as those of builtins.
    input.name = node.name;
    if (val !== undefined) input.meta.set("val", val);
    return input;
  });
  const made: Node[] = [];
  const nodesOf = ({ steps, inputs: places }: StepSources): Node[] => [
    ...places.flatMap((place) => inputs[place] ?? []),
    ...steps.flatMap((place) => made[place] ?? []),
  ];
  const nodes = new Map([...program.graph.nodes].map((it) => [it.name, it]));
  const last = new Map(report.steps.map((it) => [it.node, it]));
  for (const row of report.steps) {
    const node = nodes.get(row.node);
    const step = graph.callFunction(row.step, nodesOf(row.reads));
    // The last step of a node has its name, by which the node is found.
    step.rename(last.get(row.node) === row ? row.node : `${row.node}_${row.step}`);
    step.meta.set(STEP, row);
    for (const key of KEPT) {
      const note = node && notesOf(node)?.get(key);
      if (note !== undefined) step.meta.set(key, note);
    }
    const result = resultOf(row.result);
    if (result !== undefined) step.meta.set("tensor_meta", result);
    made.push(step);
  }
  graph.output(tuple(...nodesOf(report.results)));
  return new GraphModule({}, graph, "Plan");
}

/** Dtype and sizes of a result such as `f32[1, 64]`; undefined of several, and of what the data decides. */
function resultOf(text: string): { readonly dtype: DType; readonly shape: readonly number[] } | undefined {
  const [, short, sizes = ""] = /^(\w+)\[([\d, ]*)\]$/.exec(text) ?? [];
  const dtype = (Object.keys(DTYPES) as DType[]).find((it) => DTYPES[it].short === short);
  return dtype && { dtype, shape: (sizes.match(/\d+/g) ?? []).map(Number) };
}
