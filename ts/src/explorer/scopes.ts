/**
 * The modules that nodes were traced in, by `nn_module_stack`.
 *
 * @module
 */
import type { Node } from "../graph/node.ts";
import { notesOf } from "../graph/node.ts";

/** One call of a module. */
export interface Scope {
  /** The scope around it; undefined for the root. */
  readonly outer: Scope | undefined;
  /** The keys from the root, which tell calls of one module apart. */
  readonly keys: string;
  readonly path: string;
  /** The path from the scope around it. */
  readonly name: string;
  readonly className: string;
  readonly inner: Map<string, Scope>;
  /** How many nodes are inside, those of inner scopes included. */
  nNodes: number;
  /** How many nodes and scopes are directly inside; scopes of one node count as the node. */
  nChildren: number;
}

/** What exporting notes of a node that no module has. */
const NO_MODULE = "_empty_nn_module_stack_from_metadata_hook";

/** The scopes of the nodes of one graph. A scope of one node is left out: the node says its module itself. */
export class Scopes {
  readonly #root: Scope = newScope(undefined, "", "", "");
  readonly #innermost = new Map<Node, Scope>();

  constructor(nodes: readonly Node[]) {
    for (const node of nodes) {
      let scope = this.#root;
      for (const [key, path, type] of stackOf(node)) {
        let next = scope.inner.get(key);
        if (next === undefined) scope.inner.set(key, (next = newScope(scope, key, path, type)));
        scope = next;
      }
      this.#innermost.set(node, scope);
      for (let at: Scope | undefined = scope; at !== undefined; at = at.outer) at.nNodes++;
    }
    for (const node of nodes) this.of(node).nChildren++;
    for (const scope of this.all()) if (isShown(scope) && scope.outer !== undefined) scope.outer.nChildren++;
  }

  /** All scopes, an outer one before those inside. */
  *all(): IterableIterator<Scope> {
    const open = [this.#root];
    for (let scope = open.pop(); scope !== undefined; scope = open.pop()) {
      yield scope;
      // A level may have more scopes than a call takes arguments.
      for (const inner of [...scope.inner.values()].toReversed()) open.push(inner);
    }
  }

  /** The innermost scope of a node that is shown. */
  of(node: Node): Scope {
    let scope = this.#innermost.get(node) ?? this.#root;
    while (!isShown(scope)) scope = scope.outer as Scope;
    return scope;
  }

  /** The innermost scope that has all of these nodes. */
  around(nodes: readonly Node[]): Scope {
    const [first, ...rest] = nodes.map((it) => this.of(it));
    let scope = first ?? this.#root;
    for (const it of rest) {
      const outer = new Set<Scope>();
      for (let at: Scope | undefined = it; at !== undefined; at = at.outer) outer.add(at);
      while (!outer.has(scope)) scope = scope.outer as Scope;
    }
    return scope;
  }

  /** The module that a node has for itself, such as `0 · Conv2d`; empty where it shares its module, or has none. */
  captionOf(node: Node): string {
    const innermost = this.#innermost.get(node);
    if (innermost === undefined || isShown(innermost)) return "";
    const shown = this.of(node);
    return `${pathFrom(shown.path, innermost.path)} · ${innermost.className}`;
  }
}

function newScope(outer: Scope | undefined, key: string, path: string, type: string): Scope {
  return {
    outer,
    keys: outer === undefined || outer.keys === "" ? key : `${outer.keys} ${key}`,
    path,
    name: pathFrom(outer?.path ?? "", path) + (/@\d+$/.exec(key)?.[0] ?? ""),
    className: type.slice(type.lastIndexOf(".") + 1),
    inner: new Map(),
    nNodes: 0,
    nChildren: 0,
  };
}

function isShown(scope: Scope): boolean {
  return scope.outer === undefined || scope.nNodes > 1;
}

function pathFrom(outer: string, path: string): string {
  return outer !== "" && path.startsWith(`${outer}.`) ? path.slice(outer.length + 1) : path;
}

/** The modules around a node, the root left out, and for a call of a module that module too. */
function* stackOf(node: Node): IterableIterator<readonly [key: string, path: string, type: string]> {
  const stack = notesOf(node)?.get("nn_module_stack");
  if (!(stack instanceof Map)) return;
  for (const [key, entry] of stack as Map<unknown, unknown>) {
    if (typeof key !== "string" || !Array.isArray(entry)) continue;
    const [path, type] = entry as unknown[];
    if (typeof path !== "string" || typeof type !== "string" || path === "" || path === NO_MODULE) continue;
    if (node.op === "call_module" && path === node.target) continue;
    yield [key, path, type];
  }
}
