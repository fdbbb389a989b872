/**
 * What is known of shapes before a program runs: `torch.fx.tensor_type`.
 *
 * @module
 */
import { type FxError, fxError } from "../base/errors.ts";
import type { Node } from "../graph/node.ts";
import { isProxy, nodeOf } from "../trace/proxy.ts";
import { pass } from "../record/stack.ts";

class DynType {
  toString(): string {
    return "Dyn";
  }
}

/** The type of which nothing is known, and the dimension of which nothing is known. */
export const Dyn = new DynType();

/** A dimension: a size, {@link Dyn}, or the text of a size in terms of others, as inference writes it. */
export type TensorDim = number | string | typeof Dyn;

/** The type of a node. */
export type GradualType = TensorType | typeof Dyn;

/**
 * The type of a tensor with these dimensions.
 *
 * @example
 * ```ts
 * const image = new TensorType([1, 3, Dyn, Dyn]);
 * isConsistent(image, new TensorType([1, 3, 224, 224])); // true
 * String(image); // "TensorType[(1, 3, Dyn, Dyn)]"
 * ```
 */
export class TensorType {
  readonly dims: readonly TensorDim[];

  constructor(dims: readonly TensorDim[]) {
    if (!Array.isArray(dims)) throw notDims(dims);
    for (const it of dims) if (!isDim(it)) throw notDims(it);
    this.dims = [...dims];
  }

  /** The type that an annotation says, if it says one. */
  static parse(text: string | undefined): GradualType | undefined {
    if (text === "Dyn") return Dyn;
    const inner = /^TensorType\[[[(](.*?),?[\])]\]$/u.exec(text ?? "")?.[1];
    if (inner === undefined) return undefined;
    const parts = inner.split(",").map((it) => it.trim());
    const dims = parts
      .filter((it) => it !== "")
      .map((it) => (it === "Dyn" ? Dyn : /^-?\d+$/u.test(it) ? Number(it) : it));
    return new TensorType(dims);
  }

  /** Whether the other one is a type of the same dimensions. */
  equals(other: unknown): boolean {
    return other instanceof TensorType && String(this) === String(other);
  }

  /** The type in PyTorch's notation, which is how a node is annotated. */
  toString(): string {
    return `TensorType[(${this.dims.join(", ")}${this.dims.length === 1 ? "," : ""})]`;
  }
}

function isDim(it: unknown): boolean {
  return it === Dyn || typeof it === "string" || Number.isSafeInteger(it);
}

function notDims(it: unknown): FxError {
  return fxError("InvalidArgument", `${String(it)} is no dimension of a TensorType`, {
    help: "a dimension is a whole number or Dyn, as in new TensorType([1, 3, Dyn])",
  });
}

type Comparable = GradualType | TensorDim;

function holds(a: Comparable, b: Comparable, unknown: (a: Comparable, b: Comparable) => boolean): boolean {
  if (unknown(a, b)) return true;
  if (!(a instanceof TensorType && b instanceof TensorType)) return a === b;
  return a.dims.length === b.dims.length && a.dims.every((it, at) => holds(it, b.dims[at] ?? Dyn, unknown));
}

/** Whether two types or dimensions may be of one value. The relation is symmetric, and not transitive. */
export function isConsistent(a: Comparable, b: Comparable): boolean {
  return holds(a, b, (x, y) => x === Dyn || y === Dyn);
}

/** Whether `a` says at least as much as `b`. */
export function isMorePrecise(a: Comparable, b: Comparable): boolean {
  return holds(a, b, (_, y) => y === Dyn);
}

/**
 * Gives a traced value, or a node, a type, and gives the value back: `torch.fx.annotate`. Other values stay as they are.
 *
 * @example
 * ```ts
 * const gm = symbolicTrace((x: Tensor) => torch.add(annotate(x, new TensorType([2, Dyn])), 1));
 * ```
 * @throws {@link RewriteError} where the value has a type already.
 */
export function annotate<T>(value: T, type: GradualType): T {
  pass(annotate);
  const node = isProxy(value) ? nodeOf(value) : undefined;
  if (node !== undefined) annotateNode(node, type);
  return value;
}

/** Refuses what is no type, such as the list of its dimensions. */
export function checkType(what: string, type: GradualType): void {
  if (type === Dyn || type instanceof TensorType) return;
  throw fxError("InvalidArgument", `${what} takes a TensorType or Dyn`, {
    help: "new TensorType([1, 3, Dyn]) has two sizes that are known and one that is not",
  });
}

function annotateNode(node: Node, type: GradualType): void {
  checkType("annotate", type);
  if (node.type !== undefined) {
    const both = `existing type is ${node.type} and new type is ${String(type)}`;
    throw fxError("TypeInconsistent", `tried to annotate a value that already had a type on it: ${both}`, {
      node: node.name,
      help: "annotate a value once, an input where it is declared",
    });
  }
  node.type = String(type);
}
