/**
 * What an export knows of sizes: which are dynamic, what follows from what the module did with them, and whether that is what
 * the user said.
 *
 * @module
 */
import { checkList } from "../base/given.ts";
import type { RuntimeAssertCall } from "../../../bindings/passes.ts";
import { EngineShapes } from "../engine/shapes.ts";
import { fxError } from "../base/errors.ts";
import { SymExpr, type SymInt, TensorMeta, type Val } from "../graph/val.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { Tensor } from "../tensor/tensor.ts";
import { DimHint, type DimSpec, DimVar } from "./dim.ts";
import type { RangeConstraint, SymbolAssumptions } from "./program.ts";

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
  readonly #engine: EngineShapes;

  /** @throws {@link ExportError} where an example is not what is said of it. */
  constructor(inputs: readonly SessionInput[]) {
    checkList("ShapeSession", "inputs", inputs);
    const known = inputs.map(({ value }) => (value instanceof Tensor ? tensorVal(value) : value));
    const said = inputs.map(({ source, dims = [] }) => ({ source, dims: dims.map(specJson) }));
    this.#engine = new EngineShapes(known, said);
    const found = this.#engine.values();
    this.values = known.map((value, at) => {
      const symbolic = found[at];
      if (!(value instanceof TensorMeta && symbolic instanceof TensorMeta)) return symbolic as Val;
      return new TensorMeta({ ...value, sizes: symbolic.sizes, strides: symbolic.strides });
    });
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
    const results = this.#engine.infer(name, args, kwargs, place);
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
    return typeof condition === "boolean" ? condition : this.#engine.decide(condition, place);
  }

  /** The value of an expression for the examples; undefined where it is unbacked. */
  hint(expr: SymExpr): number | boolean | undefined {
    return (this.#engine.hint(expr) ?? undefined) as number | boolean | undefined;
  }

  /** A value in terms of the symbols that are left: those that are known to be equal, or to be numbers, are replaced. */
  simplify<T extends Val>(value: T): T {
    return (this.#engine.replace([value]) as readonly unknown[])[0] as T;
  }

  /** Takes this to hold: `torch._check`. A condition on sizes of inputs is a guard, any other is asserted by the program. */
  check(condition: SymExpr | boolean, message?: string, place?: string): void {
    if (condition === true) return;
    if (condition === false) throw fxError("AssertionFailed", message ?? "Expected cond to be True, but got False");
    this.#engine.check(condition, message, place);
  }

  /**
   * Compares what became of the sizes with what the user said.
   *
   * @throws {@link ExportError} where that is not the same, with PyTorch's suggestions.
   */
  finish(): SessionResult {
    const { ranges, guards, assertions } = this.#engine.finish();
    const engine = this.#engine;
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
      replace: (expr) => (expr instanceof SymExpr ? (engine.replace([expr])[0] as SymInt) : expr),
    };
  }

  [Symbol.dispose](): void {
    this.#engine[Symbol.dispose]();
  }
}

function bounds({ min, max }: DimVar | DimHint): object {
  return { min: min ?? null, max: max ?? null };
}

/** What was said of a dimension, as the engine reads it. */
function specJson(spec: DimSpec): object | number | null {
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
