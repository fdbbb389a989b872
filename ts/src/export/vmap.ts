/**
 * Functions of one example as functions of many: `torch.func.vmap`.
 *
 * @module
 */
import { RANDOM_OPERATORS } from "../../../bindings/effects.ts";
import { type FxError, fxError } from "../base/errors.ts";
import { checkFunction, checkGiven, checkOptions } from "../base/given.ts";
import { callOperator } from "../engine/dispatch.ts";
import { schemasOf } from "../functions/schemas.ts";
import { callFunction } from "../functions/table.ts";
import { type Arg, argValue, isNode } from "../graph/args.ts";
import type { Node } from "../graph/node.ts";
import { type SymInt, TensorMeta } from "../graph/val.ts";
import { Tensor } from "../tensor/tensor.ts";
import { type PytreeSpec, treeFlatten, treeUnflatten } from "../trace/pytree.ts";
import { ofPackage } from "../trace/subgraph.ts";
import { type ClosedFunction, closed, metaOf, unknownSizes } from "./closedFunction.ts";
import { isPointwise } from "./dispatchFacts.ts";
import { refuseInputWrites } from "./inputWrites.ts";
import { isDynamic } from "./knownParts.ts";
import { typeName } from "./moduleInputs.ts";

/** The dimension that holds the examples: of all tensors, or of each in the structure of the arguments; `null` where none does. */
export type VmapDims = number | null | readonly VmapDims[] | { readonly [key: string]: VmapDims };

/** How {@link vmap} goes over examples. */
export interface VmapOptions {
  /** Where the arguments have the examples, the first dimension by default. */
  readonly inDims?: VmapDims;
  /** Where the results have them, the first dimension by default. */
  readonly outDims?: VmapDims;
  /** Whether each example has random numbers of its own (`"different"`); by default they are refused. */
  readonly randomness?: "error" | "different";
  /** How many examples are taken together. */
  readonly chunkSize?: number;
}

const DRAWING = new Set(RANDOM_OPERATORS);

type Randomness = NonNullable<VmapOptions["randomness"]>;

/**
 * The function that does to each of many examples what another one does to one: `torch.func.vmap`. What works element by element is done
 * to all of them at once; any other function is called once for each, and what it gives is stacked.
 *
 * @example
 * ```ts
 * func.vmap(torch.dot)(xs, ys);
 * func.vmap((x: Tensor, w: Tensor) => x.matmul(w), { inDims: [0, null] })(xs, w);
 * func.vmap(func.grad(loss), { inDims: [null, 0, 0] })(parameters, xs, ys); // gradients of each example
 * ```
 */
export function vmap<A extends readonly unknown[]>(
  f: (...args: A) => unknown,
  options: VmapOptions = {},
): (...args: A) => unknown {
  checkFunction("vmap", "f", f);
  checkOptions("vmap", options, ["inDims", "outDims", "randomness", "chunkSize"]);
  const { inDims = 0, outDims = 0, randomness = "error", chunkSize } = options;
  checkRandomness(randomness);
  checkChunkSize(chunkSize);
  const name = f.name === "" ? "<lambda>" : f.name;
  return ofPackage((...args: A): unknown => {
    const batch = new Batch(name, inDims, args);
    const size = chunkSize ?? batch.count;
    const fn = f as unknown as (...args: unknown[]) => unknown;
    if (size >= batch.count) return batch.results(fn, outDims, randomness);
    const starts = Array.from({ length: Math.ceil(batch.count / size) }, (_, at) => at * size);
    const chunks = starts.map((it) => treeFlatten(batch.slice(it, size).results(fn, outDims, randomness)));
    const [leaves = [], spec] = chunks[0] as (typeof chunks)[number];
    const dims = dimsOf(outDims, spec, name, "out");
    const all = leaves.map((leaf, at) =>
      dims[at] === null ? leaf : callOperator("aten.cat", [chunks.map(([it]) => it[at]), dims[at]]),
    );
    return treeUnflatten(all, spec);
  });
}

function checkRandomness(randomness: string): void {
  if (randomness === "same") {
    throw fxError("NotImplemented", "vmap where all examples have the same random numbers", {
      help: "draw them outside of the function, and give them as an argument with null in inDims",
    });
  }
  if (randomness === "error" || randomness === "different") return;
  throw refused(`Only allowed values for randomness are 'error', 'different', or 'same'. Got ${String(randomness)}`);
}

function checkChunkSize(size: number | undefined): void {
  if (size === undefined) return;
  checkGiven("vmap", Number.isInteger(size), "a whole number as chunkSize");
  if (size <= 0) throw refused(`vmap: chunk_size should be None or greater than 0. (got ${size})`);
}

/** Arguments of many examples. */
class Batch {
  readonly count: number;
  readonly #name: string;
  readonly #leaves: readonly unknown[];
  readonly #dims: readonly (number | null)[];
  readonly #spec: PytreeSpec;

  constructor(name: string, inDims: VmapDims, args: readonly unknown[]) {
    this.#name = name;
    [this.#leaves, this.#spec] = treeFlatten([...args]);
    const call = `vmap(${name}, in_dims=${dimsText(inDims)}, ...)(<inputs>)`;
    if (inDims === null || (typeof inDims !== "number" && typeof inDims !== "object")) {
      throw refused(
        `${call}: expected \`in_dims\` to be int or a (potentially nested) tuple matching the structure of inputs, got: ${inDims === null ? "null" : typeof inDims}.`,
      );
    }
    if (this.#leaves.length === 0) {
      throw refused(
        `vmap(${name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs. The latter is unsupported.`,
      );
    }
    this.#dims = dimsOf(inDims, this.#spec, name, "in").map((dim, at) => checkedDim(dim, this.#leaves[at], call));
    if (this.#leaves.some((it) => it instanceof Tensor && isDynamic(metaOf(it)))) throw unknownSizes();
    const sizes = this.#dims.flatMap((dim, at) => (dim === null ? [] : [(this.#leaves[at] as Tensor).size(dim)]));
    if (sizes.some((it) => it !== sizes[0])) {
      throw refused(
        `vmap: Expected all tensors to have the same size in the mapped dimension, got sizes [${sizes.join(", ")}] for the mapped dimension`,
      );
    }
    if (sizes.length === 0) throw refused("vmap: Expected at least one Tensor to vmap over");
    this.count = Number(sizes[0]);
  }

  /** Some of the examples. */
  slice(start: number, size: number): Batch {
    const count = Math.min(size, this.count - start);
    const leaves = this.#leaves.map((it, at) =>
      this.#dims[at] === null ? it : callOperator("aten.narrow", [it, this.#dims[at], start, count]),
    );
    const [dims, args] = [this.#dims, leaves].map((it) => treeUnflatten(it, this.#spec));
    return new Batch(this.#name, dims as VmapDims, args as unknown[]);
  }

  results(f: (...args: unknown[]) => unknown, outDims: VmapDims, randomness: Randomness): unknown {
    const argumentsOf = (leaves: readonly unknown[]): unknown[] => treeUnflatten(leaves, this.#spec) as unknown[];
    const flat = (...leaves: unknown[]): unknown => f(...argumentsOf(leaves));
    const one = this.#leaves.map((_, at) => this.#known(at));
    const fn = closed(f, one, { argumentsOf });
    const examples = this.#examplesOf(fn);
    refuseInputWrites(fn.graph, (node, input) => (examples.has(input) ? undefined : writeRefused(node)));
    const isRandom = Array.from(fn.graph.nodes).some(isDrawn);
    if (isRandom && randomness === "error") {
      throw refused(
        "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap",
      );
    }
    for (const it of fn.results) {
      if (isNode(it) && it.meta.get("val") instanceof TensorMeta) continue;
      const type = isNode(it) ? "number" : typeName(it);
      throw refused(
        `vmap(${this.#name}, ...): \`${this.#name}\` must only return Tensors, got type ${type}. Did you mean to set out_dims= to None for output?`,
      );
    }
    const dims = dimsOf(outDims, fn.outSpec, this.#name, "out");
    const ofExamples = dependents(fn, examples);
    for (const [at, it] of (fn.results as readonly Node[]).entries()) {
      if (dims[at] !== null || !(isRandom || ofExamples.has(it))) continue;
      throw refused(`vmap(${this.#name}, ...): \`${this.#name}\` can not return a BatchedTensor when out_dim is None`);
    }
    const all = (isRandom ? undefined : this.#atOnce(fn, dims)) ?? this.#oneByOne(flat, dims, fn);
    return treeUnflatten(all, fn.outSpec);
  }

  /** The inputs that are of one example. */
  #examplesOf(fn: ClosedFunction): Set<Node> {
    const tensors = this.#leaves.flatMap((it, at) => (it instanceof Tensor ? [at] : []));
    return new Set(fn.inputs.filter((_, at) => this.#dims[tensors[at] as number] !== null));
  }

  /** What is known of an argument of one example. */
  #known(at: number): unknown {
    const [leaf, dim] = [this.#leaves[at], this.#dims[at] ?? null];
    if (dim === null) return leaf;
    const meta = metaOf(leaf as Tensor);
    const [sizes, strides] = [meta.sizes, meta.strides].map((it) => it.toSpliced(dim, 1));
    return new TensorMeta({ ...meta, sizes: sizes as SymInt[], strides: strides as SymInt[] });
  }

  /** One example of an argument; with `isApart` it lies in a storage of its own, as all examples together lie in theirs. */
  #example(at: number, example: number, isApart: boolean): unknown {
    const dim = this.#dims[at];
    if (dim === null) return this.#leaves[at];
    const view = callOperator("aten.select", [this.#leaves[at], dim, example]) as Tensor;
    return isApart ? apart(this.#leaves[at] as Tensor, view) : view;
  }

  #oneByOne(f: (...leaves: unknown[]) => unknown, outDims: readonly (number | null)[], fn: ClosedFunction): unknown[] {
    if (this.count === 0) return (fn.results as readonly Node[]).map((it, at) => emptyOf(it, outDims[at] ?? null));
    // Offsets into memory are those of an example by itself.
    const isApart = Array.from(fn.graph.nodes).some(({ target }) => target.startsWith("torch.ops.aten.as_strided"));
    // What is written to an example apart would be lost.
    if (isApart) refuseInputWrites(fn.graph, writeApartRefused);
    const rows = Array.from(
      { length: this.count },
      (_, example) => treeFlatten(f(...this.#leaves.map((__, at) => this.#example(at, example, isApart))))[0],
    );
    return (rows[0] ?? []).map((first, at) =>
      outDims[at] === null ? first : callOperator("aten.stack", [rows.map((row) => row[at]), outDims[at]]),
    );
  }

  /** The results for all examples at once; undefined where that is not what the function does to each. */
  #atOnce(fn: ClosedFunction, outDims: readonly (number | null)[]): unknown[] | undefined {
    const tensors = this.#leaves.flatMap((it, at) => (it instanceof Tensor ? [at] : []));
    const batched = this.#examplesOf(fn);
    const calls = Array.from(fn.graph.nodes).filter((it) => it.op === "call_function" || it.op === "get_attr");
    for (const node of calls) {
      if (node.op === "get_attr") return undefined;
      if (!node.allInputNodes.some((it) => batched.has(it))) continue;
      if (!isElementwise(node, batched)) return undefined;
      batched.add(node);
    }
    const values = new Map<Node, unknown>(fn.free);
    // Where the examples are, of those that have them.
    const dims = new Map<Node, number>();
    for (const [at, node] of fn.inputs.entries()) {
      const [leaf, dim] = [this.#leaves[tensors[at] as number], this.#dims[tensors[at] as number] ?? null];
      values.set(node, leaf);
      if (dim !== null) dims.set(node, dim);
    }
    for (const node of calls) {
      const inputs = node.allInputNodes;
      const isAlone = inputs.length === 1 && rankOf(inputs[0] as Node) === rankOf(node);
      const valueOf = (it: Node): unknown => {
        const dim = dims.get(it);
        if (dim === undefined || isAlone) return values.get(it);
        return withRank(inFront(values.get(it), dim), rankOf(it), rankOf(node));
      };
      const args = node.args.map((it) => (isNode(it) ? valueOf(it) : argValue(it, valueOf)));
      const kwargs = Object.fromEntries(
        Object.entries(node.kwargs).map(([key, it]) => [key, isNode(it) ? valueOf(it) : argValue(it as Arg, valueOf)]),
      );
      values.set(node, callFunction(node.target, { args, kwargs }));
      const alone = isAlone ? dims.get(inputs[0] as Node) : 0;
      if (batched.has(node)) dims.set(node, alone ?? 0);
    }
    return (fn.results as readonly Node[]).map((it, at) => {
      const [value, dim, wanted] = [values.get(it), dims.get(it), outDims[at] ?? null];
      if (wanted === null) return value;
      if (dim !== undefined) return dim === wanted ? value : callOperator("aten.movedim", [value, dim, wanted]);
      const all = callOperator("aten.expand", [value, [this.count, ...(value as Tensor).shape]]);
      return wanted === 0 ? all : callOperator("aten.movedim", [all, 0, wanted]);
    });
  }
}

/**
 * An example in a copy of its memory. It has its strides, and begins where the tensor of all examples does, from where PyTorch counts the
 * offsets of `as_strided` in each.
 */
function apart(all: Tensor, view: Tensor): unknown {
  const offset = Number(metaOf(all).storageOffset);
  const { sizes, strides, storageOffset } = metaOf(view);
  const span = sizes.includes(0)
    ? 0
    : sizes.reduce<number>((sum, it, dim) => sum + (Number(it) - 1) * Number(strides[dim]), 1);
  const memory = callOperator("aten.as_strided", [all, [offset + span], [1], Number(storageOffset) - offset]);
  return callOperator("aten.as_strided", [callOperator("aten.clone", [memory]), sizes, strides, offset]);
}

function inFront(value: unknown, dim: number): unknown {
  return dim === 0 ? value : callOperator("aten.movedim", [value, dim, 0]);
}

function isElementwise(node: Node, batched: ReadonlySet<Node>): boolean {
  const name = node.target.replace(/^torch\.ops\./, "");
  if (!(node.meta.get("val") instanceof TensorMeta) || !isPointwise(name)) return false;
  // Tensors without dimensions hardly count for the dtype of a result, and all examples at once have one.
  const metas = node.allInputNodes.map((it) => it.meta.get("val") as TensorMeta);
  if (metas.some((it) => it.sizes.length === 0) && metas.some((it) => it.dtype !== metas[0]?.dtype)) return false;
  // What is written to must have the examples.
  const [self] = node.args;
  return !/^aten\.\w*[a-z0-9]_\./.test(name) || (isNode(self) && batched.has(self));
}

/** Whether a call draws random numbers; operators with dropout do where there is any. */
function isDrawn({ target, args, kwargs }: Node): boolean {
  const name = target.replace(/^torch\.ops\./, "");
  if (!DRAWING.has(name)) return false;
  if (!/dropout|attention|lstm|gru|rnn|rrelu/.test(name)) return true;
  const [, packet = "", overload = ""] = name.split(".");
  const schema = schemasOf(packet).find((it) => (it.overload || "default") === overload);
  return !(schema?.parameters ?? []).some(({ key, default: fallback }, at) => {
    const value = args[at] ?? kwargs[key] ?? fallback;
    if (/^train(?:ing)?$/.test(key)) return value === false;
    if (!/^(?:p|dropout|dropout_p)$/.test(key)) return false;
    // Where everything is dropped, nothing has to be drawn.
    return Number(value) === 0 || (Number(value) === 1 && /^(?:feature_)?(?:alpha_)?dropout_?$/.test(packet));
  });
}

/** What depends on examples. Behind a write that may be anything, since views are not followed. */
function dependents({ graph }: ClosedFunction, examples: ReadonlySet<Node>): Set<Node> {
  const res = new Set(examples);
  let isWritten = false;
  for (const node of graph.nodes) {
    isWritten ||= node.op === "call_function" && /^torch\.ops\.\w+\.\w*[a-z0-9]_\./.test(node.target);
    if (isWritten || node.allInputNodes.some((it) => res.has(it))) res.add(node);
  }
  return res;
}

/** A result of no examples. */
function emptyOf(result: Node, dim: number | null): unknown {
  const { sizes, dtype } = result.meta.get("val") as TensorMeta;
  if (dim === null) throw fxError("NotImplemented", "vmap over no examples, where a result is the same for all");
  const all = sizes.toSpliced(dim < 0 ? dim + sizes.length + 1 : dim, 0, 0);
  return callOperator("aten.zeros", [all], { dtype });
}

/** What one example writes into a tensor that all share, the others would see. */
function writeRefused({ target }: Node): FxError {
  return fxError("NotImplemented", "vmap of a function that writes to a tensor which all examples share", {
    op: target.replace(/^torch\.ops\./, ""),
    help: "give the tensor as an argument with a dimension of examples, or write to a clone()",
  });
}

function writeApartRefused({ target }: Node): FxError {
  return fxError("NotImplemented", "vmap of a function that writes to its argument, and views memory by as_strided", {
    op: target.replace(/^torch\.ops\./, ""),
    help: "write to a clone()",
  });
}

function rankOf(node: Node): number {
  return (node.meta.get("val") as TensorMeta).sizes.length;
}

function withRank(value: unknown, has: number, wants: number): unknown {
  let res = value;
  for (let rank = has; rank < wants; rank++) res = callOperator("aten.unsqueeze", [res, 1]);
  return res;
}

/** The dimension for each leaf of a structure. */
function dimsOf(dims: VmapDims, spec: PytreeSpec, name: string, side: "in" | "out"): (number | null)[] {
  const res: (number | null)[] = [];
  const visit = (dim: VmapDims, part: PytreeSpec): boolean => {
    if (dim === null || typeof dim === "number") {
      for (let at = 0; at < part.numLeaves; at++) res.push(dim);
      return true;
    }
    const [items, own] = Array.isArray(dim)
      ? [dim as readonly VmapDims[], undefined]
      : [Object.values(dim as object) as VmapDims[], JSON.stringify(Object.keys(dim))];
    const isSame = items.length === part.children.length && (own === undefined || own === JSON.stringify(part.context));
    return isSame && part.type !== undefined && items.every((it, at) => visit(it, part.children[at] as PytreeSpec));
  };
  if (visit(dims, spec)) return res;
  const structure = treeFlatten(dims)[1];
  throw refused(
    side === "in"
      ? `vmap(${name}, in_dims=${dimsText(dims)}, ...)(<inputs>): in_dims is not compatible with the structure of \`inputs\`. in_dims has structure ${structure} but inputs has structure ${spec}.`
      : `vmap(${name}, ..., out_dims=${dimsText(dims)})(<inputs>): out_dims is not compatible with the structure of \`outputs\`. out_dims has structure ${structure} but outputs has structure ${spec}.`,
  );
}

function checkedDim(dim: number | null, leaf: unknown, call: string): number | null {
  if (dim === null) return null;
  if (!(leaf instanceof Tensor)) {
    throw refused(
      `${call}: Got in_dim=${dim} for an input but the input is of type ${typeName(leaf)}. We cannot vmap over non-Tensor arguments, please use None as the respective in_dim`,
    );
  }
  if (Number.isInteger(dim) && dim < leaf.ndim && dim >= -leaf.ndim) return dim < 0 ? dim + leaf.ndim : dim;
  throw refused(
    `${call}: Got in_dim=${dim} for some input, but that input is a Tensor of dimensionality ${leaf.ndim} so expected in_dim to satisfy -${leaf.ndim} <= in_dim < ${leaf.ndim}.`,
  );
}

/** Dimensions as Python writes them. */
function dimsText(dims: VmapDims): string {
  if (dims === null) return "None";
  if (typeof dims !== "object") return String(dims);
  if (Array.isArray(dims)) return `(${(dims as readonly VmapDims[]).map(dimsText).join(", ")})`;
  return `{${Object.entries(dims)
    .map(([key, it]) => `'${key}': ${dimsText(it as VmapDims)}`)
    .join(", ")}}`;
}

function refused(reason: string): FxError {
  return fxError("InvalidArgument", reason);
}
