/**
 * Passes of the engine on graphs of TypeScript: a module goes over as an outline, and what became of it comes back as an
 * edit script, which is applied to the module itself.
 *
 * This folder says what is rewritten, by patterns, rules and passes, and in which order; the rewriting is the engine's.
 *
 * @module
 */
import { call } from "../engine/engine.ts";
import { viewHandle } from "../engine/tensors.ts";
import { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { checkGraphModule } from "./checks.ts";
import { applyEdits } from "../wire/edit.ts";
import { type Notes, type Outlined, OutlineTable } from "../wire/outline.ts";

/** How a pass is run. */
export interface PassCall {
  /** The options of the pass. */
  readonly options?: object;
  /** Patterns, replacements and what else the pass takes. */
  readonly others?: readonly Outlined[];
  /** Whether the pass needs what was noted about nodes: abstract values and texts; of all nodes, or of inputs. */
  readonly notes?: Notes;
  /** Whether the module stays as it is, and the result is a new one; else it is changed in place. */
  readonly derive?: boolean;
}

/** What a pass gave. */
export interface PassAnswer<O, M extends Outlined> {
  /** What it had to say. */
  readonly answer: O;
  /** The module, or the new one. */
  readonly module: M;
  /** The nodes before the pass: numbers in answers are places in this list. */
  readonly before: readonly Node[];
}

/** Runs a pass of the engine. Nothing is changed where it throws. */
export function runPass<O, M extends Outlined>(module: M, name: string, how: PassCall = {}): PassAnswer<O, M> {
  const { options = {}, others = [], notes = false, derive = false } = how;
  if (!(module instanceof Graph)) checkGraphModule(name, module);
  const table = new OutlineTable();
  const outline = table.outline(module, notes);
  const ownModules = table.modules.length;
  const before = table.nodesOf.get(module instanceof Graph ? module : module.graph) ?? [];
  return call((engine) => {
    const request = new engine.PassRequest(outline);
    let isTaken = false;
    try {
      for (const it of others) request.push(table.outline(it, notes));
      isTaken = true;
      const reply = request.run(name, JSON.stringify(options));
      const storages = reply.storages();
      try {
        const answer = JSON.parse(reply.answer()) as O;
        const viewOf = (...view: Parameters<typeof viewHandle> extends [unknown, ...infer V] ? V : never) =>
          viewHandle(storages, ...view);
        const changed = applyEdits(reply.edits(), module, { table, ownModules, derive, viewOf }) as M;
        return { answer, module: changed, before };
      } finally {
        storages.free();
        reply.free();
      }
    } finally {
      // The engine takes the request over when it runs.
      if (!isTaken) request.free();
    }
  });
}
