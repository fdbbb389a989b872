/**
 * The parameters and buffers that layers begin with, and the checks of what they are called with.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { callOperator } from "../engine/dispatch.ts";
import { isLoaded } from "../engine/engine.ts";
import { fxError } from "../base/errors.ts";
import { HostStorage, type TensorStorage } from "../tensor/storage.ts";
import { checkShape, moveTensor, Tensor, tensorStorage } from "../tensor/tensor.ts";
import { isTraced } from "../record/record.ts";
import type { Bound, FactoryOptions } from "./arguments.ts";
import { onEngine } from "./deferred.ts";
import type { Module } from "./module.ts";
import { Parameter } from "./parameter.ts";

/** A parameter of zeros, which a layer then initialises. */
export function newParameter(
  shape: readonly number[],
  { dtype }: Pick<Bound<FactoryOptions>, "dtype">,
  requiresGrad = true,
): Parameter {
  return new Parameter(newBuffer(shape, dtype ?? "float32"), { requiresGrad });
}

/** A tensor of zeros, which a layer then initialises. Before the engine is loaded its elements cannot be read. */
export function newBuffer(shape: readonly number[], dtype: DType): Tensor {
  if (isLoaded()) return zeros(shape, dtype);
  const res = new Tensor(dtype, shape, new PendingStorage(checkShape(shape) * DTYPES[dtype].size));
  onEngine(() => moveTensor(res, new HostStorage(new Uint8Array(res.nbytes))));
  return res;
}

/** A tensor of zeros. */
export function zeros(shape: readonly number[], dtype: DType): Tensor {
  return new Tensor(dtype, shape, new HostStorage(new Uint8Array(checkShape(shape) * DTYPES[dtype].size)));
}

/** Whether the elements of a tensor are drawn when the engine is loaded. */
export function isPending(tensor: Tensor): boolean {
  return tensorStorage(tensor) instanceof PendingStorage;
}

/** A copy of a tensor whose elements are not drawn yet, which then gets them too. */
export function copyPending(tensor: Tensor): Tensor {
  const { dtype, shape, requiresGrad } = tensor;
  const res = tensor instanceof Parameter ? newParameter(shape, { dtype }, requiresGrad) : newBuffer(shape, dtype);
  onEngine(() => callOperator("aten.copy_", [res, tensor]));
  return res;
}

/** The place of elements that are drawn when the engine is loaded. */
class PendingStorage implements TensorStorage {
  readonly needsFree = false;
  readonly byteLength: number;

  constructor(byteLength: number) {
    this.byteLength = byteLength;
  }

  bytes(): never {
    throw fxError("NotLoaded", "the parameters of a module are drawn by the engine, which is not loaded", {
      help: "await init() first; the module may be made, traced and printed before",
    });
  }

  free(): void {}
}

/**
 * The number of dimensions of an input. A module whose path depends on it cannot be traced into, as in PyTorch: it is a
 * leaf of the graph of a module that calls it.
 */
export function rankOf(module: Module, input: Tensor): number {
  if (!isTraced(input)) return input.shape.length;
  throw untraceable(module, "the number of dimensions of its input");
}

/** The refusal to look into a module whose path depends on a value. */
export function untraceable(module: Module, on: string) {
  return fxError("TraceControlFlow", `what ${module.className} does depends on ${on}, which a trace does not know`, {
    help: "trace a module that calls it: there it is a leaf",
  });
}

/** A refusal of the input of a module. */
export function badInput(reason: string, help?: string) {
  return fxError("InvalidArgument", reason, help === undefined ? {} : { help });
}
