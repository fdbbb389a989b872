/** What the methods of tensors give, and which calls the compiler refuses. Nothing here runs. */
import { expectTypeOf } from "vitest";
import { type DType, type Element, type Parameter, type Tensor, tensor } from "tracefx";

declare const x: Tensor;
declare const parameter: Parameter;

export function results(): void {
  expectTypeOf(tensor([1, 2])).toEqualTypeOf<Tensor>();
  expectTypeOf(x.dtype).toEqualTypeOf<DType>();
  expectTypeOf(x.shape).toEqualTypeOf<readonly number[]>();
  expectTypeOf(x.size()).toEqualTypeOf<readonly number[]>();
  expectTypeOf(x.size(0)).toEqualTypeOf<number>();
  expectTypeOf(x.item()).toEqualTypeOf<Element>();
  expectTypeOf(x.add(1, { alpha: 2 })).toEqualTypeOf<Tensor>();
  expectTypeOf(x.sum(0, true)).toEqualTypeOf<Tensor>();
  expectTypeOf(x.sort({ descending: true }).indices).toEqualTypeOf<Tensor>();
  // It is an array besides, which has a method of that name.
  expectTypeOf(x.sort({ descending: true }).values).toExtend<Tensor>();
  expectTypeOf(x.equal(x)).toEqualTypeOf<boolean>();
  expectTypeOf(x.permute(1, 0)).toEqualTypeOf<Tensor>();
  expectTypeOf(x.permute([1, 0])).toEqualTypeOf<Tensor>();
  expectTypeOf(x.newZeros([2], { dtype: "int64" })).toEqualTypeOf<Tensor>();
  expectTypeOf(x.chunk(2)).toEqualTypeOf<Tensor[]>();
}

/** What writes in place gives the tensor itself, of its own class; what does not, a tensor. */
export function ownClass(): void {
  expectTypeOf(parameter.add_(1)).toEqualTypeOf<Parameter>();
  expectTypeOf(parameter.requiresGrad_()).toEqualTypeOf<Parameter>();
  expectTypeOf(parameter.add(1)).toEqualTypeOf<Tensor>();
  expectTypeOf<Parameter>().toExtend<Tensor>();
}

export function refused(): void {
  // @ts-expect-error there is no such method
  x.notThere();
  // @ts-expect-error methods write to no out=
  x.sum({ out: x });
  // @ts-expect-error the dimension is given by position and by name
  x.sum(0, { dim: 1 });
  // @ts-expect-error a word is no dimension
  x.sum("rows");
  // @ts-expect-error a scale is a number
  x.add(x, { alpha: "2" });
  // @ts-expect-error there is no such dtype
  tensor([1], { dtype: "float" });
  // @ts-expect-error an object holds no elements
  tensor({ data: [1] });
  // @ts-expect-error the shape is the tensor's own
  x.shape = [1];
  // @ts-expect-error the dtype is the tensor's own
  x.dtype = "int64";
  // @ts-expect-error the names are JavaScript's: newZeros
  x.new_zeros([2]);
}
