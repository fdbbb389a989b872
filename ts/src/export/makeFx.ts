/**
 * Tracing below autograd: `torch.fx.experimental.proxy_tensor.make_fx`.
 *
 * @module
 */
import { checkFunction, checkGiven, checkList, checkOptions } from "../base/given.ts";
import { fxError } from "../base/errors.ts";
import { isOptions } from "../base/naming.ts";
import { withoutModes } from "../engine/modes.ts";
import { recordingOperators } from "../engine/recorder.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { PyTreeCodeGen } from "../graph/codegen/pytree.ts";
import { SymExpr, TensorMeta, type Val } from "../graph/val.ts";
import { Module, unboundForwardOf } from "../nn/module.ts";
import { Tensor } from "../tensor/tensor.ts";
import { functionSignature } from "../trace/analysis/signature.ts";
import type { Inputs } from "../trace/inputs.ts";
import { InputPacking, OutputPacking, type PackedParameter } from "../trace/packing.ts";
import { type PytreeSpec, treeFlatten, treeUnflatten } from "../trace/pytree.ts";
import { checkInsteadOf } from "../trace/subgraph.ts";
import type { Traceable } from "../trace/tracer.ts";
import { Dim } from "./dim.ts";
import { replaceSizes } from "./exportPasses.ts";
import { guardSource, noteGuards } from "./guards.ts";
import { type Decomposition, type Decompositions, type MakeFxSettings, MakeFxTracer } from "./makeFxTracer.ts";
import { ShapeSession } from "./shapes.ts";
import { TracedTensor } from "./traced.ts";

/** Decompositions by operator: a Map from its name or itself, or an object by name (`"torch.ops.aten.silu.default"`). */
export type DecompositionTable =
  | ReadonlyMap<string | { readonly target: string }, Decomposition>
  | Readonly<Record<string, Decomposition>>;

/** How {@link makeFx} traces. */
export interface MakeFxOptions {
  /** What stands for operators: a function is called with the arguments of the overload, and `undefined` declines. */
  readonly decompositionTable?: DecompositionTable;
  /** `"real"`, the default, and `"fake"` know all sizes; with `"symbolic"` those of the inputs are symbols but for 0 and 1, and equal ones are one. */
  readonly tracingMode?: "real" | "fake" | "symbolic";
  /** Whether the graph is what comes before autograd and autocast: composite operators stay, and contexts are recorded. */
  readonly preDispatch?: boolean;
}

const OPTIONS = ["decompositionTable", "tracingMode", "preDispatch"] as const;
const MODES = ["real", "fake", "symbolic"] as const;

/**
 * A function that traces another one on example inputs, and gives a module of operators: `make_fx(f)(*args)`. What is recorded is
 * what comes below autograd: operators that PyTorch writes in terms of others (`linear`, `matmul`, `reshape`) are recorded as these,
 * and gradients of `func` as the operators that compute them. Tensors of the function's surroundings become attributes.
 *
 * @example
 * ```ts
 * const gm = makeFx((x: Tensor, w: Tensor) => F.linear(x, w).relu())(x, w);
 * console.log(String(gm.graph)); // t, mm, relu
 *
 * const decompositionTable = { "torch.ops.aten.silu.default": (x: Tensor) => x.mul(x.sigmoid()) };
 * makeFx(F.silu, { decompositionTable, tracingMode: "symbolic" })(x);
 * ```
 */
export function makeFx<A extends readonly unknown[]>(
  f: Module | ((...args: A) => unknown),
  options: MakeFxOptions = {},
): (...args: A) => GraphModule {
  checkGiven("makeFx", typeof f === "function" || (f as unknown) instanceof Module, "a function or a module");
  checkOptions("makeFx", options, OPTIONS);
  const { tracingMode = "real", preDispatch = false } = options;
  if (!MODES.includes(tracingMode)) {
    throw fxError("InvalidOption", `tracing_mode must be real/fake/symbolic, got ${String(tracingMode)}`);
  }
  const decompositions = tableOf("makeFx", options.decompositionTable);
  const settings: MakeFxSettings = { decompositions, isPreDispatch: preDispatch, mode: tracingMode };
  return (...args) => traced(f as Traceable, args, settings, argumentNames(f as Traceable, args.length));
}

/**
 * The graph of a function apart from what is traced around it: `get_isolated_graphmodule`. The inputs of the graph are the leaves of
 * the arguments, and it gives the leaves of the result.
 *
 * @example
 * ```ts
 * const gm = getIsolatedGraphmodule((x: Tensor) => x.sin(), [x]);
 * ```
 */
export function getIsolatedGraphmodule(
  f: (...args: never[]) => unknown,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
  options: MakeFxOptions = {},
): GraphModule {
  checkFunction("getIsolatedGraphmodule", "f", f);
  checkList("getIsolatedGraphmodule", "args", args);
  checkGiven("getIsolatedGraphmodule", isOptions(kwargs), "an object of arguments by name");
  checkOptions("getIsolatedGraphmodule", options, OPTIONS);
  const hasKeywords = Object.keys(kwargs).length > 0;
  const [leaves, spec] = treeFlatten(hasKeywords ? [...args, kwargs] : [...args]);
  const argumentsOf = ([flatArgs]: readonly unknown[]): unknown[] =>
    treeUnflatten(flatArgs as readonly unknown[], spec) as unknown[];
  const decompositions = tableOf("getIsolatedGraphmodule", options.decompositionTable);
  const settings = { decompositions, isPreDispatch: false, mode: options.tracingMode ?? "real" } as const;
  return traced(f as Traceable, [leaves], settings, ["flat_args"], argumentsOf);
}

/** The decompositions of a table by name. */
export function tableOf(what: string, table: DecompositionTable | undefined): Decompositions {
  const isTable = table === undefined || table instanceof Map || isOptions(table);
  checkGiven(what, isTable, "a Map or an object by name as the table", "a CustomDecompTable decomposes programs");
  const entries = table instanceof Map ? [...table] : Object.entries(table ?? {});
  return new Map(
    entries.map(([key, fn]) => {
      const name = typeof key === "string" ? key : (key as { readonly target?: unknown }).target;
      const isNamed = typeof name === "string" && name.startsWith("torch.ops.");
      checkGiven(what, isNamed, "operators as keys of the table", '"torch.ops.aten.silu.default" is one');
      checkFunction(what, name as string, fn);
      return [name as string, fn as Decomposition] as const;
    }),
  );
}

/** The names of the arguments, as PyTorch has them: `arg0` and so on where nobody knows how many there are. */
function argumentNames(f: Traceable, count: number): string[] {
  const signature = f instanceof Module ? undefined : functionSignature(f as (...args: unknown[]) => unknown);
  const list = signature === undefined || typeof signature === "string" ? [] : signature.params;
  const isKnown = list.length >= count && !list.some((it) => it.kind === "rest");
  return Array.from({ length: count }, (_, at) => {
    const parameter = isKnown ? list[at] : undefined;
    return parameter?.kind === "positional" ? parameter.name : `arg${at}`;
  });
}

/**
 * The module of a function that was traced with these arguments, which the placeholders are named after. The function is called with
 * what `argumentsOf` makes of them.
 */
export function traced(
  f: Traceable,
  args: readonly unknown[],
  settings: MakeFxSettings,
  names: readonly string[],
  argumentsOf: (args: readonly unknown[]) => readonly unknown[] = (it) => it,
): GraphModule {
  const given = args.map((it) => treeFlatten(it));
  const leaves = given.flatMap(([values]) => values);
  using shapes = new ShapeSession(leaves.map((value, at) => inputOf(value, at, settings.mode)));
  if (settings.mode === "symbolic") unifyEqualSizes(shapes);
  const inputs = new ArgumentInputs(names, given, shapes.values, argumentsOf);
  const tracer = new MakeFxTracer(shapes, (it) => inputs.create(it), settings);
  const graph = recordingOperators(undefined, () => withoutModes(() => tracer.trace(callable(f))));
  const gm = tracer.moduleOf(graph, f instanceof Module ? f.className : f.name || "GraphModule");
  for (const [name, attribute] of tracer.root.attributes) gm.attributes.set(name, attribute);
  const sizes = shapes.finish();
  replaceSizes(gm, sizes.replace);
  if (settings.mode === "symbolic") noteGuards(gm, sizes);
  return gm;
}

/** A function that calls a module, in whose source nothing is decided. */
function callable(f: Traceable): Traceable {
  if (!(f instanceof Module)) return f;
  const call = (...args: never[]): unknown => f.call(...args);
  checkInsteadOf(call, unboundForwardOf(f));
  return call;
}

function inputOf(value: unknown, at: number, mode: MakeFxSettings["mode"]) {
  const known =
    value instanceof TracedTensor ? value.meta : value instanceof Tensor ? tensorVal(value) : (value as Val);
  const source = guardSource(at);
  if (mode !== "symbolic") return { source, value: known };
  const isWhole = typeof value === "number" && Number.isInteger(value);
  const sizes = value instanceof Tensor ? value.shape : isWhole ? [value] : [];
  return { source, value: known, dims: sizes.map((it) => (Number(it) < 2 ? null : Dim.AUTO)) };
}

/** Takes sizes that are equal in the examples for one symbol, as PyTorch does (`duck_shape`). */
function unifyEqualSizes(shapes: ShapeSession): void {
  const symbols = new Map<unknown, SymExpr>();
  const sizes = shapes.values.flatMap((it) => (it instanceof TensorMeta ? it.sizes : it));
  for (const size of sizes) {
    if (!(size instanceof SymExpr)) continue;
    const hint = shapes.hint(size);
    const first = symbols.get(hint);
    if (first === undefined) symbols.set(hint, size);
    else shapes.check(shapes.call("operator.eq", [first, size]) as SymExpr | boolean);
  }
}

/** A placeholder for each leaf of the arguments. */
class ArgumentInputs {
  readonly #names: readonly string[];
  readonly #given: readonly (readonly [leaves: unknown[], spec: PytreeSpec])[];
  readonly #vals: readonly Val[];
  readonly #argumentsOf: (args: readonly unknown[]) => readonly unknown[];

  constructor(
    names: readonly string[],
    given: readonly (readonly [leaves: unknown[], spec: PytreeSpec])[],
    vals: readonly Val[],
    argumentsOf: (args: readonly unknown[]) => readonly unknown[],
  ) {
    this.#names = names;
    this.#given = given;
    this.#vals = vals;
    this.#argumentsOf = argumentsOf;
  }

  create(tracer: MakeFxTracer): Inputs {
    let at = 0;
    const args = this.#given.map(([leaves, spec], place) => {
      const values = leaves.map((value, count) => {
        const val = this.#vals[at++] as Val;
        const node = tracer.placeholder(`${this.#names[place]}_${count + 1}`, val);
        if (value instanceof Tensor) return tracer.trackTensor(value, node);
        return val instanceof SymExpr ? tracer.numberOf(val, node) : value;
      });
      return treeUnflatten(values, spec);
    });
    const isFlat = this.#given.every(([, spec]) => spec.isLeaf);
    let outSpec: PytreeSpec | undefined;
    return {
      run: (fn) => {
        const result = fn(...this.#argumentsOf(args));
        if (isFlat) return result;
        const [leaves, spec] = treeFlatten(result);
        outSpec = spec;
        return leaves;
      },
      finish: (graph) => {
        if (isFlat) return;
        const parameters = this.#given.map(([, spec], place): PackedParameter => {
          const name = this.#names[place] ?? `arg${place}`;
          return { kind: "single", name, parts: [{ name, spec, isOptional: false }] };
        });
        const inSpec = new InputPacking(parameters);
        const output = outSpec === undefined ? {} : { outSpec: new OutputPacking(outSpec) };
        graph.setCodegen(new PyTreeCodeGen({ origArgs: inSpec.names, inSpec, ...output }));
      },
    };
  }
}
