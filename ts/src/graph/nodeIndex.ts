/**
 * The nodes of a graph by what they do, so that looking for them takes no longer than what is found.
 *
 * @module
 */
import type { Node } from "./node.ts";
import type { Opcode } from "../base/opcode.ts";

/** Nodes by opcode, and by opcode and target. */
export class NodeIndex {
  readonly #groups = new Map<string, Set<Node>>();

  constructor(nodes: Iterable<Node>) {
    for (const node of nodes) this.add(node);
  }

  /** Adds a node as it is now. */
  add(node: Node): void {
    for (const key of keysOf(node)) {
      const group = this.#groups.get(key);
      if (group === undefined) this.#groups.set(key, new Set([node]));
      else group.add(node);
    }
  }

  /** Takes a node out; its opcode and target must be those that it was added with. */
  remove(node: Node): void {
    for (const key of keysOf(node)) {
      const group = this.#groups.get(key);
      group?.delete(node);
      if (group?.size === 0) this.#groups.delete(key);
    }
  }

  /** The nodes with this opcode and, where it is given, this target. */
  find(op: Opcode, target: string | undefined): Node[] {
    return [...(this.#groups.get(target === undefined ? op : keyOf(op, target)) ?? [])];
  }
}

function keysOf({ op, target }: Node): readonly string[] {
  return [op, keyOf(op, target)];
}

/** No opcode has a space, so this is no opcode, and no two pairs have the same. */
function keyOf(op: Opcode, target: string): string {
  return `${op} ${target}`;
}
