/**
 * What the analysis knows of a value: whether it may be traced, and because of what; and what it may hold.
 *
 * A value is a set of possibilities, and only grows while the function is walked again and again, until nothing
 * changes. Where a traced value comes from is a set of *sources* (bits), so that one analysis of a function serves
 * every trace of it: which members of the module are tensors, and what its methods give, is asked afterwards.
 *
 * @module
 */
import type { FunctionSyntax } from "./syntax.ts";
import type { Scope } from "./scope.ts";

/** A set of sources, a bit for each. */
export type Sources = bigint;

/** Every source: what counts whatever is traced. */
export const ALWAYS: Sources = -1n;

/** What a traced value may come from. */
export type Source =
  /** A parameter of the function. */
  | { readonly kind: "parameter"; readonly name: string }
  /** A member of the module, if it is a tensor: `this.weight`, of which something was computed. */
  | { readonly kind: "member"; readonly path: readonly string[] }
  /** A member, or a part of one, whose truth is asked: `this.weight.requiresGrad`. */
  | { readonly kind: "part"; readonly path: readonly string[] }
  /** What a method of the module, or of a part of it, gives. */
  | { readonly kind: "method"; readonly path: readonly string[] };

/** What a value may be. */
export interface Value {
  /** The sources because of which it may be a traced value. */
  readonly traced: Sources;
  /** Those of them that it is itself, so that it stands for null if they do: a parameter as it was given. */
  readonly nullable: Sources;
  /** Those of them that it is an attribute of, which may be null in any tensor: `x.grad`. */
  readonly attributes: Sources;
  /** The things that it may be, of which something is known. */
  readonly shapes: ReadonlySet<Shape>;
}

/** Something that a value may be. */
export type Shape = PathShape | ContainerShape | FunctionShape | UnknownShape;

/** A part of the module (`this.layers`), or something outside of the function (`torch.relu`). */
export interface PathShape {
  readonly kind: "path";
  readonly root: "this" | "super" | "free";
  readonly path: readonly string[];
}

/** An array, object, map, set or generator that the function makes. */
export interface ContainerShape {
  readonly kind: "array" | "arguments" | "object" | "keyed" | "generator";
  /** What stands under names that are written out. */
  readonly named: Map<string, Cell>;
  /** What stands anywhere else. */
  readonly elements: Cell;
  /** The functions that take what is assigned to a name. */
  readonly setters: Map<string, Cell>;
  /** The objects that the function made and that it inherits from. */
  readonly prototypes: Cell;
  /** Whether it inherits from something that stands elsewhere, which may compute what is read. */
  isOpaque: boolean;
  /** What a generator is sent by `next(value)`. */
  sent: Cell | undefined;
}

/** A function that is written in the function. */
export interface FunctionShape {
  readonly kind: "function";
  readonly node: FunctionSyntax;
  /** The scope around it. */
  readonly outer: Scope;
  readonly returns: Cell;
  /** What `yield` gives, in a generator. */
  readonly sent: Cell;
  /** What `this` is, if it is no arrow function: what it is called on. */
  readonly self: Cell;
  /** What is given for its parameters, by position. */
  readonly given: Cell[];
  /** What is given behind its parameters, and read from `arguments`. */
  readonly extra: Cell;
  /** Whether its result decides something: it is the predicate of `filter`, `some` and the like. */
  isPredicate: boolean;
  /** Whether a call of it was met. */
  isCalled: boolean;
}

/** What code gave that was not read: it may be an object or a function, which decide something themselves. */
export interface UnknownShape {
  readonly kind: "unknown";
  /** What that code was given: the functions among it may be called with whatever the value is given. */
  readonly holds: Cell;
}

/** A value of which nothing is traced. */
export const PLAIN: Value = { traced: 0n, nullable: 0n, attributes: 0n, shapes: new Set() };

/** A place that values are put into. */
export class Cell {
  value: Value = PLAIN;
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Adds the possibilities of a value. */
  add(value: Value): void {
    const joined = join(this.value, value);
    if (joined === this.value) return;
    this.value = joined;
    this.#clock.changes += 1;
  }
}

/** Counts the changes, so that the walk knows when there are no more. */
export interface Clock {
  changes: number;
}

/** Either value; the first one itself if the second adds nothing. */
export function join(first: Value, second: Value): Value {
  if (first === PLAIN) return second;
  const traced = first.traced | second.traced;
  const nullable = first.nullable | second.nullable;
  const attributes = first.attributes | second.attributes;
  const isWider = ![...second.shapes].every((shape) => first.shapes.has(shape));
  const isSame = traced === first.traced && nullable === first.nullable && attributes === first.attributes;
  if (isSame && !isWider) return first;
  return {
    traced,
    nullable,
    attributes,
    shapes: isWider ? new Set([...first.shapes, ...second.shapes]) : first.shapes,
  };
}

/** Any of the values. */
export function joinAll(values: Iterable<Value>): Value {
  let joined = PLAIN;
  for (const value of values) joined = join(joined, value);
  return joined;
}

/** A traced value that is never null. */
export function tracedBy(sources: Sources): Value {
  return sources === 0n ? PLAIN : { ...PLAIN, traced: sources };
}

/** A value of which only a shape is known. */
export function shaped(shape: Shape): Value {
  return { ...PLAIN, shapes: new Set([shape]) };
}

/** The value when it is known not to be null. */
export function present(value: Value): Value {
  return (value.nullable | value.attributes) === 0n ? value : { ...value, nullable: 0n, attributes: 0n };
}

/** Whether something is known of what stands in it. */
export function isContainer(shape: Shape): shape is ContainerShape {
  return shape.kind !== "path" && shape.kind !== "function" && shape.kind !== "unknown";
}

/** Everything that stands in a container. */
export function contents(shape: ContainerShape): Value {
  return joinAll([shape.elements.value, ...[...shape.named.values()].map((cell) => cell.value)]);
}
