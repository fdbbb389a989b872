/**
 * The node that an interpreter runs now, which what is traced meanwhile comes from: `torch.fx.traceback`.
 *
 * @module
 */
import type { Node } from "../graph/node.ts";

let running: Node | undefined;

/** The node that runs now; of interpreters inside each other, that of the innermost. */
export function runningNode(): Node | undefined {
  return running;
}

/** Says that a node runs from here on, and gives the one that ran before. */
export function setRunning(node: Node | undefined): Node | undefined {
  const outer = running;
  running = node;
  return outer;
}
