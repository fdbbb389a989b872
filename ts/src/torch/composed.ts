/**
 * The functions of `torch` that PyTorch writes in Python, or by hand, around its operators.
 *
 * @module
 */
import { checkGiven } from "../base/given.ts";
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../base/errors.ts";
import { type BoundFunction, defineBound, recordByName } from "../functions/bound.ts";
import { splitArguments } from "../base/naming.ts";
import { bind, parseSignature } from "../functions/signature.ts";
import { defineFunction } from "../functions/table.ts";
import type { DTypeLike, Int, Real } from "../base/types.ts";
import { defineMethod } from "../functions/tensorMembers.ts";
import type { Tensor } from "../tensor/tensor.ts";

function one(name: string, ...args: readonly unknown[]): Tensor {
  return callOperator(name, args) as Tensor;
}

/** A function of `torch.functional`. Traced, it is recorded with what it requires by position and all else by name. */
function define<P extends readonly unknown[], O, R>(
  name: string,
  signature: string,
  run: (...args: Required<P>) => R,
): BoundFunction<P, O, R> {
  const target = `torch.functional.${name}`;
  return defineBound<P, O, R>(target, signature, run, { record: recordByName(() => target) });
}

/** The tensors of a call that takes them one by one or in an array, and its options. */
function gathered(given: readonly unknown[]): {
  tensors: readonly Tensor[];
  kwargs: Readonly<Record<string, unknown>>;
} {
  const { args, kwargs } = splitArguments(given);
  const tensors = args.length === 1 && Array.isArray(args[0]) ? (args[0] as readonly unknown[]) : args;
  return { tensors: tensors as readonly Tensor[], kwargs };
}

/** Tensors one by one, or an array of them. */
type Tensors = readonly Tensor[] | readonly [tensors: readonly Tensor[]];

/** Splits a tensor into parts of one size, or of the given sizes, along a dimension. The parts are views. */
export const split = define<
  [tensor: Tensor, splitSizeOrSections: Int | readonly Int[], dim?: Int],
  { dim?: Int },
  Tensor[]
>("split", "(tensor, split_size_or_sections, dim=0)", splitInto);

function splitInto(tensor: Tensor, size: Int | readonly Int[], dim: Int): Tensor[] {
  return callOperator(Array.isArray(size) ? "aten.split_with_sizes" : "aten.split", [tensor, size, dim]) as Tensor[];
}

/** How {@link norm} is computed. */
interface NormOptions {
  readonly p?: Real | "fro" | null;
  readonly dim?: Int | readonly Int[] | null;
  readonly keepdim?: boolean;
  readonly out?: Tensor;
  readonly dtype?: DTypeLike | null;
}

/** The vector norm of order `p` of all elements, or along dimensions; `"fro"` is the order 2. */
export const norm = define<
  [
    input: Tensor,
    p?: Real | "fro" | null,
    dim?: Int | readonly Int[] | null,
    keepdim?: boolean,
    out?: Tensor | null,
    dtype?: DTypeLike | null,
  ],
  NormOptions,
  Tensor
>("norm", "(input, p='fro', dim=None, keepdim=False, out=None, dtype=None)", normOf);

function normOf(
  input: Tensor,
  p: Real | "fro" | null,
  dim: Int | readonly Int[] | null,
  keepdim: boolean,
  out: Tensor | null,
  dtype: DTypeLike | null,
): Tensor {
  if (typeof p === "string" && p !== "fro") {
    throw fxError("NotImplemented", `the norm "${String(p)}" is not implemented`, { help: 'give "fro" or a number' });
  }
  const order = p === null || p === "fro" ? 2 : p;
  return callOperator("aten.linalg_vector_norm", [input, order, dim, keepdim], {
    dtype,
    ...(out && { out }),
  }) as Tensor;
}

/** What {@link unique} gives beside the elements. */
interface UniqueOptions {
  readonly sorted?: boolean;
  readonly returnInverse?: boolean;
  readonly returnCounts?: boolean;
  readonly dim?: Int | null;
}

/** The elements without repetitions, sorted; or the slices along a dimension. With flags, also their places and counts. */
export const unique = define<
  [input: Tensor, sorted?: boolean, returnInverse?: boolean, returnCounts?: boolean, dim?: Int | null],
  UniqueOptions,
  Tensor | Tensor[]
>(
  "unique",
  "(input, sorted=True, return_inverse=False, return_counts=False, dim=None)",
  (input, sorted, returnInverse, returnCounts, dim) => {
    const flags = [sorted, returnInverse, returnCounts];
    const results =
      dim === null
        ? callOperator("aten._unique2", [input, ...flags])
        : callOperator("aten.unique_dim", [input, dim, ...flags]);
    return asked(results as Tensor[], returnInverse, returnCounts);
  },
);

/** The elements without those that equal the one before. With flags, also their places and counts. */
export const uniqueConsecutive = define<
  [input: Tensor, returnInverse?: boolean, returnCounts?: boolean, dim?: Int | null],
  Omit<UniqueOptions, "sorted">,
  Tensor | Tensor[]
>(
  "unique_consecutive",
  "(input, return_inverse=False, return_counts=False, dim=None)",
  (input, returnInverse, returnCounts, dim) => {
    const results = callOperator("aten.unique_consecutive", [input, returnInverse, returnCounts, dim]) as Tensor[];
    return asked(results, returnInverse, returnCounts);
  },
);

/** The results that were asked for; the first one alone where no other was. */
function asked(
  [values, inverse, counts]: readonly Tensor[],
  wantsInverse: boolean,
  wantsCounts: boolean,
): Tensor | Tensor[] {
  const res = [values as Tensor];
  if (wantsInverse) res.push(inverse as Tensor);
  if (wantsCounts) res.push(counts as Tensor);
  return res.length === 1 ? (res[0] as Tensor) : res;
}

/** The sum of products that an equation such as `ij,jk->ik` says, of operands one by one or in an array. */
export const einsum = defineFunction(
  "torch.functional.einsum",
  (equation: string, ...operands: Tensors): Tensor => one("aten.einsum", equation, gathered(operands).tensors),
);

const MESHGRID = "torch.functional.meshgrid";

/** Coordinate grids of vectors; `indexing` is `ij` or `xy`. */
export const meshgrid = defineFunction(
  MESHGRID,
  (...given: [...Tensors, options: { indexing?: "ij" | "xy" | null }] | Tensors): Tensor[] => {
    const { tensors, kwargs } = gathered(given);
    const { indexing = null } = kwargs;
    return callOperator("aten.meshgrid", [tensors], indexing === null ? {} : { indexing }) as Tensor[];
  },
  { record: (by, { args, kwargs }) => by.createProxy("call_function", MESHGRID, args, { indexing: null, ...kwargs }) },
);

/** The tensors as views of one common shape. */
export const broadcastTensors = defineFunction(
  "torch.functional.broadcast_tensors",
  (...tensors: Tensors): Tensor[] => callOperator("aten.broadcast_tensors", [gathered(tensors).tensors]) as Tensor[],
);

/** A matrix with the given ones along its diagonal. */
export const blockDiag = defineFunction(
  "torch.functional.block_diag",
  (...tensors: Tensors): Tensor => one("aten.block_diag", gathered(tensors).tensors),
);

/** All combinations of the elements of vectors. */
export const cartesianProd = defineFunction(
  "torch.functional.cartesian_prod",
  (...tensors: Tensors): Tensor => one("aten.cartesian_prod", gathered(tensors).tensors),
);

/** The product of matrices, in the order that needs the fewest operations. */
export const chainMatmul = defineFunction(
  "torch.functional.chain_matmul",
  (...matrices: Tensors): Tensor => one("aten.chain_matmul", gathered(matrices).tensors),
);

/** A contraction of two tensors: over the last and first `dims` dimensions, or over the dimensions that are named. */
export const tensordot = define<
  [
    a: Tensor,
    b: Tensor,
    dims?: number | readonly [ofA: readonly number[], ofB: readonly number[]],
    out?: Tensor | null,
  ],
  { dims?: number | readonly [ofA: readonly number[], ofB: readonly number[]]; out?: Tensor },
  Tensor
>("tensordot", "(a, b, dims=2, out=None)", (a, b, dims, out) => {
  checkGiven("tensordot", typeof dims === "number" || Array.isArray(dims), "a number or two lists as dims");
  const [ofA, ofB] = typeof dims === "number" ? contracted(dims) : dims;
  return callOperator("aten.tensordot", [a, b, ofA, ofB], out === null ? {} : { out }) as Tensor;
});

function contracted(count: number): [number[], number[]] {
  if (!Number.isInteger(count) || count < 0) {
    throw fxError("InvalidArgument", `tensordot expects dims >= 0, but got dims=${count}`);
  }
  return [Array.from({ length: count }, (_, at) => at - count), Array.from({ length: count }, (_, at) => at)];
}

/** The distances of order `p` between the rows of two matrices, or batches of them. */
export const cdist = define<
  [x1: Tensor, x2: Tensor, p?: Real, computeMode?: string],
  { p?: Real; computeMode?: string },
  Tensor
>("cdist", "(x1, x2, p=2.0, compute_mode='use_mm_for_euclid_dist_if_necessary')", (x1, x2, p, mode) => {
  const at = CDIST_MODES.indexOf(mode);
  if (at < 0)
    throw fxError("InvalidArgument", `${mode} is not a valid value for compute_mode`, {
      help: `one of ${CDIST_MODES.join(", ")}`,
    });
  return one("aten.cdist", x1, x2, p, at === 0 ? null : at);
});

const CDIST_MODES = ["use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist"];

/** What {@link lu} gives beside the factorisation. */
interface LuOptions {
  readonly pivot?: boolean;
  readonly getInfos?: boolean;
  readonly out?: readonly Tensor[] | null;
}

/**
 * The factorisation of matrices `A = P L U`: both triangles in one matrix `(*, m, n)`, and the pivots, counted from 1. With
 * `getInfos` also where a pivot is zero, which is refused without it.
 */
export const lu = define<
  [A: Tensor, pivot?: boolean, getInfos?: boolean, out?: readonly Tensor[] | null],
  LuOptions,
  Tensor[]
>("lu", "(A, pivot=True, get_infos=False, out=None)", (A, pivot, getInfos, out) => {
  const results = callOperator("aten._lu_with_info", [A, pivot, !getInfos]) as Tensor[];
  const wanted = results.slice(0, getInfos ? 3 : 2);
  if (out === null) return wanted;
  if (out.length !== wanted.length) {
    throw fxError("InvalidArgument", `expected tuple of ${wanted.length} elements but got ${out.length}`);
  }
  return wanted.map((it, at) => (out[at] as Tensor).resizeAs_(it).copy_(it));
});

/** How {@link stft} is computed. */
interface StftOptions {
  readonly hopLength?: Int | null;
  readonly winLength?: Int | null;
  readonly window?: Tensor | null;
  readonly center?: boolean;
  readonly padMode?: string;
  readonly normalized?: boolean;
  readonly onesided?: boolean | null;
  readonly returnComplex?: boolean | null;
  readonly alignToWindow?: boolean | null;
}

/**
 * The short-time Fourier transform of signals `(*, samples)`: `(*, frequencies, frames)`. Frames are `nFft` samples long
 * and `hopLength` (a fourth of `nFft`) apart; with `center` the signal is padded so that they lie around their positions.
 */
export const stft = define<
  [
    input: Tensor,
    nFft: Int,
    hopLength?: Int | null,
    winLength?: Int | null,
    window?: Tensor | null,
    center?: boolean,
    padMode?: string,
    normalized?: boolean,
    onesided?: boolean | null,
    returnComplex?: boolean | null,
    alignToWindow?: boolean | null,
  ],
  StftOptions,
  Tensor
>(
  "stft",
  "(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode='reflect', normalized=False, " +
    "onesided=None, return_complex=None, align_to_window=None)",
  (...given) => one("aten.stft.center", ...given),
);

/** The tensors with at least `n` dimensions; one of several alone. */
function atLeast(n: number, tensors: Tensors): Tensor | Tensor[] {
  const isOne = tensors.length === 1 && !Array.isArray(tensors[0]);
  return callOperator(`aten.atleast_${n}d`, [isOne ? tensors[0] : gathered(tensors).tensors]) as Tensor | Tensor[];
}

/** A function of tensors one by one, which gives one for one, or in an array. */
interface AtLeast {
  (tensor: Tensor): Tensor;
  (...tensors: Tensors): Tensor[];
}

/** The tensors with at least one dimension. */
export const atleast_1d = defineFunction("torch.functional.atleast_1d", ((...tensors: Tensors) =>
  atLeast(1, tensors)) as AtLeast);

/** The tensors with at least two dimensions; new ones come first. */
export const atleast_2d = defineFunction("torch.functional.atleast_2d", ((...tensors: Tensors) =>
  atLeast(2, tensors)) as AtLeast);

/** The tensors with at least three dimensions; the last new one comes last. */
export const atleast_3d = defineFunction("torch.functional.atleast_3d", ((...tensors: Tensors) =>
  atLeast(3, tensors)) as AtLeast);

/** The methods of tensors that are such functions. */
export interface ComposedMethods {
  /** Splits the tensor into parts of one size, or of the given sizes, along a dimension. The parts are views. */
  split(splitSize: Int | readonly Int[], dim?: Int): Tensor[];
  split(splitSize: Int | readonly Int[], options: { dim?: Int }): Tensor[];
  /** The vector norm of order `p` of all elements, or along dimensions. */
  norm(options?: NormOptions): Tensor;
  norm(p: Real | "fro" | null, options?: Omit<NormOptions, "p">): Tensor;
  norm(p: Real | "fro" | null, dim: Int | readonly Int[] | null, options?: Omit<NormOptions, "p" | "dim">): Tensor;
  norm(p: Real | "fro" | null, dim: Int | readonly Int[] | null, keepdim: boolean, dtype?: DTypeLike | null): Tensor;
  /** The elements without repetitions, sorted. */
  unique(options?: UniqueOptions): Tensor | Tensor[];
  /** The elements without those that equal the one before. */
  uniqueConsecutive(options?: Omit<UniqueOptions, "sorted">): Tensor | Tensor[];
  /** The factorisation `P L U` of matrices. */
  lu(options?: Omit<LuOptions, "out">): Tensor[];
  lu(pivot: boolean, getInfos?: boolean): Tensor[];
  /** The short-time Fourier transform of signals. */
  stft(nFft: Int, options?: StftOptions): Tensor;
  stft(nFft: Int, hopLength: Int | null, options?: Omit<StftOptions, "hopLength">): Tensor;
  /** The tensor with one dimension split into several. */
  unflatten(dim: Int, sizes: readonly Int[]): Tensor;
}

const NORM = parseSignature("(p='fro', dim=None, keepdim=False, dtype=None)");

/** Puts these methods on tensors. */
export function installComposed(): void {
  const methods: readonly [spelling: string, name: string, run: (...given: never[]) => unknown][] = [
    ["split", "split", split],
    ["unique", "unique", unique],
    ["uniqueConsecutive", "unique_consecutive", uniqueConsecutive],
    ["lu", "lu", lu],
    ["stft", "stft", stft],
  ];
  for (const [spelling, name, run] of methods) {
    const call = run as (...given: unknown[]) => unknown;
    defineMethod(spelling, name, (self, args, kwargs) => call(self, ...args, kwargs));
  }
  defineMethod("norm", "norm", (self, args, kwargs) => {
    const [p, dim, keepdim, dtype] = bind(NORM, "norm", { args, kwargs });
    return norm(self, p as Real, dim as Int, keepdim as boolean, null, dtype as DTypeLike);
  });
  defineMethod("unflatten", "unflatten", (self, args, kwargs) =>
    callOperator("aten.unflatten", [self, ...args], kwargs),
  );
}
