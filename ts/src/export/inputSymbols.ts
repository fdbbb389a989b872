/**
 * The symbols of the inputs of an export: what the engine is asked for, and what is made of its answer.
 *
 * The engine makes symbols of sizes and ints that examples tell. The other ones are found here: numbers that only data tells, and strides
 * and offsets that are symbols. Those of the second kind are ints among the inputs of the engine, behind those of the user.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkGiven } from "../base/given.ts";
import type { EngineShapes } from "../engine/shapes.ts";
import { SymExpr, type SymInt, TensorMeta, type Val } from "../graph/val.ts";
import { intTensor, type SourceOfSymbol } from "./deferredGuards.ts";
import { type DimBounds, DimHint, type DimSpec, DimVar } from "./dim.ts";
import { DimDynamic, StatelessSymbolicContext } from "./symbolicContext.ts";

/** An input, of which no element is known. */
interface KnownInput {
  readonly source: string;
  readonly value: TensorMeta | Val;
  readonly dims?: readonly DimSpec[];
  readonly symbolicContext?: StatelessSymbolicContext;
}

/** What the engine is told of an input. */
interface Said {
  readonly source: string;
  readonly dims: readonly DimSpec[];
}

/** A number of an input in terms of the symbols that are yet to be made. */
type Term =
  | number
  /** An input of the engine, or a size of it. */
  | { readonly input: number; readonly dim?: number }
  /** A number that only data tells, by its place among them. */
  | { readonly unbacked: number }
  | { readonly product: readonly [Term, Term] };

/** A number that only data tells. */
interface Unbacked {
  readonly isSize: boolean;
  readonly bounds: DimBounds;
  readonly shapeId: string | undefined;
}

/** An input whose numbers are found here. */
interface Layout {
  readonly sizes: readonly Term[];
  readonly strides: readonly Term[];
  readonly offset: Term;
}

/** What was said of the dimensions of an input without a context. */
const HINTS = { AUTO: "DYNAMIC", DYNAMIC: "DYNAMIC", STATIC: "STATIC", UNBACKED: "UNBACKED" } as const;

/** The symbols of inputs. */
export class InputSymbols {
  /** What is known of the inputs of the engine. */
  readonly values: readonly unknown[];
  /** What was said of them. */
  readonly said: readonly Said[];
  readonly #known: readonly (TensorMeta | Val)[];
  readonly #layouts = new Map<number, Layout | Term>();
  readonly #unbacked: Unbacked[] = [];
  /** Strides and offsets that are ints of the engine. */
  readonly #numbers: { readonly source: string; readonly value: number }[] = [];
  /** The symbol of each number that others may share. */
  readonly #shared = new Map<number, Term>();

  constructor(inputs: readonly KnownInput[]) {
    this.#known = inputs.map(({ value }) => value);
    const said = inputs.map((it, at) => this.#visit(it, at, inputs.length));
    const dims: readonly DimSpec[] = [new DimHint("AUTO")];
    this.values = [...this.#known, ...this.#numbers.map(({ value }) => value)];
    this.said = [...said, ...this.#numbers.map(({ source }) => ({ source, dims }))];
  }

  /** What is known of the inputs of the user in terms of the symbols that a session of the engine has made. */
  resolve(engine: EngineShapes): Val[] {
    const made = engine.values() as Val[];
    for (const at of this.#numbers.keys()) {
      const number = made[this.#known.length + at];
      if (number instanceof SymExpr) engine.require("operator.ge", [number, 2]);
    }
    const unbacked = this.#unbacked.map((it) => (it.isSize ? newSize(engine) : newInt(engine)));
    this.#constrain(engine, unbacked);
    const resolved = (term: Term): SymInt => {
      if (typeof term === "number") return term;
      if ("unbacked" in term) return unbacked[term.unbacked] as SymExpr;
      if ("product" in term) return engine.call("operator.mul", term.product.map(resolved)) as SymInt;
      const input = made[term.input];
      return (term.dim === undefined ? input : (input as TensorMeta).sizes[term.dim]) as SymInt;
    };
    return this.#known.map((value, at) => {
      const [layout, symbolic] = [this.#layouts.get(at), made[at]];
      if (!(value instanceof TensorMeta && symbolic instanceof TensorMeta)) {
        return layout === undefined ? (symbolic as Val) : resolved(layout as Term);
      }
      if (layout === undefined) return new TensorMeta({ ...value, sizes: symbolic.sizes, strides: symbolic.strides });
      const { sizes, strides, offset } = layout as Layout;
      return new TensorMeta({
        ...value,
        sizes: sizes.map(resolved),
        strides: strides.map(resolved),
        storageOffset: resolved(offset),
      });
    });
  }

  /** How guards call the symbols that a session of the engine has made. */
  sources(engine: EngineShapes): SourceOfSymbol[] {
    return (engine.values() as Val[]).flatMap((value, at): SourceOfSymbol[] => {
      const { source } = this.said[at] as Said;
      if (value instanceof SymExpr) return [[source, value]];
      if (!(value instanceof TensorMeta)) return [];
      return value.sizes.flatMap((it, dim) =>
        it instanceof SymExpr ? [[`${source}.size()[${dim}]`, it] as const] : [],
      );
    });
  }

  /** Says what holds of the numbers that only data tells. */
  #constrain(engine: EngineShapes, unbacked: readonly SymExpr[]): void {
    const firsts = new Map<string, SymExpr>();
    for (const [at, symbol] of unbacked.entries()) {
      const { bounds, shapeId } = this.#unbacked[at] as Unbacked;
      if (bounds.min !== undefined) engine.require("operator.ge", [symbol, bounds.min]);
      if (bounds.max !== undefined) engine.require("operator.le", [symbol, bounds.max]);
      const known = shapeId === undefined ? undefined : firsts.get(shapeId);
      if (known !== undefined) engine.require("operator.eq", [symbol, known]);
      else if (shapeId !== undefined) firsts.set(shapeId, symbol);
    }
  }

  #visit({ source, value, dims = [], symbolicContext }: KnownInput, at: number, count: number): Said {
    const isUnbacked = dims.some((it) => it instanceof DimHint && it.kind === "UNBACKED");
    if (symbolicContext === undefined && !isUnbacked) return { source, dims };
    checkGiven(
      "ShapeSession",
      symbolicContext === undefined || (symbolicContext as unknown) instanceof StatelessSymbolicContext,
      `a StatelessSymbolicContext as the symbolicContext of ${source}`,
    );
    const isTensor = value instanceof TensorMeta;
    if (!isTensor && !Number.isSafeInteger(value)) {
      throw fxError("DynamicShapes", `tensors and ints have sizes, and ${source} is neither`);
    }
    const examples = isTensor ? value.sizes.map(Number) : [Number(value)];
    const context =
      symbolicContext ?? new StatelessSymbolicContext(examples.map((_, dim) => HINTS[hintOf(dims[dim]) ?? "STATIC"]));
    const { dynamicSizes } = context;
    if (dynamicSizes.length !== examples.length) {
      const counts = `${examples.length} sizes, and something is said of ${dynamicSizes.length}`;
      throw fxError("DynamicShapes", `${source} has ${counts}`);
    }
    const kinds = dynamicSizes.map((it, dim) => (isConstraint(dims[dim]) ? DimDynamic.DYNAMIC : it));
    const place = (dim: number): Term => (isTensor ? { input: at, dim } : { input: at });
    const sizes = kinds.map((kind, dim) =>
      this.#size(kind, examples[dim] as number, dim, place(dim), context, dims, isTensor),
    );
    this.#layouts.set(
      at,
      isTensor ? this.#layout(value, sizes, context, source, count, symbolicContext !== undefined) : (sizes[0] as Term),
    );
    return { source, dims: kinds.map((kind, dim) => saidOf(kind, dims[dim])) };
  }

  #size(
    kind: DimDynamic,
    example: number,
    dim: number,
    own: Term,
    { shapeIds, unbackedBounds }: StatelessSymbolicContext,
    dims: readonly DimSpec[],
    isSize: boolean,
  ): Term {
    const spec = dims[dim];
    if (kind === "UNBACKED") {
      const bounds = unbackedBounds[dim] ?? (spec instanceof DimHint ? boundsOf(spec) : {});
      return { unbacked: this.#unbacked.push({ isSize, bounds, shapeId: shapeIds[dim] }) - 1 };
    }
    if (kind === "DUCK" && example > 1) return this.#share(example, () => own);
    return kind === "STATIC" && !isConstraint(spec) ? example : own;
  }

  #share(value: number, make: () => Term): Term {
    const known = this.#shared.get(value) ?? make();
    this.#shared.set(value, known);
    return known;
  }

  /** PyTorch's `_compute_symbolic_stride`; `isOpen` says whether strides that nothing tells are symbols. */
  #layout(
    value: TensorMeta,
    sizes: readonly Term[],
    { dynamicSizes, dynamicStrides }: StatelessSymbolicContext,
    source: string,
    count: number,
    isOpen: boolean,
  ): Layout {
    const [examples, given] = [value.sizes.map(Number), value.strides.map(Number)];
    const isStatic = !isOpen || dynamicSizes.every((it) => it === DimDynamic.STATIC);
    const symbol = (name: string, example: number, isShared: boolean): Term => {
      const make = (): Term => ({
        input: count + this.#numbers.push({ source: `${source}.${name}`, value: example }) - 1,
      });
      return isShared ? this.#share(example, make) : make();
    };
    const strides: Term[] = [...given];
    const inferred = new Map<number, Term>();
    const order = given.map((_, dim) => dim).toSorted((a, b) => Number(given[a]) - Number(given[b]) || b - a);
    for (const dim of order) {
      const [stride, size] = [given[dim] as number, examples[dim] as number];
      const isContiguous =
        dim < given.length - 1 && stride === (examples[dim + 1] as number) * (given[dim + 1] as number);
      const kind = dynamicStrides[dim];
      const known = kind === "INFER_STRIDE" ? inferred.get(stride) : undefined;
      if (stride > 1 || (isContiguous && known !== undefined)) {
        const isNumber = stride <= 1 || (kind === "INFER_STRIDE" && isStatic);
        strides[dim] = known ?? (isNumber ? stride : symbol(`stride()[${dim}]`, stride, kind !== "DYNAMIC"));
      }
      inferred.set(stride * size, product(sizes[dim] as Term, strides[dim] as Term));
    }
    const offset = Number(value.storageOffset);
    return { sizes, strides, offset: isStatic || offset <= 1 ? offset : symbol("storage_offset()", offset, true) };
  }
}

function product(a: Term, b: Term): Term {
  if (a === 1) return b;
  if (b === 1) return a;
  return typeof a === "number" && typeof b === "number" ? a * b : { product: [a, b] };
}

function hintOf(spec: DimSpec | undefined): DimHint["kind"] | undefined {
  if (spec instanceof DimHint) return spec.kind;
  return spec instanceof DimVar ? "DYNAMIC" : undefined;
}

/** Whether something is said of a dimension besides how its symbol is made. */
function isConstraint(spec: DimSpec | undefined): boolean {
  return spec instanceof DimHint ? spec.kind === "AUTO" || spec.kind === "DYNAMIC" : spec instanceof DimVar;
}

function boundsOf({ min, max }: DimHint): DimBounds {
  return { ...(min !== undefined && { min }), ...(max !== undefined && { max }) };
}

function saidOf(kind: DimDynamic, spec: DimSpec | undefined): DimSpec {
  if (isConstraint(spec) || typeof spec === "number") return spec as DimSpec;
  return kind === "DYNAMIC" || kind === "DUCK" ? new DimHint("AUTO") : null;
}

/** A size that only data tells, of which no more is known than that it is one: that of a result of `repeat_interleave`. */
function newSize(engine: EngineShapes): SymExpr {
  return (engine.call("aten.repeat_interleave.Tensor", [intTensor([1])]) as TensorMeta).sizes[0] as SymExpr;
}

/** An int that only data tells. */
function newInt(engine: EngineShapes): SymExpr {
  return engine.call("aten.item", [intTensor([])]) as SymExpr;
}
