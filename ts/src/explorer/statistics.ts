/**
 * What the elements of a tensor are like.
 *
 * @module
 */
import type { Tensor } from "../tensor/tensor.ts";
import { type DType, DTYPES } from "../../../bindings/dtypes.ts";
import { realAt } from "../tensor/elements.ts";

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
  const elements = elementsOf(tensor);
  return elements === undefined ? undefined : statisticsOfElements(elements);
}

/** The elements of a tensor as numbers, in double precision where a float32 cannot hold all of them; undefined of complex numbers. */
export function elementsOf(tensor: Tensor): Float32Array | Float64Array | undefined {
  const { dtype } = tensor;
  if (DTYPES[dtype].kind === "complex") return undefined;
  if (!WIDE.has(dtype)) return tensor.toFloat32Array();
  const { data } = tensor;
  return Float64Array.from({ length: tensor.numel() }, (_, at) => realAt(dtype, data, at));
}

const WIDE: ReadonlySet<DType> = new Set<DType>(["float64", "int64", "uint64", "int32", "uint32"]);
/** Squares of elements from here on, or sums of such, are no finite numbers. */
const LARGE = 1e150;

/**
 * The statistics of numbers.
 *
 * @example
 * ```ts
 * statisticsOfElements(Float32Array.of(1, 3, Number.NaN)).mean; // 2
 * ```
 */
export function statisticsOfElements(elements: Float32Array | Float64Array): Statistics {
  let [min, max, nans, infinities, zeros] = [Infinity, -Infinity, 0, 0, 0];
  for (const it of elements) {
    if (!Number.isFinite(it)) {
      if (Number.isNaN(it)) nans++;
      else infinities++;
      continue;
    }
    if (it === 0) zeros++;
    if (it < min) min = it;
    if (it > max) max = it;
  }
  const n = elements.length - nans - infinities;
  if (n === 0) [min, max] = [Number.NaN, Number.NaN];
  const largest = Math.max(-min, max);
  const unit = largest > LARGE ? largest : 1;
  let sum = 0;
  for (const it of elements) if (Number.isFinite(it)) sum += it / unit;
  const mean = (sum / n) * unit;
  const histogram = Array.from({ length: PARTS }, () => 0);
  const scale = max > min ? PARTS / (max / unit - min / unit) : 0;
  let squares = 0;
  for (const it of elements) {
    if (!Number.isFinite(it)) continue;
    squares += (it / unit - mean / unit) ** 2;
    const part = Math.min(PARTS - 1, Math.floor((it / unit - min / unit) * scale));
    histogram[part] = (histogram[part] as number) + 1;
  }
  return {
    count: elements.length,
    min,
    max,
    mean,
    deviation: Math.sqrt(squares / n) * unit,
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
