/**
 * What the node of a plan has noted of its step.
 *
 * @module
 */
import type { PlanReport } from "../export/programModule.ts";
import { type Node, notesOf } from "../graph/node.ts";

/** A step of a plan, with what it takes. */
export type Step = PlanReport["steps"][number];

/** The note that has it. */
export const STEP = "plan_step";

/** The step that a node stands for; undefined of a node that is of no plan. */
export function stepOf(node: Node): Step | undefined {
  return notesOf(node)?.get(STEP) as Step | undefined;
}
