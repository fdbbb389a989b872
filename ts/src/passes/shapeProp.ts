/**
 * Shapes by running, or without: `torch.fx.passes.shape_prop.ShapeProp`.
 *
 * @module
 */
import { isOptions } from "../base/naming.ts";
import type { GraphModule } from "../fx/graphModule.ts";
import { type Node, noteVal } from "../graph/node.ts";
import { fxError } from "../base/errors.ts";
import { answerMembersOf } from "../base/pythonNames.ts";
import { isVal, SymExpr, TensorMeta, type Val, ValSequence } from "../graph/val.ts";
import { Float, ValueTuple } from "../base/values.ts";
import { checkOptions } from "../base/given.ts";
import { FakeTensorProp } from "./fakeTensorProp.ts";
import { Tensor } from "../tensor/tensor.ts";
import { Interpreter } from "../fx/interpreter.ts";
import { metadataOfVal, type TensorMetadata, tensorVal } from "../engine/tensorMetadata.ts";

/** How {@link ShapeProp} finds out shapes. */
export interface ShapePropOptions {
  /** Whether no numbers are computed: FX's `fake_mode`. */
  readonly fakeMode?: boolean;
}

/**
 * Runs a graph on example inputs and notes about each node what it gave: `meta.tensor_meta` with FX's
 * {@link TensorMetadata} in place of each tensor, `meta.val` with the abstract value that printing and exported programs
 * use, and `meta.type` with the Python type.
 *
 * In fake mode nothing is run, see {@link FakeTensorProp}: inputs may be abstract values, and so is the result. Sizes may be
 * symbolic, and where they are there is `meta.val` alone.
 *
 * @example
 * ```ts
 * new ShapeProp(gm).propagate(tensor([[1, 2, 3]]));
 * for (const node of gm.graph.nodes) console.log(node.name, node.meta.get("tensor_meta"));
 * new ShapeProp(gm, { fakeMode: true }).propagate(tensor([[1, 2, 3]]));
 * ```
 */
export class ShapeProp extends Interpreter {
  readonly fakeMode: boolean;
  readonly #graphModule: GraphModule;

  constructor(module: GraphModule, options: ShapePropOptions = {}) {
    checkOptions("ShapeProp", options, ["fakeMode"]);
    const { fakeMode = false } = options;
    super(module, { disposeValues: new.target === ShapeProp });
    this.fakeMode = fakeMode;
    this.#graphModule = module;
  }

  /** Finds out what the nodes give on these inputs, notes it, and gives the output. */
  propagate(...args: readonly unknown[]): unknown {
    return this.fakeMode ? this.#propagateFakes(args) : this.run(...args);
  }

  #propagateFakes(args: readonly unknown[]): Val | undefined {
    const inputs = args.map((it) => {
      if (it instanceof Tensor || isVal(it)) return it;
      throw fxError("InvalidArgument", "shapes are propagated from tensors, numbers and what is known of them");
    });
    const res = new FakeTensorProp(this.#graphModule).propagate(...inputs);
    for (const { meta } of this.#graphModule.graph.nodes) {
      for (const key of ["tensor_meta", "type"]) meta.delete(key);
      const val = meta.get("val");
      if (!isVal(val)) continue;
      const metadata = fakeMetadataOf(val);
      if (metadata !== undefined && holdsMetadata(val)) meta.set("tensor_meta", metadata);
      meta.set("type", pythonType(val));
    }
    return res;
  }

  /** Runs one node and notes what it gave. */
  override runNode(node: Node): unknown {
    const value = super.runNode(node);
    if (value instanceof Tensor && value.constructor === Tensor) {
      // The maps of all nodes take longer to make than the numbers of small graphs, and few of them are read.
      noteVal(node, tensorVal(value), tellTensor);
      return value;
    }
    const { meta } = node;
    // What an earlier run noted is not true of this one.
    for (const key of ["tensor_meta", "val"]) meta.delete(key);
    if (holdsTensor(value)) meta.set("tensor_meta", metadataOf(value));
    const val = valOf(value);
    if (val !== undefined) meta.set("val", val);
    meta.set("type", pythonType(value));
    return value;
  }
}

answerMembersOf(ShapeProp);

/** Notes what else there is to say of a tensor. */
function tellTensor(meta: Map<string, unknown>): void {
  const val = meta.get("val") as TensorMeta;
  meta.set("tensor_meta", metadataOfVal(val));
  meta.set("type", pythonType(val));
}

/** An abstract value with metadata in place of its tensors; `undefined` where a size is symbolic. */
function fakeMetadataOf(val: Val): unknown {
  if (val instanceof TensorMeta) return metadataOfVal(val);
  if (!(val instanceof ValSequence)) return val;
  const items = val.items.map(fakeMetadataOf);
  if (items.includes(undefined)) return undefined;
  return val.kind === "tuple" ? ValueTuple.frozen(items) : items;
}

function holdsMetadata(val: Val): boolean {
  return val instanceof TensorMeta || (val instanceof ValSequence && val.items.some(holdsMetadata));
}

/** A value with metadata in place of its tensors. */
function metadataOf(value: unknown): unknown {
  if (value instanceof Tensor) return metadataOfVal(tensorVal(value)) satisfies TensorMetadata | undefined;
  if (value instanceof ValueTuple) return ValueTuple.frozen(Array.from(value, metadataOf));
  if (Array.isArray(value)) return value.map(metadataOf);
  if (!isOptions(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, metadataOf(it)]));
}

function holdsTensor(value: unknown): boolean {
  if (value instanceof Tensor) return true;
  if (Array.isArray(value)) return value.some(holdsTensor);
  return isOptions(value) && Object.values(value).some(holdsTensor);
}

/** The abstract value, of what has one. */
function valOf(value: unknown): Val | undefined {
  if (value instanceof Tensor) return tensorVal(value);
  if (!Array.isArray(value)) return isVal(value) ? value : undefined;
  const items: Val[] = [];
  for (const it of value) {
    const val = valOf(it);
    if (val === undefined) return undefined;
    items.push(val);
  }
  return new ValSequence(value instanceof ValueTuple ? "tuple" : "list", items);
}

/** The name of the Python type of a value. */
function pythonType(value: unknown): string {
  if (value === null || value === undefined) return "NoneType";
  if (typeof value === "bigint") return "int";
  if (typeof value === "number") return Number.isInteger(value) && !Object.is(value, -0) ? "int" : "float";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "string") return "str";
  if (value instanceof Float) return "float";
  if (value instanceof TensorMeta) return "Tensor";
  if (value instanceof SymExpr) return "SymInt";
  if (value instanceof ValSequence) return value.kind;
  if (value instanceof ValueTuple) return "tuple";
  if (Array.isArray(value)) return "list";
  return isOptions(value) ? "dict" : value.constructor.name;
}
