/**
 * The guards of modules that were traced with symbolic sizes: `eval_guards` and `bind_symbols` of
 * `torch.fx.experimental.symbolic_shapes`.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import { checkGiven, checkList, checkOptions } from "../base/given.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { tuple } from "../graph/args.ts";
import { parseExpression } from "../graph/expression.ts";
import { Graph } from "../graph/graph.ts";
import { fxPlaceholderVals } from "../graph/symbols.ts";
import { SymExpr, type SymInt, TensorMeta } from "../graph/val.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { Tensor } from "../tensor/tensor.ts";
import { ExportedProgram } from "./exportedProgram.ts";
import { partsOf } from "./ofGraphModule.ts";
import type { SessionResult } from "./shapes.ts";

/** What a trace found out about its inputs. */
type Known = Pick<SessionResult, "guards" | "rangeConstraints">;

const known = new WeakMap<GraphModule, Known>();

/** The name of an input in guards. */
export function guardSource(at: number): string {
  return `L['t${at}']`;
}

/** Notes what a trace found out about the inputs of the module that it gave. */
export function noteGuards(gm: GraphModule, { guards, rangeConstraints }: Known): void {
  known.set(gm, { guards, rangeConstraints });
}

/** How {@link evalGuards} compares. */
export interface EvalGuardsOptions {
  /** Whether sizes that are no symbols may be others; they may where nothing is said. */
  readonly ignoreStatic?: boolean;
}

/**
 * Whether a module that `makeFx` traced with symbolic sizes holds for other inputs, too: `eval_guards`.
 *
 * @example
 * ```ts
 * const gm = makeFx(f, { tracingMode: "symbolic" })(torch.ones(4, 3));
 * evalGuards(gm, [torch.ones(5, 3)]); // true, unless f decided something by the 4
 * ```
 */
export function evalGuards(gm: GraphModule, args: readonly Tensor[], options: EvalGuardsOptions = {}): boolean {
  const { guards, rangeConstraints } = guardsOf("evalGuards", gm, args);
  checkOptions("evalGuards", options, ["ignoreStatic"]);
  const { ignoreStatic = true } = options;
  const graph = new Graph();
  for (const [at, val] of fxPlaceholderVals(gm).entries()) {
    const input = graph.placeholder(`t${at}`);
    const given = tensorVal(args[at] as Tensor);
    input.meta.set("val", val instanceof TensorMeta && ignoreStatic ? withGiven(val, given) : val);
  }
  graph.output(tuple());
  const parts = partsOf(GraphModule.ofGraph(graph, "Inputs"));
  using module = new ExportedProgram({ ...parts, guards: [...guards], rangeConstraints }).module();
  try {
    module.runFlat(args);
    return true;
  } catch (error) {
    if (error instanceof FxError && /^Input|^AssertionFailed$/.test(error.kind)) return false;
    throw error;
  }
}

/**
 * What the symbols of a module's inputs are for these inputs: `bind_symbols`. Symbols that are no size, stride or offset by themselves
 * are left out.
 *
 * @example
 * ```ts
 * bindSymbols(gm, [torch.ones(5, 3)]); // Map { "s77" => 5 }
 * ```
 */
export function bindSymbols(gm: GraphModule, args: readonly Tensor[]): Map<string, number> {
  guardsOf("bindSymbols", gm, args);
  const res = new Map<string, number>();
  const bind = (size: SymInt, value: SymInt): void => {
    const symbol = size instanceof SymExpr ? parseExpression(size) : undefined;
    if (symbol?.kind !== "symbol") return;
    const bound = res.get(symbol.name);
    if (bound !== undefined && bound !== Number(value)) {
      throw fxError("AssertionFailed", `the symbol ${symbol.name} is ${bound} of one input and ${value} of another`);
    }
    res.set(symbol.name, Number(value));
  };
  for (const [at, val] of fxPlaceholderVals(gm).entries()) {
    if (!(val instanceof TensorMeta)) continue;
    const given = tensorVal(args[at] as Tensor);
    for (const [dim, size] of val.sizes.entries()) bind(size, given.sizes[dim] as SymInt);
    for (const [dim, stride] of val.strides.entries()) bind(stride, given.strides[dim] as SymInt);
    bind(val.storageOffset, given.storageOffset);
  }
  return res;
}

/** What is known of a tensor, where sizes and strides that are known are those of the one that is given. */
function withGiven(val: TensorMeta, given: TensorMeta): TensorMeta {
  if (val.sizes.length !== given.sizes.length) return val;
  return new TensorMeta({
    ...val,
    sizes: symbolicElse(val.sizes, given.sizes),
    strides: symbolicElse(val.strides, given.strides),
  });
}

function symbolicElse(all: readonly SymInt[], others: readonly SymInt[]): SymInt[] {
  return all.map((it, at) => (it instanceof SymExpr ? it : (others[at] as SymInt)));
}

function guardsOf(what: string, gm: GraphModule, args: readonly Tensor[]): Known {
  checkGraphModule(what, gm);
  checkList(what, "args", args);
  checkGiven(
    what,
    args.every((it) => it instanceof Tensor),
    "tensors",
  );
  const found = known.get(gm);
  if (found === undefined) {
    throw fxError("InvalidArgument", `${what} takes a module that was traced with symbolic sizes`, {
      help: 'makeFx(fn, { tracingMode: "symbolic" })(x) gives one',
    });
  }
  const count = fxPlaceholderVals(gm).length;
  if (count === args.length) return found;
  throw fxError("InputCount", `the module takes ${count} inputs, and ${args.length} are given`);
}
