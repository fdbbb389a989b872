/**
 * Graphs of single calls of modules whose path depends on their inputs: they are run on what is known of these.
 *
 * @module
 */
import { withoutModes } from "../engine/modes.ts";
import { fxError } from "../base/errors.ts";
import { DimHint } from "../export/dim.ts";
import { ExportTracer } from "../export/exportTracer.ts";
import { type SessionInput, ShapeSession } from "../export/shapes.ts";
import { StateGuard } from "../export/stateGuard.ts";
import { joinArguments } from "../base/naming.ts";
import { argValue } from "../graph/args.ts";
import { formatExpression } from "../graph/expression.ts";
import type { Graph } from "../graph/graph.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import type { Node } from "../graph/node.ts";
import { SymExpr, type SymInt, TensorMeta, type Val, ValSequence } from "../graph/val.ts";
import { isBuiltinModule } from "../nn/builtin.ts";
import { hasHooks, type Module } from "../nn/module.ts";
import { contiguousStrides } from "../tensor/layout.ts";

/** From where on dynamic sizes have examples: no model has a size as large as this and prime. */
const FIRST_EXAMPLE = 1009;

/**
 * What a call of this module does with values of which this is known, as a graph of operators whose inputs are the nodes
 * among the arguments, each once. Sizes may be symbolic; a module that wants to know one as a number is refused.
 */
export function traceCall(module: Module, call: Node, known: ReadonlyMap<Node, Val>): GraphModule {
  const examples = new Examples();
  const leaves = [...known.values()].flatMap(leavesOf);
  using shapes = new ShapeSession(leaves.map((it) => examples.of(it)));
  let next = 0;
  const inputs = new Map<Node, Val>();
  const take = (): Val => shapes.values[next++] as Val;
  for (const [node, val] of known) inputs.set(node, mapLeaves(val, take));
  const tracer = new ExportTracer(shapes, {
    create: (into) => ({
      run: (fn) => {
        const values = new Map<Node, unknown>();
        for (const [node, val] of inputs) {
          const placeholder = into.placeholder(node.name, val);
          into.firstUserInput ??= placeholder;
          values.set(node, into.proxy(placeholder));
        }
        const valueOf = (it: Node): unknown => values.get(it);
        const kwargs = Object.fromEntries(Object.entries(call.kwargs).map(([key, it]) => [key, argValue(it, valueOf)]));
        const args = call.args.map((it) => argValue(it, valueOf));
        const given = joinArguments({ args, kwargs }, !isBuiltinModule(module));
        return hasHooks(module) || given.length > args.length ? module.call(...given) : fn(...given);
      },
      finish: () => {},
    }),
  });
  const graph = inEvaluation(module, () => withoutModes(() => tracer.trace(module)));
  const { replace } = shapes.finish();
  for (const [at, leaf] of leaves.entries()) {
    for (const [dim, size] of sizesOf(leaf).entries()) {
      const found = replace(sizesOf(shapes.values[at] as Val)[dim] as SymInt);
      if (size instanceof SymExpr && !(found instanceof SymExpr)) throw specialized(module, size, call);
    }
  }
  return withConstants(tracer, graph, module.className);
}

/** Runs a module as it is in evaluation, since training counts batches; what it holds is the same afterwards. */
export function inEvaluation<R>(module: Module, body: () => R): R {
  const modes = module.modules().map((it) => [it, it.training] as const);
  const state = new StateGuard(module);
  for (const [it] of modes) it.training = false;
  try {
    return body();
  } finally {
    state.restore();
    for (const [it, training] of modes) it.training = training;
  }
}

/** Inputs with numbers for dynamic sizes. */
class Examples {
  readonly #known = new Map<string, number>();
  #count = 0;
  #last = FIRST_EXAMPLE - 1;

  of(leaf: TensorMeta | SymExpr): SessionInput {
    const dims = sizesOf(leaf).map((size) => (size instanceof SymExpr ? new DimHint("AUTO") : null));
    const source = `L['${this.#count++}']`;
    if (leaf instanceof SymExpr) return { source, value: this.#number(leaf), dims };
    if (!dims.some((it) => it !== null)) return { source, value: leaf };
    const sizes = leaf.sizes.map((it) => this.#number(it));
    // Dynamic strides have no examples of their own: these are the ones of a contiguous tensor.
    const strides = contiguousStrides(sizes.map(Number));
    return { source, value: new TensorMeta({ ...leaf, sizes, strides }), dims };
  }

  #number(size: SymInt): SymInt {
    if (!(size instanceof SymExpr)) return size;
    let known = this.#known.get(size.srepr);
    if (known === undefined) {
      known = nextPrime(this.#last + 1);
      this.#last = known;
      this.#known.set(size.srepr, known);
    }
    return known;
  }
}

function nextPrime(from: number): number {
  for (let at = 2; at * at <= from; at++) if (from % at === 0) return nextPrime(from + 1);
  return from;
}

function sizesOf(leaf: Val): readonly SymInt[] {
  return leaf instanceof TensorMeta ? leaf.sizes : [leaf as SymExpr];
}

/** What of a value is not the same in all calls. */
function leavesOf(val: Val): (TensorMeta | SymExpr)[] {
  if (val instanceof ValSequence) return val.items.flatMap(leavesOf);
  return val instanceof TensorMeta || val instanceof SymExpr ? [val] : [];
}

function mapLeaves(val: Val, map: () => Val): Val {
  if (val instanceof ValSequence) {
    return new ValSequence(
      val.kind,
      val.items.map((it) => mapLeaves(it, map)),
    );
  }
  return val instanceof TensorMeta || val instanceof SymExpr ? map() : val;
}

/** A module with the graph, whose constants are attributes again. */
function withConstants(tracer: ExportTracer, graph: Graph, name: string): GraphModule {
  const constants = tracer.takeConstants();
  const res = tracer.moduleOf(graph, name);
  for (const [at, { node, tensor }] of constants.entries()) {
    const path = `_tensor_${at}`;
    res.attributes.set(path, { kind: "constant", tensor });
    const read = graph.insertingBefore(node, () => graph.getAttr(path));
    node.replaceAllUsesWith(read);
    graph.eraseNode(node);
  }
  return res;
}

function specialized({ className }: Module, size: SymExpr, { name }: Node) {
  return fxError("NotImplemented", `the path of ${className} depends on the size ${formatExpression(size)}`, {
    node: name,
    help: "propagate with a number in its place",
  });
}
