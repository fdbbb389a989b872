/**
 * Abstract values: what is known of a node's value without running it, which FX keeps as `meta["val"]`.
 *
 * @module
 */
import { checkGiven, checkList } from "../base/given.ts";
import type { DType } from "../../../bindings/dtypes.ts";
import { formatExpression } from "./expression.ts";
import { Float } from "../base/values.ts";
import type { DeviceArg, LayoutArg } from "../base/values.ts";

/** A number or truth value that depends on symbols, as the expression that PyTorch saves: sympy's `srepr`. */
export class SymExpr {
  /** The expression, such as `Symbol('s0', positive=True, integer=True)`. */
  readonly srepr: string;

  constructor(srepr: string) {
    this.srepr = srepr;
    Object.freeze(this);
  }

  /** The expression as PyTorch prints it: `2*s0 + 1`. */
  toString(): string {
    return formatExpression(this);
  }
}

/** A size, stride or offset: a number, or an expression of symbols. */
export type SymInt = number | bigint | SymExpr;

/** The fields of a {@link TensorMeta}. */
export interface TensorMetaFields {
  readonly dtype: DType;
  readonly sizes: readonly SymInt[];
  /** In elements. */
  readonly strides: readonly SymInt[];
  /** The position of the first element in its storage, in elements. */
  readonly storageOffset: SymInt;
  readonly device: DeviceArg;
  readonly layout: LayoutArg;
  readonly requiresGrad: boolean;
}

/** What is known of a tensor without its data. */
export class TensorMeta implements TensorMetaFields {
  readonly dtype: DType;
  readonly sizes: readonly SymInt[];
  readonly strides: readonly SymInt[];
  readonly storageOffset: SymInt;
  readonly device: DeviceArg;
  readonly layout: LayoutArg;
  readonly requiresGrad: boolean;

  constructor(fields: TensorMetaFields) {
    const isRight = Array.isArray(fields?.sizes) && Array.isArray(fields.strides);
    checkGiven("TensorMeta", isRight, "an object with a dtype, sizes, strides and so on");
    this.dtype = fields.dtype;
    this.sizes = Object.freeze([...fields.sizes]);
    this.strides = Object.freeze([...fields.strides]);
    this.storageOffset = fields.storageOffset;
    this.device = fields.device;
    this.layout = fields.layout;
    this.requiresGrad = fields.requiresGrad;
    Object.freeze(this);
  }
}

/** Several abstract values in a list or a tuple. */
export class ValSequence {
  readonly kind: "list" | "tuple";
  readonly items: readonly Val[];

  constructor(kind: "list" | "tuple", items: readonly Val[]) {
    checkList("ValSequence", "items", items);
    this.kind = kind;
    this.items = Object.freeze([...items]);
    Object.freeze(this);
  }
}

/**
 * The abstract value of a node. As in arguments, a whole `number` is an int and any other a float, `Float` is a float that
 * is whole, and `null` is `None`.
 */
export type Val = null | boolean | number | bigint | Float | SymExpr | TensorMeta | ValSequence;

/** Whether this is an abstract value, and no other object that somebody keeps in `meta`. */
export function isVal(value: unknown): value is Val {
  if (value === null || typeof value === "boolean" || typeof value === "number" || typeof value === "bigint")
    return true;
  return (
    value instanceof TensorMeta || value instanceof SymExpr || value instanceof ValSequence || value instanceof Float
  );
}
