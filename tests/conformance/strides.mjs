/**
 * Tensors that lie in memory in other ways than row by row.
 *
 * @module
 */
import { DTYPES, tensorFromBytes } from "tracefx";

/** @typedef {import("tracefx").Tensor} Tensor */
/** @typedef {{ size: number[], stride?: number[], offset?: number }} View */

/**
 * The elements that a view of a flat tensor sees, row by row.
 * @type {(flat: Tensor, view: View) => Tensor}
 */
export function gathered(flat, view) {
  const [from, width] = bytesOf(flat);
  const count = view.size.reduce((a, b) => a * b, 1);
  const to = new Uint8Array(count * width);
  let at = 0;
  for (const position of positions(view)) {
    to.set(from.subarray(position * width, (position + 1) * width), at);
    at += width;
  }
  return tensorFromBytes(to, flat.dtype, view.size);
}

/**
 * The same elements with a gap after each, and with the dimensions the other way round in memory; as a flat tensor and how
 * to see it.
 * @type {(tensor: Tensor, view: View) => { flat: Tensor, size: number[], stride: number[], offset: number }}
 */
export function restrided(tensor, view) {
  const [from, width] = bytesOf(tensor);
  let step = 2;
  const stride = view.size.map((size) => {
    const own = step;
    step *= Math.max(size, 1);
    return own;
  });
  const copy = { size: view.size, stride, offset: 3 };
  const to = new Uint8Array((step + 3) * width);
  const places = positions(copy);
  for (const position of positions(view)) {
    const at = Number(places.next().value) * width;
    to.set(from.subarray(position * width, (position + 1) * width), at);
  }
  return { flat: tensorFromBytes(to, tensor.dtype, [step + 3]), ...copy };
}

/** Where the elements of a view lie, row by row. @type {(view: View) => Generator<number>} */
function* positions({ size, stride = contiguous(size), offset = 0 }) {
  const count = size.reduce((a, b) => a * b, 1);
  for (let index = 0; index < count; index++) {
    let rest = index;
    let position = offset;
    for (let dim = size.length - 1; dim >= 0; dim--) {
      const length = size[dim] ?? 1;
      position += (rest % length) * (stride[dim] ?? 0);
      rest = Math.floor(rest / length);
    }
    yield position;
  }
}

function contiguous(/** @type {number[]} */ size) {
  return size.map((_, dim) => size.slice(dim + 1).reduce((a, b) => a * b, 1));
}

/** The bytes of a tensor's elements, row by row, and how many each has. @type {(tensor: Tensor) => [Uint8Array, number]} */
function bytesOf(tensor) {
  const { data } = tensor;
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return [bytes, DTYPES[tensor.dtype].size];
}
