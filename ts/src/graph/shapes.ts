/**
 * What is known of a tensor in PyTorch's short form: `f32[2, s77]`.
 *
 * @module
 */
import { DTYPES } from "../../../bindings/dtypes.ts";
import { formatExpression } from "./expression.ts";
import { SymExpr, type SymInt, type TensorMeta } from "./val.ts";

/** The parts of the short form. */
export interface FormattedTensor {
  /** The short name of the dtype, such as `f32`. */
  readonly dtype: string;
  readonly sizes: string;
  readonly strides: string;
  readonly device: string;
}

/** A size, stride or offset. */
export function formatSymInt(value: SymInt): string {
  return value instanceof SymExpr ? formatExpression(value) : value.toString();
}

/** The parts of the short form of a tensor: `f32`, `[2, s77]`, `[s77, 1]` and `cpu`. */
export function formatTensorMeta({ dtype, sizes, strides, device }: TensorMeta): FormattedTensor {
  return {
    dtype: DTYPES[dtype].short,
    sizes: formatShape(sizes),
    strides: formatShape(strides),
    device: device.toString(),
  };
}

function formatShape(shape: readonly SymInt[]): string {
  return `[${shape.map(formatSymInt).join(", ")}]`;
}
