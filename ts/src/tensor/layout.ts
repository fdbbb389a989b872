/**
 * How elements lie in memory.
 *
 * @module
 */
import { isSame, product } from "../base/sizes.ts";
import type { MemoryFormatName } from "../base/values.ts";

/** The row-major strides of these sizes, as PyTorch computes them: a size of zero counts as one. */
export function contiguousStrides(sizes: readonly number[]): number[] {
  const strides = sizes.map(() => 1);
  for (let dim = sizes.length - 1; dim > 0; dim--) {
    strides[dim - 1] = (strides[dim] as number) * Math.max(1, sizes[dim] as number);
  }
  return strides;
}

/** The dimensions from the innermost one outwards, for the formats that ask for a rank. */
const ORDERS: Partial<Record<MemoryFormatName, readonly number[]>> = {
  channels_last: [1, 3, 2, 0],
  channels_last_3d: [1, 4, 3, 2, 0],
};

/** Whether elements of these sizes and strides lie without gaps in the order of this format. Sizes of one may have any stride. */
export function isContiguous(sizes: readonly number[], strides: readonly number[], format: MemoryFormatName): boolean {
  const order = ORDERS[format] ?? sizes.map((_, at) => sizes.length - 1 - at);
  if (order.length !== sizes.length) return false;
  if (sizes.includes(0)) return ORDERS[format] === undefined;
  let expected = 1;
  for (const dim of order) {
    const size = sizes[dim] as number;
    if (isSame(strides[dim], expected)) expected = product(expected, size);
    else if (!isSame(size, 1)) return false;
  }
  return true;
}
