/**
 * Resampling of images by Lanczos' window, with averages where the result is smaller.
 *
 * The window is a product of one for rows and one for columns, so the result is `rows @ image @ columns.T` with two matrices
 * of weights.
 *
 * @module
 */
import { tensor } from "../../tensor/construct.ts";
import type { Tensor } from "../../tensor/tensor.ts";
import { aten, isFloat, refuse } from "./aten.ts";

/** How many lobes of the window there are on each side. */
const LOBES = 3;

/** The image `(N, C, H, W)` at the size `[H', W']`; `scales` are how many times larger it is, where that was given. */
export function lanczos(image: Tensor, size: readonly number[], scales: readonly number[] | null): Tensor {
  if (!isFloat(image)) throw refuse("DTypeMismatch", `lanczos is not implemented for ${image.dtype}`, "use x.float()");
  const [rows, columns] = [0, 1].map((dim) =>
    weights(image, image.shape[2 + dim] as number, size[dim] as number, scales?.[dim]),
  ) as [Tensor, Tensor];
  return aten("matmul", aten("matmul", rows, image), aten("transpose", columns, 0, 1));
}

/** The weights of all inputs in each output, `(outputs, inputs)`, of the dtype of the image. */
function weights(image: Tensor, inputs: number, outputs: number, factor: number | undefined): Tensor {
  const scale = factor === undefined ? inputs / outputs : 1 / factor;
  // A smaller result averages over so many inputs more.
  const stretch = Math.max(scale, 1);
  const support = LOBES * stretch;
  const data = new Float64Array(outputs * inputs);
  for (let output = 0; output < outputs; output++) {
    const center = scale * (output + 0.5);
    const first = Math.max(Math.trunc(center - support + 0.5), 0);
    const last = Math.min(Math.trunc(center + support + 0.5), inputs);
    const row = data.subarray(output * inputs, (output + 1) * inputs);
    for (let input = first; input < last; input++) row[input] = windowAt((input - center + 0.5) / stretch);
    const sum = row.reduce((total, it) => total + it, 0);
    if (sum !== 0) for (let input = first; input < last; input++) row[input] = (row[input] as number) / sum;
  }
  return aten("to", tensor(data, { shape: [outputs, inputs] }), image.dtype);
}

/** Lanczos' window: `sinc(x) * sinc(x / 3)` within three of zero. */
function windowAt(x: number): number {
  return Math.abs(x) < LOBES ? sinc(x) * sinc(x / LOBES) : 0;
}

function sinc(x: number): number {
  return x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
}
