/**
 * Indexing as PyTorch's: `x[1, ..., None, 2:5]` and masks, lists and tensors of positions.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import { callOperator } from "../engine/dispatch.ts";
import { fxError, type FxError } from "../base/errors.ts";
import { SymbolicNumber } from "../base/symbolic.ts";
import { EllipsisType, Slice, Tuple, ValueTuple } from "../base/values.ts";
import { tensorOf, type TensorInput } from "../tensor/construct.ts";
import { literal } from "../tensor/literal.ts";
import { Tensor } from "../tensor/tensor.ts";

/** One part of an index: a position, a range, `Ellipsis`, null for a new dimension, or positions and masks. */
export type IndexPart = number | bigint | boolean | null | Slice | EllipsisType | Tensor | readonly TensorInput[];

/** What can be written to a part of a tensor. */
export type IndexedValue = TensorInput | Tensor;

/** Python's `self[index]`; the parts of a tuple are for one dimension each. */
export function getItem(self: Tensor, index: unknown): Tensor {
  const { view, positions } = sliced(self, index, hasSymbolic);
  if (positions === undefined) return view === self ? (callOperator("aten.alias", [self]) as Tensor) : view;
  return callOperator("aten.index.Tensor", [view, positions]) as Tensor;
}

/** Python's `self[index] = value`. */
export function setItem(self: Tensor, index: unknown, value: IndexedValue): void {
  // As in PyTorch, a number becomes a tensor before the index is looked at.
  const source =
    value instanceof Tensor ? value : literal(tensorOf(value, { dtype: self.dtype }), { isDetached: false });
  const { view, positions } = sliced(self, index);
  if (positions === undefined) copyTo(view, source);
  else callOperator("aten.index_put_", [view, positions, withoutLeadingOnes(source)]);
}

/** Writes to all of a view; of the source, the first dimensions of one element need not fit. */
function copyTo(view: Tensor, source: Tensor): void {
  if (hasShape(source, view.shape)) callOperator("aten.copy_", [view, source]);
  else if (source.ndim === 0) callOperator("aten.fill_", [view, source]);
  else {
    const fitting = withoutLeadingOnes(source);
    callOperator("aten.copy_", [
      view,
      hasShape(fitting, view.shape) ? fitting : unary("aten.expand", fitting, view.shape),
    ]);
  }
}

function hasShape({ shape }: Tensor, sizes: readonly number[]): boolean {
  return shape.length === sizes.length && shape.every((size, at) => size === sizes[at]);
}

interface Sliced {
  /** What the positions, ranges and new dimensions of the index leave. */
  readonly view: Tensor;
  /** What is left to do: positions and masks by dimension. */
  readonly positions: readonly (Tensor | null)[] | undefined;
}

/** Whether a part is a number that is not known yet, or a range with one. */
function hasSymbolic(part: Part): boolean {
  if (!(part instanceof Slice)) return part instanceof SymbolicNumber;
  return [part.start, part.stop, part.step].some((it: unknown) => it instanceof SymbolicNumber);
}

/**
 * Applies everything in the index that a view can show. Where a part is of the kind `keepsEnds`, ends that are not said stay so,
 * as in PyTorch, which calls the operators one by one where it exports an index with a dynamic size.
 */
function sliced(self: Tensor, index: unknown, keepsEnds: (part: Part) => boolean = () => false): Sliced {
  const isTuple = index instanceof Tuple || index instanceof ValueTuple;
  const parts = Array.from<unknown, Part>(isTuple ? index : [index], checkPart);
  const named = parts.reduce<number>((count, part) => count + dimsOf(part), 0);
  if (named > self.ndim) {
    throw fxError("IndexOutOfRange", `too many indices for tensor of dimension ${self.ndim}: there are ${named}`);
  }
  const ends: Ends = parts.some(keepsEnds) ? [null, null] : [0, END];
  const walk: Walk = { view: self, dim: 0, rest: self.ndim - named, covered: 0, positions: [], ends };
  for (const part of parts) step(walk, part);
  if (walk.positions.length === 0) return { view: walk.view, positions: undefined };
  // Slots of the array that nothing was written to are dimensions that stay as they are.
  const positions = Array.from(walk.positions, (it) => it ?? null);
  return { view: walk.view, positions };
}

/** Where a range starts and ends of which nothing is said. */
type Ends = readonly [start: number | null, stop: bigint | null];

interface Walk {
  view: Tensor;
  readonly ends: Ends;
  /** The dimension of the view that the next part is for. */
  dim: number;
  /** The dimensions that an ellipsis stands for. */
  readonly rest: number;
  /** Positions and masks; a mask stands once, however many dimensions it has. */
  readonly positions: Tensor[];
  /** The dimensions that masks have beyond their first. */
  covered: number;
}

type Part = number | bigint | boolean | null | Slice | EllipsisType | SymbolicNumber | Tensor;

function step(walk: Walk, part: Part): void {
  if (part === null) {
    walk.view = unary("aten.unsqueeze", walk.view, walk.dim);
    walk.dim += 1;
  } else if (typeof part === "boolean") {
    walk.view = unary("aten.unsqueeze", walk.view, walk.dim);
    // One element of the new dimension, or none.
    walk.positions[walk.dim - walk.covered] = literal(tensorOf(part ? [0] : [], { dtype: "int64" }), {
      isDetached: false,
    });
    walk.dim += 1;
  } else if (typeof part === "number" || typeof part === "bigint" || part instanceof SymbolicNumber) {
    select(walk, part);
  } else if (part instanceof EllipsisType) {
    walk.dim += walk.rest;
  } else if (part instanceof Slice) {
    walk.view = cut(walk, part);
    walk.dim += 1;
  } else {
    pick(walk, part);
  }
}

function pick(walk: Walk, part: Tensor): void {
  if (part.ndim > 0) {
    walk.positions[walk.dim - walk.covered] = part;
    walk.dim += dimsOf(part);
    walk.covered += dimsOf(part) - 1;
    return;
  }
  const value = part.item();
  if (isMask(part)) step(walk, Boolean(value));
  else select(walk, value as number | bigint);
}

function select(walk: Walk, at: number | bigint | SymbolicNumber): void {
  if (walk.view.ndim === 0) {
    throw fxError("IndexOutOfRange", "a tensor without dimensions cannot be indexed by a position", {
      help: "item() gives its only element",
    });
  }
  walk.view = unary("aten.select", walk.view, walk.dim, at);
}

/** Where a slice ends that says no end, as Python has it. */
const END = 2n ** 63n - 1n;

function cut({ view, dim, ends }: Walk, { start, stop, step: stride }: Slice): Tensor {
  if (stride !== null && Number(stride) <= 0) {
    throw fxError("InvalidArgument", "slice step must be positive", { help: "flip turns a dimension around" });
  }
  if (start === null && stop === null && (stride === null || stride === 1)) return view;
  return unary("aten.slice.Tensor", view, dim, start ?? ends[0], stop ?? ends[1], stride ?? 1);
}

/** How many dimensions of the tensor a part is for. */
function dimsOf(part: Part): number {
  if (part === null || typeof part === "boolean" || part instanceof EllipsisType) return 0;
  if (part instanceof Tensor && isMask(part)) return part.ndim;
  return 1;
}

function isMask(part: Tensor): boolean {
  return part.dtype === "bool" || part.dtype === "uint8";
}

function checkPart(part: unknown): Part {
  if (part === null || typeof part === "boolean" || typeof part === "bigint") return part;
  if (part instanceof Slice || part instanceof EllipsisType || part instanceof SymbolicNumber) return part;
  if (part instanceof Tensor) {
    if (isMask(part) || DTYPES[part.dtype].kind === "int") return part;
    throw badPart(`a tensor of ${part.dtype}`);
  }
  if (typeof part === "number") {
    if (Number.isSafeInteger(part)) return part;
    throw badPart(`the number ${part}`);
  }
  if (Array.isArray(part)) return positionsOf(part as readonly TensorInput[]);
  throw badPart(part === undefined ? "undefined" : `a ${typeof part}`);
}

/** A list of positions or of a mask. */
function positionsOf(list: readonly TensorInput[]): Tensor {
  const made = tensorOf(list, list.length === 0 ? { dtype: "int64" } : {});
  if (made.dtype === "int64" || made.dtype === "bool") return literal(made, { isDetached: false });
  throw badPart("an array of other things than whole numbers or booleans");
}

function badPart(what: string): FxError {
  return fxError("InputType", `${what} is not an index`, {
    help: "index with whole numbers, slice(1, 5), Ellipsis, null, booleans, and arrays or tensors of ints or booleans",
  });
}

/** The same elements without the first dimensions of one element: those need not fit the target. */
function withoutLeadingOnes(source: Tensor): Tensor {
  const first = source.shape.findIndex((size) => size !== 1);
  const ones = first < 0 ? source.ndim : first;
  return ones === 0 ? source : unary("aten.view", source, source.shape.slice(ones));
}

function unary(name: string, ...args: readonly unknown[]): Tensor {
  return callOperator(name, args) as Tensor;
}
