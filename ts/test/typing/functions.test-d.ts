/** What the functions of `torch` and `F` give, and which calls the compiler refuses. Nothing here runs. */
import { expectTypeOf } from "vitest";
import { F, type NamedResults, type Tensor, torch } from "tracefx";

declare const x: Tensor;

/** The results of operators that give values and where they stand. */
type ValuesAndIndices = NamedResults<[values: Tensor, indices: Tensor], { values: Tensor; indices: Tensor }>;

export function results(): void {
  expectTypeOf(torch.add(x, 1)).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.add(x, x, { alpha: 2 })).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.equal(x, x)).toEqualTypeOf<boolean>();
  expectTypeOf(torch.max(x)).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.max(x, x)).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.max(x, 1)).toEqualTypeOf<ValuesAndIndices>();
  expectTypeOf(torch.max(x, { dim: 1, keepdim: true })).toEqualTypeOf<ValuesAndIndices>();
  expectTypeOf(torch.max(x, 1).indices).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.split(x, 2)).toEqualTypeOf<Tensor[]>();
  expectTypeOf(torch.linalg.slogdet(x).logabsdet).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.fft.fft(x)).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.special.erf(x)).toEqualTypeOf<Tensor>();
  expectTypeOf(F.relu(x)).toEqualTypeOf<Tensor>();
  expectTypeOf(F.linear(x, x, null)).toEqualTypeOf<Tensor>();
}

/** An argument may stand by position or among the options, which then are what is left. */
export function waysToCall(): void {
  expectTypeOf(torch.sum(x)).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.sum(x, { dim: [0, 1], keepdim: true, dtype: "float64" })).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.sum(x, 0, { keepdim: true, out: x })).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.sum(x, 0, true, { dtype: "float64" })).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.empty(2, 3)).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.empty([2, 3], { dtype: "int64" })).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.empty(2, 3, { dtype: "int64", requiresGrad: false })).toEqualTypeOf<Tensor>();
  expectTypeOf(torch.conv2d(x, x, null, 1, { groups: 2 })).toEqualTypeOf<Tensor>();
}

export function refused(): void {
  // @ts-expect-error a string is no tensor
  torch.sum("x");
  // @ts-expect-error there is no such option
  torch.sum(x, { dims: 0 });
  // @ts-expect-error the dimension is given by position and by name
  torch.sum(x, 0, { dim: 1 });
  // @ts-expect-error keepdim is given by position and by name
  torch.sum(x, 0, true, { keepdim: false });
  // @ts-expect-error options come last
  torch.sum(x, { keepdim: true }, 0);
  // @ts-expect-error keepdim without a dimension
  torch.sum(x, { keepdim: true });
  // @ts-expect-error there is no such dtype
  torch.sum(x, { dtype: "float65" });
  // @ts-expect-error the names of options are JavaScript's: memoryFormat
  torch.empty([2], { memory_format: "torch.channels_last" });
  // @ts-expect-error out= is an option of the form with an array of sizes
  torch.empty(2, 3, { out: x });
  // @ts-expect-error the second matrix is missing
  torch.matmul(x);
  // @ts-expect-error there are too many arguments
  torch.relu(x, x);
  // @ts-expect-error a result by a name that it does not have
  void torch.max(x, 1).value;
  // @ts-expect-error without a dimension there is one result
  void torch.max(x).indices;
  // @ts-expect-error out= takes both results
  torch.max(x, 1, { out: x });
  // @ts-expect-error there is no such function
  void torch.notThere;
  // @ts-expect-error the weight is missing
  F.linear(x);
  // @ts-expect-error the option is called inplace
  F.relu(x, { inPlace: true });
}
