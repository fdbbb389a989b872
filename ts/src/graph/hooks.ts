/**
 * What is told about edits of a graph: the hooks that `torch.fx` keeps on a `GraphModule`.
 *
 * @module
 */
import { checkFunction, checkGiven } from "../base/given.ts";
import type { Node } from "./node.ts";

/** Is told of a node that was made, or that is about to be erased. */
export type NodeHook = (node: Node) => void;

/**
 * Is told that `user` is about to use the node called `replacement` in place of `old`. It is told of a new name too: then
 * `replacement` is the new name of `old` itself.
 */
export type ReplaceHook = (old: Node, replacement: string, user: Node) => void;

interface Hooks {
  readonly create: Set<{ readonly run: NodeHook }>;
  readonly erase: Set<{ readonly run: NodeHook }>;
  readonly replace: Set<{ readonly run: ReplaceHook }>;
}

/**
 * Hooks that are told about edits. A graph has its own, and a `GraphModule` has some for whichever graph it owns.
 *
 * @example
 * ```ts
 * const made: string[] = [];
 * using _hook = graph.hooks.onCreate((node) => made.push(node.name));
 * ```
 */
export class GraphHooks {
  readonly #hooks: Hooks = { create: new Set(), erase: new Set(), replace: new Set() };
  #isEmpty = true;

  /** Calls `run` for each node that is made, once it stands in its graph; until what is returned is disposed. */
  onCreate(run: NodeHook): Disposable {
    checkFunction("onCreate", "the hook", run);
    return this.#added(this.#hooks.create, { run });
  }

  /** Calls `run` for each node that is erased, while it still stands in its graph; until what is returned is disposed. */
  onErase(run: NodeHook): Disposable {
    checkFunction("onErase", "the hook", run);
    return this.#added(this.#hooks.erase, { run });
  }

  /** Calls `run` before a user gets another input, or an input another name; until what is returned is disposed. */
  onReplace(run: ReplaceHook): Disposable {
    checkFunction("onReplace", "the hook", run);
    return this.#added(this.#hooks.replace, { run });
  }

  /** Whether nobody wants to be told of anything. */
  get isEmpty(): boolean {
    return this.#isEmpty;
  }

  /** Tells of a new node. */
  created(node: Node): void {
    if (this.#isEmpty) return;
    for (const { run } of this.#hooks.create) run(node);
  }

  /** Tells of a node that is about to go. */
  erasing(node: Node): void {
    if (this.#isEmpty) return;
    for (const { run } of this.#hooks.erase) run(node);
  }

  /** Tells of an input that is about to change. */
  replacing(old: Node, replacement: string, user: Node): void {
    if (this.#isEmpty) return;
    for (const { run } of this.#hooks.replace) run(old, replacement, user);
  }

  /** Runs what the other hooks run, too. */
  addAll(other: GraphHooks): void {
    checkGiven("addAll", other instanceof GraphHooks, "the hooks of a graph", "graph.hooks are those of another one");
    for (const it of other.#hooks.create) this.#hooks.create.add(it);
    for (const it of other.#hooks.erase) this.#hooks.erase.add(it);
    for (const it of other.#hooks.replace) this.#hooks.replace.add(it);
    this.#note();
  }

  #added<T>(hooks: Set<T>, hook: T): Disposable {
    hooks.add(hook);
    this.#note();
    const dispose = (): void => {
      hooks.delete(hook);
      this.#note();
    };
    return { [Symbol.dispose]: dispose };
  }

  #note(): void {
    const { create, erase, replace } = this.#hooks;
    this.#isEmpty = create.size + erase.size + replace.size === 0;
  }
}
