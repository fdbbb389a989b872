/**
 * Scans whose steps may be taken in any grouping: `torch.associative_scan`.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import { checkFunction, checkGiven, checkOptions } from "../base/given.ts";
import { callOperator } from "../engine/dispatch.ts";
import { functionNamed } from "../functions/table.ts";
import { slice } from "../graph/args.ts";
import { pass } from "../record/stack.ts";
import { Tensor } from "../tensor/tensor.ts";
import { scan } from "../trace/controlFlow.ts";
import { treeFlatten, treeMap, treeUnflatten } from "../trace/pytree.ts";
import { isProxy } from "../trace/proxy.ts";
import { checkInsteadOf } from "../trace/subgraph.ts";
import { metaOf } from "./closedFunction.ts";
import { isDynamic } from "./knownParts.ts";
import { vmap } from "./vmap.ts";

const cat = functionNamed("torch.cat");

/** How {@link associativeScan} goes. */
export interface AssociativeScanOptions {
  /** Whether it begins at the end. */
  readonly reverse?: boolean;
}

/**
 * What a function that is associative makes of the slices of `xs` up to each one: `torch.associative_scan` with
 * `combine_mode="generic"`. `xs` may be a container of tensors, and `combine` gives one like it.
 *
 * Slices are combined in pairs, pairs of pairs and so on, as in PyTorch: `combine` is called a few times for all pairs together, under
 * `func.vmap`, and numbers are rounded as there. Where sizes are not known, it is a {@link scan}, from one slice to the next.
 *
 * @example
 * ```ts
 * associativeScan((a, b) => a.mul(b), x, 0); // as torch.cumprod(x, 0)
 * ```
 */
export function associativeScan<X>(
  combine: (a: X, b: X) => X,
  xs: X,
  dim: number,
  options: AssociativeScanOptions = {},
): X {
  pass(associativeScan);
  checkFunction("associativeScan", "combine", combine);
  checkOptions("associativeScan", options, ["reverse"]);
  const { reverse = false } = options;
  if (!Number.isInteger(dim)) throw invalid(`Dim must be an int, but got ${String(dim)}`);
  if (typeof reverse !== "boolean") throw invalid(`Reverse must be a bool, but got ${typeof reverse}`);
  const [leaves, spec] = treeFlatten(xs);
  if (leaves.length === 0) throw invalid("Expected at least 1 xs leaf");
  const areTensors = leaves.every((it) => it instanceof Tensor || isProxy(it));
  checkGiven("associativeScan", areTensors, "a tensor, or a container of tensors, as xs");
  const areKnown = leaves.every((it) => it instanceof Tensor && !isDynamic(metaOf(it)));
  if (!areKnown) return scanned(combine, xs, dim, reverse);
  const tensors = leaves as readonly Tensor[];
  const along = scannedDim(tensors, dim);
  const inOrder = (all: Leaves): Leaves => (reverse ? eachOf("aten.flip", all, [0]) : all);
  const ofAll = vmap(combine);
  const pairs = (lefts: Leaves, rights: Leaves): Leaves => {
    const res = treeFlatten(ofAll(treeUnflatten(lefts, spec) as X, treeUnflatten(rights, spec) as X))[0];
    if (res.length === lefts.length) return res as Leaves;
    throw invalid(`combine of associativeScan takes ${lefts.length} tensors, and gives ${res.length}`);
  };
  const wholes = prefixes(inOrder(eachOf("aten.movedim", tensors, along, 0)), pairs);
  return treeUnflatten(eachOf("aten.movedim", inOrder(wholes), 0, along), spec) as X;
}

type Leaves = readonly Tensor[];

/**
 * The combinations of all slices up to each one: those that end at odd places are combinations of pairs, and each that ends at an even
 * place is one of these with one slice more. It makes the calls of PyTorch's `generic_associative_scan`, in their order.
 */
function prefixes(xs: Leaves, combine: (lefts: Leaves, rights: Leaves) => Leaves): Leaves {
  const count = (xs[0] as Tensor).size(0) as number;
  if (count < 2) return xs;
  const strided = (from: number, to: number | null): Leaves => xs.map((it) => sliced(it, from, to, 2));
  const odd = prefixes(combine(strided(0, -1), strided(1, null)), combine);
  const before = count % 2 === 0 ? odd.map((it) => sliced(it, 0, -1)) : odd;
  const rest = combine(before, strided(2, null));
  const even = xs.map((it, at) => {
    const first = sliced(it, 0, 1);
    return count > 2 ? (callOperator("aten.cat", [[first, rest[at]]]) as Tensor) : first;
  });
  return even.map((it, at) => interleaved(it, odd[at] as Tensor));
}

/** The slices of two tensors by turns; the first may have one more. */
function interleaved(a: Tensor, b: Tensor): Tensor {
  const counts = [a, b].map((it) => it.size(0) as number) as [number, number];
  const isLonger = counts[0] > counts[1];
  const padding = [...Array<number>((b.ndim - 1) * 2 + 1).fill(0), 1];
  const padded = isLonger ? callOperator("aten.pad", [b, padding]) : b;
  const all = callOperator("aten.flatten.using_ints", [callOperator("aten.stack", [[a, padded], 1]), 0, 1]) as Tensor;
  return isLonger ? sliced(all, 0, counts[0] + counts[1]) : all;
}

function eachOf(operator: string, tensors: Leaves, ...args: readonly unknown[]): Leaves {
  return tensors.map((it) => callOperator(operator, [it, ...args]) as Tensor);
}

function sliced(it: Tensor, from: number, to: number | null, step?: number): Tensor {
  return callOperator("aten.slice.Tensor", [it, 0, from, to, ...(step === undefined ? [] : [step])]) as Tensor;
}

/** The dimension, counted from the front, of which every tensor has a slice at least. */
function scannedDim(tensors: Leaves, dim: number): number {
  const { ndim } = tensors[0] as Tensor;
  if (dim < -ndim || dim >= ndim) {
    throw fxError(
      "IndexOutOfRange",
      `the dimension ${dim} of associativeScan is out of range for tensors of rank ${ndim}`,
    );
  }
  const along = dim < 0 ? dim + ndim : dim;
  if (tensors.every((it) => it.ndim > along && it.size(along) !== 0)) return along;
  throw invalid("All xs leaves must at least have 'dim' number of dimensions and scan dimension > 0");
}

/** From one slice to the next, so that no size has to be known. */
function scanned<X>(combine: (a: X, b: X) => X, xs: X, dim: number, reverse: boolean): X {
  const [leaves, spec] = treeFlatten(xs);
  const inTurn = (x: Tensor): Tensor => (reverse ? x.flip([0]) : x);
  const slices = leaves.map((it) => inTurn((it as Tensor).movedim(dim, 0)));
  if (slices[0]?.shape[0] === 1) return xs;
  const first = slices.map((it) => it.select(0, 0));
  const rest = slices.map((it) => it.get(slice(1, null)));
  const step = (sum: X, x: X): readonly [X, X] => {
    const next = combine(sum, x);
    // A graph must not give one tensor twice.
    return [next, treeMap((it) => (it as Tensor).clone(), next) as X];
  };
  checkInsteadOf(step, combine);
  const [, sums] = scan(step, treeUnflatten(first, spec) as X, treeUnflatten(rest, spec) as X);
  const wholes = treeFlatten(sums)[0].map((it, at) => {
    const whole = cat([(first[at] as Tensor).unsqueeze(0), it]) as Tensor;
    return inTurn(whole).movedim(0, dim);
  });
  return treeUnflatten(wholes, spec) as X;
}

function invalid(reason: string): FxError {
  return fxError("InvalidArgument", reason);
}
