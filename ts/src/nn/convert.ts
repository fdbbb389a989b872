/**
 * Modules in another dtype.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { callOperator } from "../engine/dispatch.ts";
import { fxError } from "../base/errors.ts";
import { dtype as dtypeArg } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";
import type { Module } from "./module.ts";
import { Parameter } from "./parameter.ts";

/** Puts converted tensors in the place of the parameters and buffers that are floats. What is one stays one. */
export function convertModule(module: Module, dtype: DType): void {
  const kind = Object.hasOwn(DTYPES, dtype) ? DTYPES[dtype].kind : undefined;
  if (kind !== "float" && kind !== "complex") {
    throw fxError(
      "InvalidArgument",
      `nn.Module.to only accepts floating point or complex dtypes, but got desired dtype=torch.${dtype}`,
    );
  }
  const converted = new Map<Tensor, Tensor>();
  for (const { attributes } of module.modules()) {
    for (const [name, attribute] of attributes) {
      if (attribute.kind !== "parameter" && attribute.kind !== "buffer") continue;
      const { tensor } = attribute;
      if (tensor.dtype === dtype || !(tensor.isFloatingPoint() || tensor.isComplex())) continue;
      const res = converted.get(tensor) ?? convert(tensor, dtype);
      converted.set(tensor, res);
      attributes.set(name, { ...attribute, tensor: res });
    }
  }
}

function convert(tensor: Tensor, dtype: DType): Tensor {
  const { requiresGrad } = tensor;
  const res = callOperator("aten.to", [tensor, dtypeArg(dtype)]) as Tensor;
  return tensor instanceof Parameter ? new Parameter(res, { requiresGrad }) : res;
}
