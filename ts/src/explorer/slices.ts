/**
 * A slice of a value as a picture: which of its elements are rows and columns, and which colour a number has.
 *
 * @module
 */
import type { Elements } from "./run.ts";
import type { Rgb } from "./theme.ts";

/** Which elements are seen: two dimensions, and the place in each of the others. */
export interface SliceChoice {
  /** The dimension of the rows; −1 where the value has one dimension, which is then broken into rows. */
  readonly rows: number;
  readonly columns: number;
  /** The place in each dimension; those of rows and columns do not count. */
  readonly places: readonly number[];
}

/** A picture of numbers. */
export interface Slice {
  readonly width: number;
  readonly height: number;
  /** How far apart the elements are that are shown, where there are more than a picture has points. */
  readonly step: number;
  /** By rows; what is behind the last element of a line is left out. */
  readonly values: Float64Array;
  /** The least and the greatest of the finite ones; NaN where there are none. */
  readonly min: number;
  readonly max: number;
}

/** How wide and high a picture is at most, in elements. */
const MOST = 512;

/** The last two dimensions, at the beginning of the others; undefined where there is nothing to see. */
export function firstSlice({ shape, data }: Elements): SliceChoice | undefined {
  if (shape.length === 0 || data.length < 2) return undefined;
  return { rows: shape.length - 2, columns: shape.length - 1, places: shape.map(() => 0) };
}

/**
 * The elements of a slice, with a step where they are very many.
 *
 * @example
 * ```ts
 * const slice = sliceOf({ shape: [2, 3], data: Float32Array.of(0, 1, 2, 3, 4, 5) }, { rows: 0, columns: 1, places: [0, 0] });
 * slice.max; // 5
 * ```
 */
export function sliceOf({ shape, data }: Elements, { rows, columns, places }: SliceChoice): Slice {
  const strides = shape.map((_, at) => shape.slice(at + 1).reduce((product, it) => product * it, 1));
  const isLine = rows < 0;
  const n = shape[columns] ?? 1;
  const nColumns = isLine ? lineWidth(n) : n;
  const nRows = isLine ? Math.ceil(n / nColumns) : (shape[rows] ?? 1);
  const [downwards, across] = isLine ? [nColumns, 1] : [strides[rows] ?? 0, strides[columns] ?? 0];
  const start = isLine
    ? 0
    : places.reduce((sum, it, at) => sum + (at === rows || at === columns ? 0 : it * (strides[at] ?? 0)), 0);
  const step = Math.max(1, Math.ceil(nRows / MOST), Math.ceil(nColumns / MOST));
  const [width, height] = [Math.ceil(nColumns / step), Math.ceil(nRows / step)];
  const values: number[] = [];
  let [min, max] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (let at = 0; at < width * height; at++) {
    const value = data[start + Math.floor(at / width) * step * downwards + (at % width) * step * across];
    // The last row of a line is not full.
    if (value === undefined) break;
    values.push(value);
    if (!Number.isFinite(value)) continue;
    min = Math.min(min, value);
    max = Math.max(max, value);
  }
  if (min > max) [min, max] = [Number.NaN, Number.NaN];
  return { width, height, step, values: Float64Array.from(values), min, max };
}

/** How long the rows are that a line is broken into: four times as long as they are many, and a whole number of steps. */
function lineWidth(n: number): number {
  const width = Math.min(n, 4 * Math.ceil(Math.sqrt(n) / 2));
  const step = Math.max(1, Math.ceil(width / MOST), Math.ceil(n / width / MOST));
  return Math.ceil(width / step) * step;
}

/** The place in the value of a point of a slice. */
export function placeOf({ width, step }: Slice, { rows, columns, places }: SliceChoice, at: number): number[] {
  const [row, column] = [Math.floor(at / width) * step, (at % width) * step];
  if (rows < 0) return [row * width * step + column];
  return places.map((it, dim) => (dim === rows ? row : dim === columns ? column : it));
}

/** What is no number, and what is infinite: colours that no finite number has. */
export const NOT_FINITE: Readonly<Record<"NaN" | "infinite", Rgb>> = { NaN: [255, 0, 255], infinite: [0, 0, 0] };

/** From the least to the greatest; where there are numbers of both signs, 0 is in the middle. */
const RISING: readonly Rgb[] = [
  [68, 1, 84],
  [59, 82, 139],
  [33, 145, 140],
  [94, 201, 98],
  [253, 231, 37],
];
const DIVERGING: readonly Rgb[] = [
  [33, 102, 172],
  [146, 197, 222],
  [247, 247, 247],
  [244, 165, 130],
  [178, 24, 43],
];

/** The range of the colours of a slice: around 0 where it has numbers of both signs. */
export function rangeOf({ min, max }: Pick<Slice, "min" | "max">): readonly [from: number, to: number] {
  if (!(min < 0 && max > 0)) return [min, max];
  const largest = Math.max(-min, max);
  return [-largest, largest];
}

/** The colour of a number in a range. Those of {@link rangeOf} around 0 go from blue over white to red. */
export function colourOf(value: number, [from, to]: readonly [from: number, to: number]): Rgb {
  if (Number.isNaN(value)) return NOT_FINITE.NaN;
  if (!Number.isFinite(value)) return NOT_FINITE.infinite;
  const stops = from < 0 && from === -to ? DIVERGING : RISING;
  const place = to > from ? ((value - from) / (to - from)) * (stops.length - 1) : (stops.length - 1) / 2;
  const at = Math.min(stops.length - 2, Math.max(0, Math.floor(place)));
  const [low, high] = [stops[at] as Rgb, stops[at + 1] as Rgb];
  const share = Math.min(1, Math.max(0, place - at));
  const mixed = (channel: 0 | 1 | 2): number => Math.round(low[channel] + (high[channel] - low[channel]) * share);
  return [mixed(0), mixed(1), mixed(2)];
}
