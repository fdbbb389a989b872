/**
 * What nodes are noted to be from here on: `torch.fx.traceback`. Tracers put it on the nodes that they make, while that is asked for.
 *
 * @module
 */
import { checkFunction, checkGiven, checkList } from "../base/given.ts";
import { isOptions } from "../base/naming.ts";
import { currentStack, stackText } from "../record/stack.ts";
import { checkNode } from "./args.ts";
import type { Node } from "./node.ts";
import { NodeSource } from "./nodeSource.ts";

export { getGraphProvenanceJson, NodeSource, type NodeSourceAction, type NodeSourceJson } from "./nodeSource.ts";

/** What a new node takes from the current notes. */
export const COPIED_META = [
  "stack_trace",
  "nn_module_stack",
  "torch_fn",
  "source_fn_stack",
  "original_aten",
  "recompute",
  "ac_graph_id",
  "has_backward_hook",
  "from_node",
  "quantization_tag",
  "_numeric_debug_handle",
  "custom",
  "partitioner_tag",
] as const;

let meta: ReadonlyMap<string, unknown> = new Map();
let isPreserved = false;
let replayed: Node | undefined;

/**
 * Notes something of all nodes that are traced within a function, under `custom`, where {@link preserveNodeMeta} is on: `annotate`.
 *
 * @example
 * ```ts
 * const y = traceback.annotate({ stage: 1 }, () => this.encoder(x));
 * ```
 */
export function annotate<T>(annotation: Readonly<Record<string, unknown>>, body: () => T): T {
  checkGiven("annotate", isOptions(annotation), "an object of what is noted");
  checkFunction("annotate", "the function", body);
  const custom = { ...(meta.get("custom") as object | undefined), ...annotation };
  return within(new Map([...meta, ["custom", custom]]), body);
}

/**
 * The function, of whose nodes something is noted: `annotate_fn`.
 *
 * @example
 * ```ts
 * const encode = traceback.annotateFn({ stage: 1 }, (x: Tensor) => x.relu());
 * ```
 */
export function annotateFn<A extends readonly unknown[], R>(
  annotation: Readonly<Record<string, unknown>>,
  fn: (...args: A) => R,
): (...args: A) => R {
  checkFunction("annotateFn", "the function", fn);
  return (...args) => annotate(annotation, () => fn(...args));
}

/**
 * Runs a function while new nodes are noted to be what {@link getCurrentMeta} says: `preserve_node_meta`. What changes of that within
 * ends with it.
 *
 * @example
 * ```ts
 * const program = traceback.preserveNodeMeta(() => exportProgram(model, [x]));
 * ```
 */
export function preserveNodeMeta<T>(body: () => T, enable = true): T {
  checkFunction("preserveNodeMeta", "the function", body);
  const outer = isPreserved;
  isPreserved = enable;
  try {
    return within(meta, body);
  } finally {
    isPreserved = outer;
  }
}

/**
 * Whether new nodes are noted to be what is current: `has_preserved_node_meta`.
 *
 * @example
 * ```ts
 * traceback.preserveNodeMeta(() => traceback.hasPreservedNodeMeta()); // true
 * ```
 */
export function hasPreservedNodeMeta(): boolean {
  return isPreserved;
}

/**
 * Says which lines new nodes come from, where that is kept; an empty list, that nothing is known: `set_stack_trace`.
 *
 * @example
 * ```ts
 * traceback.preserveNodeMeta(() => traceback.setStackTrace(["at model.py:3\n"]));
 * ```
 */
export function setStackTrace(stack: readonly string[]): void {
  checkList("setStackTrace", "stack", stack);
  if (!isPreserved) return;
  const next = new Map(meta);
  if (stack.length > 0) next.set("stack_trace", stack.join(""));
  else next.delete("stack_trace");
  meta = next;
}

/**
 * The lines that new nodes come from: those that were set, or those of the code that asks. `format_stack`.
 *
 * @example
 * ```ts
 * console.log(traceback.formatStack().join("\n"));
 * ```
 */
export function formatStack(): string[] {
  if (isPreserved) return [(meta.get("stack_trace") as string | undefined) ?? ""];
  return stackText([currentStack()])
    .split("\n")
    .filter((it) => it !== "");
}

/**
 * Runs a function whose nodes come from a node, where that is kept: they are noted to be what it is. `set_current_meta`.
 *
 * @example
 * ```ts
 * traceback.setCurrentMeta(node, "my_pass", () => tracer.createProxy("call_function", "torch.relu", [x], {}));
 * ```
 */
export function setCurrentMeta<T>(node: Node, passName: string, body: () => T): T {
  checkNode("setCurrentMeta", node);
  checkFunction("setCurrentMeta", "the function", body);
  if (!isPreserved || node.meta.size === 0) return body();
  return within(new Map([...node.meta, ["from_node", [new NodeSource(node, passName, "create")]]]), body);
}

/**
 * What new nodes are noted to be: `get_current_meta`.
 *
 * @example
 * ```ts
 * traceback.annotate({ stage: 1 }, () => traceback.getCurrentMeta().get("custom")); // { stage: 1 }
 * ```
 */
export function getCurrentMeta(): ReadonlyMap<string, unknown> {
  return meta;
}

/**
 * Runs a function that makes what a node does again: `set_current_replay_node`.
 *
 * @example
 * ```ts
 * traceback.setCurrentReplayNode(node, () => interpreter.runNode(node));
 * ```
 */
export function setCurrentReplayNode<T>(node: Node | undefined, body: () => T): T {
  checkFunction("setCurrentReplayNode", "the function", body);
  const outer = replayed;
  replayed = node;
  try {
    return body();
  } finally {
    replayed = outer;
  }
}

/**
 * The node that is made again: `get_current_replay_node`.
 *
 * @example
 * ```ts
 * traceback.setCurrentReplayNode(node, () => traceback.getCurrentReplayNode()); // node
 * ```
 */
export function getCurrentReplayNode(): Node | undefined {
  return replayed;
}

/** What a node that is made now is noted to be; undefined where that is not kept. */
export function preservedMeta(): readonly (readonly [key: string, note: unknown])[] | undefined {
  if (!isPreserved) return undefined;
  return COPIED_META.filter((key) => meta.has(key)).map((key) => [key, meta.get(key)] as const);
}

function within<T>(next: ReadonlyMap<string, unknown>, body: () => T): T {
  const outer = meta;
  meta = next;
  try {
    return body();
  } finally {
    meta = outer;
  }
}
