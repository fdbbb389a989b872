/**
 * The values that a module runs on while it is exported: tensors and sizes of which is known what a run does not change.
 *
 * A traced tensor is a tensor: functions and modules compute with its sizes, its dtype and its strides as they do with
 * those of any other. What it has not is elements.
 *
 * @module
 */
import { showThemselves } from "../base/inspect.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { checkList, checkText } from "../base/given.ts";
import { type NumberKind, SymbolicNumber } from "../base/symbolic.ts";
import { formatExpression, kindOfExpression } from "../graph/expression.ts";
import type { Node } from "../graph/node.ts";
import { SymExpr, type SymInt, type TensorMeta } from "../graph/val.ts";
import type { ElementArray } from "../tensor/elements.ts";
import type { TensorStorage } from "../tensor/storage.ts";
import { type NestedElements, Tensor } from "../tensor/tensor.ts";
import { WITHOUT_ELEMENTS } from "../record/record.ts";
import { traceError } from "../record/stack.ts";

/** What gives a number: a function of others. */
export interface NumberOrigin {
  readonly target: string;
  readonly args: readonly unknown[];
}

/** What records what is done with traced values. */
export interface ValueTracer {
  /** A number that is not known, as the user's code gets it; a plain number where it is. */
  number(expr: SymInt | boolean, origin?: NumberOrigin): unknown;
  /** The only element of a tensor. */
  item(tensor: TracedTensor): unknown;
  /** A function of numbers, by its qualified name. */
  compute(target: string, args: readonly unknown[]): unknown;
  /** Whether a condition holds, of all inputs from here on. */
  decide(condition: TracedNumber): boolean;
  /** What it is for the example inputs; undefined where nothing tells it. */
  hint(number: TracedNumber): number | boolean | undefined;
  /** It in terms of the symbols that are left. */
  simplify(number: TracedNumber): SymInt | boolean;
  /** Takes a condition to hold. */
  check(condition: TracedNumber, message: string): void;
}

/** The storage of a tensor without elements. */
const NOTHING: TensorStorage = {
  byteLength: 0,
  needsFree: false,
  bytes() {
    throw untold("its elements are known only when the program runs");
  },
  free() {},
};

/** A tensor of which everything is known but its elements. */
export class TracedTensor extends Tensor {
  readonly [WITHOUT_ELEMENTS] = true;
  readonly #tracer: ValueTracer;
  #meta: TensorMeta;
  #node: Node | (() => Node);
  #sizes: readonly number[] | undefined;

  /** The node may be made when it is first asked for. */
  constructor(meta: TensorMeta, node: Node | (() => Node), tracer: ValueTracer) {
    super(meta.dtype, [0], NOTHING);
    this.#meta = meta;
    this.#node = node;
    this.#tracer = tracer;
    if (meta.requiresGrad) this.requiresGrad = true;
  }

  /** What is known of it. */
  get meta(): TensorMeta {
    return this.#meta;
  }

  /** The node that gives it: of one that was written to in place, the node that wrote last. */
  get node(): Node {
    if (typeof this.#node === "function") this.#node = this.#node();
    return this.#node;
  }

  /** Notes that a node gave the tensor back, perhaps with other sizes. */
  retrace(meta: TensorMeta, node: Node): void {
    this.#meta = meta;
    this.#node = node;
    this.#sizes = undefined;
  }

  override get shape(): readonly number[] {
    this.#sizes ??= this.#numbers(this.#meta.sizes, "torch.ops.aten.sym_size.int");
    return this.#sizes;
  }

  override get ndim(): number {
    return this.#meta.sizes.length;
  }

  override numel(): number {
    if (!this.#meta.sizes.some((it) => it instanceof SymExpr)) return super.numel();
    return this.#tracer.compute("torch.ops.aten.sym_numel.default", [this]) as number;
  }

  override stride(): readonly number[];
  override stride(dim: number): number;
  override stride(dim?: number): readonly number[] | number {
    const strides = this.#numbers(this.#meta.strides, "torch.ops.aten.sym_stride.int");
    if (dim === undefined) return strides;
    const found = strides.at(dim);
    if (found !== undefined) return found;
    throw fxError("IndexOutOfRange", `dimension ${dim} of a tensor with ${strides.length} dimensions`);
  }

  override storageOffset(): number {
    const origin = { target: "torch.ops.aten.sym_storage_offset.default", args: [this] };
    return this.#tracer.number(this.#meta.storageOffset, origin) as number;
  }

  override get isDisposed(): boolean {
    return false;
  }

  override get data(): ElementArray {
    throw untold("its elements are known only when the program runs");
  }

  override toArray(): NestedElements {
    throw untold("its elements are known only when the program runs");
  }

  override toFloat32Array(): Float32Array {
    throw untold("its elements are known only when the program runs");
  }

  override item(): number {
    return this.#tracer.item(this) as number;
  }

  override toString(): string {
    throw untold("its text is known only when the program runs");
  }

  /** What `JSON.stringify` asks for. */
  toJSON(): never {
    throw untold("its text is known only when the program runs");
  }

  /** What is known of it: Node's console shows it. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `TracedTensor(${this.node.name}: ${this.dtype}[${this.#meta.sizes.map(String).join(", ")}])`;
  }

  override [Symbol.toPrimitive](hint: string): string {
    if (hint === "string") throw untold("its text is known only when the program runs");
    throw traceError("TraceCoercion", "a traced tensor cannot become a number: JavaScript's operators do not record", {
      help: "write x.add(y) for x + y and x.lt(y) for x < y; what depends on elements is decided by cond(…) or torch.where(…)",
    });
  }

  /** It holds no memory. */
  override dispose(): void {}

  #numbers(sizes: readonly SymInt[], target: string): readonly number[] {
    return Object.freeze(sizes.map((it, dim) => this.#tracer.number(it, { target, args: [this, dim] }) as number));
  }
}

/**
 * A number, or the answer to a question, that depends on dynamic sizes or on elements. It has the operators of Python's
 * numbers as methods; JavaScript's own need a number that is known, and refuse.
 *
 * @example
 * ```ts
 * const half = x.size(0).floordiv(2); // recorded
 * if (guard(x.size(0).gt(3))) … // decided once, for all inputs of the program
 * ```
 */
export class TracedNumber extends SymbolicNumber {
  /** @internal */
  readonly expr: SymExpr;
  readonly #tracer: ValueTracer;

  /** @internal */
  constructor(expr: SymExpr, tracer: ValueTracer) {
    super();
    this.expr = expr;
    this.#tracer = tracer;
  }

  /** `this + other`. */
  add(other: Size): Size {
    return this.#of("add", other);
  }

  /** `this - other`. */
  sub(other: Size): Size {
    return this.#of("sub", other);
  }

  /** `this * other`. */
  mul(other: Size): Size {
    return this.#of("mul", other);
  }

  /** `this // other`, rounded down. */
  floordiv(other: Size): Size {
    return this.#of("floordiv", other);
  }

  /** `this / other`, a float. */
  truediv(other: Size): Size {
    return this.#of("truediv", other);
  }

  /** `this % other`. */
  mod(other: Size): Size {
    return this.#of("mod", other);
  }

  /** `this ** other`. */
  pow(other: Size): Size {
    return this.#of("pow", other);
  }

  /** `this << other`. */
  lshift(other: Size): Size {
    return this.#of("lshift", other);
  }

  /** `this >> other`. */
  rshift(other: Size): Size {
    return this.#of("rshift", other);
  }

  /** `this & other`, of an int and one that is known. */
  bitwiseAnd(other: number): Size {
    return this.#of("and_", other);
  }

  /** `this | other`, of an int and one that is known. */
  bitwiseOr(other: number): Size {
    return this.#of("or_", other);
  }

  /** `this ^ other`, of an int and one that is known. */
  bitwiseXor(other: number): Size {
    return this.#of("xor", other);
  }

  /** `abs(this)`. */
  abs(): Size {
    return this.compute("operator.abs", [this]) as Size;
  }

  /** The nearest int; what is in the middle goes to the even one. */
  round(): Size {
    return this.compute("builtins.round", [this]) as Size;
  }

  /** `-this`. */
  neg(): Size {
    return this.compute("operator.neg", [this]) as Size;
  }

  /** `this < other`. */
  lt(other: Size): Condition {
    return this.#of("lt", other);
  }

  /** `this <= other`. */
  le(other: Size): Condition {
    return this.#of("le", other);
  }

  /** `this > other`. */
  gt(other: Size): Condition {
    return this.#of("gt", other);
  }

  /** `this >= other`. */
  ge(other: Size): Condition {
    return this.#of("ge", other);
  }

  /** `this == other`. */
  eq(other: Size): Condition {
    return this.#of("eq", other);
  }

  /** `this != other`. */
  ne(other: Size): Condition {
    return this.#of("ne", other);
  }

  override compute(target: string, args: readonly unknown[]): unknown {
    checkText("compute", "the function", target);
    checkList("compute", "args", args);
    return this.#tracer.compute(target, args);
  }

  override check(message: string): void {
    this.#tracer.check(this, message);
  }

  override decide(): boolean {
    return this.#tracer.decide(this);
  }

  /** @internal */
  get hint(): number | boolean | undefined {
    return this.#tracer.hint(this);
  }

  /** @internal */
  get simplified(): SymInt | boolean {
    return this.#tracer.simplify(this);
  }

  override get text(): string {
    return formatExpression(this.expr);
  }

  override get kind(): NumberKind {
    return kindOfExpression(this.expr);
  }

  /** So that `Object.prototype.toString` calls it what it is in a run. */
  get [Symbol.toStringTag](): string {
    return this.kind === "bool" ? "Boolean" : "Number";
  }

  /** What `JSON.stringify` asks for. */
  toJSON(): never {
    throw coerced(this.expr, "a text");
  }

  override toString(): string {
    throw coerced(this.expr, "a text");
  }

  override valueOf(): never {
    throw coerced(this.expr, "a number");
  }

  [Symbol.toPrimitive](hint: string): string {
    throw coerced(this.expr, hint === "string" ? "a text" : "a number");
  }

  /** What Node's console shows. */
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return `TracedNumber(${this.text})`;
  }

  #of<T>(name: string, other: Size): T {
    return this.compute(`operator.${name}`, [this, other]) as T;
  }
}

showThemselves(TracedTensor, TracedNumber);

/** A size: a number, or one that is traced. */
export type Size = number | TracedNumber;
/** The answer to a question about sizes. */
export type Condition = boolean | TracedNumber;

/**
 * Decides a question about sizes while a module is exported, by the example inputs; the program then refuses inputs for which
 * the answer is another. What is a boolean already is given back, so that modules run as they are.
 *
 * @example
 * ```ts
 * if (guard(operator.gt(x.size(0), 3))) return x.sin();
 * ```
 */
export function guard(condition: unknown): boolean {
  if (condition instanceof TracedNumber) return condition.decide();
  if (typeof condition === "boolean") return condition;
  throw fxError("InputType", "guard takes a comparison of sizes", { help: "guard(operator.gt(x.size(0), 3))" });
}

function coerced(expr: SymExpr, what: string): FxError {
  const text = formatExpression(expr);
  if (/\b(?:u|zuf)\d/.test(text)) {
    return traceError("TraceCoercion", `the unbacked number ${text} cannot become ${what} while it is exported`, {
      help: "write n.gt(3) for n > 3, cond(condition, whenTrue, whenFalse, [inputs]) for a decision, and torch._check(n.ge(0)) for what holds of all runs",
    });
  }
  return traceError("TraceCoercion", `a size that is dynamic cannot become ${what} while it is exported`, {
    help: "write x.size(0).add(1) for x.size(0) + 1, and guard(x.size(0).gt(3)) for a decision, which then holds for all inputs",
  });
}

function untold(why: string): FxError {
  return traceError("TraceCoercion", `the elements of a traced tensor were asked for: ${why}`, {
    help: "a program cannot depend on them in JavaScript; use cond(…), torch.where(…) or x.item()",
  });
}
