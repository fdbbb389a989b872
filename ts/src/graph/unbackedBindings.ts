/**
 * Where a value gives the symbols that only data tells: `compute_unbacked_bindings` of `torch.fx.experimental.symbolic_shapes`.
 *
 * @module
 */
import { checkGiven, checkText } from "../base/given.ts";
import { fxError } from "../base/errors.ts";
import { SymbolicNumber } from "../base/symbolic.ts";
import { camelCase } from "../base/naming.ts";
import { type Expression, parseExpression } from "./expression.ts";
import { freeUnbackedSymbols, type SymbolSource } from "./symbols.ts";
import { isVal, SymExpr, TensorMeta, ValSequence } from "./val.ts";

/** A step from a value to one of its parts: a position in a list, or one of the keys. */
export type BindingKey = number | CallMethodKey | ConvertIntKey | DivideByKey;

/** The steps from a value to one of its parts. */
export type KeyPath = readonly BindingKey[];

/**
 * What a method of a tensor gives: `CallMethodKey`.
 *
 * @example
 * ```ts
 * new CallMethodKey("size").get(torch.ones(2, 3)); // [2, 3]
 * ```
 */
export class CallMethodKey {
  /** The method by PyTorch's name: `size`, `stride`, `storage_offset`. */
  readonly name: string;

  constructor(name: string) {
    checkText("CallMethodKey", "the method", name);
    this.name = name;
    Object.freeze(this);
  }

  /** What the method gives, of a tensor or of what is known of one. */
  get(value: unknown): unknown {
    if (value instanceof TensorMeta) {
      const found = partsOf(value).find(([name]) => name === this.name);
      if (found !== undefined) return found[1];
    }
    const method = (value as Readonly<Record<string, unknown>> | null | undefined)?.[camelCase(this.name)];
    if (typeof method === "function") return method.call(value);
    throw fxError("InvalidArgument", `CallMethodKey.get takes what has a method \`${this.name}\``);
  }

  toString(): string {
    return `.${this.name}()`;
  }
}

/**
 * The int of a truth value: `ConvertIntKey`.
 *
 * @example
 * ```ts
 * new ConvertIntKey().get(true); // 1
 * ```
 */
export class ConvertIntKey {
  /** 1 where it holds, else 0. */
  get(value: boolean | SymbolicNumber): unknown {
    if (value instanceof SymbolicNumber) return value.compute("torch.sym_ite", [value, 1, 0]);
    checkGiven("ConvertIntKey.get", typeof value === "boolean", "a boolean");
    return value ? 1 : 0;
  }

  toString(): string {
    return ".cast_symbool_to_symint_guardless()";
  }
}

/**
 * The quotient of a size that is a multiple of a symbol: `DivideByKey`.
 *
 * @example
 * ```ts
 * new DivideByKey(2).get(6); // 3
 * ```
 */
export class DivideByKey {
  readonly divisor: number;

  constructor(divisor: number) {
    checkGiven("DivideByKey", Number.isSafeInteger(divisor) && divisor !== 0, "an int other than 0");
    this.divisor = divisor;
    Object.freeze(this);
  }

  /** The quotient, rounded down. */
  get(value: number | SymbolicNumber): unknown {
    if (value instanceof SymbolicNumber) return value.compute("operator.floordiv", [value, this.divisor]);
    checkGiven("DivideByKey.get", typeof value === "number", "a number");
    return Math.floor(value / this.divisor);
  }

  toString(): string {
    return `.__floordiv__(${this.divisor})`;
  }
}

/**
 * The part of a value at the end of a path.
 *
 * @example
 * ```ts
 * keyGet(x.nonzero(), [new CallMethodKey("size"), 0]); // how many elements of x are not zero
 * ```
 */
export function keyGet(value: unknown, path: KeyPath): unknown {
  checkGiven("keyGet", Array.isArray(path), "a list of keys behind the value");
  return path.reduce((it: unknown, key) => {
    if (typeof key === "number") return (it as Readonly<Record<number, unknown>>)[key];
    return key.get(it as never);
  }, value);
}

/**
 * The symbols that a value gives and that only data tells, each with the path to it: `compute_unbacked_bindings`. Those that are
 * `known` already are left out.
 *
 * @example
 * ```ts
 * computeUnbackedBindings(nonzero.meta.get("val") as TensorMeta).get("u0"); // [CallMethodKey { name: "size" }, 0]
 * ```
 */
export function computeUnbackedBindings(value: SymbolSource, known: Iterable<string> = []): Map<string, KeyPath> {
  checkGiven(
    "computeUnbackedBindings",
    typeof known !== "string" && Symbol.iterator in Object(known),
    "names as known",
  );
  const pending = freeUnbackedSymbols(value);
  for (const it of known) pending.delete(it);
  const res = new Map<string, KeyPath>();
  const found = (symbol: string, path: KeyPath): void => {
    if (pending.delete(symbol)) res.set(symbol, path);
  };
  visit(value, [], found);
  if (pending.size > 0) {
    throw fxError("GraphInvalid", `Pending unbacked symbols {${[...pending].join(", ")}} not in returned outputs`, {
      help: "give the names that other values bind as known",
    });
  }
  return res;
}

/** What PyTorch looks at of a tensor, in its order. */
function partsOf({ sizes, strides, storageOffset }: TensorMeta) {
  return [
    ["size", sizes],
    ["stride", strides],
    ["storage_offset", storageOffset],
  ] as const;
}

function visit(value: SymbolSource, path: KeyPath, found: (symbol: string, path: KeyPath) => void): void {
  if (value instanceof TensorMeta) {
    for (const [name, part] of partsOf(value)) visit(part, [...path, new CallMethodKey(name)], found);
  } else if (value instanceof ValSequence) visit(value.items, path, found);
  else if (value instanceof SymExpr) visitExpression(parseExpression(value), path, found);
  else if (!isVal(value) && value !== undefined) {
    for (const [at, it] of value.entries()) visit(it, [...path, at], found);
  }
}

function visitExpression(expression: Expression, path: KeyPath, found: (symbol: string, path: KeyPath) => void): void {
  if (expression.kind === "symbol") found(expression.name, path);
  if (expression.kind !== "call" || expression.args.length !== 2) return;
  const [first, second] = expression.args as [Expression, Expression];
  const number = first.kind === "number" ? first : second;
  const symbol = first.kind === "number" ? second : first;
  if (symbol.kind !== "symbol" || number.kind !== "number" || !/^-?\d+$/.test(number.text)) return;
  if (expression.name === "Mul") found(symbol.name, [...path, new DivideByKey(Number(number.text))]);
  if (expression.name === "Equality" && number.text === "1") found(symbol.name, [...path, new ConvertIntKey()]);
}
