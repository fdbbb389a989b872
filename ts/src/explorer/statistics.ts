/**
 * What the elements of a tensor are like.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import { DTYPES } from "../../../bindings/dtypes.ts";

/** What the elements of a tensor are like. Minimum, maximum, mean and deviation are those of the finite ones. */
export interface Statistics {
  readonly count: number;
  readonly min: number;
  readonly max: number;
  readonly mean: number;
  /** The standard deviation, with the count as divisor. */
  readonly deviation: number;
  readonly nans: number;
  readonly infinities: number;
  readonly zeros: number;
  /** How many finite elements there are from the minimum to the maximum, in parts of equal length. */
  readonly histogram: readonly number[];
}

const PARTS = 32;

/** The statistics of a tensor; undefined of complex numbers, which have no order. */
export function statisticsOf(tensor: Tensor): Statistics | undefined {
  return DTYPES[tensor.dtype].kind === "complex" ? undefined : statisticsOfElements(tensor.toFloat32Array());
}

/**
 * The statistics of numbers.
 *
 * @example
 * ```ts
 * statisticsOfElements(Float32Array.of(1, 3, Number.NaN)).mean; // 2
 * ```
 */
export function statisticsOfElements(elements: Float32Array): Statistics {
  let [min, max, sum, nans, infinities, zeros] = [Infinity, -Infinity, 0, 0, 0, 0];
  for (const it of elements) {
    if (!Number.isFinite(it)) {
      if (Number.isNaN(it)) nans++;
      else infinities++;
      continue;
    }
    if (it === 0) zeros++;
    if (it < min) min = it;
    if (it > max) max = it;
    sum += it;
  }
  const n = elements.length - nans - infinities;
  if (n === 0) [min, max] = [Number.NaN, Number.NaN];
  const mean = sum / n;
  const histogram = Array.from({ length: PARTS }, () => 0);
  const scale = max > min ? PARTS / (max - min) : 0;
  let squares = 0;
  for (const it of elements) {
    if (!Number.isFinite(it)) continue;
    squares += (it - mean) ** 2;
    const part = Math.min(PARTS - 1, Math.floor((it - min) * scale));
    histogram[part] = (histogram[part] as number) + 1;
  }
  return {
    count: elements.length,
    min,
    max,
    mean,
    deviation: Math.sqrt(squares / n),
    nans,
    infinities,
    zeros,
    histogram,
  };
}

/** The statistics in words, a name and a number each. */
export function statisticsRows(it: Statistics): [name: string, value: string][] {
  const rows: [string, string][] = [
    ["elements", it.count.toLocaleString("en")],
    ["minimum", short(it.min)],
    ["maximum", short(it.max)],
    ["mean", short(it.mean)],
    ["deviation", short(it.deviation)],
    ["zeros", it.zeros.toLocaleString("en")],
  ];
  if (it.nans > 0) rows.push(["NaN", it.nans.toLocaleString("en")]);
  if (it.infinities > 0) rows.push(["infinite", it.infinities.toLocaleString("en")]);
  return rows;
}

function short(value: number): string {
  return Number.isNaN(value) ? "–" : String(Number(value.toPrecision(5)));
}
