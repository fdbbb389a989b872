/**
 * Shapes by running: `torch.fx.passes.shape_prop.ShapeProp`.
 *
 * @module
 */
import { isOptions } from "../functions/naming.ts";
import type { GraphModule } from "../graph/module.ts";
import type { Node } from "../graph/node.ts";
import { isVal, type Val, ValSequence } from "../graph/val.ts";
import { Float, ValueTuple } from "../graph/values.ts";
import { Tensor } from "../tensor/tensor.ts";
import { Interpreter } from "./interpreter.ts";
import { type TensorMetadata, tensorMetadata, tensorVal } from "./tensorMetadata.ts";

/**
 * Runs a graph on example inputs and notes about each node what it gave: `meta.tensor_meta` with FX's
 * {@link TensorMetadata} in place of each tensor, `meta.val` with the abstract value that printing and exported programs
 * use, and `meta.type` with the Python type.
 *
 * @example
 * ```ts
 * new ShapeProp(gm).propagate(tensor([[1, 2, 3]]));
 * for (const node of gm.graph.nodes) console.log(node.name, node.meta.get("tensor_meta"));
 * ```
 */
export class ShapeProp extends Interpreter {
  constructor(module: GraphModule) {
    super(module, { disposeValues: new.target === ShapeProp });
  }

  /** Runs the graph on these inputs, notes what the nodes gave, and gives the output. */
  propagate(...args: readonly unknown[]): unknown {
    return this.run(...args);
  }

  /** Runs one node and notes what it gave. */
  override runNode(node: Node): unknown {
    const value = super.runNode(node);
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

/** A value with metadata in place of its tensors. */
function metadataOf(value: unknown): unknown {
  if (value instanceof Tensor) return tensorMetadata(value) satisfies TensorMetadata;
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
  if (value instanceof ValueTuple) return "tuple";
  if (Array.isArray(value)) return "list";
  return isOptions(value) ? "dict" : value.constructor.name;
}
