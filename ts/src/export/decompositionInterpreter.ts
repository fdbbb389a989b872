/**
 * Graphs that are traced again, in terms of other operators: `DecompositionInterpreter` and `selective_decompose`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkGiven, checkList, checkOptions } from "../base/given.ts";
import { Interpreter } from "../fx/interpreter.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { checkGraph, type Graph } from "../graph/graph.ts";
import type { Node } from "../graph/node.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { Tensor } from "../tensor/tensor.ts";
import { activeTracer } from "../trace/tracer.ts";
import { type DecompositionTable, tableOf, traced } from "./makeFx.ts";
import { MakeFxTracer } from "./makeFxTracer.ts";

/**
 * Runs `body`, in which these decompositions stand for operators of the trace around: `decompose` of
 * `torch.fx.experimental.proxy_tensor`.
 *
 * @example
 * ```ts
 * makeFx((x: Tensor) => decompose({ "torch.ops.aten.silu.default": silu }, () => F.silu(x)))(x);
 * ```
 */
export function decompose<T>(table: DecompositionTable, body: () => T): T {
  const tracer = activeTracer();
  if (tracer instanceof MakeFxTracer) return tracer.withDecompositions(tableOf("decompose", table), body);
  throw fxError("InvalidOption", "Expected proxy mode to be set", {
    help: "call decompose within a function that makeFx traces",
  });
}

/** How a {@link DecompositionInterpreter} is made. */
export interface DecompositionInterpreterOptions {
  /** What stands for operators, as `makeFx` takes it. */
  readonly decompositionTable?: DecompositionTable;
}

/**
 * Runs a graph on example inputs, and writes what that does below autograd into another graph, which is empty before:
 * `torch.fx.experimental.proxy_tensor.DecompositionInterpreter`.
 *
 * @example
 * ```ts
 * const graph = new Graph();
 * new DecompositionInterpreter(gm, graph, { decompositionTable }).run(x);
 * const decomposed = new GraphModule(gm, graph);
 * ```
 */
export class DecompositionInterpreter extends Interpreter {
  /** The graph that is written. */
  readonly newGraph: Graph;
  readonly #table: DecompositionTable;

  constructor(module: GraphModule, newGraph: Graph, options: DecompositionInterpreterOptions = {}) {
    super(module, { disposeValues: false });
    checkGraph("DecompositionInterpreter", newGraph);
    checkOptions("DecompositionInterpreter", options, ["decompositionTable"]);
    this.newGraph = newGraph;
    this.#table = options.decompositionTable ?? {};
  }

  /** Runs the graph, and writes the other one. It gives what the graph gives for these inputs. */
  override run(...args: readonly unknown[]): unknown {
    const names = this.graph.findNodes({ op: "placeholder" }).map((it) => it.target);
    const paths = new Map(
      this.graph.findNodes({ op: "get_attr" }).flatMap(({ target }) => {
        const value = this.fetchAttr(target);
        return value instanceof Tensor ? [[value, target] as const] : [];
      }),
    );
    const decompositions = tableOf("DecompositionInterpreter", this.#table);
    const run = (...given: unknown[]): unknown => super.run(...given);
    const isTaken = (name: string): boolean => this.module.findAttribute(name) !== undefined;
    const gm = traced(run, args, { decompositions, isPreDispatch: false, mode: "real", paths, isTaken }, names);
    const copies = new Map<Node, Node>();
    for (const [at, input] of gm.graph.findNodes({ op: "placeholder" }).entries()) {
      const copy = this.newGraph.placeholder(names[at] ?? input.target);
      for (const [key, value] of input.meta) copy.meta.set(key, value);
      copies.set(input, copy);
    }
    const result = this.newGraph.graphCopy(gm.graph, copies);
    this.newGraph.output(result ?? null);
    for (const [name, attribute] of gm.attributes) this.module.attributes.set(name, attribute);
    return new Interpreter(this.module, { graph: this.newGraph }).run(...args);
  }
}

/** How {@link selectiveDecompose} chooses. */
export interface SelectiveDecomposeOptions {
  /** What stands for operators of the nodes that are chosen. */
  readonly decomposition?: DecompositionTable;
  /** Whether the operators that running a node calls are decomposed by the table. */
  readonly shouldDecompose: (node: Node) => boolean;
}

/**
 * Traces a graph again, where the table holds for some of its nodes alone: `selective_decompose`.
 *
 * @example
 * ```ts
 * selectiveDecompose(gm, [x], { decomposition: table, shouldDecompose: (node) => node.meta.has("partition") });
 * ```
 */
export function selectiveDecompose(
  module: GraphModule,
  args: readonly unknown[],
  options: SelectiveDecomposeOptions,
): GraphModule {
  checkGraphModule("selectiveDecompose", module);
  checkList("selectiveDecompose", "args", args);
  checkOptions("selectiveDecompose", options, ["decomposition", "shouldDecompose"]);
  const { decomposition = {}, shouldDecompose } = options;
  checkGiven("selectiveDecompose", typeof shouldDecompose === "function", "a function as shouldDecompose");
  class Selective extends Interpreter {
    override runNode(node: Node): unknown {
      return shouldDecompose(node) ? decompose(decomposition, () => super.runNode(node)) : super.runNode(node);
    }
  }
  const interpreter = new Selective(module, { disposeValues: false });
  const names = args.map((_, at) => `arg${at}`);
  const settings = { decompositions: new Map(), isPreDispatch: false, mode: "real" } as const;
  return traced((...given: unknown[]) => interpreter.run(...given), args, settings, names);
}
