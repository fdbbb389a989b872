/**
 * Unification of JavaScript values, with dispatch by their classes: `torch.fx.experimental.unification`.
 *
 * @module
 */
import { checkFunction, checkGiven, checkList } from "../base/given.ts";
import { fxError } from "../base/errors.ts";

/**
 * An unknown. Two of the same token are the same unknown.
 *
 * @example
 * ```ts
 * const [x, y] = [new Var("x"), new Var("y")];
 * const found = unify([x, 2], [1, y]);
 * if (found) reify([y, x], found); // [2, 1]
 * ```
 */
export class Var {
  static #count = 0;
  readonly token: unknown;

  constructor(token: unknown = `_${++Var.#count}`) {
    this.token = token;
  }

  toString(): string {
    return `~${String(this.token)}`;
  }
}

/** What unknowns stand for. */
export class Substitution {
  /** Those of the class {@link Var}, by their tokens. */
  readonly #vars: ReadonlyMap<unknown, unknown>;
  /** Values that were declared to be unknowns. */
  readonly #values: ReadonlyMap<unknown, unknown>;

  constructor(vars: ReadonlyMap<unknown, unknown> = new Map(), values: ReadonlyMap<unknown, unknown> = new Map()) {
    this.#vars = vars;
    this.#values = values;
  }

  /** How many unknowns it knows. */
  get size(): number {
    return this.#vars.size + this.#values.size;
  }

  /** Whether the value is an unknown that it knows. */
  has(value: unknown): boolean {
    return value instanceof Var ? this.#vars.has(value.token) : this.#values.has(value);
  }

  /** What the unknown stands for. */
  get(value: unknown): unknown {
    return value instanceof Var ? this.#vars.get(value.token) : this.#values.get(value);
  }

  /** The substitution with one more unknown. */
  with(variable: unknown, value: unknown): Substitution {
    return variable instanceof Var
      ? new Substitution(new Map(this.#vars).set(variable.token, value), this.#values)
      : new Substitution(this.#vars, new Map(this.#values).set(variable, value));
  }

  /** What an unknown stands for in the end. */
  walk(value: unknown): unknown {
    let found = value;
    while (this.has(found)) found = this.get(found);
    return found;
  }
}

const declared = new Map<unknown, number>();

/** Whether the value is an unknown: a {@link Var}, or one that {@link variables} declared. */
export function isvar(value: unknown): boolean {
  return value instanceof Var || declared.has(value);
}

/** Runs a function in which these values are unknowns, too. */
export function variables<T>(values: readonly unknown[], body: () => T): T {
  checkList("variables", "values", values);
  checkFunction("variables", "body", body);
  for (const it of values) declared.set(it, (declared.get(it) ?? 0) + 1);
  try {
    return body();
  } finally {
    for (const it of values) {
      const left = (declared.get(it) ?? 1) - 1;
      if (left === 0) declared.delete(it);
      else declared.set(it, left);
    }
  }
}

/** A class that a {@link Dispatcher} tells apart; `Object` is any value. */
export type DispatchClass = abstract new (...args: never[]) => unknown;

type Implementation<R> = (...args: never[]) => R;

/**
 * A function with an implementation for each combination of classes of its arguments, of which the most specific one
 * is called: `multipledispatch.Dispatcher`.
 *
 * @example
 * ```ts
 * const area = new Dispatcher<number>("area");
 * area.add([Square], (it: Square) => it.side ** 2);
 * area.add([Circle], (it: Circle) => Math.PI * it.radius ** 2);
 * area.call(new Square(3)); // 9
 * ```
 */
export class Dispatcher<R> {
  readonly name: string;
  readonly #rules: { readonly classes: readonly DispatchClass[]; readonly run: Implementation<R> }[] = [];

  constructor(name: string) {
    this.name = name;
  }

  /** Adds an implementation; one for the same classes takes the place of the earlier one. */
  add(classes: readonly DispatchClass[], run: Implementation<R>): this {
    checkList("Dispatcher.add", "classes", classes);
    for (const it of classes) checkFunction("Dispatcher.add", "a class", it);
    checkFunction("Dispatcher.add", "run", run);
    const isSame = (it: readonly DispatchClass[]) =>
      it.length === classes.length && it.every((c, at) => c === classes[at]);
    const at = this.#rules.findIndex((it) => isSame(it.classes));
    this.#rules.splice(at < 0 ? this.#rules.length : at, at < 0 ? 0 : 1, { classes: [...classes], run });
    return this;
  }

  /** The implementation for these arguments, if there is one. */
  dispatch(...args: readonly unknown[]): Implementation<R> | undefined {
    const fits = this.#rules.filter(
      (it) => it.classes.length === args.length && it.classes.every((c, at) => isOf(args[at], c)),
    );
    const best = fits.find((it) => fits.every((other) => other === it || isMoreSpecific(it.classes, other.classes)));
    if (best === undefined && fits.length > 0) {
      throw fxError(
        "InvalidOption",
        `several implementations of ${this.name} fit (${args.map(classOf).join(", ")}) alike`,
        {
          help: "add one for exactly these classes",
        },
      );
    }
    return best?.run;
  }

  /** Calls the implementation for these arguments. */
  call(...args: readonly unknown[]): R {
    const run = this.dispatch(...args);
    if (run === undefined) {
      throw fxError("InvalidOption", `could not find a signature for ${this.name}: <${args.map(classOf).join(", ")}>`);
    }
    return run(...(args as never[]));
  }
}

function classOf(value: unknown): string {
  return value === null || value === undefined ? String(value) : (value.constructor?.name ?? "Object");
}

function isOf(value: unknown, of: DispatchClass): boolean {
  return (of as unknown) === Object || Object(value) instanceof of;
}

function isMoreSpecific(a: readonly DispatchClass[], b: readonly DispatchClass[]): boolean {
  return a.every(
    (it, at) => it === b[at] || (b[at] as unknown) === Object || it.prototype instanceof (b[at] as DispatchClass),
  );
}

/** What {@link unify} does with values of two classes; add rules for one's own. `false` is that they are not the same. */
export const unifyRules = new Dispatcher<Substitution | false>("unify")
  .add([Object, Object], () => false)
  .add([Array, Array], (a: unknown[], b: unknown[], s: Substitution) => unifyAll(a, b, s));

/** What {@link reify} does with the values of a class; add rules for one's own. */
export const reifyRules = new Dispatcher<unknown>("reify")
  .add([Object], (value: unknown) => value)
  .add([Array], (value: unknown[], s: Substitution) => value.map((it) => reify(it, s)))
  .add([Map], (value: Map<unknown, unknown>, s: Substitution) => new Map([...value].map(([k, v]) => [k, reify(v, s)])));

function unifyAll(a: readonly unknown[], b: readonly unknown[], substitution: Substitution): Substitution | false {
  if (a.length !== b.length) return false;
  let found = substitution;
  for (const [at, it] of a.entries()) {
    const next = unify(it, b[at], found);
    if (next === false) return false;
    found = next;
  }
  return found;
}

function hasEquals(value: unknown): value is { equals(other: unknown): boolean } {
  return typeof value === "object" && value !== null && "equals" in value && typeof value.equals === "function";
}

function isEqual(a: unknown, b: unknown): boolean {
  if (a instanceof Var && b instanceof Var) return a.token === b.token;
  if (Object.is(a, b)) return true;
  return hasEquals(a) && a.equals(b);
}

/** The substitution under which two values are the same and that agrees with a given one; `false` if there is none. */
export function unify(a: unknown, b: unknown, substitution: Substitution = new Substitution()): Substitution | false {
  checkGiven("unify", substitution instanceof Substitution, "a Substitution");
  const [x, y] = [substitution.walk(a), substitution.walk(b)];
  if (isEqual(x, y)) return substitution;
  if (isvar(x)) return substitution.with(x, y);
  if (isvar(y)) return substitution.with(y, x);
  const run = unifyRules.dispatch(x, y) as
    | ((a: unknown, b: unknown, s: Substitution) => Substitution | false)
    | undefined;
  return run?.(x, y, substitution) ?? false;
}

/** The value with its unknowns replaced by what they stand for. */
export function reify(value: unknown, substitution: Substitution): unknown {
  if (isvar(value)) return substitution.has(value) ? reify(substitution.get(value), substitution) : value;
  const run = reifyRules.dispatch(value) as ((value: unknown, s: Substitution) => unknown) | undefined;
  return run === undefined ? value : run(value, substitution);
}
