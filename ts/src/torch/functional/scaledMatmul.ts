/**
 * Products of scaled and of grouped matrices, which PyTorch computes on devices that have formats of 8 bits and fewer.
 *
 * Traced, they are recorded as the operators that PyTorch records. The engine has none of these operators and says so.
 *
 * @module
 */
import type { DTypeLike, Real } from "../../base/types.ts";
import type { BoundFunction, RecordBound } from "../../functions/bound.ts";
import type { CallArguments } from "../../base/naming.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { atenWith } from "./aten.ts";
import { define } from "./define.ts";

/** What a scale is of: the whole matrix, a row, or a block of so many rows and columns. */
export const ScalingType = Object.freeze({
  TensorWise: 0,
  RowWise: 1,
  BlockWise1x16: 2,
  BlockWise1x32: 3,
  BlockWise1x128: 4,
  BlockWise128x128: 5,
});

/** In which order scales lie in memory. */
export const SwizzleType = Object.freeze({ NO_SWIZZLE: 0, SWIZZLE_32_4_4: 1, SWIZZLE_32_8: 2 });

/** One, or a list. */
export type OneOrMore<T> = T | readonly T[];

/** The scales of two matrices: for each the scales, what they are of and how they lie. */
type Scales = [
  scaleA: OneOrMore<Tensor>,
  scaleRecipeA: OneOrMore<number>,
  scaleB: OneOrMore<Tensor>,
  scaleRecipeB: OneOrMore<number>,
  swizzleA?: OneOrMore<number> | null,
  swizzleB?: OneOrMore<number> | null,
];

/** Options of products of scaled matrices. */
export interface ScaledOptions {
  /** How the scales of the first matrix lie; a value of {@link SwizzleType}. */
  readonly swizzleA?: OneOrMore<number> | null;
  /** How the scales of the second matrix lie. */
  readonly swizzleB?: OneOrMore<number> | null;
  /** The dimensions that are summed over; by default the usual ones. */
  readonly contractionDim?: readonly number[];
  /** Whether sums are kept in fewer bits; default `false`. */
  readonly useFastAccum?: boolean;
}

/** Options of {@link scaledMm}. */
export interface ScaledMmOptions extends ScaledOptions {
  /** What is added to the product. */
  readonly bias?: Tensor | null;
  /** The dtype of the result; default `bfloat16`. */
  readonly outputDtype?: DTypeLike | null;
}

/** Options of {@link scaledGroupedMm}. */
export interface ScaledGroupedMmOptions extends ScaledMmOptions {
  /** Where each group ends. */
  readonly offs?: Tensor | null;
}

/** Options of {@link scaledAddmm}. */
export interface ScaledAddmmOptions extends ScaledOptions {
  /** What `input` is multiplied by; default 1. */
  readonly beta?: Real;
  /** What the product is multiplied by; default 1. */
  readonly alpha?: Real;
}

/** Options of {@link groupedMm}. */
export interface GroupedMmOptions {
  /** Where each group ends. */
  readonly offs?: Tensor | null;
  /** What is added to the products. */
  readonly bias?: Tensor | null;
  /** The dtype of the results. */
  readonly outDtype?: DTypeLike | null;
}

const SCALES = "scale_a, scale_recipe_a, scale_b, scale_recipe_b, swizzle_a=None, swizzle_b=None";

/** A function that calls an operator of its own with the same arguments in another order. */
function renamed<P extends readonly unknown[], O, K extends readonly unknown[] = []>(
  name: string,
  operator: string,
  signature: string,
  order: (...args: [...Required<P>, ...K]) => CallArguments,
): BoundFunction<P, O, Tensor> {
  const record: RecordBound = (recorder, bound) => {
    const { args, kwargs } = order(...(bound as [...Required<P>, ...K]));
    return recorder.createProxy("call_function", `torch.${operator}`, args, kwargs);
  };
  const run = (...given: [...Required<P>, ...K]): Tensor => {
    const { args, kwargs } = order(...given);
    return atenWith(kwargs, operator, ...args);
  };
  return define<P, O, Tensor, K>(name, signature, run, record);
}

/**
 * The product of matrices whose elements are multiplied by scales: `(M, K)` and `(K, N)` give `(M, N)`.
 *
 * @example
 * ```ts
 * F.scaledMm(a, b, scaleA, F.ScalingType.TensorWise, scaleB, F.ScalingType.TensorWise);
 * ```
 */
export const scaledMm = renamed<
  [
    matA: Tensor,
    matB: Tensor,
    ...Scales,
    bias?: Tensor | null,
    outputDtype?: DTypeLike | null,
    contractionDim?: readonly number[],
    useFastAccum?: boolean,
  ],
  ScaledMmOptions
>(
  "scaled_mm",
  "_scaled_mm_v2",
  `(mat_a, mat_b, ${SCALES}, bias=None, output_dtype=torch.bfloat16, contraction_dim=(), use_fast_accum=False)`,
  (matA, matB, scaleA, recipeA, scaleB, recipeB, swizzleA, swizzleB, ...rest) => ({
    args: [matA, matB, ...scales(scaleA, recipeA, swizzleA), ...scales(scaleB, recipeB, swizzleB), ...rest],
    kwargs: {},
  }),
);

type ScaledAddmm = [
  input: Tensor,
  mat1: Tensor,
  mat2: Tensor,
  ...Scales,
  contractionDim?: readonly number[],
  useFastAccum?: boolean,
];

function addmm(name: string): BoundFunction<ScaledAddmm, ScaledAddmmOptions, Tensor> {
  return renamed<ScaledAddmm, ScaledAddmmOptions, [beta: Real, alpha: Real]>(
    name,
    `_${name}`,
    `(input, mat1, mat2, ${SCALES}, contraction_dim=(), use_fast_accum=False, *, beta=1.0, alpha=1.0)`,
    (input, mat1, mat2, scaleA, recipeA, scaleB, recipeB, swizzleA, swizzleB, dims, isFast, beta, alpha) => ({
      args: [input, mat1, mat2, ...scales(scaleA, recipeA, swizzleA), ...scales(scaleB, recipeB, swizzleB), dims],
      kwargs: { beta, alpha, use_fast_accum: isFast },
    }),
  );
}

/**
 * `beta * input + alpha * (mat1 @ mat2)`, where the elements of the matrices are multiplied by scales.
 *
 * @example
 * ```ts
 * F.scaledAddmm(c, a, b, scaleA, F.ScalingType.RowWise, scaleB, F.ScalingType.RowWise);
 * ```
 */
export const scaledAddmm = addmm("scaled_addmm");

/**
 * {@link scaledAddmm} in place of `input`.
 *
 * @example
 * ```ts
 * F.scaledAddmm_(c, a, b, scaleA, F.ScalingType.RowWise, scaleB, F.ScalingType.RowWise) === c;
 * ```
 */
export const scaledAddmm_ = addmm("scaled_addmm_");

/**
 * {@link scaledMm} of several pairs of matrices.
 *
 * @example
 * ```ts
 * F.scaledGroupedMm(a, b, scaleA, F.ScalingType.RowWise, scaleB, F.ScalingType.RowWise, { offs });
 * ```
 */
export const scaledGroupedMm = renamed<
  [
    matA: Tensor,
    matB: Tensor,
    ...Scales,
    bias?: Tensor | null,
    offs?: Tensor | null,
    outputDtype?: DTypeLike | null,
    contractionDim?: readonly number[],
    useFastAccum?: boolean,
  ],
  ScaledGroupedMmOptions
>(
  "scaled_grouped_mm",
  "_scaled_grouped_mm_v2",
  `(mat_a, mat_b, ${SCALES}, bias=None, offs=None, output_dtype=torch.bfloat16, contraction_dim=(), use_fast_accum=False)`,
  (matA, matB, scaleA, recipeA, scaleB, recipeB, swizzleA, swizzleB, bias, offs, ...rest) => ({
    args: [matA, matB, ...scales(scaleA, recipeA, swizzleA), ...scales(scaleB, recipeB, swizzleB), offs, bias, ...rest],
    kwargs: {},
  }),
);

/**
 * The products of several pairs of matrices.
 *
 * @example
 * ```ts
 * F.groupedMm(a, b, { offs });
 * ```
 */
export const groupedMm = renamed<
  [matA: Tensor, matB: Tensor],
  GroupedMmOptions,
  [offs: Tensor | null, bias: Tensor | null, outDtype: DTypeLike | null]
>("grouped_mm", "_grouped_mm", "(mat_a, mat_b, *, offs=None, bias=None, out_dtype=None)", (matA, matB, ...rest) => {
  const [offs, bias, outDtype] = rest;
  return { args: [matA, matB], kwargs: { offs, bias, out_dtype: outDtype } };
});

/** The scales of a matrix, what they are of and how they lie, each as a list. */
function scales(
  scale: OneOrMore<Tensor>,
  recipe: OneOrMore<number>,
  swizzle: OneOrMore<number> | null,
): readonly unknown[] {
  return [scale, recipe, swizzle ?? []].map((it) => (Array.isArray(it) ? it : [it]));
}
