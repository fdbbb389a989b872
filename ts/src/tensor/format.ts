/**
 * Tensors as text, exactly as PyTorch prints them.
 *
 * @module
 */
import { DTYPES, type DType } from "../../../bindings/dtypes.ts";
import { elementAt, realAt, type ElementArray } from "./elements.ts";

/** PyTorch's print options, as they are unless somebody changes them. */
const PRECISION = 4;
const THRESHOLD = 1000;
const EDGE_ITEMS = 3;
const LINE_WIDTH = 80;

/** The dtypes that PyTorch does not name, because a literal of the printed text would have them. */
const UNNAMED: ReadonlySet<DType> = new Set(["float32", "complex64", "int64", "bool"]);

type WriteElement = (index: number) => string;

/** PyTorch's `str(tensor)`. */
export function formatTensor(
  dtype: DType,
  shape: readonly number[],
  elements: ElementArray,
  requiresGrad: boolean,
): string {
  const numel = shape.reduce((product, size) => product * size, 1);
  const suffixes: string[] = [];
  if (numel === 0 && shape.length !== 1) suffixes.push(`size=(${shape.join(", ")})`);
  if (numel === 0 ? dtype !== "float32" : !UNNAMED.has(dtype)) suffixes.push(`dtype=torch.${dtype}`);
  if (requiresGrad) suffixes.push("requires_grad=True");
  const indent = "tensor(".length;
  const text = `tensor(${numel === 0 ? "[]" : formatElements(dtype, shape, elements, indent)}`;
  return withSuffixes(text, suffixes, indent);
}

function formatElements(dtype: DType, shape: readonly number[], elements: ElementArray, indent: number): string {
  const isSummary = elements.length > THRESHOLD * (DTYPES[dtype].kind === "complex" ? 2 : 1);
  const shown = shownIndices(shape, isSummary);
  const { write, width } = writer(dtype, elements, shown);
  const perLine = (at: number): number => Math.max(1, Math.floor((LINE_WIDTH - at) / (width + 2)));
  const lay = (dim: number, base: number, at: number): string => {
    if (dim === shape.length) return write(base);
    const size = shape[dim] as number;
    const stride = shape.slice(dim + 1).reduce((product, it) => product * it, 1);
    const isLast = dim === shape.length - 1;
    const parts = edges(size, isSummary).map((index) =>
      index === undefined ? (isLast ? " ..." : "...") : lay(dim + 1, base + index * stride, at + 1),
    );
    const gap = " ".repeat(at + 1);
    if (!isLast) return `[${parts.join(`,${"\n".repeat(shape.length - dim - 1)}${gap}`)}]`;
    const lines: string[] = [];
    for (let from = 0; from < parts.length; from += perLine(at)) {
      lines.push(parts.slice(from, from + perLine(at)).join(", "));
    }
    return `[${lines.join(`,\n${gap}`)}]`;
  };
  return lay(0, 0, indent);
}

/** The indices along one dimension, with `undefined` where the middle is left out. */
function edges(size: number, isSummary: boolean): (number | undefined)[] {
  if (!isSummary || size <= 2 * EDGE_ITEMS) return Array.from({ length: size }, (_, index) => index);
  return [0, 1, 2, undefined, size - 3, size - 2, size - 1];
}

/** The flat indices of the elements that are printed: they alone decide the width and the notation. */
function shownIndices(shape: readonly number[], isSummary: boolean): number[] {
  let res = [0];
  for (const size of shape) {
    const along = edges(size, isSummary).filter((it) => it !== undefined);
    res = res.flatMap((base) => along.map((index) => base * size + index));
  }
  return res;
}

function writer(dtype: DType, elements: ElementArray, shown: number[]): { write: WriteElement; width: number } {
  switch (DTYPES[dtype].kind) {
    case "bool":
    case "int": {
      const text = (index: number): string => {
        const it = elementAt(dtype, elements, index);
        return typeof it === "boolean" ? (it ? "True" : "False") : it.toString();
      };
      const width = shown.reduce((most, index) => Math.max(most, text(index).length), 1);
      return { write: (index) => text(index).padStart(width), width };
    }
    case "float": {
      const { write, width } = floatWriter(shown.map((index) => realAt(dtype, elements, index)));
      return { write: (index) => write(realAt(dtype, elements, index)), width };
    }
    case "complex": {
      const re = floatWriter(shown.map((index) => realAt(dtype, elements, 2 * index)));
      const im = floatWriter(shown.map((index) => realAt(dtype, elements, 2 * index + 1)));
      const write = (index: number): string => {
        const imaginary = `${im.write(realAt(dtype, elements, 2 * index + 1))}j`.trimStart();
        const plus = /^[+-]/.test(imaginary) ? "" : "+";
        return `${re.write(realAt(dtype, elements, 2 * index))}${plus}${imaginary}`;
      };
      return { write, width: re.width + im.width + 1 };
    }
  }
}

/** PyTorch's `_Formatter`: one notation and width for all elements. */
function floatWriter(values: readonly number[]): { write: (value: number) => string; width: number } {
  const finite = values.filter((it) => Number.isFinite(it) && it !== 0);
  const least = finite.reduce((res, it) => Math.min(res, Math.abs(it)), Infinity);
  const most = finite.reduce((res, it) => Math.max(res, Math.abs(it)), 0);
  const isWhole = finite.every((it) => Number.isInteger(it));
  const isScientific = finite.length > 0 && (most / least > 1000 || most > 1e8 || least < 1e-4);
  const text = (value: number): string => {
    if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
    if (isScientific) return scientific(value);
    return isWhole ? `${fixed(value, 0)}.` : fixed(value, PRECISION);
  };
  const width = finite.reduce((res, it) => Math.max(res, text(it).length), 1);
  return { write: (value) => text(value).padStart(width), width };
}

/** Python's `format(value, ".4e")`. */
function scientific(value: number): string {
  const [mantissa, power] = rounded(Math.abs(value), PRECISION, "toExponential").split("e") as [string, string];
  return `${sign(value)}${mantissa}e${power[0] as string}${power.slice(1).padStart(2, "0")}`;
}

/** Python's `format(value, ".4f")`. */
function fixed(value: number, digits: number): string {
  const magnitude = Math.abs(value);
  // JavaScript changes to powers of ten from here; numbers of this size are whole.
  if (magnitude >= 1e21) return `${sign(value)}${BigInt(magnitude)}${digits > 0 ? `.${"0".repeat(digits)}` : ""}`;
  return `${sign(value)}${rounded(magnitude, digits, "toFixed")}`;
}

function sign(value: number): string {
  return value < 0 || Object.is(value, -0) ? "-" : "";
}

/** JavaScript rounds exactly, as Python does, but of two equally near numbers it takes the larger, and Python the even. */
function rounded(value: number, digits: number, method: "toExponential" | "toFixed"): string {
  const [, kept, rest, power] = /^(\d+\.\d*?)(\d{60})(e.*)?$/.exec(value[method](digits + 60)) as unknown as string[];
  const isTieToEven = /^50*$/.test(rest as string) && /[02468]\.?$/.test(kept as string);
  return isTieToEven ? `${(kept as string).replace(/\.$/, "")}${power ?? ""}` : value[method](digits);
}

function withSuffixes(text: string, suffixes: readonly string[], indent: number): string {
  let res = text;
  let lineLength = text.length - text.lastIndexOf("\n") + 1;
  for (const suffix of suffixes) {
    if (lineLength + suffix.length + 2 > LINE_WIDTH) {
      res += `,\n${" ".repeat(indent)}${suffix}`;
      lineLength = indent + suffix.length;
    } else {
      res += `, ${suffix}`;
      lineLength += suffix.length + 2;
    }
  }
  return `${res})`;
}
