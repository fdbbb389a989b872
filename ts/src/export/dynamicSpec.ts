/**
 * Sizes of a call as objects: `torch.fx.experimental.dynamic_spec`.
 *
 * Here they are told to `exportProgram`, as its `dynamicShapes`. A variable is a symbol that has no value; what is computed with it is
 * an expression, for a size that follows from others or for a condition on all calls.
 *
 * @module
 */
import { fxError, type FxError } from "../base/errors.ts";
import { checkGiven, checkList, checkOptions } from "../base/given.ts";
import { isOptions } from "../base/naming.ts";
import { linearOf, parseExpression } from "../graph/expression.ts";
import { valueOfExpression } from "../graph/symints.ts";
import { SymExpr, type SymInt, TensorMeta } from "../graph/val.ts";
import { containerNamed } from "../trace/containers.ts";
import { treeFlatten, treeMap } from "../trace/pytree.ts";
import { COMPOSED_NUMBERS } from "./composedNumbers.ts";
import { Dim, DimHint, type DimSpec, type DimVar } from "./dim.ts";
import type { DynamicShapesBuilder } from "./dynamicShapes.ts";
import { pythonText } from "./pythonText.ts";
import { type SessionInput, ShapeSession } from "./shapes.ts";
import { type Condition, type Size, TracedNumber, type ValueTracer } from "./traced.ts";

/** A size that is static: that of the example. */
export const STATIC = null;

/** What is said of a size: a variable, an expression of variables, the size itself, or nothing. */
export type LeafIntSpec = Size | null;
/** What is said of an argument without parts. */
export type LeafSpec = LeafIntSpec | TensorSpec;
/** What is said of an argument. */
export type IntermediateSpec = LeafSpec | ObjectSpec | DictSpec | SeqSpec;
/** What is said of a parameter: of `"*args"` a list, and of `"**kwargs"` an object by name. */
export type ParamsSpecValue =
  | IntermediateSpec
  | readonly IntermediateSpec[]
  | Readonly<Record<string, IntermediateSpec>>;

/** How a variable is made. */
export interface IntVarOptions {
  readonly min?: number;
  readonly max?: number;
  /** A value that is typical. Nothing depends on it. */
  readonly optimizationHint?: number;
}

const OPTIONS = ["min", "max", "optimizationHint"] as const;

/** The numbers that come of variables, with these. */
const variablesOf = new WeakMap<TracedNumber, ReadonlySet<IntVar>>();

/** A number that comes of variables, shown with their names as PyTorch shows them: `batch#0`. */
class SpecifiedNumber extends TracedNumber {
  override get text(): string {
    return super.text.replaceAll(/__(\d+)\b/g, "#$1");
  }

  override toString(): string {
    return this.text;
  }

  override [Symbol.toPrimitive](hint: string): string {
    return hint === "string" ? this.toString() : super[Symbol.toPrimitive](hint);
  }
}

/** Computes with variables, and decides nothing of them. */
const SPECIFICATIONS: ValueTracer = {
  number: (expr) => (expr instanceof SymExpr ? new SpecifiedNumber(expr, SPECIFICATIONS) : expr),
  compute(target, args) {
    const composed = COMPOSED_NUMBERS.get(target)?.((name, given) => SPECIFICATIONS.compute(name, given), ...args);
    if (composed !== undefined) return composed;
    using session = new ShapeSession([]);
    const numbers = args.filter((it) => it instanceof TracedNumber);
    for (const it of numbers) checkOrigin(it, target);
    const known = args.map((it) => (it instanceof TracedNumber ? it.expr : it));
    const res = SPECIFICATIONS.number(session.call(target, known) as SymInt | boolean);
    if (res instanceof TracedNumber) {
      variablesOf.set(res, new Set(numbers.flatMap((it) => [...(variablesOf.get(it) as ReadonlySet<IntVar>)])));
    }
    return res;
  },
  simplify: ({ expr }) => expr,
  hint: () => undefined,
  item: () => refuse("item"),
  decide: () => refuse("a decision"),
  check: () => refuse("a check"),
};

function refuse(what: string): never {
  throw fxError("InvalidOption", `${what} is not allowed at spec-definition time`, {
    help: "use IntVar and ShapeVar inside of TensorSpec and ShapesSpec only",
  });
}

function isSpecified(value: unknown): value is TracedNumber {
  return value instanceof TracedNumber && variablesOf.has(value);
}

let nVariables = 0;

/**
 * An int that differs between calls: `IntVar`. Two with one name are two.
 *
 * @example
 * ```ts
 * const heads = new IntVar("num_heads", { min: 1, max: 64 });
 * String(heads.add(1)); // "num_heads#0 + 1"
 * ```
 */
export class IntVar extends SpecifiedNumber {
  readonly name: string;
  readonly min: number | undefined;
  readonly max: number | undefined;
  readonly optimizationHint: number | undefined;
  readonly #uid: number;

  constructor(name = "anon", options: IntVarOptions = {}) {
    checkOptions("IntVar", options, OPTIONS);
    checkGiven("IntVar", /^[A-Za-z_]\w*$/.test(name), "an identifier as its name");
    const { min, max } = options;
    for (const it of [min, max]) {
      checkGiven("IntVar", it === undefined || Number.isSafeInteger(it), "ints as its bounds");
    }
    if (min !== undefined && max !== undefined && min > max) {
      throw fxError("InvalidOption", `${name} has no values: min=${min} is above max=${max}`);
    }
    const uid = nVariables++;
    super(new SymExpr(`Symbol('${name}__${uid}', integer=True)`), SPECIFICATIONS);
    variablesOf.set(this, new Set([this]));
    this.#uid = uid;
    this.name = name;
    this.min = options.min;
    this.max = options.max;
    this.optimizationHint = options.optimizationHint;
  }

  /** As PyTorch shows it: `IntVar(offset#1, min=0)`. */
  override toString(): string {
    const said = [
      [`min=`, this.min],
      [`max=`, this.max],
      [`optimization_hint=`, this.optimizationHint],
    ].flatMap(([name, value]) => (value === undefined ? [] : [`${name}${value}`]));
    return `${classOf(this)}(${[`${this.name}#${this.#uid}`, ...said].join(", ")})`;
  }

  /** For files and logs. */
  toJsonable(): object {
    const { name, min = null, max = null, optimizationHint = null } = this;
    return { type: classOf(this), name, min, max, optimization_hint: optimizationHint };
  }
}

/** The name of the class, which a bundler may have changed. */
function classOf(variable: IntVar): string {
  return variable instanceof ShapeVar ? "ShapeVar" : "IntVar";
}

/**
 * A size that differs between calls: `ShapeVar`, an {@link IntVar} that is not negative.
 *
 * @example
 * ```ts
 * const batch = new ShapeVar("batch", { max: 64 });
 * ```
 */
export class ShapeVar extends IntVar {
  constructor(name?: string, options: IntVarOptions = {}) {
    checkOptions("ShapeVar", options, OPTIONS);
    const { min = 0 } = options;
    if (min < 0) {
      const why = `ShapeVar requires min >= 0 (a shape dim is non-negative); got min=${min}. Use IntVar(...) for unrestricted scalars.`;
      throw fxError("InvalidOption", why);
    }
    super(name, { ...options, min });
  }
}

/**
 * What is said of each dimension of a tensor: `TensorSpec`.
 *
 * @example
 * ```ts
 * const batch = new ShapeVar("batch");
 * new TensorSpec([operator.add(batch.mul(2), 1), 10, STATIC]);
 * ```
 */
export class TensorSpec {
  readonly dims: readonly LeafIntSpec[];

  constructor(dims: readonly LeafIntSpec[]) {
    checkGiven("TensorSpec", Array.isArray(dims), "a list with something for each dimension");
    for (const [at, it] of dims.entries()) {
      const isLeaf = it === null || Number.isSafeInteger(it) || it instanceof TracedNumber;
      if (!isLeaf) throw notSaid(`TensorSpec dim ${at}: expected LeafIntSpec, got ${pythonText(it)}`);
      checkOrigin(it, `TensorSpec dim ${at}`);
    }
    this.dims = Object.freeze([...dims]);
  }

  toString(): string {
    return listed("Tensor:", this.dims.entries(), (at) => `${at}`);
  }

  /** For files and logs. */
  toJsonable(): object {
    return { type: "TensorSpec", dims: this.dims.map(jsonable) };
  }
}

/**
 * What is said of the attributes of an object: `ObjectSpec`.
 *
 * @example
 * ```ts
 * new ObjectSpec({ weight: new TensorSpec([new ShapeVar("h"), null]) });
 * ```
 */
export class ObjectSpec {
  readonly #fields: ReadonlyMap<string, IntermediateSpec>;

  constructor(fields: Readonly<Record<string, IntermediateSpec>> = {}) {
    checkGiven("ObjectSpec", isOptions(fields), "an object by the names of attributes");
    this.#fields = new Map(Object.entries(fields));
  }

  /** The attributes with what is said of them. */
  items(): IterableIterator<[string, IntermediateSpec]> {
    return this.#fields.entries();
  }

  toString(): string {
    return listed("object_spec:", this.#fields, (name) => `.${name}`);
  }

  /** For files and logs. */
  toJsonable(): object {
    return { type: "ObjectSpec", fields: jsonableEntries(this.#fields) };
  }
}

/**
 * What is said of the items of an object or a Map: `DictSpec`.
 *
 * @example
 * ```ts
 * new DictSpec({ x: new TensorSpec([new ShapeVar("h"), null]) });
 * ```
 */
export class DictSpec {
  readonly #entries: ReadonlyMap<string | number, IntermediateSpec>;

  constructor(
    entries: Readonly<Record<string, IntermediateSpec>> | ReadonlyMap<string | number, IntermediateSpec> = {},
  ) {
    checkGiven("DictSpec", entries instanceof Map || isOptions(entries), "an object, or a Map, by keys");
    this.#entries = new Map<string | number, IntermediateSpec>(
      entries instanceof Map ? entries : Object.entries(entries),
    );
    for (const key of this.#entries.keys()) {
      const isKey = typeof key === "string" || Number.isSafeInteger(key);
      if (!isKey) throw notSaid(`DictSpec entries must have str or int keys, got ${pythonText(key)}`);
    }
  }

  /** The keys with what is said of their items. */
  items(): IterableIterator<[string | number, IntermediateSpec]> {
    return this.#entries.entries();
  }

  toString(): string {
    return listed("dict_spec:", this.#entries, (key) => `[${pythonText(key)}]`);
  }

  /** For files and logs. */
  toJsonable(): object {
    return { type: "DictSpec", entries: jsonableEntries(this.#entries) };
  }
}

/**
 * What is said of the items of a list, from the first on: `SeqSpec`. Those that are left out are static.
 *
 * @example
 * ```ts
 * new SeqSpec([new TensorSpec([new ShapeVar("h"), 10]), 1]);
 * ```
 */
export class SeqSpec {
  readonly entries: readonly IntermediateSpec[];

  constructor(entries: readonly IntermediateSpec[]) {
    checkGiven("SeqSpec", Array.isArray(entries), "a list with something for each item");
    this.entries = Object.freeze([...entries]);
  }

  toString(): string {
    return listed("seq_spec:", this.entries.entries(), (at) => `[${at}]`);
  }

  /** For files and logs. */
  toJsonable(): object {
    return { type: "SeqSpec", entries: this.entries.map(jsonable) };
  }
}

/**
 * What is said of the parameters of a function, by name: `ParamsSpec`. What is left out is static.
 *
 * @example
 * ```ts
 * new ParamsSpec({ x: new TensorSpec([new ShapeVar("batch"), null]), n: new IntVar("seq"), "*args": [null, new IntVar()] });
 * ```
 */
export class ParamsSpec {
  /** The parameters that have names. */
  readonly named: ReadonlyMap<string, IntermediateSpec>;
  /** What is said of a rest parameter. */
  readonly varargs: readonly IntermediateSpec[] | undefined;
  /** What is said of further arguments by name. */
  readonly varkw: ReadonlyMap<string, IntermediateSpec> | undefined;

  constructor(params: Readonly<Record<string, ParamsSpecValue>> = {}) {
    checkGiven("ParamsSpec", isOptions(params), "an object by the names of parameters");
    const named = new Map<string, IntermediateSpec>();
    for (const [key, value] of Object.entries(params)) {
      if (key === "*args") {
        if (!Array.isArray(value)) throw notSaid("ParamsSpec '*args' value must be a list of leaf specs");
        for (const [at, it] of value.entries()) checkOrigin(it, `ParamsSpec '*args'[${at}]`);
        this.varargs = Object.freeze([...(value as readonly IntermediateSpec[])]);
      } else if (key === "**kwargs") {
        if (!isOptions(value)) throw notSaid("ParamsSpec '**kwargs' value must be a dict of leaf specs");
        for (const [name, it] of Object.entries(value)) checkOrigin(it, `ParamsSpec '**kwargs'['${name}']`);
        this.varkw = new Map(Object.entries(value as Readonly<Record<string, IntermediateSpec>>));
      } else if (key.startsWith("*")) {
        throw notSaid(`Unknown sentinel key '${key}' in ParamsSpec; only '*args' and '**kwargs' are reserved`);
      } else {
        checkOrigin(value, `ParamsSpec['${key}']`);
        named.set(key, value as IntermediateSpec);
      }
    }
    this.named = named;
  }

  toString(): string {
    const lines = Array.from(this.named, ([name, it]) => entry(name, it));
    if (this.varargs !== undefined) lines.push(listed("*args:", this.varargs.entries(), String));
    if (this.varkw !== undefined) lines.push(listed("**kwargs:", this.varkw, String));
    return lines.join("\n");
  }

  /** For files and logs. */
  toJsonable(): object {
    const params = jsonableEntries(this.named);
    if (this.varargs !== undefined) params["*args"] = this.varargs.map(jsonable);
    if (this.varkw !== undefined) params["**kwargs"] = jsonableEntries(this.varkw);
    return { type: "ParamsSpec", params };
  }
}

/** What else is said of the sizes of a call. */
export interface ShapesSpecOptions {
  /** Conditions that hold of all calls. The program asks them of its inputs. */
  readonly assumptions?: readonly Condition[];
  /**
   * Whether only data tells the variables, as PyTorch has them: the sizes are `u0`, `u1`… in the graph, and what the module has to know of
   * them is an assumption, or a `torch._check`. By default the examples decide.
   */
  readonly unbacked?: boolean;
}

/**
 * What is said of the sizes of a call, as the `dynamicShapes` of `exportProgram`: `ShapesSpec`. A variable is one symbol wherever
 * it stands; where the module decides something of it that was not said, the export is refused. Of a variable that is an int of the call,
 * or is in an assumption, such a decision is a guard of the program instead.
 *
 * @example
 * ```ts
 * const [a, b] = [new ShapeVar("a"), new ShapeVar("b")];
 * const params = { x: new TensorSpec([a, null]), y: new TensorSpec([b, null]) };
 * exportProgram(model, [x, y], {}, { dynamicShapes: new ShapesSpec(params, { assumptions: [operator.gt(a.add(b), 10)] }) });
 * ```
 */
export class ShapesSpec implements DynamicShapesBuilder {
  readonly params: ParamsSpec | undefined;
  readonly #assumptions: readonly Condition[];
  /** What sizes are that no name says everything of. */
  readonly #hint: DimHint;
  /** Where each variable stands in the inputs that were resolved last. */
  #places: ReadonlyMap<IntVar, readonly Place[]> = new Map();

  constructor(params?: ParamsSpec | Readonly<Record<string, ParamsSpecValue>>, options: ShapesSpecOptions = {}) {
    checkOptions("ShapesSpec", options, ["assumptions", "unbacked"]);
    const { assumptions = [], unbacked = false } = options;
    this.#hint = unbacked ? Dim.UNBACKED : Dim.DYNAMIC;
    checkGiven("ShapesSpec", Array.isArray(assumptions), "a list of conditions as assumptions");
    const isParams = params === undefined || params instanceof ParamsSpec;
    this.params = isParams ? params : new ParamsSpec(params);
    for (const [at, it] of assumptions.entries()) {
      const isCondition = isSpecified(it) && it.kind === "bool";
      if (!isCondition) throw notSaid(`ShapesSpec.assumptions[${at}]: expected SymBool, got ${pythonText(it)}`);
    }
    this.#assumptions = Object.freeze([...assumptions]);
  }

  /** The conditions that hold of all calls. */
  get assumptions(): readonly Condition[] {
    return this.#assumptions;
  }

  /** What was said, in the structure of the inputs. */
  dynamicShapes(argNames: readonly string[], inputs: readonly unknown[]): Readonly<Record<string, unknown>> {
    checkList("ShapesSpec.dynamicShapes", "argNames", argNames);
    checkList("ShapesSpec.dynamicShapes", "inputs", inputs);
    const { named = new Map<string, IntermediateSpec>(), varargs, varkw } = this.params ?? new ParamsSpec();
    const unknown = [...named.keys(), ...(varkw?.keys() ?? [])].find((it) => !argNames.includes(it));
    if (unknown !== undefined) {
      throw notSaid(`ShapesSpec names the parameter ${unknown}, and the arguments are ${argNames.join(", ")}`);
    }
    const rest = varargs && argNames.findLast((it) => !named.has(it) && !varkw?.has(it));
    if (varargs !== undefined && !Array.isArray(inputs[argNames.indexOf(rest ?? "")])) {
      throw notSaid("ShapesSpec says something of '*args', and there are no arguments of a rest parameter");
    }
    const items = new SeqSpec(varargs ?? []);
    const specs = argNames.map((it) => named.get(it) ?? varkw?.get(it) ?? (it === rest ? items : null));
    const saidBy = (places: Places): [string, unknown][] =>
      argNames.map((it, at) => [it, places.said(specs[at] as IntermediateSpec, inputs[at], it)]);
    const first = new Places(this.#hint);
    saidBy(first);
    const assumed = this.#assumptions.flatMap((it) => [...(variablesOf.get(it as TracedNumber) ?? [])]);
    const unnamed = this.#hint.kind === "UNBACKED" ? first.of.keys() : first.ints;
    const places = new Places(this.#hint, new Set([...unnamed, ...assumed]));
    const res = Object.fromEntries(saidBy(places));
    this.#places = places.of;
    return res;
  }

  /** @internal Tells a session, whose inputs were resolved by this, what was said of them besides. */
  tell(shapes: ShapeSession, inputs: readonly SessionInput[]): void {
    const sizes = new Map<string, unknown>();
    for (const [variable, places] of this.#places) {
      const value = valueOfPlaces(shapes, inputs, places);
      sizes.set(String(variable.expr), value);
      const { min, max } = variable;
      if (min !== undefined) shapes.check(shapes.call("operator.ge", [value, min]) as SymExpr | boolean);
      if (max !== undefined) shapes.check(shapes.call("operator.le", [value, max]) as SymExpr | boolean);
      for (const place of places.filter(({ dim }) => dim instanceof DimHint)) {
        const product = shapes.call("operator.mul", [value, place.factor]);
        const expected = shapes.call("operator.add", [product, place.offset]);
        shapes.check(shapes.call("operator.eq", [sizeAt(shapes, inputs, place), expected]) as SymExpr | boolean);
      }
    }
    for (const { expr, text } of this.#assumptions as readonly TracedNumber[]) {
      const condition = valueOfExpression(parseExpression(expr), sizes, (name, args) => shapes.call(name, args));
      if (condition === undefined) throw notSaid(`no input has the size that is assumed: ${text}`);
      shapes.check(condition as SymExpr | boolean, `the inputs are not as assumed: ${text}`);
    }
  }

  toString(): string {
    const lines = ["shapes_spec:"];
    if (this.params !== undefined) lines.push("  params:", indented(String(this.params), 4));
    if (this.#assumptions.length > 0)
      lines.push("  assumptions:", ...this.#assumptions.map((it) => `    ${shown(it)}`));
    return lines.join("\n");
  }

  /** For files and logs. */
  toJsonable(): object {
    return { type: "ShapesSpec", params: this.params?.toJsonable() ?? null, assumptions: this.#assumptions.map(shown) };
  }
}

/** Where a variable stands: the size is `factor * variable + offset`. */
interface Place {
  readonly dim: DimSpec;
  readonly factor: number;
  readonly offset: number;
}

function sizeAt(shapes: ShapeSession, inputs: readonly SessionInput[], { dim }: Place): unknown {
  const at = inputs.findIndex(({ dims = [] }) => dims.includes(dim));
  const value = shapes.values[at];
  return value instanceof TensorMeta ? value.sizes[inputs[at]?.dims?.indexOf(dim) as number] : value;
}

/** What a variable is, by where it stands by itself, else by a size that follows from it. */
function valueOfPlaces(shapes: ShapeSession, inputs: readonly SessionInput[], places: readonly Place[]): unknown {
  const isPlain = ({ factor, offset }: Place): boolean => factor === 1 && offset === 0;
  const place = places.find(isPlain) ?? (places[0] as Place);
  const size = sizeAt(shapes, inputs, place);
  if (isPlain(place)) return size;
  const product = shapes.call("operator.sub", [size, place.offset]);
  return shapes.call("operator.floordiv", [product, place.factor]);
}

/** The dimensions that stand for variables. */
class Places {
  readonly of = new Map<IntVar, Place[]>();
  /** The variables that are ints of the call by themselves. */
  readonly ints = new Set<IntVar>();
  readonly #shared: ReadonlySet<IntVar>;
  readonly #hint: DimHint;
  readonly #names = new Set<string>();
  readonly #dims = new Map<IntVar, DimVar>();

  /**
   * Ints have no named dimensions, and named ones are refused where a session is told more of them: sizes with these variables are
   * unnamed, and the session is told what holds of them.
   */
  constructor(hint: DimHint, shared: ReadonlySet<IntVar> = new Set()) {
    this.#hint = hint;
    this.#shared = shared;
  }

  said(spec: IntermediateSpec, input: unknown, where: string): unknown {
    if (spec === null) return treeMap(() => null, input);
    if (spec instanceof TensorSpec) return spec.dims.map((it) => this.#dim(it));
    if (spec instanceof IntVar) return this.#int(spec);
    if (typeof spec === "number") return spec;
    if (spec instanceof TracedNumber)
      throw notSaid(`${where}: an int that follows from others is not known to an export`);
    if (spec instanceof SeqSpec) {
      if (!Array.isArray(input)) throw notSaid(`${where}: SeqSpec is for a list`);
      if (spec.entries.length > input.length) {
        throw notSaid(`${where}: SeqSpec has ${spec.entries.length} entries, and the list has ${input.length} items`);
      }
      return Array.from(input, (it, at) => this.said(spec.entries[at] ?? null, it, `${where}[${at}]`));
    }
    const entries = entriesOf(input);
    const items = new Map<unknown, IntermediateSpec>(spec.items());
    const [kind, keys] = [spec instanceof ObjectSpec ? "ObjectSpec" : "DictSpec", entries?.map(([key]) => key) ?? []];
    if (entries === undefined) throw notSaid(`${where}: ${kind} is for an object, a Map or a registered container`);
    const unknown = [...items.keys()].find((it) => !keys.includes(it));
    if (unknown !== undefined) {
      throw notSaid(`${where}: ${kind} names ${String(unknown)}, and there are ${keys.map(String).join(", ")}`);
    }
    const said = entries.map(
      ([key, it]) => [key, this.said(items.get(key) ?? null, it, `${where}.${String(key)}`)] as const,
    );
    if (input instanceof Map) return new Map(said);
    return isOptions(input) ? Object.fromEntries(said) : said.map(([, it]) => it);
  }

  #int(variable: IntVar): DimSpec {
    this.ints.add(variable);
    const { min, max } = variable;
    const dim = this.#hint.within({ ...(min !== undefined && { min }), ...(max !== undefined && { max }) });
    return this.#note(variable, { dim, factor: 1, offset: 0 });
  }

  #dim(dim: LeafIntSpec): DimSpec {
    if (!(dim instanceof TracedNumber)) return dim;
    const [variable, ...others] = variablesOf.get(dim) as ReadonlySet<IntVar>;
    const linear = linearOf(parseExpression(dim.expr));
    if (variable === undefined || others.length > 0 || linear === undefined || linear.factor < 1) {
      throw notSaid(`a size of an input is a variable times an int plus an int, and not ${dim.text}`);
    }
    if (this.#shared.has(variable)) return this.#note(variable, { ...linear, dim: this.#hint.within({}) });
    const root = this.#dimOf(variable);
    const multiple = linear.factor === 1 ? root : root.mul(linear.factor);
    return this.#note(variable, { dim: linear.offset === 0 ? multiple : multiple.add(linear.offset), ...linear });
  }

  #note(variable: IntVar, place: Place): DimSpec {
    this.of.set(variable, [...(this.of.get(variable) ?? []), place]);
    return place.dim;
  }

  #dimOf(variable: IntVar): DimVar {
    const known = this.#dims.get(variable);
    if (known !== undefined) return known;
    const { name, min = 0, max } = variable;
    let unique = name;
    for (let count = 2; this.#names.has(unique); count++) unique = `${name}_${count}`;
    this.#names.add(unique);
    const res = Dim(unique, { min: Math.max(min, 0), ...(max !== undefined && { max }) });
    this.#dims.set(variable, res);
    return res;
  }
}

/** The parts of a container by key; undefined of anything that has none. */
function entriesOf(input: unknown): (readonly [key: unknown, part: unknown])[] | undefined {
  if (input instanceof Map) return [...input];
  if (isOptions(input)) return Object.entries(input);
  const [parts, { type, context }] = treeFlatten(input, { isLeaf: (it) => it !== input });
  const names = type === undefined ? undefined : containerNamed(type)?.names?.(context);
  return names?.map((it, at) => [it, parts[at]]);
}

/** A specification as Python shows it. */
function shown(value: unknown): string {
  return value instanceof TracedNumber && !(value instanceof IntVar) ? value.text : pythonText(value);
}

function indented(text: string, by = 2): string {
  return text.replaceAll(/^/gm, " ".repeat(by));
}

function entry(key: string, value: unknown): string {
  const text = shown(value);
  return text.includes("\n") ? `${key}:\n${indented(text)}` : `${key}: ${text}`;
}

function listed<K>(head: string, entries: Iterable<readonly [K, unknown]>, nameOf: (key: K) => string): string {
  return [head, ...Array.from(entries, ([key, it]) => indented(entry(nameOf(key), it)))].join("\n");
}

function jsonable(value: unknown): unknown {
  const spec = value as { readonly toJsonable?: () => object } | null;
  if (typeof spec?.toJsonable === "function") return spec.toJsonable();
  return value instanceof TracedNumber ? value.text : value;
}

function jsonableEntries(entries: ReadonlyMap<string | number, unknown>): Record<string, unknown> {
  return Object.fromEntries(Array.from(entries, ([key, it]) => [String(key), jsonable(it)]));
}

function checkOrigin(value: unknown, where: string): void {
  if (!(value instanceof TracedNumber) || isSpecified(value)) return;
  throw notSaid(`${where}: SymInt spec values must originate from spec IntVar / ShapeVar`);
}

function notSaid(reason: string): FxError {
  return fxError("DynamicShapes", reason);
}
