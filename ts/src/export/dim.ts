/**
 * What a user says of the sizes of inputs: `torch.export.Dim`.
 *
 * @module
 */
import { fxError } from "../base/errors.ts";
import { checkOptions } from "../base/given.ts";

/** How the engine is to find out whether a size is dynamic: `Dim.AUTO`, `Dim.DYNAMIC`, `Dim.STATIC` or `Dim.UNBACKED`. */
export class DimHint {
  readonly kind: "AUTO" | "DYNAMIC" | "STATIC" | "UNBACKED";
  readonly min: number | undefined;
  readonly max: number | undefined;

  /** @internal */
  constructor(kind: DimHint["kind"], min?: number, max?: number) {
    this.kind = kind;
    this.min = min;
    this.max = max;
    Object.freeze(this);
  }

  /** The same with bounds: `Dim.AUTO({ max: 16 })` of PyTorch. A static size has none. */
  within(bounds: DimBounds): DimHint {
    checkOptions("within", bounds, BOUNDS);
    const { min, max } = bounds;
    if (this.kind === "STATIC") throw fxError("InvalidOption", "a static dimension has no range");
    return new DimHint(this.kind, min, max);
  }

  /** As PyTorch shows it: `DimHint(AUTO, max=16)`. */
  toString(): string {
    const bounds = [this.min === undefined ? [] : `min=${this.min}`, this.max === undefined ? [] : `max=${this.max}`];
    return `DimHint(${[this.kind, ...bounds.flat()].join(", ")})`;
  }
}

/** The sizes that a dimension may have; without `max` there is no end. */
export interface DimBounds {
  readonly min?: number;
  readonly max?: number;
}

const BOUNDS = ["min", "max"] as const;

/** A named size that is dynamic, or a sum `factor * root + offset` of one. */
export class DimVar {
  /** The name; a derived dimension's is its formula, such as `2*batch + 1`. */
  readonly name: string;
  readonly min: number;
  readonly max: number | undefined;
  /** What it is derived of; undefined for a dimension of its own. */
  readonly root: DimVar | undefined;
  readonly factor: number;
  readonly offset: number;

  /** @internal */
  constructor(name: string, bounds: DimBounds, root?: DimVar, factor = 1, offset = 0) {
    checkOptions("DimVar", bounds, BOUNDS);
    const { min = 0, max } = bounds;
    this.name = name;
    this.min = min;
    this.max = max;
    this.root = root;
    this.factor = factor;
    this.offset = offset;
    Object.freeze(this);
  }

  /** This plus a whole number: `batch + 1` of PyTorch. */
  add(offset: number): DimVar {
    return this.#derived(this.factor, this.offset + wholeNumber(this, "add", offset));
  }

  /** This minus a whole number. */
  sub(offset: number): DimVar {
    return this.#derived(this.factor, this.offset - wholeNumber(this, "sub", offset));
  }

  /** This times a positive whole number: `2 * batch` of PyTorch. */
  mul(factor: number): DimVar {
    wholeNumber(this, "mul", factor);
    if (factor <= 0) {
      throw fxError(
        "InvalidOption",
        `Attempted to multiply ${factor} with ${this.name}, where a positive integer was expected. ` +
          "(Only increasing linear operations with integer coefficients are supported.)",
      );
    }
    return this.#derived(this.factor * factor, this.offset * factor);
  }

  /** As Python makes it: `Dim('batch', max=16)`. */
  readable(): string {
    const min = this.min === 2 ? "" : `, min=${this.min}`;
    return `Dim('${this.name}'${min}${this.max === undefined ? "" : `, max=${this.max}`})`;
  }

  /** As PyTorch shows it: a derived dimension as its formula. */
  toString(): string {
    return this.root === undefined ? this.readable() : this.name;
  }

  #derived(factor: number, offset: number): DimVar {
    const root = this.root ?? this;
    const at = (value: number): number => factor * value + offset;
    const max = root.max === undefined ? undefined : at(root.max);
    return new DimVar(
      formula(root.name, factor, offset),
      { min: at(root.min), ...(max !== undefined && { max }) },
      root,
      factor,
      offset,
    );
  }
}

/** What is said of one dimension: a named one, a hint, its size (which then must be that), or nothing. */
export type DimSpec = DimVar | DimHint | number | null;

/** {@link Dim}: makes named dimensions, and has the hints. */
export interface DimFactory {
  (name: string, bounds?: DimBounds): DimVar;
  /** Dynamic unless the module makes it a constant. */
  readonly AUTO: DimHint;
  /** Dynamic, and an error if the module makes it a constant. */
  readonly DYNAMIC: DimHint;
  /** The size of the example. */
  readonly STATIC: DimHint;
  /**
   * Dynamic, and as if only data told the size: it is `u0` in the graph, the example decides nothing of it, and 0 and 1 are among its
   * values. PyTorch has `DimDynamic.UNBACKED` for it.
   */
  readonly UNBACKED: DimHint;
}

/**
 * A named dimension that is dynamic: `torch.export.Dim`. Dimensions of one name must be equal.
 *
 * @example
 * ```ts
 * const batch = Dim("batch", { min: 2, max: 16 });
 * exportProgram(model, [x, y], { dynamicShapes: { x: { 0: batch }, y: { 0: batch.mul(2).add(1), 1: Dim.AUTO } } });
 * ```
 */
export const Dim: DimFactory = Object.freeze(
  // A function of its own: names that a build puts on functions cannot be put on one that is frozen.
  Object.assign((name: string, bounds?: DimBounds) => named(name, bounds), {
    AUTO: new DimHint("AUTO"),
    DYNAMIC: new DimHint("DYNAMIC"),
    STATIC: new DimHint("STATIC"),
    UNBACKED: new DimHint("UNBACKED"),
  }),
);

/**
 * Several dimensions with the same bounds: `torch.export.dims`.
 *
 * @example
 * ```ts
 * const [batch, sequence] = dims("batch", "sequence", { max: 512 });
 * ```
 */
export function dims(...names: readonly (string | DimBounds)[]): DimVar[] {
  const bounds = names.find((it): it is DimBounds => typeof it !== "string");
  return names.filter((it): it is string => typeof it === "string").map((it) => Dim(it, bounds));
}

function named(name: string, bounds: DimBounds = {}): DimVar {
  checkOptions("Dim", bounds, BOUNDS);
  const { min = 0, max } = bounds;
  if (!/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)) {
    throw fxError("InvalidOption", `Dim name must be a valid identifier, got ${name}`);
  }
  if (max !== undefined && max <= min) {
    throw fxError("InvalidOption", `Cannot create Dim with inconsistent min=${min}, max=${max}`);
  }
  return new DimVar(name, { min, ...(max !== undefined && { max }) });
}

function wholeNumber({ name }: DimVar, operation: "add" | "sub" | "mul", value: number): number {
  if (Number.isSafeInteger(value)) return value;
  const what = { add: `add ${value} to`, sub: `subtract ${value} from`, mul: `multiply ${value} with` }[operation];
  throw fxError(
    "InvalidOption",
    `Attempted to ${what} ${name}, where an integer was expected. ` +
      "(Only increasing linear operations with integer coefficients are supported.)",
  );
}

function formula(root: string, factor: number, offset: number): string {
  const product = factor === 1 ? root : `${factor}*${root}`;
  if (offset === 0) return product;
  return offset < 0 ? `${product} - ${-offset}` : `${product} + ${offset}`;
}
