/**
 * What there is to know of a tensor besides its elements: what {@link ShapeProp} notes about nodes.
 *
 * @module
 */
import type { DType } from "../../../bindings/dtypes.ts";
import { layoutOf } from "./tensors.ts";
import { SymExpr, TensorMeta } from "../graph/val.ts";
import { device, layout, type MemoryFormatName } from "../base/values.ts";
import type { Tensor } from "../tensor/tensor.ts";

const CPU = device("cpu");
const STRIDED = layout("strided");

/** FX's `TensorMetadata`. The engine has no quantized tensors, so nothing is said about quantization. */
export interface TensorMetadata {
  readonly shape: readonly number[];
  readonly dtype: DType;
  readonly requiresGrad: boolean;
  /** In elements. */
  readonly stride: readonly number[];
  /** The order in which the elements lie without gaps; `undefined` where it is none that has a name. */
  readonly memoryFormat: MemoryFormatName | undefined;
}

/** For each format, how many dimensions it is for and these from the innermost to the outermost in memory. */
const CHANNELS_LAST = [
  ["channels_last", [1, 3, 2, 0]],
  ["channels_last_3d", [1, 4, 3, 2, 0]],
] as const;

/** What `ShapeProp` notes about a tensor of which this is known; `undefined` where a size is symbolic. */
export function metadataOfVal({ sizes, strides, dtype, requiresGrad }: TensorMeta): TensorMetadata | undefined {
  const known = [sizes, strides].map((dims) => dims.flatMap((it) => (it instanceof SymExpr ? [] : [Number(it)])));
  const [shape = [], stride = []] = known;
  if (shape.length < sizes.length || stride.length < strides.length) return undefined;
  Object.freeze(shape);
  Object.freeze(stride);
  return Object.freeze({ shape, dtype, requiresGrad, stride, memoryFormat: memoryFormatOf(shape, stride) });
}

/** The abstract value of a tensor, as exported programs note it. */
export function tensorVal(tensor: Tensor): TensorMeta {
  const { strides, offset } = layoutOf(tensor);
  return new TensorMeta({
    dtype: tensor.dtype,
    sizes: tensor.shape,
    strides,
    storageOffset: offset,
    device: CPU,
    layout: STRIDED,
    requiresGrad: tensor.requiresGrad,
  });
}

/** The first format in which elements with these strides lie without gaps, by PyTorch's rules. */
export function memoryFormatOf(shape: readonly number[], stride: readonly number[]): MemoryFormatName | undefined {
  if (shape.includes(0)) return "contiguous_format";
  const liesIn = (order: readonly number[]): boolean => {
    let expected = 1;
    for (const dim of order) {
      const size = shape[dim] as number;
      // The stride of a dimension of one element is never used.
      if (size === 1) continue;
      if (stride[dim] !== expected) return false;
      expected *= size;
    }
    return true;
  };
  if (liesIn([...shape.keys()].toReversed())) return "contiguous_format";
  return CHANNELS_LAST.find(([, order]) => order.length === shape.length && liesIn(order))?.[0];
}
