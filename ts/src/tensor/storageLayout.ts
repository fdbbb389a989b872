/**
 * How a tensor lies in its storage, wherever that is.
 *
 * @module
 */
import { contiguousStrides } from "./layout.ts";
import { type Tensor, tensorBytes } from "./tensor.ts";

/** How a tensor lies in its storage. */
export interface TensorLayout {
  /** The identity of the storage: tensors whose values are equal share it. */
  readonly storage: unknown;
  /** The length of the storage. */
  readonly byteLength: number;
  /** In elements. */
  readonly strides: readonly number[];
  /** The position of the first element in the storage, in elements. */
  readonly offset: number;
  /** The bytes of the storage, where they can be had: they are asked for when they are to be in the file. */
  readonly bytes?: () => Uint8Array;
}

/** Says how a tensor lies in its storage. */
export type LayoutOf = (tensor: Tensor) => TensorLayout;

/** The layout of a tensor in JavaScript's memory: row-major, in a storage of its own. */
export function hostLayout(tensor: Tensor): TensorLayout {
  const bytes = tensorBytes(tensor);
  return {
    storage: tensor,
    byteLength: bytes.length,
    strides: contiguousStrides(tensor.shape),
    offset: 0,
    bytes: () => bytes,
  };
}
