/**
 * Control flow that a graph can hold: `torch.cond`, `while_loop`, `map` and `scan`.
 *
 * Run, they do what their names say. Traced, their functions become graphs of their own, named and called as in programs
 * that `torch.export` made; what a function uses from around it becomes an operand.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import { functionNamed } from "../functions/table.ts";
import { Tensor } from "../tensor/tensor.ts";
import { runCond, runMap, runScan, runWhileLoop } from "./higherOrder.ts";
import { type PytreeSpec, treeFlatten, treeMap, treeUnflatten } from "./pytree.ts";
import { isProxy } from "./proxy.ts";
import { recorderOf } from "../record/record.ts";
import { enter, leave, pass, traceError } from "../record/stack.ts";
import { shareFreeValues, type Subgraph, type SubgraphCall } from "./subgraph.ts";
import { activeTracer, Tracer } from "./tracer.ts";
import { ValueTuple } from "../base/values.ts";
import { checkFunction, checkList, checkOptions } from "../base/given.ts";

const flip = functionNamed("torch.flip");
const movedim = functionNamed("torch.movedim");

type AnyFunction = (...args: never[]) => unknown;
type Call = (...args: unknown[]) => unknown;

/** A function of the user's, to be called with what its operands are found to be. */
function untyped(fn: AnyFunction): Call {
  return fn as unknown as Call;
}

/**
 * One of two functions, by a boolean that is known when the graph runs: `torch.cond`. Both take the operands, and give
 * values of the same structure. A predicate that is a boolean of JavaScript is known already, so it decides at once.
 *
 * @example
 * ```ts
 * symbolicTrace((x: Tensor) => cond(torch.gt(x.sum(), 0), (it) => it.sin(), (it) => it.cos(), [x]));
 * ```
 */
export function cond<A extends readonly unknown[], R>(
  predicate: Tensor | boolean,
  trueFn: (...operands: A) => R,
  falseFn: (...operands: A) => R,
  operands: A = [] as unknown as A,
): R {
  pass(cond);
  checkFunction("cond", "trueFn", trueFn);
  checkFunction("cond", "falseFn", falseFn);
  checkList("cond", "operands", operands);
  const tracer = typeof predicate === "boolean" ? undefined : tracerOf([predicate, operands]);
  if (tracer === undefined) return runCond(predicate, untyped(trueFn), untyped(falseFn), operands) as R;
  return recorded(cond, () => {
    const given = new Operands(tracer, operands);
    const branches = [trueFn, falseFn].map((fn) => tracer.traceSubgraph(untyped(fn), given.names, given.packing));
    const [onTrue, onFalse] = branches as [Subgraph, Subgraph];
    if (!onTrue.outSpec.equals(onFalse.outSpec)) {
      throw traceError(
        "TraceUnsupported",
        `the branches of cond give values of different structures: ${onTrue.outSpec} and ${onFalse.outSpec}`,
        { help: "give the same containers with as many tensors from both functions" },
      );
    }
    const free = shareFreeValues(tracer, branches);
    const graphs = [tracer.addSubgraph("true_graph_", onTrue.graph), tracer.addSubgraph("false_graph_", onFalse.graph)];
    const values = ValueTuple.frozen([...given.traced, ...free]);
    return results(tracer, "cond", [predicate, ...graphs, values], onTrue.outSpec);
  }) as R;
}

/**
 * Calls `body` on what it gave last, beginning with the carried values, while `condition` holds of them:
 * `torch.while_loop`. The body gives as many values as it takes.
 *
 * @example
 * ```ts
 * const [steps, y] = whileLoop((i, x) => torch.lt(i, 3), (i, x) => [torch.add(i, 1), x.mul(2)], [zero, x]);
 * ```
 */
export function whileLoop<A extends readonly unknown[]>(
  condition: (...carried: A) => Tensor | boolean,
  body: (...carried: A) => readonly unknown[],
  carried: readonly [...A],
): A {
  pass(whileLoop);
  checkFunction("whileLoop", "condition", condition);
  checkFunction("whileLoop", "body", body);
  checkList("whileLoop", "carried", carried);
  const tracer = tracerOf([carried]);
  if (tracer === undefined) return runWhileLoop(untyped(condition), untyped(body), carried, []) as unknown as A;
  return recorded(whileLoop, () => {
    const given = new Operands(tracer, carried, "all");
    const test = tracer.traceSubgraph(untyped(condition), given.names, { ...given.packing, output: "value" });
    const step = tracer.traceSubgraph(untyped(body), given.names, given.packing);
    if (!sameParts(step.outSpec, given.spec)) throw notCarried("body", "whileLoop", given.spec, step.outSpec);
    const free = shareFreeValues(tracer, [test, step]);
    const graphs = [
      tracer.addSubgraph("while_loop_cond_graph_", test.graph),
      tracer.addSubgraph("while_loop_body_graph_", step.graph),
    ];
    const operands = [ValueTuple.frozen(given.traced), ValueTuple.frozen(free)];
    return results(tracer, "while_loop", [...graphs, ...operands], given.spec);
  }) as A;
}

/**
 * Calls a function on each slice of `xs` along the first dimension, and stacks what it gives: `torch.map`. `xs` may be a
 * container of tensors; the other arguments are the same for every slice.
 *
 * @example
 * ```ts
 * map((row, bias) => torch.add(row, bias).relu(), x, bias);
 * ```
 */
export function map<X, A extends readonly unknown[], R>(f: (x: X, ...args: A) => R, xs: X, ...args: A): R {
  pass(map);
  checkFunction("map", "f", f);
  const tracer = tracerOf([xs, args]);
  if (tracer === undefined) return runMap(untyped(f), xs, args) as R;
  return recorded(map, () => {
    const slices = new Operands(tracer, [xs], "all");
    const others = new Operands(tracer, args);
    const body = tracer.traceSubgraph(untyped(f), [...slices.names, ...others.names], {
      arguments: (flat) => [...slices.arguments(flat), ...others.arguments(flat.slice(slices.traced.length))],
      values: [...slices.slices, ...others.traced],
    });
    const free = shareFreeValues(tracer, [body]);
    const graph = tracer.addSubgraph("body_graph_", body.graph);
    const operands = [[...slices.traced], [...others.traced, ...free]];
    return results(tracer, "map_impl", [graph, ...operands], body.outSpec);
  }) as R;
}

/** How {@link scan} goes. */
export interface ScanOptions {
  /** The dimension of `xs` that is gone along, and along which the outputs are stacked; the first by default. */
  readonly dim?: number;
  /** Whether it begins at the end. Outputs stay in the places of their slices. */
  readonly reverse?: boolean;
}

/**
 * Goes through the slices of `xs` along a dimension with a value that is carried on: `combine` takes it and a slice, and
 * gives the next one and an output. Gives the last carried value, and the outputs stacked: `torch.scan`.
 *
 * @example
 * ```ts
 * const [total, sums] = scan((sum, x) => { const next = torch.add(sum, x); return [next, next]; }, torch.zeros(3), xs);
 * ```
 */
export function scan<C, X, Y>(
  combine: (carry: C, x: X) => readonly [C, Y],
  init: C,
  xs: X,
  options: ScanOptions = {},
): [C, Y] {
  pass(scan);
  checkFunction("scan", "combine", combine);
  checkOptions("scan", options, ["dim", "reverse"]);
  const { dim: given = 0, reverse = false } = options;
  const dim = scannedDim(given, xs);
  if (typeof reverse !== "boolean") {
    throw fxError("InvalidArgument", `Reverse must be a bool, but got ${typeof reverse}`);
  }
  if (treeFlatten(xs)[0].length === 0) return [init, [] as Y];
  if (dim === 0 && !reverse) return scanFirst(combine, init, xs);
  const inFront = treeMap((it) => {
    const moved = dim === 0 ? it : movedim(it, dim, 0);
    return reverse ? flip(moved, [0]) : moved;
  }, xs) as X;
  const [carry, outputs] = scanFirst(combine, init, inFront);
  const inPlace = (it: unknown): unknown => {
    const inOrder = reverse ? flip(it, [0]) : it;
    const rank = rankOf(inOrder);
    // An output that has no such dimension stays stacked along the first, as PyTorch leaves it.
    return dim === 0 || (rank !== undefined && dim >= rank) ? inOrder : movedim(inOrder, 0, dim);
  };
  return [carry, treeMap(inPlace, outputs) as Y];
}

/** The dimension to go along, counted from the front. */
function scannedDim(dim: number, xs: unknown): number {
  if (!Number.isInteger(dim)) throw fxError("InvalidArgument", `Dim must be an int, but got ${String(dim)}`);
  if (dim === 0) return dim;
  const rank = rankOf(treeFlatten(xs)[0][0]);
  if (rank === undefined) {
    if (dim > 0) return dim;
    throw traceError("TraceUnsupported", "the dimension of a scan is counted from the end, and the rank is not known", {
      help: "count it from the front, or export the module: exportProgram knows ranks",
    });
  }
  if (dim >= -rank && dim < rank) return dim < 0 ? dim + rank : dim;
  throw fxError("IndexOutOfRange", `the dimension ${dim} of a scan is out of range for tensors of rank ${rank}`);
}

/** How many dimensions a tensor has; of what symbolic tracing traces, nobody knows. */
function rankOf(value: unknown): number | undefined {
  if (isProxy(value)) return undefined;
  const { shape } = (value ?? {}) as Partial<Tensor>;
  return Array.isArray(shape) ? shape.length : undefined;
}

/** A scan along the first dimension, which is the one that graphs have. */
function scanFirst<C, X, Y>(combine: (carry: C, x: X) => readonly [C, Y], init: C, xs: X): [C, Y] {
  const tracer = tracerOf([init, xs]);
  if (tracer === undefined) return runScan(untyped(combine), init, xs) as [C, Y];
  return recorded(scan, () => {
    const carried = new Operands(tracer, [init], "all");
    const slices = new Operands(tracer, [xs], "all");
    const step = tracer.traceSubgraph(untyped(combine), [...carried.names, ...slices.names], {
      arguments: (flat) => [...carried.arguments(flat), ...slices.arguments(flat.slice(carried.traced.length))],
      values: [...carried.traced, ...slices.slices],
      output: "list",
    });
    const [next, output, ...others] = step.outSpec.children;
    if (next === undefined || output === undefined || others.length > 0) {
      throw traceError("TraceUnsupported", `combine of scan gives ${step.outSpec}`, {
        help: "give the next carried value and an output: return [carry, y]",
      });
    }
    const [initial] = carried.spec.children;
    if (initial === undefined || !next.equals(initial)) throw notCarried("combine", "scan", carried.spec, next);
    const free = shareFreeValues(tracer, [step]);
    const graph = tracer.addSubgraph("scan_combine_graph_", step.graph);
    const operands = [[...carried.traced], [...slices.traced], ValueTuple.frozen(free)];
    return results(tracer, "scan", [graph, ...operands], step.outSpec);
  }) as [C, Y];
}

/** What a function of a control flow operator is called with: of the leaves, the traced ones are its inputs. */
class Operands {
  readonly spec: PytreeSpec;
  /** The leaves that are inputs. */
  readonly traced: readonly unknown[];
  readonly #tracer: Tracer;
  readonly #leaves: readonly unknown[];
  readonly #isInput: (leaf: unknown) => boolean;

  /** Of the leaves, those are inputs that are tensors or traced, or all. */
  constructor(tracer: Tracer, tree: unknown, inputs: "tensors" | "all" = "tensors") {
    const [leaves, spec] = treeFlatten(tree);
    this.spec = spec;
    this.#tracer = tracer;
    this.#leaves = leaves;
    this.#isInput = (leaf) => inputs === "all" || tracer.isTracedValue(leaf) || leaf instanceof Tensor;
    this.traced = leaves.filter(this.#isInput);
  }

  /** The names of the inputs: those of the nodes that they are. */
  get names(): string[] {
    return this.traced.map((it, at) => this.#tracer.nameOf(it) ?? `arg${at}_1`);
  }

  /** What stands for the first slices of the inputs, where the tracer knows it. */
  get slices(): readonly unknown[] {
    return this.traced.map((it) => this.#tracer.sliceOf(it));
  }

  /** What the function is called with, given values for the inputs, and perhaps more. */
  arguments(values: readonly unknown[]): readonly unknown[] {
    let at = 0;
    const leaves = this.#leaves.map((leaf) => (this.#isInput(leaf) ? values[at++] : leaf));
    return treeUnflatten(leaves, this.spec) as readonly unknown[];
  }

  get packing(): SubgraphCall {
    return { arguments: (values) => this.arguments(values), values: this.traced };
  }
}

/** The tracer that records a call with these arguments; `undefined` where it just runs. */
function tracerOf(args: readonly unknown[]): Tracer | undefined {
  // A tensor of the module may be another one when the graph runs.
  const recorder = recorderOf(args) ?? (holdsTensor(args) ? activeTracer() : undefined);
  if (recorder === undefined || recorder instanceof Tracer) return recorder;
  throw traceError("TraceUnsupported", "control flow is recorded by a Tracer only", {
    help: "trace the function with symbolicTrace, and use the graph that this gives",
  });
}

function holdsTensor(args: readonly unknown[]): boolean {
  return treeFlatten(args)[0].some((it) => it instanceof Tensor || activeTracer()?.isTracedValue(it) === true);
}

/** Runs what records a call that the user's code made through the function `by`. */
function recorded<R>(by: AnyFunction, record: () => R): R {
  const outer = enter(by);
  try {
    return record();
  } finally {
    leave(outer);
  }
}

/** Records the call, and gives its results in their structure. */
function results(tracer: Tracer, name: string, args: readonly unknown[], spec: PytreeSpec): unknown {
  const call = tracer.createProxy("call_function", `torch.ops.higher_order.${name}`, args, {});
  const item = (_: unknown, index: number): unknown =>
    tracer.createProxy("call_function", "operator.getitem", [call, index], {});
  return treeUnflatten(Array.from({ length: spec.numLeaves }, item), spec);
}

/** Whether two lists of values have the same parts, be they arrays or tuples. */
function sameParts(a: PytreeSpec, b: PytreeSpec): boolean {
  const isSame = a.children.length === b.children.length;
  return isSame && a.children.every((it, at) => it.equals(b.children[at] as PytreeSpec));
}

function notCarried(fn: string, name: string, wanted: PytreeSpec, found: PytreeSpec): FxError {
  return traceError("TraceUnsupported", `${fn} of ${name} carries ${wanted} and gives ${found}`, {
    help: "give the next values in the structure of the ones that are carried",
  });
}
