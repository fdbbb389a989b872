/**
 * Where a graph puts its next node.
 *
 * @module
 */
import type { Node } from "./node.ts";

/** Where new nodes go. */
export type InsertPoint =
  | { readonly at: "end" }
  | { readonly at: "before"; readonly node: Node }
  | { readonly at: "after"; readonly node: Node };

/** The insertion point of a new graph. */
export const END: InsertPoint = { at: "end" };

/** Restores the insertion point that was there before, when it is disposed. */
export interface InsertScope extends Disposable {
  dispose(): void;
}

/** The insertion point, on the node that followed where its own was erased. */
export function settled(point: InsertPoint): InsertPoint {
  if (point.at === "end" || !point.node.isErased) return point;
  const { next } = point.node;
  return next === undefined ? END : { at: "before", node: next };
}
