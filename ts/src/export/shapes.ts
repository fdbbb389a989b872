/**
 * What an export knows of sizes: which are dynamic, what follows from what the module did with them, and whether that is what
 * the user said.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import { checkArguments, checkFunction, checkGiven, checkList, checkOptions, checkText } from "../base/given.ts";
import { isOptions } from "../base/naming.ts";
import { device, layout } from "../base/values.ts";
import type { RuntimeAssertCall } from "../../../bindings/passes.ts";
import { type EngineShapeResult, EngineShapes } from "../engine/shapes.ts";
import { FxError, fxError } from "../base/errors.ts";
import { kindOfExpression } from "../graph/expression.ts";
import { isVal, SymExpr, type SymInt, TensorMeta, type Val } from "../graph/val.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { Tensor } from "../tensor/tensor.ts";
import { Dim, type DimBounds, DimHint, type DimSpec, DimVar } from "./dim.ts";
import { deferGuards, isData } from "./deferredGuards.ts";
import { InputSymbols } from "./inputSymbols.ts";
import type { RangeConstraint, SymbolAssumptions } from "./program.ts";
import { fixesInTypeScript } from "./refineShapes.ts";
import type { StatelessSymbolicContext } from "./symbolicContext.ts";
import { replayShapeEnvEvents, ShapeEnvEvent, shapeEnvCheckStateEqual, type ShapeEventName } from "./shapeEvents.ts";

let withoutDataDepth = 0;

/** Runs `body`, in which what only data tells stays open, whoever knows the data. */
export function withoutData<T>(body: () => T): T {
  withoutDataDepth++;
  try {
    return body();
  } finally {
    withoutDataDepth--;
  }
}

/** Whether what only data tells is to stay open. */
export function isWithoutData(): boolean {
  return withoutDataDepth > 0;
}

/** An input of a module that is exported. */
export interface SessionInput {
  /** How PyTorch names where it comes from: `L['x']`, `L['x'][0]`, `L['x']['key']`. */
  readonly source: string;
  /** The example. Its sizes are the hints of the symbols that stand for dynamic ones. */
  readonly value: Tensor | TensorMeta | Val;
  /** What the user said of each dimension; static without it. A number has one, for itself. */
  readonly dims?: readonly DimSpec[];
  /** What becomes of its sizes and strides; as {@link dims} say without it. What `dims` say of a size holds besides. */
  readonly symbolicContext?: StatelessSymbolicContext;
}

/** What else is said of a session. */
export interface SessionOptions {
  /**
   * Whether conditions on inputs that are more than bounds and equalities are asserted by the program, and not refused where they
   * contradict what was said of sizes: `prefer_deferred_runtime_asserts_over_guards`.
   */
  readonly preferDeferredRuntimeAssertsOverGuards?: boolean;
}

/** A condition on unbacked symbols, which the program has to assert. */
export interface DeferredAssertion {
  readonly condition: SymExpr;
  readonly message: string | undefined;
}

/** What came out of an export. */
export interface SessionResult {
  /** The values that sizes of inputs and symbols may have, by their names. */
  readonly rangeConstraints: Map<string, RangeConstraint>;
  /** Conditions on the inputs as Python expressions. */
  readonly guards: string[];
  /** What the program has to assert when it runs, in the order in which it became known. */
  readonly assertions: readonly DeferredAssertion[];
  /** The same for {@link insertDeferredRuntimeAsserts}. */
  readonly runtimeAsserts: RuntimeAssertCall;
  /** An expression with the numbers and symbols for those that turned out to be them. */
  replace(expr: SymInt): SymInt;
}

/**
 * The sizes of one export: PyTorch's `ShapeEnv` with what the user said of the inputs. What operators need of sizes is looked
 * up in the examples and becomes a guard.
 *
 * @example
 * ```ts
 * using shapes = new ShapeSession([{ source: "L['x']", value: x, dims: [Dim("batch", { max: 16 }), null] }]);
 * const y = shapes.infer("aten.mm", [shapes.values[0], weight]);
 * shapes.finish().rangeConstraints; // s77: from 0 to 16
 * ```
 */
export class ShapeSession implements Disposable {
  /** What is known of each input, with symbols in the place of dynamic sizes. */
  readonly values: readonly Val[];
  #engine: EngineShapes;
  readonly #symbols: InputSymbols;
  /** Whether guards are to be assertions. The engine is then told of named dimensions at the end only. */
  readonly #isDeferring: boolean;
  #strict: EngineShapes | undefined;
  readonly #events: ShapeEnvEvent[] = [];
  #isFrozen = false;
  /** Whether a call that would guard or assert something is refused now. */
  #isWatched = false;

  /** @throws {@link ExportError} where an example is not what is said of it. */
  constructor(inputs: readonly SessionInput[], options: SessionOptions = {}) {
    checkList("ShapeSession", "inputs", inputs);
    checkOptions("ShapeSession", options, ["preferDeferredRuntimeAssertsOverGuards"]);
    const known = inputs.map(({ value }) => knownOf(value) as TensorMeta | Val);
    const noted = inputs.map((it, at) => ({ ...it, value: known[at] as TensorMeta | Val }));
    this.#events.push(new ShapeEnvEvent("ShapeSession", [noted], () => new ShapeSession(noted, options)));
    this.#symbols = new InputSymbols(noted);
    this.#isDeferring = options.preferDeferredRuntimeAssertsOverGuards ?? false;
    // It refuses examples that are not what is said of them.
    if (this.#isDeferring) this.#strictly();
    this.#engine = this.#begin(this.#isDeferring);
    this.values = this.#symbols.resolve(this.#engine);
    if (this.#isDeferring) this.#holdBounds();
  }

  /**
   * What is known of the results of an operator: {@link inferOperator} with the symbols of this export. What the operator
   * needs to hold of sizes becomes a guard; `place` says in errors where the user's code asked for it.
   */
  infer(
    name: string,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>> = {},
    place?: string,
  ): unknown {
    checkText("ShapeSession.infer", "the operator", name);
    checkArguments("ShapeSession.infer", args, kwargs);
    const [given, named] = knownOf([args, kwargs]) as [typeof args, typeof kwargs];
    const results = this.#noted("infer", [name, given, named, place], () =>
      this.#engine.infer(name, given, named, place),
    );
    return results.length > 1 ? results : (results[0] ?? null);
  }

  /** A function of numbers that may be symbolic: `operator.add`, `math.ceil`, `torch.sym_max`. */
  call(name: string, args: readonly unknown[]): unknown {
    return this.infer(name, args);
  }

  /**
   * Whether this holds: by what is known of its symbols, else of the examples, which makes a guard.
   *
   * @throws {@link ExportError} where only the data can tell.
   */
  decide(condition: SymExpr | boolean, place?: string): boolean {
    if (typeof condition === "boolean") return condition;
    checkExpression("ShapeSession.decide", condition);
    return this.#noted("decide", [condition, place], () => this.#engine.decide(condition, place));
  }

  /** The value of an expression for the examples; undefined where it is unbacked. */
  hint(expr: SymExpr): number | boolean | undefined {
    checkExpression("ShapeSession.hint", expr);
    return (this.#engine.hint(expr) ?? undefined) as number | boolean | undefined;
  }

  /** A value in terms of the symbols that are left: those that are known to be equal, or to be numbers, are replaced. */
  simplify<T extends Val>(value: T): T {
    checkGiven("ShapeSession.simplify", isVal(value), "a value that `meta.val` may have");
    return (this.#engine.replace([value]) as readonly unknown[])[0] as T;
  }

  /** Takes this to hold: `torch._check`. A condition on sizes of inputs is a guard, any other is asserted by the program. */
  check(condition: SymExpr | boolean, message?: string, place?: string): void {
    if (condition === true) return;
    if (message !== undefined) checkText("ShapeSession.check", "the message", message);
    if (condition === false) throw fxError("AssertionFailed", message ?? "Expected cond to be True, but got False");
    checkExpression("ShapeSession.check", condition);
    this.#noted("check", [condition, message, place], () => this.#engine.check(condition, message, place));
  }

  /**
   * The values that an expression may have, by the ranges of its symbols: `bound_sympy`. No guard is made.
   *
   * @example
   * ```ts
   * shapes.boundSympy(shapes.call("operator.mul", [n, 2]) as SymExpr); // { min: 4, max: undefined }
   * ```
   */
  boundSympy(expr: SymInt): DimBounds {
    if (!(expr instanceof SymExpr)) return { min: Number(expr), max: Number(expr) };
    checkGiven("ShapeSession.boundSympy", kindOfExpression(expr) === "int", "an expression of ints");
    const [first, ...others] = this.#events as [ShapeEnvEvent, ...ShapeEnvEvent[]];
    // What names say of dimensions is compared at the end, and may be wrong by now.
    using session = new ShapeSession(first.args[0] as readonly SessionInput[], {
      preferDeferredRuntimeAssertsOverGuards: true,
    });
    for (const it of others) it.run(session);
    const symbol = session.createUnbackedSymint();
    session.#engine.require("operator.eq", [symbol, expr]);
    const [, , min = null, max = null] =
      session.#engine.finish().ranges.find(([text]) => text === String(symbol)) ?? [];
    return { ...(min !== null && { min }), ...(max !== null && { max }) };
  }

  /** What was asked of the session, so that {@link replayShapeEnvEvents} can ask it again. */
  get events(): readonly ShapeEnvEvent[] {
    return this.#events;
  }

  /** An int that only data tells: `create_unbacked_symint`. */
  createUnbackedSymint(): SymExpr {
    return this.#unbacked("int64");
  }

  /** A float that only data tells: `create_unbacked_symfloat`. */
  createUnbackedSymfloat(): SymExpr {
    return this.#unbacked("float64");
  }

  /** A condition that only data tells: `create_unbacked_symbool`. */
  createUnbackedSymbool(): SymExpr {
    return this.#unbacked("bool");
  }

  /** Whether an expression is a symbol that only data tells: `is_unbacked_symint`. */
  isUnbackedSymint(expr: SymInt): boolean {
    return expr instanceof SymExpr && /^u\d+$/.test(expr.toString());
  }

  /**
   * Runs `body`, whose decisions by the examples guard nothing: `suppress_guards`. Numbers that only data tells and that are made
   * there mean nothing afterwards.
   *
   * @example
   * ```ts
   * const isLarge = shapes.suppressGuards(() => shapes.decide(condition)); // as it is for the examples
   * ```
   */
  suppressGuards<T>(body: () => T): T {
    checkFunction("suppressGuards", "the body", body);
    const [engine, count] = [this.#engine, this.#events.length];
    this.#engine = this.#copy();
    try {
      return atOnce("suppressGuards", body());
    } finally {
      this.#engine[Symbol.dispose]();
      this.#engine = engine;
      this.#events.length = count;
    }
  }

  /**
   * Runs `body`, and refuses what would guard something, or make the program assert it: `error_on_new_guards`.
   *
   * @example
   * ```ts
   * shapes.errorOnNewGuards(() => shapes.infer("aten.relu", [x]));
   * ```
   * @throws {@link ExportError} at the first guard, of which nothing is kept.
   */
  errorOnNewGuards<T>(body: () => T): T {
    checkFunction("errorOnNewGuards", "the body", body);
    const isWatched = this.#isWatched;
    this.#isWatched = true;
    try {
      return atOnce("errorOnNewGuards", body());
    } finally {
      this.#isWatched = isWatched;
    }
  }

  /** From here on decisions by the examples guard nothing: `freeze`. What only data tells is asserted by the program all the same. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** Refuses a session that knows something else: `check_equal`. */
  checkEqual(other: ShapeSession): void {
    shapeEnvCheckStateEqual(this, other);
  }

  /** What it knows, as texts to be compared. */
  state(): { readonly values: string; readonly guards: string } {
    const values = this.values.map((it) => describe(this.simplify(it))).join(", ");
    return { values, guards: JSON.stringify(endOf(this.#engine)) };
  }

  /**
   * Compares what became of the sizes with what the user said.
   *
   * @throws {@link ExportError} where that is not the same, with PyTorch's suggestions.
   */
  finish(): SessionResult {
    try {
      return this.#finish();
    } catch (error) {
      throw withFixes(error);
    }
  }

  #finish(): SessionResult {
    const engine = this.#engine;
    const strict = this.#isDeferring ? this.#strictly() : undefined;
    const { ranges, guards, assertions } =
      strict === undefined ? engine.finish() : deferGuards(engine, strict, this.#symbols.sources(engine));
    const replaced = (expr: SymExpr): SymInt => {
      const res = engine.replace([expr])[0] as SymInt;
      return strict === undefined ? res : (strict.replace([res])[0] as SymInt);
    };
    return {
      rangeConstraints: new Map(
        ranges.map(([text, srepr, min, max]) => {
          const ends = { min: min ?? undefined, max: max ?? undefined };
          return [text, { assumptions: assumptionsOf(srepr), ...ends }];
        }),
      ),
      guards: [...guards],
      assertions: assertions.map(([, srepr, message]) => ({
        condition: new SymExpr(srepr),
        message: message ?? undefined,
      })),
      runtimeAsserts: {
        ranges: Object.fromEntries(
          ranges.filter(([text]) => /^\w+$/.test(text)).map(([text, , min, max]) => [text, [min, max] as const]),
        ),
        asserts: assertions.map(([text]) => text),
      },
      replace: (expr) => (expr instanceof SymExpr ? replaced(expr) : expr),
    };
  }

  [Symbol.dispose](): void {
    this.#engine[Symbol.dispose]();
    this.#strict?.[Symbol.dispose]();
  }

  /** A session of the engine of the same inputs; with `isRelaxed` it knows nothing of names and bounds of dimensions. */
  #begin(isRelaxed: boolean): EngineShapes {
    const { values, said } = this.#symbols;
    const of = (spec: DimSpec): DimSpec => (isRelaxed && spec instanceof DimVar ? Dim.AUTO : spec);
    return new EngineShapes(
      values,
      said.map(({ source, dims }) => ({ source, dims: dims.map((it) => specJson(of(it))) })),
    );
  }

  /** A session that knows what was said of dimensions, and nothing of what became of them. */
  #strictly(): EngineShapes {
    this.#strict?.[Symbol.dispose]();
    this.#strict = this.#begin(false);
    this.#symbols.resolve(this.#strict);
    return this.#strict;
  }

  /** Says the bounds of named dimensions, which the engine knows by them otherwise. */
  #holdBounds(): void {
    for (const [at, { dims }] of this.#symbols.said.entries()) {
      for (const [dim, spec] of dims.entries()) {
        const size = (this.values[at] as TensorMeta).sizes[dim];
        if (!(spec instanceof DimVar && size instanceof SymExpr)) continue;
        const { min, max } = spec;
        this.#engine.require("operator.ge", [size, min]);
        if (max !== undefined) this.#engine.require("operator.le", [size, max]);
      }
    }
  }

  /** Asks the engine, and notes that; what it refuses is not noted. */
  #noted<T>(name: ShapeEventName, args: readonly unknown[], ask: () => T): T {
    const event = new ShapeEnvEvent(name, args);
    const before = this.#isWatched || this.#isFrozen ? new Commitments(this.#engine) : undefined;
    const res = ask();
    const added = before?.addedBy(this.#engine);
    if (added === undefined) this.#events.push(event);
    else if (this.#isWatched) this.#refuse(name, added);
    else if (added.guards) this.#forget(name, added);
    else this.#events.push(event);
    return res;
  }

  /** Refuses a call that guarded or asserted something, and takes that back. */
  #refuse(name: ShapeEventName, { guards, asserts }: Added): void {
    if (!guards && !asserts) return;
    this.#restore();
    throw fxError("ConstraintViolation", `a guard was attempted by ${name} while new guards are refused`, {
      help: "decide by what is known of all inputs: staticallyKnownTrue(condition)",
    });
  }

  /** Takes back what a call guarded while guards are frozen. */
  #forget(name: ShapeEventName, { symbols }: Added): void {
    this.#restore();
    if (!symbols) return;
    throw fxError(
      "ConstraintViolation",
      `${name} guards sizes, and gives numbers that only data tells, while guards are frozen`,
      {
        help: "freeze the session after this call",
      },
    );
  }

  /** Goes back to what the events tell. */
  #restore(): void {
    this.#engine[Symbol.dispose]();
    this.#engine = this.#copy();
  }

  /** A session of the engine that knows the same. What names of dimensions say is compared at the end, with what this session has. */
  #copy(): EngineShapes {
    const again = replayShapeEnvEvents(this.#events);
    again.#strict?.[Symbol.dispose]();
    return again.#engine;
  }

  #unbacked(dtype: DType): SymExpr {
    const requiresGrad = false;
    const scalar = { dtype, sizes: [], strides: [], storageOffset: 0, device: device("cpu"), requiresGrad };
    return this.infer("aten.item", [new TensorMeta({ ...scalar, layout: layout("strided") })]) as SymExpr;
  }
}

function checkExpression(what: string, expr: SymExpr): void {
  checkGiven(
    what,
    (expr as unknown) instanceof SymExpr,
    "an expression, or what is known already",
    "shapes.call gives one",
  );
}

/** What is known of values, without the elements of tensors. */
function knownOf(value: unknown): unknown {
  if (value instanceof Tensor) return tensorVal(value);
  if (Array.isArray(value)) return value.map(knownOf);
  return isOptions(value) ? Object.fromEntries(Object.entries(value).map(([key, it]) => [key, knownOf(it)])) : value;
}

/** What a session of the engine would come to, or the text of what it would refuse. */
function endOf(engine: EngineShapes): EngineShapeResult | string {
  try {
    return engine.finish();
  } catch (error) {
    if (error instanceof FxError) return error.message;
    throw error;
  }
}

/** What a call added to what a session holds its inputs and the data to. */
interface Added {
  /** Conditions on inputs. */
  readonly guards: boolean;
  /** Conditions on data. */
  readonly asserts: boolean;
  /** Numbers that only data tells. */
  readonly symbols: boolean;
}

/** What a session of the engine holds its inputs and the data to. */
class Commitments {
  readonly #guards: string;
  readonly #asserts: string;
  /** The ranges of numbers that only data tells. */
  readonly #data: ReadonlyMap<string, string>;

  constructor(engine: EngineShapes) {
    const end = endOf(engine);
    const { guards = end, ranges = [], assertions = [] } = typeof end === "string" ? {} : end;
    this.#guards = JSON.stringify([guards, ranges.filter(([text]) => !isData(text))]);
    this.#asserts = JSON.stringify(assertions);
    this.#data = new Map(ranges.filter(([text]) => isData(text)).map((it) => [it[0], JSON.stringify(it)]));
  }

  /** What a later state of the session has besides; undefined where that is nothing. */
  addedBy(engine: EngineShapes): Added | undefined {
    const after = new Commitments(engine);
    const guards = after.#guards !== this.#guards;
    const isOther = [...this.#data].some(([name, range]) => after.#data.get(name) !== range);
    const asserts = after.#asserts !== this.#asserts || isOther;
    const symbols = [...after.#data.keys()].some((it) => !this.#data.has(it));
    return guards || asserts || symbols ? { guards, asserts, symbols } : undefined;
  }
}

/** A violation with what it suggests in TypeScript: the reason is in PyTorch's words. */
function withFixes(error: unknown): unknown {
  if (!(error instanceof FxError) || error.kind !== "ConstraintViolation") return error;
  const fixes = fixesInTypeScript(error.reason);
  if (fixes.length === 0) return error;
  const help = `say of the dynamic sizes: ${fixes.join("; ")}; or change the code that asks for more than that`;
  return fxError(error.kind, error.reason, { notes: error.notes, help, cause: error });
}

/** Refuses a body that goes on later, when nothing is suppressed or refused any more. */
function atOnce<T>(what: string, result: T): T {
  const isLater = typeof (result as { readonly then?: unknown } | null | undefined)?.then === "function";
  checkGiven(what, !isLater, "a function that is done when it returns", "await before the call, and not in it");
  return result;
}

function describe(value: Val): string {
  if (value instanceof TensorMeta) return `[${value.sizes.map(String).join(", ")}]`;
  return String(value);
}

function bounds({ min, max }: DimVar | DimHint): object {
  return { min: min ?? null, max: max ?? null };
}

/** What was said of a dimension, as the engine reads it. */
function specJson(spec: DimSpec): object | number | null {
  if (spec instanceof DimHint && spec.kind === "UNBACKED") return null;
  if (spec instanceof DimHint) return { hint: spec.kind, ...bounds(spec) };
  if (!(spec instanceof DimVar)) return spec;
  const { root = spec, factor, offset } = spec;
  return { name: root.name, ...bounds(root), factor, offset };
}

/** What an expression says of the symbol that it is. */
function assumptionsOf(srepr: string): SymbolAssumptions {
  const says = (name: string): boolean => srepr.includes(`${name}=True`);
  return {
    integer: !srepr.startsWith("Symbol(") || says("integer"),
    positive: srepr.startsWith("Symbol(") && says("positive"),
    nonnegative: srepr.startsWith("Symbol(") && says("nonnegative"),
    real: srepr.startsWith("Symbol(") && says("real"),
  };
}
