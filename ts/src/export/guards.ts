/**
 * The guards of modules that were traced with symbolic sizes: `eval_guards` and `bind_symbols` of
 * `torch.fx.experimental.symbolic_shapes`.
 *
 * @module
 */
import { FxError, fxError } from "../base/errors.ts";
import { checkGiven, checkList, checkOptions, checkText } from "../base/given.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { GraphModule } from "../fx/graphModule.ts";
import { tuple } from "../graph/args.ts";
import { parseExpression } from "../graph/expression.ts";
import { Graph } from "../graph/graph.ts";
import { fxPlaceholderVals } from "../graph/symbols.ts";
import { valueOfExpression } from "../graph/symints.ts";
import { SymExpr, type SymInt, TensorMeta } from "../graph/val.ts";
import { checkGraphModule } from "../rewrite/checks.ts";
import { Tensor } from "../tensor/tensor.ts";
import { ExportedProgram } from "./exportedProgram.ts";
import { partsOf } from "./ofGraphModule.ts";
import type { RangeConstraint } from "./program.ts";
import { type SessionResult, ShapeSession } from "./shapes.ts";

/** What a trace found out about its inputs. */
type Known = Pick<SessionResult, "guards" | "rangeConstraints">;

/** A leaf of the inputs of a module. */
type Input = Tensor | number;

/** What a trace knows of a number, and what it is of an input. */
type Pair = readonly [known: SymInt, value: number];

const noted = new WeakMap<GraphModule, Known>();

/** The name of an input in guards. */
export function guardSource(at: number): string {
  return `L['t${at}']`;
}

/** Notes what a trace found out about the inputs of the module that it gave. */
export function noteGuards(gm: GraphModule, { guards, rangeConstraints }: Known): void {
  noted.set(gm, { guards, rangeConstraints });
}

/** How {@link evalGuards} compares. */
export interface EvalGuardsOptions {
  /** Whether sizes, strides and offsets that are no symbols may be others; they may where nothing is said. */
  readonly ignoreStatic?: boolean;
}

/**
 * Whether a module that `makeFx` traced with symbolic sizes holds for other inputs, too: `eval_guards`. Sizes, strides and offsets are
 * compared, and what the trace decided by them; dtypes are not, as in PyTorch. Sizes of 0 and 1 are no value of a symbol.
 *
 * @example
 * ```ts
 * const gm = makeFx(f, { tracingMode: "symbolic" })(torch.ones(4, 3));
 * evalGuards(gm, [torch.ones(5, 3)]); // true, unless f decided something by the 4
 * ```
 */
export function evalGuards(gm: GraphModule, args: readonly Input[], options: EvalGuardsOptions = {}): boolean {
  const found = guardsOf("evalGuards", gm, args);
  checkOptions("evalGuards", options, ["ignoreStatic"]);
  const { ignoreStatic = true } = options;
  const pairs = pairsOf(gm, args);
  return pairs !== undefined && layoutsHold(pairs, found, ignoreStatic) && guardsHold(gm, args, found);
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
export function bindSymbols(gm: GraphModule, args: readonly Input[]): Map<string, number> {
  guardsOf("bindSymbols", gm, args);
  const res = new Map<string, number>();
  for (const [known, value] of pairsOf(gm, args) ?? []) {
    const name = symbolOf(known);
    if (name === undefined) continue;
    const bound = res.get(name) ?? value;
    if (bound !== value) {
      throw fxError("AssertionFailed", `the symbol ${name} is ${bound} of one input and ${value} of another`);
    }
    res.set(name, value);
  }
  return res;
}

/** How {@link produceGuardsExpression} writes. */
export interface GuardsExpressionOptions {
  /** Whether sizes, strides and offsets that are no symbols are left out, which they are where nothing is said. */
  readonly ignoreStatic?: boolean;
}

/**
 * What a module that `makeFx` traced with symbolic sizes asks of its inputs, as one condition of Python, in which `L['t0']` is the
 * first input: `ShapeEnv.produce_guards_expression`. Null where it asks nothing. {@link evaluateGuardsExpression} evaluates it, wherever
 * it was kept.
 *
 * @example
 * ```ts
 * produceGuardsExpression(gm); // "L['t0'].stride()[0] == L['t0'].size()[1] and 4 <= L['t0'].size()[0] and 2 <= L['t0'].size()[1]"
 * ```
 */
export function produceGuardsExpression(gm: GraphModule, options: GuardsExpressionOptions = {}): string | null {
  checkGraphModule("produceGuardsExpression", gm);
  checkOptions("produceGuardsExpression", options, ["ignoreStatic"]);
  const { ignoreStatic = true } = options;
  const { guards, rangeConstraints } = notedOf("produceGuardsExpression", gm);
  const sources = new Map<string, string>();
  const numbers = fxPlaceholderVals(gm).flatMap((val, at) => sourcesOf(val, guardSource(at)));
  const defines = ([source, known]: (typeof numbers)[number]): boolean => {
    const name = symbolOf(known);
    if (name === undefined || sources.has(name)) return false;
    sources.set(name, source);
    return true;
  };
  const rest = numbers.filter((it) => !defines(it));
  const symbols = new Map(Array.from(sources, ([name, source]) => [source, name]));
  const written = (expr: SymExpr): string => String(expr).replaceAll(/[A-Za-z_]\w*/g, (it) => sources.get(it) ?? it);
  const relations = rest.flatMap(([source, known]) => {
    if (known instanceof SymExpr) return [`${source} == ${written(known)}`];
    return ignoreStatic ? [] : [`${source} == ${known}`];
  });
  const bounds = Array.from(sources, ([name, source]) => boundsText(source, rangeConstraints.get(name)));
  const isBound = new RegExp(`^(?:${[...symbols.keys()].map(escaped).join("|")}) [<>]=? -?\\d+$`);
  const isWritten = (it: string): boolean =>
    [it, it.split(" == ").toReversed().join(" == ")].some((text) => relations.includes(text));
  const others = guards.filter((it) => !isWritten(it) && !isBound.test(it));
  const all = [...relations, ...others, ...bounds].filter((it) => it !== "");
  return all.length === 0 ? null : all.join(" and ");
}

/** The numbers of an input with how guards call them, in PyTorch's order. */
function sourcesOf(val: unknown, source: string): (readonly [source: string, known: SymInt])[] {
  if (!(val instanceof TensorMeta)) return numbersOf(val).map((it) => [source, it]);
  return [
    ...val.sizes.map((it, dim) => [`${source}.size()[${dim}]`, it] as const),
    ...val.strides.map((it, dim) => [`${source}.stride()[${dim}]`, it] as const),
    [`${source}.storage_offset()`, val.storageOffset],
  ];
}

function boundsText(source: string, range: RangeConstraint | undefined): string {
  const { min, max } = range ?? {};
  const low = min === undefined ? [] : [`${min} <= ${source}`];
  const high = max === undefined ? [] : [`${source} <= ${max}`];
  return [...low, ...high].join(" and ");
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

/**
 * Whether a condition that {@link produceGuardsExpression} gave holds for these inputs: `ShapeEnv.evaluate_guards_expression`. It is
 * read, and no text is run.
 *
 * @example
 * ```ts
 * evaluateGuardsExpression("L['t0'].size()[0] > 3", [torch.ones(5, 3)]); // true
 * ```
 * @throws {@link ArchiveError} where the text is no condition, and {@link OperatorError} where the inputs have not what it asks for, or
 *   divide by zero in it.
 */
export function evaluateGuardsExpression(code: string, args: readonly Input[]): boolean {
  checkText("evaluateGuardsExpression", "the condition", code);
  checkInputs("evaluateGuardsExpression", args);
  for (const [source, at] of code.matchAll(/L\['t(\d+)'\]/g)) {
    if (Number(at) < args.length) continue;
    throw fxError("InputCount", `the condition asks for ${source}, and ${args.length} inputs are given`);
  }
  const stray = args.find((it) => typeof it === "number" && !Number.isFinite(it));
  if (stray !== undefined) {
    throw fxError("InputValue", `a condition cannot be asked of ${String(stray)}`, { help: "give finite numbers" });
  }
  // Numbers are written into the condition, which knows floats; a program has none among its inputs.
  const written = code.replaceAll(/L\['t(\d+)'\](?!\s*\.)/g, (source, at: string) => {
    const it = args[Number(at)];
    return typeof it === "number" ? `(${it})` : source;
  });
  let count = 0;
  const symbol = (): SymExpr => new SymExpr(`Symbol('s${count++}', integer=True)`);
  const vals = args.map((it) => {
    const val = valOf(it);
    return val instanceof TensorMeta ? new TensorMeta({ ...val, sizes: val.sizes.map(symbol) }) : symbol();
  });
  const inputs = args.map((it) => (typeof it === "number" ? 0 : it));
  const problem = (guard: string): FxError | undefined =>
    problemOf(vals, inputs, { guards: [guard], rangeConstraints: new Map() });
  const found = problem(written);
  if (found === undefined) return true;
  // Of a condition that has no value its opposite does not hold either.
  if (problem(`not (${written})`) === undefined) return false;
  throw fxError("InvalidArgument", `the condition has no value: ${found.reason}`, {
    help: "give inputs like those of the trace that it was produced for",
  });
}

/** The numbers of the inputs of the trace, each with that of the inputs that are given; undefined where these have other dimensions. */
function pairsOf(gm: GraphModule, args: readonly Input[]): Pair[] | undefined {
  const res: Pair[] = [];
  for (const [at, val] of fxPlaceholderVals(gm).entries()) {
    const [all, given] = [numbersOf(val), numbersOf(valOf(args[at] as Input))];
    if (all.length !== given.length) return undefined;
    for (const [place, known] of all.entries()) res.push([known, Number(given[place])]);
  }
  return res;
}

/** The sizes, the strides and the offset of a tensor; a number by itself. */
function numbersOf(val: unknown): SymInt[] {
  if (val instanceof TensorMeta) return [...val.sizes, ...val.strides, val.storageOffset];
  return val instanceof SymExpr || typeof val === "number" ? [val] : [];
}

function symbolOf(known: SymInt): string | undefined {
  const expression = known instanceof SymExpr ? parseExpression(known) : undefined;
  return expression?.kind === "symbol" ? expression.name : undefined;
}

/** Whether sizes, strides and offsets are what the trace has for them, and symbols in the ranges that it was made for. */
function layoutsHold(pairs: readonly Pair[], { rangeConstraints }: Known, ignoreStatic: boolean): boolean {
  const symbols = new Map<string, number>();
  for (const [known, value] of pairs) {
    const name = symbolOf(known);
    if (name !== undefined && !symbols.has(name)) symbols.set(name, value);
  }
  using session = new ShapeSession([]);
  const isAsKnown = ([known, value]: Pair): boolean =>
    known instanceof SymExpr
      ? valueOfExpression(parseExpression(known), symbols, (name, given) => session.call(name, given)) === value
      : ignoreStatic || Number(known) === value;
  const isWithin = ([name, value]: [string, number]): boolean => {
    const { min = -Infinity, max = Infinity } = rangeConstraints.get(name) ?? {};
    return min <= value && value <= max;
  };
  return pairs.every(isAsKnown) && [...symbols].every(isWithin);
}

/** Whether the conditions hold that the trace took to. */
function guardsHold(gm: GraphModule, args: readonly Input[], known: Known): boolean {
  const vals = fxPlaceholderVals(gm).map((val, at) =>
    val instanceof TensorMeta ? withSymbols(valOf(args[at] as Input) as TensorMeta, val) : val,
  );
  return problemOf(vals, args, known) === undefined;
}

/** What of conditions does not hold of inputs: the engine asks them of a program that does nothing else. */
function problemOf(
  vals: readonly unknown[],
  args: readonly Input[],
  { guards, rangeConstraints }: Known,
): FxError | undefined {
  if (guards.length === 0) return undefined;
  const graph = new Graph();
  for (const [at, val] of vals.entries()) graph.placeholder(`t${at}`).meta.set("val", val);
  graph.output(tuple());
  const parts = partsOf(GraphModule.ofGraph(graph, "Inputs"));
  using module = new ExportedProgram({ ...parts, guards: [...guards], rangeConstraints }).module();
  try {
    module.runFlat(args);
    return undefined;
  } catch (error) {
    if (error instanceof FxError && /^Input|^AssertionFailed$/.test(error.kind)) return error;
    throw error;
  }
}

/** The tensor that is given, with the symbols that the trace has for its sizes. */
function withSymbols(given: TensorMeta, { sizes }: TensorMeta): TensorMeta {
  const symbolic = given.sizes.map((it, at) => (sizes[at] instanceof SymExpr ? sizes[at] : it));
  return new TensorMeta({ ...given, sizes: symbolic });
}

function valOf(input: Input): TensorMeta | number {
  return input instanceof Tensor ? tensorVal(input) : input;
}

function guardsOf(what: string, gm: GraphModule, args: readonly Input[]): Known {
  checkGraphModule(what, gm);
  checkInputs(what, args);
  const found = notedOf(what, gm);
  const vals = fxPlaceholderVals(gm);
  if (vals.length !== args.length) {
    throw fxError("InputCount", `the module takes ${vals.length} inputs, and ${args.length} are given`);
  }
  for (const [at, val] of vals.entries()) {
    const isTensor = val instanceof TensorMeta;
    if (isTensor === args[at] instanceof Tensor) continue;
    throw fxError(
      "InputType",
      `input ${at} is ${isTensor ? "a tensor" : "a number"}, and another kind of value is given`,
    );
  }
  return found;
}

function checkInputs(what: string, args: readonly Input[]): void {
  checkList(what, "args", args);
  const isRight = args.every((it) => it instanceof Tensor || typeof it === "number");
  checkGiven(what, isRight, "tensors and numbers");
}

function notedOf(what: string, gm: GraphModule): Known {
  const found = noted.get(gm);
  if (found !== undefined) return found;
  throw fxError("InvalidArgument", `${what} takes a module that was traced with symbolic sizes`, {
    help: 'makeFx(fn, { tracingMode: "symbolic" })(x) gives one',
  });
}
