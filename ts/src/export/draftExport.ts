/**
 * An export that goes on where `exportProgram` refuses, and tells all reasons at once: `torch.export.draft_export`.
 *
 * The module runs once on the example inputs themselves. What only data tells is then looked up in that run.
 *
 * @module
 */
import { FxError } from "../base/errors.ts";
import { checkOptions } from "../base/given.ts";
import { callOperator } from "../engine/dispatch.ts";
import { recordingOperators } from "../engine/recorder.ts";
import { tensorVal } from "../engine/tensorMetadata.ts";
import { callFunction } from "../functions/table.ts";
import { type Expression, parseExpression } from "../graph/expression.ts";
import type { Node } from "../graph/node.ts";
import { valueOfExpression } from "../graph/symints.ts";
import { SymExpr, TensorMeta } from "../graph/val.ts";
import { deepCopy } from "../nn/deepCopy.ts";
import type { Module } from "../nn/module.ts";
import { Tensor } from "../tensor/tensor.ts";
import { treeMap } from "../trace/pytree.ts";
import type { Subgraph, SubgraphCall } from "../trace/subgraph.ts";
import { Dim, DimHint, DimVar } from "./dim.ts";
import { DraftExportReport, type FailureData, FailureReport, type FailureType } from "./draftReport.ts";
import type { DynamicShapes } from "./dynamicShapes.ts";
import type { ExportedProgram } from "./exportedProgram.ts";
import {
  checkExportArguments,
  EXPORT_OPTIONS,
  type ExportMakers,
  type ExportOptions,
  exportWith,
} from "./exportProgram.ts";
import { type ExportInputs, ExportTracer } from "./exportTracer.ts";
import { isIdle } from "./recordedCall.ts";
import { fixesInTypeScript } from "./refineShapes.ts";
import { isWithoutData, type SessionInput, type SessionOptions, ShapeSession } from "./shapes.ts";
import { TracedNumber, TracedTensor } from "./traced.ts";

/** A program, and what it takes for granted. */
export interface DraftExport {
  readonly program: ExportedProgram;
  readonly report: DraftExportReport;
}

/**
 * Exports a module by what the example inputs tell, wherever nothing else does, and reports that: decisions on data, operators without
 * a fake implementation or with a wrong one, and sizes that are not what was said of them. `draft_export`.
 *
 * The program is sound where the report is empty; else it asserts what it took from the examples.
 *
 * @example
 * ```ts
 * const { program, report } = draftExport(model, [x]);
 * console.log(String(report)); // what to write, and where
 * ```
 */
export function draftExport(
  module: Module,
  args: readonly unknown[],
  kwargs: Readonly<Record<string, unknown>> = {},
  options: ExportOptions = {},
): DraftExport {
  checkOptions("draftExport", options, EXPORT_OPTIONS);
  checkExportArguments(module, args, kwargs, options);
  const draft = new Draft(realRun(module, args, kwargs));
  const quiet: ExportOptions = { verify: false, ...options };
  try {
    const program = exportWith(module, args, kwargs, quiet, draft.makers());
    return { program, report: new DraftExportReport(draft.failures) };
  } catch (error) {
    if (!(error instanceof FxError) || error.kind !== "ConstraintViolation") throw error;
    const dynamicShapes = automatic(options.dynamicShapes ?? null);
    draft.restart();
    const program = exportWith(module, args, kwargs, { ...quiet, dynamicShapes }, draft.makers());
    draft.violated(error, dynamicShapes);
    return { program, report: new DraftExportReport(draft.failures) };
  }
}

/** What is known of a real tensor: its element, where it has a single one. */
interface RealTensor {
  readonly meta: TensorMeta;
  readonly element: number | undefined;
}

/** What calls of each operator gave, in their order; and what the engine refused, which goes no further. */
interface RealRun {
  readonly results: ReadonlyMap<string, readonly unknown[]>;
  readonly error: unknown;
}

/** Runs a copy of the module on copies of the inputs. */
function realRun(module: Module, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): RealRun {
  const results = new Map<string, unknown[]>();
  const copied = treeMap((it) => (it instanceof Tensor ? it.clone() : it), [...args]) as unknown[];
  const recorder = {
    callOperator(name: string, given: readonly unknown[], named: Readonly<Record<string, unknown>>): unknown {
      const value = recordingOperators(undefined, () => callOperator(name, given, named));
      if (isIdle(name, given, named)) return value;
      const known = results.get(packetOf(name)) ?? [];
      results.set(packetOf(name), [...known, realOf(value)]);
      return value;
    },
  };
  try {
    const given = Object.keys(kwargs).length === 0 ? copied : [...copied, kwargs];
    recordingOperators(recorder, () => deepCopy(module).call(...given));
    return { results, error: undefined };
  } catch (error) {
    return { results, error };
  }
}

function packetOf(name: string): string {
  return name.split(".").slice(0, 2).join(".");
}

/** What is kept of a result. */
function realOf(value: unknown): unknown {
  if (value instanceof Tensor) return { meta: tensorVal(value), element: elementOf(value) } satisfies RealTensor;
  return Array.isArray(value) ? value.map(realOf) : value;
}

function elementOf(tensor: Tensor): number | undefined {
  return tensor.numel() === 1 && !tensor.dtype.startsWith("complex") ? Number(tensor.item()) : undefined;
}

/** One export, and what is found. */
class Draft {
  readonly #real: RealRun;
  /** The elements of traced tensors that have a single one. */
  elements = new WeakMap<Tensor, number>();
  /** What was decided of sizes by the examples, and where. */
  readonly guards: { readonly expr: string; readonly place: string | undefined }[] = [];
  /** The values of unbacked symbols. */
  readonly symbols = new Map<string, number>();
  readonly #calls = new Map<string, number>();
  #isMatching = true;
  #found: { readonly type: FailureType; readonly key: string; data: FailureData }[] = [];

  constructor(real: RealRun) {
    this.#real = real;
    this.#addRefusal(real.error);
  }

  get failures(): FailureReport[] {
    return this.#found.map(({ type, data }) => new FailureReport(type, data));
  }

  makers(): ExportMakers {
    return {
      session: (inputs, options) => new DraftSession(inputs, this, options),
      tracer: (shapes, inputs) => new DraftTracer(shapes, inputs, this),
    };
  }

  restart(): void {
    this.symbols.clear();
    this.#calls.clear();
    this.#isMatching = true;
    this.guards.length = 0;
    this.#found = [];
    this.#addRefusal(this.#real.error);
  }

  add(type: FailureType, key: string, data: FailureData): void {
    const known = this.#found.find((it) => it.type === type && it.key === key);
    if (known === undefined) this.#found.push({ type, key, data });
    else known.data = { ...known.data, occurrences: (known.data.occurrences ?? 1) + 1 };
  }

  /** The real run goes through one branch, and the trace through all: what is called from there on has no match in it. */
  stopMatching(): void {
    this.#isMatching = false;
  }

  /** A write may change what others hold as well, which are views. */
  forgetElements(): void {
    this.elements = new WeakMap();
  }

  /** What the call of an operator gave that comes now. */
  next(name: string): unknown {
    if (!this.#isMatching) return undefined;
    return this.#real.results.get(packetOf(name))?.[this.#calls.get(packetOf(name)) ?? 0];
  }

  /** Notes what a call gave, whose symbols are then known. */
  learn(name: string, traced: unknown): void {
    const real = this.next(name);
    this.#calls.set(packetOf(name), (this.#calls.get(packetOf(name)) ?? 0) + 1);
    this.#match(traced, real);
  }

  valueOf(expr: SymExpr): unknown {
    return valueOfExpression(parseExpression(expr), this.symbols, (target, args) =>
      callFunction(target, { args, kwargs: {} }),
    );
  }

  /** Notes what the sizes were taken to be that are not what was said. */
  violated(error: FxError, dynamicShapes: DynamicShapes): void {
    const fixes = fixesInTypeScript(error.reason);
    const places = new Set(this.guards.map(({ place }) => place));
    // What operators ask of sizes is decided in the engine, which notes where the call stands.
    const asked = error.notes.flatMap((it) => readAsked(it) ?? []).filter(({ place }) => !places.has(place));
    for (const { expr, place } of [...this.guards, ...asked]) {
      this.add("GUARD_ADDED", expr, {
        expr,
        ...(place === undefined || place === "" ? {} : { place }),
        newDynamicShapes: shapesText(dynamicShapes),
        fix: fixes.length > 0 ? `say so: ${fixes.join("; ")}` : "say of the sizes what the guard says, or Dim.AUTO",
      });
    }
  }

  /** A kernel that gives what its fake implementation does not say is refused by the engine. */
  #addRefusal(error: unknown): void {
    if (!(error instanceof FxError) || error.op === undefined || error.op.startsWith("aten.")) return;
    if (!error.reason.includes("its shape rule says")) return;
    this.add("MISMATCHED_FAKE_KERNEL", error.op, {
      op: error.op,
      reason: error.reason,
      fix: `torch.library.registerFake("${qualname(error.op)}", (…) => …) should give what the kernel gives`,
    });
  }

  #match(traced: unknown, real: unknown): void {
    if (real === undefined) return;
    if (Array.isArray(traced)) {
      for (const [at, it] of (traced as unknown[]).entries()) this.#match(it, (real as unknown[])[at]);
      return;
    }
    if (!(traced instanceof TracedTensor)) return;
    const { meta, element } = real as RealTensor;
    for (const [at, size] of traced.meta.sizes.entries()) this.learnSymbol(size, meta.sizes[at]);
    if (element === undefined) this.elements.delete(traced);
    else this.elements.set(traced, element);
  }

  learnSymbol(expr: unknown, real: unknown): void {
    if (!(expr instanceof SymExpr) || real === undefined) return;
    const parsed = parseExpression(expr);
    if (parsed.kind === "symbol" && !this.symbols.has(parsed.name)) this.symbols.set(parsed.name, Number(real));
  }
}

/** Decides by the real run what only data tells. */
class DraftSession extends ShapeSession {
  readonly #draft: Draft;

  constructor(inputs: readonly SessionInput[], draft: Draft, options: SessionOptions) {
    super(inputs, options);
    this.#draft = draft;
    const learn = (known: unknown, hint: unknown): void => {
      if (known instanceof SymExpr && parseExpression(known).kind === "symbol")
        draft.symbols.set(String(known), Number(hint));
    };
    for (const value of this.values) {
      const sizes = value instanceof TensorMeta ? value.sizes : [value];
      for (const it of sizes) if (it instanceof SymExpr) learn(it, super.hint(it));
    }
  }

  override decide(condition: SymExpr | boolean, place?: string): boolean {
    try {
      const answer = super.decide(condition, place);
      if (typeof condition !== "boolean" && super.hint(condition) !== undefined) {
        const held = answer ? condition : (this.call("torch.sym_not", [condition]) as SymExpr);
        this.#draft.guards.push({ expr: String(held), place });
      }
      return answer;
    } catch (error) {
      if (!isDataDependent(error) || isWithoutData() || typeof condition === "boolean") throw error;
      const value = this.#draft.valueOf(condition);
      if (typeof value !== "boolean") throw error;
      const holds = value ? condition : (this.call("torch.sym_not", [condition]) as SymExpr);
      this.#draft.add("DATA_DEPENDENT_ERROR", `${String(condition)} ${place ?? ""}`, {
        expr: String(condition),
        ...(place === undefined || place === "" ? {} : { place }),
        result: value ? "True" : "False",
        occurrences: 1,
        fix: `torch._check(${inTypeScript(parseExpression(holds))})`,
      });
      this.check(holds);
      return value;
    }
  }

  override hint(expr: SymExpr): number | boolean | undefined {
    const known = super.hint(expr);
    if (known !== undefined || isWithoutData()) return known;
    return this.#draft.valueOf(expr) as number | boolean | undefined;
  }

  override infer(
    name: string,
    args: readonly unknown[],
    kwargs: Readonly<Record<string, unknown>> = {},
    place?: string,
  ): unknown {
    try {
      return super.infer(name, args, kwargs, place);
    } catch (error) {
      const real = this.#draft.next(name);
      if (
        !(error instanceof FxError) ||
        error.kind !== "NotImplemented" ||
        name.startsWith("aten.") ||
        real === undefined
      ) {
        throw error;
      }
      this.#draft.add("MISSING_FAKE_KERNEL", name, {
        op: name,
        ...(place === undefined || place === "" ? {} : { place }),
        fix: `torch.library.registerFake("${qualname(name)}", (…) => …)`,
      });
      return (real as RealTensor).meta ?? (real as readonly RealTensor[]).map((it) => it.meta);
    }
  }
}

const WRITING = /^aten\.\w*[a-z0-9]_(?:\.|$)/;

const ITEM = /^aten\.(?:item|_local_scalar_dense)(?:\.|$)/;

/** Records as `exportProgram` does, and follows the real run. */
class DraftTracer extends ExportTracer {
  readonly #draft: Draft;

  constructor(shapes: ShapeSession, inputs: ExportInputs, draft: Draft) {
    super(shapes, inputs);
    this.#draft = draft;
  }

  override traceSubgraph(fn: (...args: unknown[]) => unknown, names: readonly string[], call: SubgraphCall): Subgraph {
    this.#draft.stopMatching();
    return super.traceSubgraph(fn, names, call);
  }

  override trackTensor(tensor: Tensor, node: Node): TracedTensor {
    const traced = super.trackTensor(tensor, node);
    const element = elementOf(tensor);
    if (element !== undefined) this.#draft.elements.set(traced, element);
    return traced;
  }

  override callOperator(name: string, args: readonly unknown[], kwargs: Readonly<Record<string, unknown>>): unknown {
    const value = super.callOperator(name, args, kwargs);
    if (WRITING.test(name) || (kwargs["out"] ?? null) !== null) this.#draft.forgetElements();
    if (ITEM.test(name) && value instanceof TracedNumber) {
      const [of] = args;
      const element = of instanceof TracedTensor ? this.#draft.elements.get(of) : elementOf(of as Tensor);
      this.#draft.learnSymbol(value.expr, element);
      return value;
    }
    if (!isIdle(name, args, kwargs)) this.#draft.learn(name, value);
    return value;
  }
}

/** The name that `torch.library` knows an overload by. */
function qualname(name: string): string {
  return name.split(".").slice(0, 2).join("::");
}

function isDataDependent(error: unknown): boolean {
  return error instanceof FxError && error.kind === "DataDependent";
}

/** Dimensions that are dynamic whatever the code asks of them. */
function automatic(shapes: DynamicShapes): DynamicShapes {
  return treeMap(automaticDim, shapes, { isLeaf: isDim }) as DynamicShapes;
}

function isDim(it: unknown): it is DimVar | DimHint {
  return it instanceof DimVar || it instanceof DimHint;
}

function automaticDim(it: unknown): unknown {
  const isKept = !isDim(it) || (it instanceof DimHint && it.kind !== "DYNAMIC");
  return isKept ? it : Dim.AUTO.within(boundsOf(it));
}

function boundsOf({ min, max }: { readonly min: number | undefined; readonly max: number | undefined }): {
  min?: number;
  max?: number;
} {
  return { ...(min === undefined ? {} : { min }), ...(max === undefined || !Number.isFinite(max) ? {} : { max }) };
}

function shapesText(shapes: unknown): string {
  return JSON.stringify(shapes, (_, it: unknown) => (it instanceof DimHint ? String(it) : it)) ?? "";
}

const OPERATORS: ReadonlyMap<string, string> = new Map([
  ["Equality", "eq"],
  ["Unequality", "ne"],
  ["StrictLessThan", "lt"],
  ["LessThan", "le"],
  ["StrictGreaterThan", "gt"],
  ["GreaterThan", "ge"],
  ["Add", "add"],
  ["Mul", "mul"],
  ["FloorDiv", "floordiv"],
  ["Mod", "mod"],
  ["PythonMod", "mod"],
]);

/** A condition that a note of a violation tells, and where it comes from. */
function readAsked(note: string): { readonly expr: string; readonly place: string } | undefined {
  const [, expr, value, place] = /^(.+?) (?:is asked|became (\S+)) at (.+)$/.exec(note) ?? [];
  if (expr === undefined || place === undefined) return undefined;
  return { expr: value === undefined ? expr : `${expr} == ${value}`, place };
}

/** An expression as a call of functions of `operator`. */
function inTypeScript(expression: Expression): string {
  if (expression.kind === "symbol") return expression.name;
  if (expression.kind === "number") return expression.text;
  const args = expression.args.map(inTypeScript);
  const name = OPERATORS.get(expression.name);
  if (name === undefined) return `${expression.name}(${args.join(", ")})`;
  return args.reduce((a, b) => `operator.${name}(${a}, ${b})`);
}
