/**
 * Tables of decompositions, some of which are functions of the user's: `torch.export.decomp_utils.CustomDecompTable`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { checkFunction, checkGiven } from "../base/given.ts";
import { type Arg, argValue, isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { SymExpr, type Val, ValSequence } from "../graph/val.ts";
import { checkInsteadOf } from "../trace/subgraph.ts";
import { type ClosedFunction, closed } from "./closedFunction.ts";
import { defaultDecompositions, ExportedProgram } from "./exportedProgram.ts";
import type { Decomposition } from "./makeFxTracer.ts";

/** An operator: its qualified name, or `torch.ops.aten.silu.default` itself. */
export type OperatorKey = string | { readonly target: string };

/** Programs are decomposed again and again until nothing is left, and a table that never ends is refused. */
const MAX_ROUNDS = 16;

/**
 * The operators that are decomposed, each with the function that says by what: `null` stands for the engine's own decomposition. A new
 * table has those of {@link defaultDecompositions}.
 *
 * @example
 * ```ts
 * const table = new CustomDecompTable();
 * table.set(torch.ops.aten.silu.default, (x: Tensor) => x.mul(x.sigmoid()));
 * table.delete("torch.ops.aten.linear.default");
 * const decomposed = table.decompose(program);
 * ```
 */
export class CustomDecompTable implements Iterable<string> {
  readonly #entries: Map<string, Decomposition | null>;

  /** A table of the default decompositions, or a copy of another table. */
  constructor(entries?: ReadonlyMap<string, Decomposition | null>) {
    checkGiven("CustomDecompTable", entries === undefined || entries instanceof Map, "a Map of entries, or nothing");
    this.#entries = new Map(entries ?? Array.from(defaultDecompositions(), (it): [string, null] => [it, null]));
  }

  /** How many operators it has. */
  get size(): number {
    return this.#entries.size;
  }

  /** The function that an operator is decomposed by; `null` for the engine's, `undefined` where it stays. */
  get(operator: OperatorKey): Decomposition | null | undefined {
    return this.#entries.get(nameOf("get", operator));
  }

  /** Has an operator decomposed by a function, or by the engine. */
  set(operator: OperatorKey, decomposition: Decomposition | null): this {
    if (decomposition !== null) checkFunction("set", "the decomposition", decomposition);
    this.#entries.set(nameOf("set", operator), decomposition);
    return this;
  }

  /** Whether an operator is decomposed. */
  has(operator: OperatorKey): boolean {
    return this.#entries.has(nameOf("has", operator));
  }

  /** Lets an operator stay. */
  delete(operator: OperatorKey): boolean {
    return this.#entries.delete(nameOf("delete", operator));
  }

  /** Lets an operator stay, and gives what it was decomposed by. */
  pop(operator: OperatorKey): Decomposition | null | undefined {
    const found = this.get(operator);
    this.delete(operator);
    return found;
  }

  /** Takes the entries of another table, or of an object by name. */
  update(
    other: CustomDecompTable | ReadonlyMap<string, Decomposition | null> | Readonly<Record<string, Decomposition>>,
  ): void {
    checkGiven("update", typeof other === "object" && other !== null, "a table, a Map or an object by name");
    const entries =
      other instanceof CustomDecompTable ? other.items() : other instanceof Map ? other : Object.entries(other);
    for (const [name, fn] of entries as Iterable<[string, Decomposition | null]>) this.set(name, fn);
  }

  /** A table of its own with the same entries. */
  copy(): CustomDecompTable {
    return new CustomDecompTable(this.#entries);
  }

  /** The names of the operators. */
  keys(): IterableIterator<string> {
    return this.#entries.keys();
  }

  /** The names of the operators, with what they are decomposed by. */
  items(): IterableIterator<[string, Decomposition | null]> {
    return this.#entries.entries();
  }

  /** All entries as a Map, which the table does not follow. */
  materialize(): Map<string, Decomposition | null> {
    return new Map(this.#entries);
  }

  [Symbol.iterator](): IterableIterator<string> {
    return this.keys();
  }

  /**
   * The program in terms of fewer operators: `ep.run_decompositions(table)`. What functions give is decomposed as well.
   *
   * @throws where the functions give, again and again, what is in the table.
   */
  decompose(program: ExportedProgram): ExportedProgram {
    const isProgram = (program as unknown) instanceof ExportedProgram;
    checkGiven("decompose", isProgram, "an ExportedProgram", "exportProgram(module, args) gives one");
    const own = new Map([...this.#entries].filter((it): it is [string, Decomposition] => it[1] !== null));
    const names = new Set([...this.#entries.keys()].filter((it) => !own.has(it)));
    let res = program;
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const inlined =
        own.size === 0
          ? res
          : res.transform((graphModule) => {
              refuseInSubgraphs(graphModule, own);
              return { graphModule, modified: inline(graphModule.graph, own) };
            });
      if (inlined === res && round > 0) return res;
      res = inlined.runDecompositions(names);
    }
    throw fxError("LimitExceeded", `the decompositions gave operators of the table ${MAX_ROUNDS} times`, {
      help: "a decomposition must not call what it stands for, nor what comes to that",
    });
  }
}

function nameOf(what: string, operator: OperatorKey): string {
  const name = typeof operator === "string" ? operator : (operator as { readonly target?: unknown } | null)?.target;
  const isName = typeof name === "string" && name.startsWith("torch.ops.");
  checkGiven(what, isName, "an operator", '"torch.ops.aten.silu.default", or torch.ops.aten.silu.default');
  return name as string;
}

/** Graphs of control flow keep what they call, so that the program would not be decomposed. */
function refuseInSubgraphs(graphModule: GraphModule, own: ReadonlyMap<string, Decomposition>): void {
  for (const [path, inner] of graphModule.namedModules()) {
    if (path === "" || !(inner instanceof GraphModule)) continue;
    for (const node of inner.graph.nodes) {
      if (node.op !== "call_function" || !own.has(node.target)) continue;
      throw fxError("NotImplemented", `a decomposition that is a function, of ${node.target} within \`${path}\``, {
        node: node.name,
        help: "leave the operator to the engine: table.set(operator, null)",
      });
    }
  }
}

/** Puts what functions give into the place of calls, and says whether there was any. */
function inline(graph: Graph, own: ReadonlyMap<string, Decomposition>): boolean {
  let isChanged = false;
  for (const node of Array.from(graph.nodes)) {
    const fn = node.op === "call_function" ? own.get(node.target) : undefined;
    if (fn !== undefined && inlineCall(graph, node, fn)) isChanged = true;
  }
  return isChanged;
}

/** Refuses what a function gives that is not what the operator does: its users would read something else. */
function checkResults(node: Node, { results, outSpec }: ClosedFunction): void {
  const refuse = (why: string) =>
    fxError("InvalidArgument", `the decomposition of ${node.target} ${why}`, { node: node.name });
  if (results.some((it) => !isNode(it))) throw refuse("gives something that is no tensor");
  const val = node.meta.get("val");
  if (!(val instanceof ValSequence)) {
    if (!outSpec.isLeaf) throw refuse("gives an array, where the operator gives one tensor");
    return;
  }
  if (outSpec.isLeaf || results.length !== val.items.length)
    throw refuse(`gives ${results.length} results, where the operator gives an array of ${val.items.length}`);
  for (const { target } of node.users)
    if (target !== "operator.getitem") throw refuse(`cannot stand there, since ${target} takes its results together`);
}

/** Puts what a function gives into the place of a call; not where it declines. */
function inlineCall(graph: Graph, node: Node, fn: Decomposition): boolean {
  const inputs = node.allInputNodes;
  const vals = inputs.map((it) => it.meta.get("val") as Val);
  if (vals.some((it) => it instanceof SymExpr)) {
    throw fxError("NotImplemented", "a decomposition that is a function cannot be called with sizes that are dynamic", {
      node: node.name,
      help: "leave the operator to the engine: table.set(operator, null)",
    });
  }
  let isDeclined = false;
  const argumentsOf = (leaves: readonly unknown[]): unknown[] => {
    const valueOf = (it: Node): unknown => leaves[inputs.indexOf(it)];
    const args = node.args.map((it) => (isNode(it) ? valueOf(it) : argValue(it, valueOf)));
    const named = Object.entries(node.kwargs).map(([key, it]) => [
      key,
      isNode(it) ? valueOf(it) : argValue(it as Arg, valueOf),
    ]);
    return named.length === 0 ? args : [...args, Object.fromEntries(named)];
  };
  const run = (...args: unknown[]): unknown => {
    const result = (fn as (...args: unknown[]) => unknown)(...args);
    isDeclined = result === undefined;
    return result;
  };
  checkInsteadOf(run, fn);
  const body = closed(run, vals, { argumentsOf });
  if (isDeclined) return false;
  checkResults(node, body);
  if (body.free.size > 0) {
    throw fxError("NotImplemented", `the decomposition of ${node.target} uses a tensor of its surroundings`, {
      node: node.name,
      help: "make it by an operator, such as torch.full",
    });
  }
  if (body.graph.findNodes({ op: "get_attr" }).length > 0) {
    throw fxError("NotImplemented", `the decomposition of ${node.target} has control flow, or switches gradients`, {
      node: node.name,
      help: "write it in operators alone",
    });
  }
  const copies = new Map<Node, Arg>();
  for (const [at, input] of body.inputs.entries()) copies.set(input, inputs[at] as Node);
  const results = graph.insertingBefore(node, () => {
    for (const it of body.graph.nodes) {
      if (it.op === "placeholder" || it.op === "output") continue;
      const copy = graph.nodeCopy(it, (input) => copies.get(input) as Node);
      for (const [key, note] of node.meta) if (key !== "val" && !copy.meta.has(key)) copy.meta.set(key, note);
      copies.set(it, copy);
    }
    return body.results.map((it) => copies.get(it as Node) as Node);
  });
  if (!(node.meta.get("val") instanceof ValSequence)) node.replaceAllUsesWith(results[0] as Node);
  else {
    for (const user of Array.from(node.users)) {
      user.replaceAllUsesWith(results[user.args[1] as number] as Node);
      graph.eraseNode(user);
    }
  }
  graph.eraseNode(node);
  return true;
}
