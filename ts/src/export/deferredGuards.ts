/**
 * Guards that become assertions of the program: what `prefer_deferred_runtime_asserts_over_guards` leaves of them.
 *
 * Bounds and equalities of sizes are told to a session that knows the named dimensions, which refuses those that contradict them. All
 * other conditions are asserted.
 *
 * @module
 */
import { FxError } from "../base/errors.ts";
import { type EngineShapeResult, EngineShapes } from "../engine/shapes.ts";
import { parseExpression } from "../graph/expression.ts";
import { freeSymbols } from "../graph/symbols.ts";
import { valueOfExpression } from "../graph/symints.ts";
import { SymExpr, type SymInt, TensorMeta } from "../graph/val.ts";
import { device, layout } from "../base/values.ts";

/** A size or an int of an input: how guards call it, and its symbol. */
export type SourceOfSymbol = readonly [source: string, symbol: SymExpr];

/**
 * What came of a session, where `strict` knows what was said of its sizes.
 *
 * @throws {@link ExportError} where bounds or equalities contradict that.
 */
export function deferGuards(
  session: EngineShapes,
  strict: EngineShapes,
  sources: readonly SourceOfSymbol[],
): EngineShapeResult {
  const { ranges, guards, assertions } = session.finish();
  for (const [, symbol] of sources) {
    const [found] = session.replace([symbol]) as [SymInt];
    if (String(found) !== String(symbol)) strict.require("operator.eq", [symbol, found]);
  }
  for (const [, srepr, min, max] of ranges) {
    const expr = new SymExpr(srepr);
    if (isData(String(expr)) || parseExpression(expr).kind !== "symbol") continue;
    if (min !== null && min > 2) strict.require("operator.ge", [expr, min]);
    if (max !== null) strict.require("operator.le", [expr, max]);
  }
  const end = strict.finish();
  using known = new KnownRanges(ranges);
  const deferred = guards.flatMap((it) => {
    const [condition] = strict.replace(session.replace([conditionOf(it, sources)]));
    const isOpen = condition instanceof SymExpr && !known.holds(condition);
    return isOpen ? [[String(condition), condition.srepr, null] as const] : [];
  });
  return {
    ranges: [...end.ranges.filter(([text]) => !isData(text)), ...ranges.filter(([text]) => isData(text))],
    guards: [],
    assertions: [...deferred, ...assertions],
  };
}

/** A guard in terms of symbols. The engine reads it as Python writes it. */
export function conditionOf(guard: string, sources: readonly SourceOfSymbol[]): SymExpr {
  const byLength = sources.toSorted(([a], [b]) => b.length - a.length);
  return new SymExpr(byLength.reduce((text, [source, symbol]) => text.replaceAll(source, String(symbol)), guard));
}

/** Whether a range is that of a number that only data tells. */
export function isData(text: string): boolean {
  return /\b(?:u|zuf)\d/.test(text);
}

/** What follows from the ranges of symbols alone. */
export class KnownRanges implements Disposable {
  readonly #engine = new EngineShapes([], []);
  readonly #symbols = new Map<string, SymExpr>();

  constructor(ranges: EngineShapeResult["ranges"]) {
    for (const [text, , min, max] of ranges) {
      if (!/^\w+$/.test(text)) continue;
      const symbol = this.#engine.call("aten.item", [intTensor([])]) as SymExpr;
      this.#symbols.set(text, symbol);
      if (min !== null) this.#engine.require("operator.ge", [symbol, min]);
      if (max !== null) this.#engine.require("operator.le", [symbol, max]);
    }
  }

  /** Whether a condition holds of all values in the ranges. */
  holds(condition: SymExpr): boolean {
    if ([...freeSymbols(condition)].some((it) => !this.#symbols.has(it))) return false;
    const known = valueOfExpression(parseExpression(condition), this.#symbols, (name, args) =>
      this.#engine.call(name, args),
    );
    if (!(known instanceof SymExpr)) return known === true;
    try {
      return this.#engine.decide(known, undefined);
    } catch (error) {
      if (error instanceof FxError && error.kind === "DataDependent") return false;
      throw error;
    }
  }

  [Symbol.dispose](): void {
    this.#engine[Symbol.dispose]();
  }
}

/** Ints of which no element is known. */
export function intTensor(sizes: readonly number[]): TensorMeta {
  return new TensorMeta({
    dtype: "int64",
    sizes,
    strides: sizes.map(() => 1),
    storageOffset: 0,
    device: device("cpu"),
    layout: layout("strided"),
    requiresGrad: false,
  });
}
