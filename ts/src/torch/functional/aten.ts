/**
 * Operators as the functions of this folder use them.
 *
 * @module
 */
import { areSame, listText, textOf } from "../../base/sizes.ts";
import type { Real } from "../../base/types.ts";
import { DTYPES } from "../../../../bindings/dtypes.ts";
import { callOperator } from "../../engine/dispatch.ts";
import { type ErrorName, fxError, type FxError } from "../../base/errors.ts";
import { isInt } from "../../graph/args.ts";
import { pythonFloat } from "../../graph/python.ts";
import { Float } from "../../base/values.ts";
import type { Tensor } from "../../tensor/tensor.ts";

/** Sizes of a window: one for all dimensions, or one for each. */
export type Sizes = number | readonly number[];

/** A tensor and the positions that its elements come from. */
export type WithIndices = readonly [output: Tensor, indices: Tensor];

/** Calls an operator that has one result. */
export function aten(name: string, ...args: readonly unknown[]): Tensor {
  return callOperator(`aten.${name}`, args) as Tensor;
}

/** Calls an operator that has one result, with keyword arguments. */
export function atenWith(kwargs: Readonly<Record<string, unknown>>, name: string, ...args: readonly unknown[]): Tensor {
  return callOperator(`aten.${name}`, args, kwargs) as Tensor;
}

/** Calls an operator that has several results. */
export function atenResults(name: string, ...args: readonly unknown[]): readonly Tensor[] {
  return callOperator(`aten.${name}`, args) as readonly Tensor[];
}

/** The operator, or the one that works in place. */
export function variant(name: string, inplace: boolean): string {
  return inplace ? `${name}_` : name;
}

/** The value of a number. */
export function valueOf(scalar: Real): number {
  return scalar instanceof Float ? scalar.value : scalar;
}

/** A number as Python prints it. */
export function numberText(scalar: Real): string {
  return typeof scalar === "number" && isInt(scalar) ? String(scalar) : pythonFloat(valueOf(scalar));
}

/** The sizes for each of so many dimensions. */
export function each(sizes: Sizes, dims: number): readonly number[] {
  return typeof sizes === "number" ? Array.from({ length: dims }, () => sizes) : sizes;
}

/** Whether two tensors have the same shape. */
export function sameShape(a: Tensor, b: Tensor): boolean {
  return shapeIs(a, b.shape);
}

/** Whether the tensor has this shape. */
export function shapeIs({ shape }: { readonly shape: readonly number[] }, sizes: readonly number[]): boolean {
  return areSame(shape, sizes);
}

/** Whether the elements are floats. */
export function isFloat({ dtype }: Tensor): boolean {
  return DTYPES[dtype].kind === "float";
}

/** A shape as PyTorch prints it. */
export function sizeText(shape: readonly number[]): string {
  return `torch.Size([${listText(shape)}])`;
}

/** A shape as Python prints a tuple. */
export function tupleText(shape: readonly number[]): string {
  return shape.length === 1 ? `(${textOf(shape[0])},)` : `(${listText(shape)})`;
}

/** A refusal of a function, in PyTorch's words, with what to do about it. */
export function refuse(kind: ErrorName, reason: string, help?: string): FxError {
  return fxError(kind, reason, help === undefined ? {} : { help });
}
