/**
 * Operators that write, in the place of calls of them on copies: `torch.export._remove_auto_functionalized_pass`.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import { List, OpArg, Tuple } from "../base/values.ts";
import { parametersOfOverload } from "../fx/functionalized.ts";
import { type Arg, type ArgInput, isNode } from "../graph/args.ts";
import type { Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { ValSequence } from "../graph/val.ts";
import { ExportedProgram } from "./exportedProgram.ts";

const FIRST = "torch.ops.higher_order.auto_functionalized";
const SECOND = "torch.ops.higher_order.auto_functionalized_v2";
const COPY = "torch.ops.aten.copy_.default";

/**
 * Calls operators that write to arguments as they are, where the program calls them on copies by `auto_functionalized`, and gives the
 * program back, which is changed: `unsafe_remove_auto_functionalized_pass`. Nobody checks that what was written to is not used
 * as it was before.
 *
 * @example
 * ```ts
 * unsafeRemoveAutoFunctionalizedPass(program.runDecompositions());
 * ```
 */
export function unsafeRemoveAutoFunctionalizedPass(program: ExportedProgram): ExportedProgram {
  const isProgram = (program as unknown) instanceof ExportedProgram;
  checkGiven("unsafeRemoveAutoFunctionalizedPass", isProgram, "an ExportedProgram");
  const { graph, graphModule, graphSignature } = program;
  using _hook = graphModule.graphHooks.onReplace(graphSignature.getReplaceHook());
  for (const node of graph.nodes) {
    if (node.op === "call_function" && (node.target === FIRST || node.target === SECOND))
      new Written(graph, node).write();
  }
  for (const node of graph.nodes) {
    const [to, from] = node.args;
    if (node.target !== COPY || !isNode(to) || to !== from) continue;
    node.replaceAllUsesWith(to);
    graph.eraseNode(node);
  }
  graph.eliminateDeadCode();
  return program;
}

/** A call on copies, that becomes one that writes. */
class Written {
  readonly #graph: Graph;
  readonly #node: Node;
  readonly #operator: string;

  constructor(graph: Graph, node: Node) {
    this.#graph = graph;
    this.#node = node;
    const [target] = node.args;
    const name = target instanceof OpArg ? target.name : target;
    if (typeof name !== "string") throw this.#refused("its first argument is no operator");
    this.#operator = name.startsWith("torch.ops.") ? name : `torch.ops.${name}`;
  }

  write(): void {
    const node = this.#node;
    this.#graph.insertingBefore(node, () => {
      const parameters = parametersOfOverload(this.#operator);
      const written = parameters.filter((it) => it.isMutated);
      const isFirst = node.target === FIRST;
      const bases = isFirst ? written.map(({ key }) => this.#given(key)) : this.#bases();
      const views = isFirst ? [] : written.map(({ key, type }) => [key, this.#viewOf(key, type, bases)] as const);
      const read = parameters.filter(({ key }) => Object.hasOwn(node.kwargs, key));
      const kwargs = Object.fromEntries([...views, ...read.map(({ key }) => [key, this.#given(key)] as const)]);
      const call = this.#graph.callFunction(this.#operator, [], kwargs);
      this.#replaceItems(call, bases);
    });
    this.#graph.eraseNode(node);
  }

  /** The items that were copies are what was written to, and those before them what the operator gives. */
  #replaceItems(call: Node, bases: readonly Arg[]): void {
    const val = this.#node.meta.get("val");
    const nResults = val instanceof ValSequence ? val.items.length - bases.length : 1;
    if (nResults === 1 && val instanceof ValSequence) call.meta.set("val", val.items[0]);
    for (const item of Array.from(this.#node.users.keys())) {
      const at = item.args[1];
      if (item.target !== "operator.getitem" || typeof at !== "number") {
        throw this.#refused(`%${item.name} uses all that it gives`);
      }
      const result = at < nResults ? this.#result(call, item, nResults) : bases[at - nResults];
      if (isNode(result)) item.replaceAllUsesWith(result);
      else if (item.users.size > 0) throw this.#refused(`%${item.name} stands for several tensors`);
      this.#graph.eraseNode(item);
    }
  }

  #result(call: Node, item: Node, nResults: number): Node | undefined {
    if (item.users.size === 0) return undefined;
    if (nResults === 1) return call;
    const res = this.#graph.callFunction("operator.getitem", [call, item.args[1] as number]);
    const val = item.meta.get("val");
    if (val !== undefined) res.meta.set("val", val);
    return res;
  }

  #bases(): readonly Arg[] {
    const bases = this.#given("_all_bases");
    if (bases instanceof List || bases instanceof Tuple) return [...bases];
    throw this.#refused("`_all_bases` is no list");
  }

  /** The argument of this name, as it looks at the bases. */
  #viewOf(key: string, type: string, bases: readonly Arg[]): ArgInput {
    if (!/\[\d*\]\??$/.test(type)) return this.#view(`_${key}`, bases);
    const length = this.#given(`_${key}_length`);
    return length === null
      ? null
      : Array.from({ length: this.#index(length) }, (_, at) => this.#view(`_${key}_${at}`, bases));
  }

  #view(prefix: string, bases: readonly Arg[]): Arg {
    const index = this.#given(`${prefix}_base_index`);
    if (index === null) return null;
    const base = bases[this.#index(index)];
    if (!isNode(base)) throw this.#refused(`\`${prefix}_base_index\` names no base`);
    const { kwargs } = this.#node;
    const parts = (...names: string[]): (Arg | undefined)[] => names.map((it) => kwargs[`${prefix}_${it}`]);
    const range = parts("slice_dim", "slice_start", "slice_end");
    if (!range.includes(undefined)) return this.#looking("slice.Tensor", base, range as Arg[]);
    const layout = parts("size", "stride", "storage_offset");
    return layout.includes(undefined) ? base : this.#looking("as_strided.default", base, layout as Arg[]);
  }

  #looking(operator: string, base: Node, rest: readonly Arg[]): Node {
    return this.#graph.callFunction(`torch.ops.aten.${operator}`, [base, ...rest]);
  }

  #given(key: string): Arg {
    const found = this.#node.kwargs[key];
    if (found !== undefined) return found;
    throw this.#refused(`the argument \`${key}\` is missing`);
  }

  #index(value: Arg): number {
    // Each item has an argument that names its base, so that there are not more than those.
    const limit = Object.keys(this.#node.kwargs).length;
    if (Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= limit) return value as number;
    throw this.#refused("a position is no number");
  }

  #refused(reason: string): FxError {
    return fxError("SchemaMismatch", `%${this.#node.name} is not what auto_functionalized takes: ${reason}`, {
      node: this.#node.name,
    });
  }
}
